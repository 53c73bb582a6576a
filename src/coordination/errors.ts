/** Errors of the coordination store. */
import { defineError } from '../errors.js';

export const coordinationUnavailable = defineError(
  'TW_DHT_COORDINATION_UNAVAILABLE',
  503,
  'The coordination store (etcd) did not answer in time, or a proxy answered in its place. Nothing was written, so the same request may be made again. Look whether most etcd servers run and can be reached; it goes on by itself when they do.',
  (what: string, where: string, detail: string) =>
    `${what}: ${where} did not answer in time (${detail}); nothing was written; look whether etcd runs, then try again`,
);

export const outcomeUnknown = defineError(
  'TW_DHT_OUTCOME_UNKNOWN',
  503,
  'The coordination store (etcd) was given a change and did not answer in time, or a proxy answered in its place, so it is not known whether the change was made. It was made as a whole or not at all. Look at the result before the request is made again.',
  (what: string, where: string, detail: string) =>
    `${what}: ${where} did not answer in time (${detail}); it is not known whether the change was made; look at the result once etcd is back`,
);

export const coordinationRefused = defineError(
  'TW_DHT_COORDINATION_REFUSED',
  500,
  'The coordination store (etcd) has refused a request; the message says why. If it is about users or permissions, check the user and password in its URL.',
  (what: string, where: string, detail: string) => `${what}: ${where} has refused it: ${detail}`,
);

export const coordinationFull = defineError(
  'TW_DHT_COORDINATION_FULL',
  507,
  'The database of etcd has reached its quota. Compact and defragment it, or raise its quota, then disarm the alarm (`etcdctl alarm disarm`).',
  (where: string) =>
    `the database of etcd at ${where} is full; compact and defragment it or raise its quota, then run "etcdctl alarm disarm"`,
);

export const badEtcdUrl = defineError(
  'TW_DHT_BAD_ETCD_URL',
  400,
  'An address of etcd is no URL. Give each server as `http://host:2379` or `https://user:password@host:2379`.',
  (url: string) =>
    `${JSON.stringify(url.replace(/[^/]*@/, '...@'))} is no URL of an etcd server; write it like http://host:2379`,
);

export const leaseGone = defineError(
  'TW_DHT_LEASE_GONE',
  409,
  'A lease in the coordination store has expired, because this node could not keep it alive. What it held is free for others.',
  (what: string) => `${what}: the lease has expired; what it held is free for others`,
);

export const documentDamaged = defineError(
  'TW_DHT_DOCUMENT_DAMAGED',
  500,
  'A value in the coordination store is not what this version writes. Something else writes to its keys, or another version does.',
  (key: string) => `the value of key ${key} in the coordination store is not one that this version writes`,
);
