/** Rebuilds the keys of a cluster in etcd from the tile store of the cluster. */
import { toArray } from '../../async/index.js';
import {
  type CoordinationStore,
  firstKeyValue,
  type Operation,
  parseJsonValue,
  prefixRange,
  type RangeResult,
} from '../../coordination/index.js';
import type { ObjectStore } from '../../storage/index.js';
import {
  type CollectionSchema,
  type CommittedEntry,
  entryPut,
  headAndCheckpointPuts,
  listArchived,
  MANIFESTS_FOLDER,
  type Manifest,
  PARTS_FOLDER,
  RecordState,
  readArchived,
  readManifest,
  readSegment,
  schemaKey,
  segmentName,
  seqOfObject,
} from '../commit-log/index.js';
import {
  clusterDocumentDamaged,
  coordinationNotEmpty,
  logArchiveIncomplete,
  nodesStillRunning,
  otherCluster,
} from '../errors.js';
import { requireNoHeartbeats } from '../membership/index.js';
import { epochPut, startEpoch } from './recovery-epoch.js';
import {
  CLUSTER_KEY,
  type ClusterDocument,
  type ClusterIdentity,
  FORMAT,
  readIdentity,
} from './recovery-identity.js';

/** This key exists while a restore writes the keys; its value is the id of the cluster. */
const RESTORING_KEY = 'restoring';
const MEMBER_KEYS = prefixRange('members/');
/** The range of all keys of a cluster, which begin with letters. */
const ALL_KEYS = { key: ' ', end: '~' };
/** Operations in one transaction; etcd accepts 128. */
const BATCH = 100;

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
  for (let at = 0; at < puts.length; at += BATCH)
    await coordination.transact({ success: puts.slice(at, at + BATCH) });
  const restored = await startEpoch(objects, coordinationLabel);
  const { id, prefixLengths } = identity;
  const document: ClusterDocument = { id, format: FORMAT, prefixLengths };
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
  const parts = new Set((await toArray(objects.list(PARTS_FOLDER))).map(({ name }) => name));
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
    // The parts of a checkpoint that lost against another one may be garbage-collected.
    if (manifest.some((part) => part !== null && !parts.has(part))) continue;
    stored = { checkpoint: { seq: seqOfObject(name), manifest: name }, manifest };
    break;
  }
  const seq = stored.checkpoint?.seq ?? 0;
  const known = new Set(numbers);
  for (let next = seq + 1; next <= last; next++)
    if (!known.has(next)) throw logArchiveIncomplete(objects.url, next, last);
  return { ...stored, commits: await readArchived(objects, seq, last) };
}

/** The schemas of all collections. Reads the header of every part and segment, so that a missing one is noticed now. */
async function collectionsOf(
  objects: ObjectStore,
  { manifest, commits }: StoredLog,
): Promise<Map<string, CollectionSchema>> {
  const state = new RecordState();
  const segments = commits.map(({ segment }) => segmentName(segment));
  for (const name of [...manifest, ...segments])
    if (name !== null) state.apply(await readSegment(objects, name, () => false));
  const schemas = new Map<string, CollectionSchema>();
  for (const edit of state.toCommit().edits ?? [])
    if (edit.table === 'collections' && edit.record) {
      const { grid, precision } = edit.record;
      schemas.set(edit.key, { grid, precision, fence: 0 });
    }
  return schemas;
}
