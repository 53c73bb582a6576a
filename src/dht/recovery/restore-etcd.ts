/** Makes the keys of a cluster in an etcd that has lost them, from the cluster's tile store. */

import {
  type CoordinationStore,
  documentOf,
  type Operation,
  only,
  type RangeResult,
  withPrefix,
} from '../../coordination/index.js';
import type { ObjectStore } from '../../storage/index.js';
import {
  MANIFESTS,
  type Manifest,
  PARTS_FOLDER,
  readManifest,
  segmentName,
  seqOf,
} from '../commit/checkpoint.js';
import { collectionKeyOf, type FixedCollection } from '../commit/collection-schema.js';
import { type CommittedEntry, entryPut, logEnds } from '../commit/commit-log.js';
import { listCopies, readCopies } from '../commit/log-archive.js';
import { Folded } from '../commit/record-state.js';
import { readSegment } from '../commit/segment.js';
import { clusterDocumentDamaged, copiesMissing, notEmpty, otherCluster, stillRunning } from '../errors.js';
import { requireStopped } from '../membership/heartbeat.js';
import { clusterDocumentOf } from './cluster-document.js';
import { FORMAT, type Identity, readIdentity } from './cluster-identity.js';
import { noteRestoration, restoredPut } from './restore-epoch.js';

/** While it is there the keys are being written; its value is the id of the cluster. */
const UNDER_WAY = 'restoring';
const CLUSTER = 'cluster';
const MEMBERS = withPrefix('members/');
/** All keys of a cluster; they are of letters. */
const ALL = { key: ' ', end: '~' };
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
  words?: string;
  /** How long a node that has not said that it stops is waited for to show that it runs, ms. */
  patience?: number;
  /** Is told of such nodes before they are waited for. */
  onWait?: (nodes: string[], patience: number) => void;
}

/** What there is of a cluster in its store: a checkpoint and the commits after it. */
interface Stored {
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
  { words, patience, onWait }: RestoreOptions = {},
): Promise<RestoreReport> {
  const identity = await readIdentity(objects);
  if (!identity) throw clusterDocumentDamaged(objects.url, 'it is missing');
  const before = await requireEmpty(coordination, identity);
  await requireStopped(objects, patience, onWait);
  const stored = await readStored(objects);
  const collections = await collectionsOf(objects, stored);
  const { checkpoint, commits } = stored;
  const head = commits.at(-1)?.seq ?? checkpoint?.seq ?? 0;

  // What an earlier try has written goes.
  const started = await coordination.transact({
    compare: [
      { key: CLUSTER, modRevision: before.cluster },
      { key: UNDER_WAY, modRevision: before.underWay },
    ],
    success: [
      { op: 'delete', key: CLUSTER },
      { op: 'delete', ...withPrefix('log/') },
      { op: 'delete', ...withPrefix('collections/') },
      { op: 'put', key: UNDER_WAY, value: identity.id },
    ],
  });
  if (!started.succeeded) throw stillRunning('a node or another restoration has just started');
  const puts = [
    ...commits.map(entryPut),
    ...[...collections].map(
      ([id, fixed]): Operation => ({
        op: 'put',
        key: collectionKeyOf(id),
        value: JSON.stringify(fixed),
      }),
    ),
  ];
  for (let at = 0; at < puts.length; at += BATCH)
    await coordination.transact({ success: puts.slice(at, at + BATCH) });
  const restored = await noteRestoration(objects, words);
  // A node that starts before this finds no cluster.
  const { succeeded } = await coordination.transact({
    compare: [{ key: CLUSTER, modRevision: 0 }],
    success: [
      { op: 'put', key: CLUSTER, value: documentText(identity) },
      ...logEnds(head, checkpoint),
      restoredPut(restored),
      { op: 'delete', key: UNDER_WAY },
    ],
  });
  if (!succeeded) throw stillRunning('a node that has just started');
  return {
    cluster: identity.id,
    checkpoint: checkpoint?.seq ?? 0,
    commits: head,
    collections: collections.size,
  };
}

const documentText = ({ id, prefixLengths }: Identity) =>
  clusterDocumentOf({ id, format: FORMAT, prefixLengths: { ...prefixLengths } });

/** Throws where the keys are those of somebody; the revisions of what an earlier try may have left. */
async function requireEmpty(
  coordination: CoordinationStore,
  { id }: Identity,
): Promise<{ cluster: number; underWay: number }> {
  const { gets } = await coordination.read([ALL, { key: CLUSTER }, { key: UNDER_WAY }, MEMBERS]);
  const [all, cluster, underWay, members] = gets as [RangeResult, RangeResult, RangeResult, RangeResult];
  const known = only(cluster);
  const owner = known ? documentOf<{ id: string }>(known, ['id']).id : only(underWay)?.value;
  if (owner !== undefined && owner !== id) throw otherCluster(owner, id);
  if (members.kvs.length > 0)
    throw stillRunning(members.kvs.map(({ key }) => key.slice(MEMBERS.key.length)).join(', '));
  // A node that was started before this has written the document and nothing else.
  const others = all.kvs.filter(({ key }) => key !== CLUSTER);
  if (others.length > 0 && !only(underWay)) throw notEmpty(others[0]!.key, others.length);
  return { cluster: known?.modRevision ?? 0, underWay: only(underWay)?.modRevision ?? 0 };
}

/** Throws TW_DHT_COPIES_MISSING where a commit is neither in a checkpoint that is whole nor copied. */
async function readStored(objects: ObjectStore): Promise<Stored> {
  const parts = new Set<string>();
  for await (const { name } of objects.list(PARTS_FOLDER)) parts.add(name);
  const names: string[] = [];
  for await (const { name } of objects.list(MANIFESTS)) names.push(name);
  names.sort((a, b) => seqOf(b) - seqOf(a));
  const numbers = await listCopies(objects);
  const last = Math.max(0, numbers.at(-1) ?? 0, ...names.map(seqOf));
  let stored: Omit<Stored, 'commits'> = {
    checkpoint: undefined,
    manifest: await readManifest(objects, undefined),
  };
  for (const name of names) {
    const manifest = await readManifest(objects, { manifest: name });
    // Of one that lost against another the parts may be swept.
    if (manifest.some((part) => part !== null && !parts.has(part))) continue;
    stored = { checkpoint: { seq: seqOf(name), manifest: name }, manifest };
    break;
  }
  const seq = stored.checkpoint?.seq ?? 0;
  const known = new Set(numbers);
  for (let next = seq + 1; next <= last; next++)
    if (!known.has(next)) throw copiesMissing(objects.url, next, last);
  const commits = await readCopies(
    objects,
    numbers.filter((number) => number > seq),
  );
  return { ...stored, commits };
}

/** What is fixed of each collection; reads the head of every part and segment, so that a missing one is found now. */
async function collectionsOf(
  objects: ObjectStore,
  { manifest, commits }: Stored,
): Promise<Map<string, FixedCollection>> {
  const state = new Folded();
  const segments = commits.map(({ segment }) => segmentName(segment));
  for (const name of [...manifest, ...segments])
    if (name !== null) state.add(await readSegment(objects, name, () => false));
  const found = new Map<string, FixedCollection>();
  for (const edit of state.commit().edits ?? [])
    if (edit.table === 'collections' && edit.record) {
      const { grid, precision } = edit.record;
      found.set(edit.key, { grid, precision, fence: 0 });
    }
  return found;
}
