/**
 * Which cluster a tile store belongs to, and by whom its nodes agree.
 *
 * Invariant: one coordination store knows the cluster of a tile store. It gets the cluster's document before the tile store gets
 * `cluster.json`, which never changes, and no other one gets it but by a restoration, which leaves its name in the tile store. Whoever
 * else comes with another coordination store is refused: the two would each number commits, and overwrite what the other has acknowledged.
 */
import { randomUUID } from 'node:crypto';
import type { CoordinationStore } from '../../coordination/index.js';
import { type ObjectStore, storeExists } from '../../storage/index.js';
import { MANIFESTS_FOLDER, seqOfObject } from '../commit/checkpoint.js';
import type { CommitLog } from '../commit/commit-log.js';
import { listArchived } from '../commit/log-archive.js';
import {
  clusterDocumentDamaged,
  logBehindStore,
  noCluster,
  otherCoordination,
  storeNotEmpty,
} from '../errors.js';
import { DEFAULT_PREFIX_LENGTHS, type PrefixLengths } from '../placement/slots.js';
import { createClusterIfAbsent, readClusterId, verifyClusterDocument } from './cluster-document.js';
import { latestRestore, readEpoch } from './restore-epoch.js';

/** Of the values in the coordination store and of the objects in the tile store. */
export const FORMAT = 1;
const IDENTITY_OBJECT = 'cluster.json';

export interface ClusterIdentity {
  id: string;
  prefixLengths: PrefixLengths;
  /** By whom the nodes agree, in words, where that was noted. */
  coordination?: string;
}

/**
 * Whose tile store it is. One that is empty becomes the coordination store's cluster's, which is made where there is none; of several
 * that come at once with coordination stores of their own, one gets it. `words` say which coordination store it is, for the others' messages. Throws
 * TW_DHT_OTHER_COORDINATION, TW_DHT_OTHER_CLUSTER, TW_DHT_STORE_NOT_EMPTY, TW_DHT_STORE_IDENTITY.
 */
export async function openClusterIdentity(
  objects: ObjectStore,
  coordination: CoordinationStore,
  log: CommitLog,
  coordinationLabel?: string,
): Promise<ClusterIdentity> {
  const known = await readIdentity(objects);
  if (known) {
    await requireCoordination(objects, coordination, known);
    return known;
  }
  if ((await readClusterId(coordination)) === undefined) await requireUnused(objects);
  const proposed = { id: randomUUID(), format: FORMAT, prefixLengths: { ...DEFAULT_PREFIX_LENGTHS } };
  const { id, prefixLengths } = await createClusterIfAbsent(coordination, proposed);
  const { head } = await log.readSince(0, 1);
  if (head > 0)
    throw clusterDocumentDamaged(objects.url, `it is missing, though the cluster has ${head} commits`);
  // Nodes that agree by one coordination store all write the same.
  const bytes = Buffer.from(
    JSON.stringify({
      id,
      prefixLengths,
      ...(coordinationLabel !== undefined && { coordination: coordinationLabel }),
    }),
  );
  await objects.put(IDENTITY_OBJECT, bytes, { ifAbsent: true }).catch((error) => {
    if (!storeExists.is(error)) throw error;
  });
  const written = await readIdentity(objects);
  if (!written) throw clusterDocumentDamaged(objects.url, 'it went while it was written');
  await requireCoordination(objects, coordination, written);
  return written;
}

/** Throws TW_DHT_OTHER_COORDINATION, TW_DHT_OTHER_CLUSTER. */
async function requireCoordination(
  objects: ObjectStore,
  coordination: CoordinationStore,
  { id, prefixLengths, coordination: first }: ClusterIdentity,
): Promise<void> {
  const newest = await latestRestore(objects);
  const known = await readClusterId(coordination);
  const isLeft = newest !== undefined && (await readEpoch(coordination))?.id !== newest.id;
  if (known !== id || isLeft) throw otherCoordination(objects.url, id, newest?.coordination ?? first, known);
  await verifyClusterDocument(coordination, { id, format: FORMAT, prefixLengths: { ...prefixLengths } });
}

/** Folders of the store in which the sweep removes what no commit names. */
const GC_FOLDERS = ['catalogue/', 'tiles/', 'models/'];

/** A store without a cluster must have nothing that the sweep of a new one would remove. Throws TW_DHT_STORE_NOT_EMPTY. */
async function requireUnused(objects: ObjectStore): Promise<void> {
  if (await objects.head('node.json')) throw storeNotEmpty(objects.url, 'node.json', true);
  for (const folder of GC_FOLDERS)
    for await (const { name } of objects.list(folder)) throw storeNotEmpty(objects.url, name, false);
}

/** Undefined where the store has none yet. TW_DHT_STORE_IDENTITY. */
export async function readIdentity(objects: ObjectStore): Promise<ClusterIdentity | undefined> {
  if (!(await objects.head(IDENTITY_OBJECT))) return undefined;
  return parseIdentity(await objects.get(IDENTITY_OBJECT), objects.url);
}

function parseIdentity(bytes: Buffer, url: string): ClusterIdentity {
  let found: Partial<ClusterIdentity>;
  try {
    found = JSON.parse(bytes.toString()) as Partial<ClusterIdentity>;
  } catch (error) {
    throw clusterDocumentDamaged.because(error, url, 'it is no JSON');
  }
  const { id, prefixLengths, coordination } = found;
  if (typeof id !== 'string' || !prefixLengths)
    throw clusterDocumentDamaged(url, 'it has no id or no prefix lengths');
  return { id, prefixLengths, ...(coordination !== undefined && { coordination }) };
}

/** Throws TW_DHT_LOG_BEHIND_STORE where the store has commits that the log does not know. */
export async function requireLogCoversStore(log: CommitLog, objects: ObjectStore): Promise<void> {
  // What the store has now is in the log then.
  let stored = (await listArchived(objects)).at(-1) ?? 0;
  for await (const { name } of objects.list(MANIFESTS_FOLDER))
    stored = Math.max(stored, seqOfObject(name) || 0);
  const { head } = await log.readSince(0, 1);
  if (stored > head) throw logBehindStore(objects.url, head);
}

/** The cluster that is there already. Throws TW_DHT_NO_CLUSTER, TW_DHT_OTHER_COORDINATION, TW_DHT_OTHER_CLUSTER, TW_DHT_LOG_BEHIND_STORE. */
export async function openExistingCluster(
  objects: ObjectStore,
  coordination: CoordinationStore,
  log: CommitLog,
): Promise<ClusterIdentity> {
  if (!(await readIdentity(objects))) throw noCluster(objects.url);
  const identity = await openClusterIdentity(objects, coordination, log);
  await requireLogCoversStore(log, objects);
  return identity;
}
