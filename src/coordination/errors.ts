/** Errors of the coordination store. */
import { defineError } from '../errors.js';

export const coordinationUnavailable = defineError(
  'TW_DHT_COORDINATION_UNAVAILABLE',
  503,
  'The coordination store (etcd) did not answer in time, or a proxy answered in its place. Nothing was written, so the request can be repeated. Check that a majority of the etcd servers is running and reachable; tilewright continues by itself once it is.',
  (what: string, where: string, detail: string) =>
    `${what}: ${where} did not answer in time (${detail}); nothing was written; check that etcd is running, then try again`,
);

export const outcomeUnknown = defineError(
  'TW_DHT_OUTCOME_UNKNOWN',
  503,
  'The coordination store (etcd) did not answer a change in time, or a proxy answered in its place, so it is unknown whether the change was made. It was made completely or not at all. Check the result before you repeat the request.',
  (what: string, where: string, detail: string) =>
    `${what}: ${where} did not answer in time (${detail}); it is unknown whether the change was made; check the result once etcd is back`,
);

export const coordinationRefused = defineError(
  'TW_DHT_COORDINATION_REFUSED',
  500,
  'The coordination store (etcd) refused a request; the message gives the reason. If the reason is about users or permissions, check the user and password in the URL.',
  (what: string, where: string, detail: string) => `${what}: ${where} refused it: ${detail}`,
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
  'The address of an etcd server is not a URL. Write each server as `http://host:2379` or `https://user:password@host:2379`.',
  (url: string) =>
    `${JSON.stringify(url.replace(/[^/]*@/, '...@'))} is not a URL of an etcd server; write it like http://host:2379`,
);

export const leaseGone = defineError(
  'TW_DHT_LEASE_GONE',
  409,
  'A lease in the coordination store has expired, because this node could not renew it. Other nodes can now take what it protected.',
  (what: string) => `${what}: the lease has expired; other nodes can now take what it protected`,
);

export const documentDamaged = defineError(
  'TW_DHT_DOCUMENT_DAMAGED',
  500,
  'A value in the coordination store does not have the format of this version. Another program or another version writes to the keys of this cluster.',
  (key: string) =>
    `the value of key ${key} in the coordination store does not have the format of this version`,
);
