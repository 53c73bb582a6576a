/** The identity of a cluster and the restores of its etcd: rebuilds the keys in etcd from the tile store of the cluster. */
import { randomUUID } from 'node:crypto';
import { toArray } from '../async/index.js';
import {
  type CoordinationStore,
  compareAndSet,
  firstKeyValue,
  type Operation,
  parseJsonValue,
  prefixRange,
  type RangeResult,
  readKey,
} from '../coordination/index.js';
import { type ObjectStore, type RecordEdit, storeExists } from '../storage/index.js';
import { parseJsonOr } from '../utils/json-text.js';
import {
  clusterDocumentDamaged,
  coordinationNotEmpty,
  logArchiveIncomplete,
  logBehindStore,
  noCluster,
  nodesStillRunning,
  otherCluster,
  otherCoordination,
  storeNotEmpty,
} from './errors.js';
import { listArchived, readArchived } from './log/archive.js';
import {
  checkpointRecords,
  MANIFESTS_FOLDER,
  type Manifest,
  PARTS_FOLDER,
  readManifest,
  segmentsOf,
  seqOfObject,
} from './log/checkpoint.js';
import { type CollectionSchema, schemaKey } from './log/committer.js';
import { type CommitLog, type CommittedEntry, entryPut, headAndCheckpointPuts } from './log/log.js';
import { SegmentReader, segmentName } from './log/segment.js';
import { requireNoHeartbeats } from './membership.js';
import { DEFAULT_PREFIX_LENGTHS, type PrefixLengths } from './slots.js';

const EPOCH_KEY = 'restored';
const RESTORATIONS_FOLDER = 'restorations/';
/** Digits of the number in a name, so that names sort by it. */
const EPOCH_DIGITS = 8;

/**
 * A restore of etcd in the tile store: `restorations/<number>-<id>`. The last one is not the one that wrote the keys of a coordination
 * store if another coordination store has taken over the tile store since.
 */
interface RestoreRecord {
  id: string;
  /** A description of the restored coordination store. */
  coordination?: string;
}

/** The record in the coordination store of the restore that wrote its keys. */
interface EpochDocument {
  id: string;
  /** The number of the restore, counted per tile store. Earlier versions of the program did not write it. */
  epoch?: number;
}

/**
 * The restore that wrote the keys; undefined if there was none. If a node knows another restore, the commit numbers that it has seen may
 * now belong to other commits.
 */
export async function readEpoch(coordination: CoordinationStore): Promise<EpochDocument | undefined> {
  const kv = await readKey(coordination, EPOCH_KEY);
  return kv && parseJsonValue<EpochDocument>(kv, ['id']);
}

/** The epoch of new versions: the number of the restore, 0 if there was none. `objects` is the tile store of the keys. */
export async function epochNumber(
  restored: EpochDocument | undefined,
  objects: ObjectStore,
): Promise<number> {
  if (!restored) return 0;
  return restored.epoch ?? epochOfName(await newestRestoreName(objects));
}

/** The operation that records which restore wrote the keys. */
export const epochPut = ({ id, epoch }: Required<EpochDocument>) =>
  ({ op: 'put', key: EPOCH_KEY, value: JSON.stringify({ id, epoch } satisfies EpochDocument) }) as const;

/** The last restore from a tile store; undefined if there was none. */
async function latestRestore(objects: ObjectStore): Promise<RestoreRecord | undefined> {
  const name = await newestRestoreName(objects);
  return name === undefined ? undefined : (JSON.parse((await objects.get(name)).toString()) as RestoreRecord);
}

/** Records a restore in the tile store, so that nodes of the previous coordination store refuse to start. */
export async function startEpoch(
  objects: ObjectStore,
  coordination: string | undefined,
): Promise<Required<EpochDocument>> {
  const last = epochOfName(await newestRestoreName(objects));
  const id = randomUUID();
  const name = `${RESTORATIONS_FOLDER}${`${last + 1}`.padStart(EPOCH_DIGITS, '0')}-${id}`;
  await objects.put(name, Buffer.from(JSON.stringify({ id, coordination })));
  return { id, epoch: last + 1 };
}

const epochOfName = (name: string | undefined) =>
  Number(name?.slice(RESTORATIONS_FOLDER.length, RESTORATIONS_FOLDER.length + EPOCH_DIGITS) ?? 0);

async function newestRestoreName(objects: ObjectStore): Promise<string | undefined> {
  return (await toArray(objects.list(RESTORATIONS_FOLDER))).at(-1)?.name;
}

/** The format of the values in the coordination store and of the objects in the tile store. */
const CLUSTER_FORMAT = 4;
const IDENTITY_OBJECT = 'cluster.json';

/**
 * The identity of a tile store: the cluster that it belongs to, and the coordination store of its nodes.
 *
 * Invariant: one coordination store is valid for a tile store. It gets the document of the cluster before the tile store gets
 * `cluster.json`, which never changes. Only a restore moves the cluster to another coordination store, and it records that in the tile
 * store. Nodes with any other coordination store are refused, because both would number commits and overwrite the commits of each other.
 */
interface ClusterIdentity {
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
  const proposed = { id: randomUUID(), format: CLUSTER_FORMAT, prefixLengths: DEFAULT_PREFIX_LENGTHS };
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
  requireSameCluster(known, { id, format: CLUSTER_FORMAT, prefixLengths });
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
interface ClusterDocument {
  id: string;
  /** The format of the values in the coordination store and of the objects in the tile store. */
  format: number;
  /** Number of leading characters of a geocode that determine its slot, by grid. */
  prefixLengths: PrefixLengths;
}

const CLUSTER_KEY = 'cluster';
const CLUSTER_FIELDS: (keyof ClusterDocument)[] = ['id', 'format', 'prefixLengths'];

/** The cluster of a coordination store; undefined if it has none. */
export async function readCluster(store: CoordinationStore): Promise<ClusterDocument | undefined> {
  const kv = await readKey(store, CLUSTER_KEY);
  return kv && parseJsonValue<ClusterDocument>(kv, CLUSTER_FIELDS);
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
  return parseJsonValue<ClusterDocument>(current!, CLUSTER_FIELDS);
}

function describeCluster({ id, format, prefixLengths }: ClusterDocument): string {
  const lengths = Object.entries(prefixLengths).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${id} (format ${format}, prefixes ${lengths.map(([grid, length]) => `${grid} ${length}`).join(', ')})`;
}

/** This key exists while a restore writes the keys; its value is the id of the cluster. */
const RESTORING_KEY = 'restoring';
const MEMBER_KEYS = prefixRange('members/');
/** The range of all keys of a cluster, which begin with letters. */
const ALL_KEYS = { key: ' ', end: '~' };
/** Operations in one transaction; etcd accepts 128. */
const MAX_OPERATIONS = 100;

export interface RestoreReport {
  cluster: string;
  /** Number of the last commit in the checkpoint; 0 without a checkpoint. */
  checkpoint: number;
  /** Number of the last commit. */
  commits: number;
  collections: number;
}

export interface RestoreOptions {
  /** A description of the coordination store, for the error messages of nodes with another one. */
  coordinationLabel?: string;
  /** How long a node that was not stopped cleanly may take to show that it is running, ms. */
  timeoutMs?: number;
  /** Called with the ids of these nodes before the wait. */
  onWait?: (nodes: string[], timeoutMs: number) => void;
}

/** The content of the tile store: a checkpoint and the commits after it. */
interface StoredLog {
  checkpoint: { seq: number; manifest: string } | undefined;
  manifest: Manifest;
  commits: CommittedEntry[];
}

/**
 * Writes the document of the cluster, its collections, its log and its checkpoint. An interrupted restore starts over. The nodes assign
 * the slots again when they start. Throws TW_DHT_OTHER_CLUSTER, TW_DHT_STILL_RUNNING, TW_DHT_NOT_EMPTY, TW_DHT_COPIES_MISSING and errors
 * of the stores; nothing is written then.
 */
export async function restoreCoordination(
  coordination: CoordinationStore,
  objects: ObjectStore,
  { coordinationLabel, timeoutMs, onWait }: RestoreOptions = {},
): Promise<RestoreReport> {
  const identity = await readIdentity(objects);
  if (!identity) throw clusterDocumentDamaged(objects.url, 'it is missing');
  const before = await requireNoKeys(coordination, identity);
  await requireNoHeartbeats(objects, timeoutMs, onWait);
  const stored = await readStored(objects);
  const collections = await collectionsOf(objects, stored);
  const { checkpoint, commits } = stored;
  const head = commits.at(-1)?.seq ?? checkpoint?.seq ?? 0;

  // Deletes what an earlier, interrupted restore has written.
  const started = await coordination.transact({
    compare: [
      { key: CLUSTER_KEY, modRevision: before.cluster },
      { key: RESTORING_KEY, modRevision: before.underWay },
    ],
    success: [
      { op: 'delete', key: CLUSTER_KEY },
      { op: 'delete', ...prefixRange('log/') },
      { op: 'delete', ...prefixRange('collections/') },
      { op: 'put', key: RESTORING_KEY, value: identity.id },
    ],
  });
  if (!started.succeeded) throw nodesStillRunning('a node or another restore has just started');
  const puts = [
    ...commits.map(entryPut),
    ...[...collections].map(
      ([id, fixed]): Operation => ({
        op: 'put',
        key: schemaKey(id),
        value: JSON.stringify(fixed),
      }),
    ),
  ];
  for (let at = 0; at < puts.length; at += MAX_OPERATIONS)
    await coordination.transact({ success: puts.slice(at, at + MAX_OPERATIONS) });
  const restored = await startEpoch(objects, coordinationLabel);
  const { id, prefixLengths } = identity;
  const document: ClusterDocument = { id, format: CLUSTER_FORMAT, prefixLengths };
  // A node that started before this found no cluster.
  const { succeeded } = await coordination.transact({
    compare: [{ key: CLUSTER_KEY, modRevision: 0 }],
    success: [
      { op: 'put', key: CLUSTER_KEY, value: JSON.stringify(document) },
      ...headAndCheckpointPuts(head, checkpoint),
      epochPut(restored),
      { op: 'delete', key: RESTORING_KEY },
    ],
  });
  if (!succeeded) throw nodesStillRunning('a node has just started');
  return {
    cluster: identity.id,
    checkpoint: checkpoint?.seq ?? 0,
    commits: head,
    collections: collections.size,
  };
}

/** Throws if the coordination store is in use; returns the revisions of the keys that an interrupted restore may have left. */
async function requireNoKeys(
  coordination: CoordinationStore,
  { id }: ClusterIdentity,
): Promise<{ cluster: number; underWay: number }> {
  const { gets } = await coordination.read([
    ALL_KEYS,
    { key: CLUSTER_KEY },
    { key: RESTORING_KEY },
    MEMBER_KEYS,
  ]);
  const [all, cluster, underWay, members] = gets as [RangeResult, RangeResult, RangeResult, RangeResult];
  const known = firstKeyValue(cluster);
  const owner = known ? parseJsonValue<{ id: string }>(known, ['id']).id : firstKeyValue(underWay)?.value;
  if (owner !== undefined && owner !== id) throw otherCluster(owner, id);
  if (members.kvs.length > 0)
    throw nodesStillRunning(members.kvs.map(({ key }) => key.slice(MEMBER_KEYS.key.length)).join(', '));
  // A node that started just before has written only the document of the cluster.
  const others = all.kvs.filter(({ key }) => key !== CLUSTER_KEY);
  if (others.length > 0 && !firstKeyValue(underWay))
    throw coordinationNotEmpty(others[0]!.key, others.length);
  return { cluster: known?.modRevision ?? 0, underWay: firstKeyValue(underWay)?.modRevision ?? 0 };
}

/** Throws TW_DHT_COPIES_MISSING if a commit is neither in a complete checkpoint nor in the archive of the log. */
async function readStored(objects: ObjectStore): Promise<StoredLog> {
  const segments = new Set((await toArray(objects.list(PARTS_FOLDER))).map(({ name }) => name));
  const names = (await toArray(objects.list(MANIFESTS_FOLDER))).map(({ name }) => name);
  names.sort((a, b) => seqOfObject(b) - seqOfObject(a));
  const numbers = await listArchived(objects);
  const last = Math.max(0, numbers.at(-1) ?? 0, ...names.map(seqOfObject));
  let stored: Omit<StoredLog, 'commits'> = {
    checkpoint: undefined,
    manifest: await readManifest(objects, undefined),
  };
  for (const name of names) {
    const manifest = await readManifest(objects, { manifest: name });
    // The segments of a checkpoint that lost against another one may be garbage-collected.
    if (segmentsOf(manifest).some((name) => !segments.has(name))) continue;
    stored = { checkpoint: { seq: seqOfObject(name), manifest: name }, manifest };
    break;
  }
  const seq = stored.checkpoint?.seq ?? 0;
  const known = new Set(numbers);
  for (let next = seq + 1; next <= last; next++)
    if (!known.has(next)) throw logArchiveIncomplete(objects.url, next, last);
  return { ...stored, commits: await readArchived(objects, seq, last) };
}

/** The schemas of all collections. Opens every segment, so that a missing one is noticed now. */
async function collectionsOf(
  objects: ObjectStore,
  { manifest, commits }: StoredLog,
): Promise<Map<string, CollectionSchema>> {
  const schemas = new Map<string, CollectionSchema>();
  const apply = (edits: RecordEdit[]) => {
    for (const { table, key, record } of edits) {
      if (table !== 'collections') continue;
      if (record) schemas.set(key, { grid: record.grid, precision: record.precision, fence: 0 });
      else schemas.delete(key);
    }
  };
  for await (const edits of checkpointRecords(objects, manifest)) apply(edits);
  for (const { segment } of commits) {
    const reader = await SegmentReader.open(objects, segmentName(segment));
    for await (const edits of reader.edits()) apply(edits);
  }
  return schemas;
}
