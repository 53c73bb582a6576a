/** Which cluster a tile store belongs to: the object `cluster.json`, which never changes. */
import { randomUUID } from 'node:crypto';
import type { ObjectStore } from '../storage/index.js';
import { MANIFESTS, seqOf } from './checkpoint.js';
import { enterCluster, foundCluster } from './cluster-document.js';
import type { CommitLog } from './commit-log.js';
import type { CoordinationStore } from './coordination/store.js';
import { clusterDocumentDamaged, logBehindStore, noCluster } from './errors.js';
import { listCopies } from './log-copies.js';
import { DEFAULT_PREFIX_LENGTHS, type PrefixLengths } from './slots.js';

/** Of the values in the coordination store and of the objects in the tile store. */
export const FORMAT = 1;
const IDENTITY = 'cluster.json';

export interface Identity {
  id: string;
  prefixLengths: PrefixLengths;
}

/** Whose tile store it is. One that is empty becomes the coordination store's cluster's, which is made where there is none. */
export async function identityOf(
  objects: ObjectStore,
  coordination: CoordinationStore,
  log: CommitLog,
): Promise<Identity> {
  const known = await readIdentity(objects);
  if (known) {
    const { id, prefixLengths } = known;
    await enterCluster(coordination, { id, format: FORMAT, prefixLengths: { ...prefixLengths } });
    return { id, prefixLengths };
  }
  const proposed = { id: randomUUID(), format: FORMAT, prefixLengths: { ...DEFAULT_PREFIX_LENGTHS } };
  const found = await foundCluster(coordination, proposed);
  const { head } = await log.readSince(0, 1);
  if (head > 0)
    throw clusterDocumentDamaged(objects.url, `it is missing, though the cluster has ${head} commits`);
  const identity = { id: found.id, prefixLengths: found.prefixLengths };
  // Nodes that start at the same time all write the same.
  await objects.put(IDENTITY, Buffer.from(JSON.stringify(identity)));
  return parseIdentity(Buffer.from(JSON.stringify(identity)), objects.url);
}

/** Undefined where the store has none yet. TW_DHT_STORE_IDENTITY. */
export async function readIdentity(objects: ObjectStore): Promise<Identity | undefined> {
  if (!(await objects.head(IDENTITY))) return undefined;
  return parseIdentity(await objects.get(IDENTITY), objects.url);
}

function parseIdentity(bytes: Buffer, url: string): Identity {
  let found: Partial<Identity>;
  try {
    found = JSON.parse(bytes.toString()) as Partial<Identity>;
  } catch (error) {
    throw clusterDocumentDamaged.because(error, url, 'it is no JSON');
  }
  const { id, prefixLengths } = found;
  if (typeof id !== 'string' || !prefixLengths)
    throw clusterDocumentDamaged(url, 'it has no id or no prefix lengths');
  return { id, prefixLengths };
}

/** Throws TW_DHT_LOG_BEHIND_STORE where the store has commits that the log does not know. */
export async function requireWholeLog(log: CommitLog, objects: ObjectStore): Promise<void> {
  // What the store has now is in the log then.
  let stored = (await listCopies(objects)).at(-1) ?? 0;
  for await (const { name } of objects.list(MANIFESTS)) stored = Math.max(stored, seqOf(name) || 0);
  const { head } = await log.readSince(0, 1);
  if (stored > head) throw logBehindStore(objects.url, head);
}

/** The cluster that is there already. Throws TW_DHT_NO_CLUSTER, TW_DHT_OTHER_CLUSTER, TW_DHT_LOG_BEHIND_STORE. */
export async function readCluster(
  objects: ObjectStore,
  coordination: CoordinationStore,
  log: CommitLog,
): Promise<Identity> {
  if (!(await readIdentity(objects))) throw noCluster(objects.url);
  await requireWholeLog(log, objects);
  return identityOf(objects, coordination, log);
}
