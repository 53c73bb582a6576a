/**
 * The identity of a tile store: the cluster that it belongs to, and the coordination store of its nodes.
 *
 * Invariant: one coordination store is valid for a tile store. It gets the document of the cluster before the tile store gets
 * `cluster.json`, which never changes. Only a restore moves the cluster to another coordination store, and it records that in the tile
 * store. Nodes with any other coordination store are refused, because both would number commits and overwrite the commits of each other.
 */
import { randomUUID } from 'node:crypto';
import { type CoordinationStore, compareAndSet, parseJsonValue, readKey } from '../../coordination/index.js';
import { type ObjectStore, storeExists } from '../../storage/index.js';
import { parseJsonOr } from '../../utils/json-text.js';
import { type CommitLog, listArchived, MANIFESTS_FOLDER, seqOfObject } from '../commit-log/index.js';
import {
  clusterDocumentDamaged,
  logBehindStore,
  noCluster,
  otherCluster,
  otherCoordination,
  storeNotEmpty,
} from '../errors.js';
import { DEFAULT_PREFIX_LENGTHS, type PrefixLengths } from '../placement/index.js';
import { latestRestore, readEpoch } from './recovery-epoch.js';

/** The format of the values in the coordination store and of the objects in the tile store. */
export const FORMAT = 1;
const IDENTITY_OBJECT = 'cluster.json';

export interface ClusterIdentity {
  id: string;
  prefixLengths: PrefixLengths;
  /** A description of the coordination store, if one was recorded. */
  coordination?: string;
}

/**
 * The cluster of a tile store. An empty tile store gets the cluster of the coordination store, which is created if necessary; if several
 * coordination stores compete for a tile store, one wins. `coordinationLabel` describes the coordination store in the error messages
 * of other nodes. Throws TW_DHT_OTHER_COORDINATION, TW_DHT_OTHER_CLUSTER, TW_DHT_STORE_NOT_EMPTY, TW_DHT_STORE_IDENTITY.
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
  if (!(await readCluster(coordination))) await requireUnused(objects);
  const proposed = { id: randomUUID(), format: FORMAT, prefixLengths: DEFAULT_PREFIX_LENGTHS };
  const { id, prefixLengths } = await createClusterIfAbsent(coordination, proposed);
  const { head } = await log.readSince(0, 1);
  if (head > 0)
    throw clusterDocumentDamaged(objects.url, `it is missing, but the cluster has ${head} commits`);
  // All nodes with the same coordination store write the same bytes.
  const bytes = Buffer.from(JSON.stringify({ id, prefixLengths, coordination: coordinationLabel }));
  await objects.put(IDENTITY_OBJECT, bytes, { ifAbsent: true }).catch((error) => {
    if (!storeExists.is(error)) throw error;
  });
  const written = await readIdentity(objects);
  if (!written) throw clusterDocumentDamaged(objects.url, 'it was deleted right after it was written');
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
  const known = await readCluster(coordination);
  const isAbandoned = newest !== undefined && (await readEpoch(coordination))?.id !== newest.id;
  if (known?.id !== id || isAbandoned)
    throw otherCoordination(objects.url, id, newest?.coordination ?? first, known?.id);
  requireSameCluster(known, { id, format: FORMAT, prefixLengths });
}

/** Folders of the tile store from which garbage collection removes everything that no commit refers to. */
const GC_FOLDERS = ['catalogue/', 'tiles/', 'models/'];

/** Throws TW_DHT_STORE_NOT_EMPTY if garbage collection of a new cluster would remove objects of the store. */
async function requireUnused(objects: ObjectStore): Promise<void> {
  if (await objects.head('node.json')) throw storeNotEmpty(objects.url, 'node.json', true);
  for (const folder of GC_FOLDERS)
    for await (const { name } of objects.list(folder)) throw storeNotEmpty(objects.url, name, false);
}

/** The identity in `cluster.json`; undefined if the store has none yet. TW_DHT_STORE_IDENTITY. */
export async function readIdentity(objects: ObjectStore): Promise<ClusterIdentity | undefined> {
  if (!(await objects.head(IDENTITY_OBJECT))) return undefined;
  const text = (await objects.get(IDENTITY_OBJECT)).toString();
  const { id, prefixLengths, coordination } = parseJsonOr<Partial<ClusterIdentity>>(text, (cause) =>
    clusterDocumentDamaged.because(cause, objects.url, 'it is not JSON'),
  );
  if (typeof id !== 'string' || !prefixLengths)
    throw clusterDocumentDamaged(objects.url, 'it has no id or no prefix lengths');
  return { id, prefixLengths, ...(coordination !== undefined && { coordination }) };
}

/** Throws TW_DHT_LOG_BEHIND_STORE if the store has commits that the log does not know. */
export async function requireLogCoversStore(log: CommitLog, objects: ObjectStore): Promise<void> {
  // The store is listed before the log is read, so the log covers everything that was listed.
  let stored = (await listArchived(objects)).at(-1) ?? 0;
  for await (const { name } of objects.list(MANIFESTS_FOLDER))
    stored = Math.max(stored, seqOfObject(name) || 0);
  const { head } = await log.readSince(0, 1);
  if (stored > head) throw logBehindStore(objects.url, head);
}

/** The existing cluster. Throws TW_DHT_NO_CLUSTER, TW_DHT_OTHER_COORDINATION, TW_DHT_OTHER_CLUSTER, TW_DHT_LOG_BEHIND_STORE. */
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

/** The properties of a cluster that never change. */
export interface ClusterDocument {
  id: string;
  /** The format of the values in the coordination store and of the objects in the tile store. */
  format: number;
  /** Number of leading characters of a geocode that determine its slot, by grid. */
  prefixLengths: PrefixLengths;
}

export const CLUSTER_KEY = 'cluster';
const FIELDS: (keyof ClusterDocument)[] = ['id', 'format', 'prefixLengths'];

/** The cluster of a coordination store; undefined if it has none. */
export async function readCluster(store: CoordinationStore): Promise<ClusterDocument | undefined> {
  const kv = await readKey(store, CLUSTER_KEY);
  return kv && parseJsonValue<ClusterDocument>(kv, FIELDS);
}

/** Throws TW_DHT_OTHER_CLUSTER if the properties of a cluster are not the wanted ones. */
export function requireSameCluster(existing: ClusterDocument, wanted: ClusterDocument): void {
  const [found, text] = [describeCluster(existing), describeCluster(wanted)];
  if (found !== text) throw otherCluster(found, text);
}

/** The document of the existing cluster; `proposed` is stored if there is none. One of several concurrent calls wins. */
export async function createClusterIfAbsent(
  store: CoordinationStore,
  proposed: ClusterDocument,
): Promise<ClusterDocument> {
  const value = JSON.stringify(proposed);
  const { current } = await compareAndSet(store, { key: CLUSTER_KEY, value, revision: 0 });
  return parseJsonValue<ClusterDocument>(current!, FIELDS);
}

function describeCluster({ id, format, prefixLengths }: ClusterDocument): string {
  const lengths = Object.entries(prefixLengths).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${id} (format ${format}, prefixes ${lengths.map(([grid, length]) => `${grid} ${length}`).join(', ')})`;
}
