/** Makes the keys of a cluster in an etcd that has lost them, from the cluster's tile store. */

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
  MANIFESTS_FOLDER,
  type Manifest,
  PARTS_FOLDER,
  readManifest,
  segmentName,
  seqOfObject,
} from '../commit/checkpoint.js';
import { type CollectionSchema, schemaKey } from '../commit/collection-schema.js';
import { type CommittedEntry, entryPut, headAndCheckpointPuts } from '../commit/commit-log.js';
import { listArchived, readArchived } from '../commit/log-archive.js';
import { RecordState } from '../commit/record-state.js';
import { readSegment } from '../commit/segment.js';
import {
  clusterDocumentDamaged,
  coordinationNotEmpty,
  logArchiveIncomplete,
  nodesStillRunning,
  otherCluster,
} from '../errors.js';
import { requireNoHeartbeats } from '../membership/heartbeat.js';
import { encodeClusterDocument } from './cluster-document.js';
import { type ClusterIdentity, FORMAT, readIdentity } from './cluster-identity.js';
import { epochPut, startEpoch } from './restore-epoch.js';

/** While it is there the keys are being written; its value is the id of the cluster. */
const RESTORING_KEY = 'restoring';
const CLUSTER_KEY = 'cluster';
const MEMBER_KEYS = prefixRange('members/');
/** All keys of a cluster; they are of letters. */
const ALL_KEYS = { key: ' ', end: '~' };
/** etcd takes 128 operations in a transaction. */
const BATCH = 100;

export interface RestoreReport {
  cluster: string;
  /** Number of the last commit of the checkpoint; 0 where there is none. */
  checkpoint: number;
  /** Number of the last commit. */
  commits: number;
  collections: number;
}

export interface RestoreOptions {
  /** Which coordination store it is, for the messages of nodes of another one. */
  coordinationLabel?: string;
  /** How long a node that has not said that it stops is waited for to show that it runs, ms. */
  timeoutMs?: number;
  /** Is told of such nodes before they are waited for. */
  onWait?: (nodes: string[], patience: number) => void;
}

/** What there is of a cluster in its store: a checkpoint and the commits after it. */
interface StoredLog {
  checkpoint: { seq: number; manifest: string } | undefined;
  manifest: Manifest;
  commits: CommittedEntry[];
}

/**
 * Writes the document of the cluster, its collections, its log and its checkpoint. One that was cut off is begun anew. The nodes
 * share the slots out again when they start. Throws TW_DHT_OTHER_CLUSTER, TW_DHT_STILL_RUNNING, TW_DHT_NOT_EMPTY,
 * TW_DHT_COPIES_MISSING, and what the stores throw; nothing is written then.
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

  // What an earlier try has written goes.
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
  if (!started.succeeded) throw nodesStillRunning('a node or another restoration has just started');
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
  // A node that starts before this finds no cluster.
  const { succeeded } = await coordination.transact({
    compare: [{ key: CLUSTER_KEY, modRevision: 0 }],
    success: [
      { op: 'put', key: CLUSTER_KEY, value: documentText(identity) },
      ...headAndCheckpointPuts(head, checkpoint),
      epochPut(restored),
      { op: 'delete', key: RESTORING_KEY },
    ],
  });
  if (!succeeded) throw nodesStillRunning('a node that has just started');
  return {
    cluster: identity.id,
    checkpoint: checkpoint?.seq ?? 0,
    commits: head,
    collections: collections.size,
  };
}

const documentText = ({ id, prefixLengths }: ClusterIdentity) =>
  encodeClusterDocument({ id, format: FORMAT, prefixLengths: { ...prefixLengths } });

/** Throws where the keys are those of somebody; the revisions of what an earlier try may have left. */
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
  // A node that was started before this has written the document and nothing else.
  const others = all.kvs.filter(({ key }) => key !== CLUSTER_KEY);
  if (others.length > 0 && !firstKeyValue(underWay))
    throw coordinationNotEmpty(others[0]!.key, others.length);
  return { cluster: known?.modRevision ?? 0, underWay: firstKeyValue(underWay)?.modRevision ?? 0 };
}

/** Throws TW_DHT_COPIES_MISSING where a commit is neither in a checkpoint that is whole nor copied. */
async function readStored(objects: ObjectStore): Promise<StoredLog> {
  const parts = new Set<string>();
  for await (const { name } of objects.list(PARTS_FOLDER)) parts.add(name);
  const names: string[] = [];
  for await (const { name } of objects.list(MANIFESTS_FOLDER)) names.push(name);
  names.sort((a, b) => seqOfObject(b) - seqOfObject(a));
  const numbers = await listArchived(objects);
  const last = Math.max(0, numbers.at(-1) ?? 0, ...names.map(seqOfObject));
  let stored: Omit<StoredLog, 'commits'> = {
    checkpoint: undefined,
    manifest: await readManifest(objects, undefined),
  };
  for (const name of names) {
    const manifest = await readManifest(objects, { manifest: name });
    // Of one that lost against another the parts may be swept.
    if (manifest.some((part) => part !== null && !parts.has(part))) continue;
    stored = { checkpoint: { seq: seqOfObject(name), manifest: name }, manifest };
    break;
  }
  const seq = stored.checkpoint?.seq ?? 0;
  const known = new Set(numbers);
  for (let next = seq + 1; next <= last; next++)
    if (!known.has(next)) throw logArchiveIncomplete(objects.url, next, last);
  const commits = await readArchived(
    objects,
    numbers.filter((number) => number > seq),
  );
  return { ...stored, commits };
}

/** What is fixed of each collection; reads the head of every part and segment, so that a missing one is found now. */
async function collectionsOf(
  objects: ObjectStore,
  { manifest, commits }: StoredLog,
): Promise<Map<string, CollectionSchema>> {
  const state = new RecordState();
  const segments = commits.map(({ segment }) => segmentName(segment));
  for (const name of [...manifest, ...segments])
    if (name !== null) state.apply(await readSegment(objects, name, () => false));
  const found = new Map<string, CollectionSchema>();
  for (const edit of state.toCommit().edits ?? [])
    if (edit.table === 'collections' && edit.record) {
      const { grid, precision } = edit.record;
      found.set(edit.key, { grid, precision, fence: 0 });
    }
  return found;
}
