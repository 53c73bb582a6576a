import { defineError } from '../errors.js';

export const coordinationUnavailable = defineError(
  'TW_DHT_COORDINATION_UNAVAILABLE',
  503,
  'The coordination store (etcd) did not answer in time. Nothing was written, so the same request may be made again. Look whether most etcd servers run and can be reached; it goes on by itself when they do.',
  (what: string, where: string, detail: string) =>
    `${what}: ${where} did not answer in time (${detail}); nothing was written; look whether etcd runs, then try again`,
);

export const outcomeUnknown = defineError(
  'TW_DHT_OUTCOME_UNKNOWN',
  503,
  'The coordination store (etcd) was given a change and did not answer in time, so it is not known whether the change was made. It was made as a whole or not at all. Look at the result before the request is made again.',
  (what: string, where: string, detail: string) =>
    `${what}: ${where} did not answer in time (${detail}); it is not known whether the change was made; look at the result once etcd is back`,
);

export const coordinationRefused = defineError(
  'TW_DHT_COORDINATION_REFUSED',
  500,
  'The coordination store (etcd) has refused a request; the message says why. Where it is about users or permissions, check the user and password in its URL.',
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

export const nodeIdTaken = defineError(
  'TW_DHT_NODE_ID_TAKEN',
  409,
  'Another running node of the cluster has this id. Give every node an id and a data folder of its own.',
  (id: string, holder: string) =>
    `node id ${id} is in use by the node at ${holder}; start this one with another data folder or id`,
);

export const claimed = defineError(
  'TW_DHT_CLAIMED',
  409,
  'Another node or job works on this scene or share of a job. Wait until it has ended.',
  (name: string, holder: string) => `${name} is busy: ${holder} works on it; wait until it has ended`,
);

export const claimLost = defineError(
  'TW_DHT_CLAIM_LOST',
  409,
  'The claim of a scene or share of a job has expired or was taken by another, so what was made under it was not committed. Do the work again.',
  (name: string) => `the claim of ${name} is lost, so nothing was committed; do the work again`,
);

export const collectionChanged = defineError(
  'TW_DHT_COLLECTION_CHANGED',
  409,
  'The collection was deleted or changed while a write to it was under way, so nothing was committed. Do the work again if it is still wanted.',
  (id: string) =>
    `collection ${id} was changed or deleted meanwhile, so nothing was committed; do the work again`,
);

export const entryTooLarge = defineError(
  'TW_DHT_ENTRY_TOO_LARGE',
  500,
  'An entry of the commit log is larger than the log takes. This is a fault in the program; nothing was committed.',
  (segment: string, bytes: number, most: number) =>
    `the log entry of segment ${segment} has ${bytes} bytes, but at most ${most} are taken; nothing was committed`,
);

export const logDamaged = defineError(
  'TW_DHT_LOG_DAMAGED',
  500,
  'The commit log in the coordination store lacks entries, or ends before commits that this node has seen: it was restored from an old copy, or keys were deleted. Restore etcd from the tile store.',
  (detail: string) => `the commit log is damaged: ${detail}; restore etcd from the tile store`,
);

export const documentDamaged = defineError(
  'TW_DHT_DOCUMENT_DAMAGED',
  500,
  'A value in the coordination store is not what this version writes. Something else writes to its keys, or another version does.',
  (key: string) => `the value of key ${key} in the coordination store is not one that this version writes`,
);

export const otherCluster = defineError(
  'TW_DHT_OTHER_CLUSTER',
  409,
  'The coordination store holds another cluster under this name, or one with another format or other prefix lengths. Choose another cluster name, or the version and settings that made it.',
  (found: string, wanted: string) =>
    `the coordination store holds the cluster ${found}, but this node is of ${wanted}; choose another cluster name, or the settings that made it`,
);
