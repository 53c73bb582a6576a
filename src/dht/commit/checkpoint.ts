/**
 * Checkpoints: what all commits up to one come to, so that a node need not read them all. A checkpoint is a manifest that names
 * 256 parts; a part is a segment that adds all tiles of 64 neighbouring slots, and the other records whose keys fall into
 * these. Only parts that have changed are written anew.
 */
import { randomUUID } from 'node:crypto';
import { mapConcurrent } from '../../async/index.js';
import type { Commit, ObjectStore, RecordEdit, TileVersion } from '../../storage/index.js';
import { manifestDamaged } from '../errors.js';
import { type PrefixLengths, SLOTS, slotOfCell, slotOfScene } from '../placement/slots.js';
import type { CommitLog, CommittedEntry, StoredCheckpoint } from './commit-log.js';
import { LogArchive } from './log-archive.js';
import { RecordState } from './record-state.js';
import { encodeSegment, readSegment } from './segment.js';

const PART_SLOTS = 64;
/** Parts that are read at once. */
const CONCURRENCY = 4;
export const PART_COUNT = SLOTS / PART_SLOTS;
/** When so many tiles have changed, a checkpoint is written before more of the log is read: memory is bounded. */
const MAX_CHANGES = 100_000;

/** Names of the parts' objects by number; null where a part holds nothing. */
export type Manifest = (string | null)[];

/** The number of the last commit that a manifest or a part holds, by its name. */
export const seqOfObject = (name: string) => Number(/(\d+)-[0-9a-f]{8}-[0-9a-f-]{27}$/.exec(name)?.[1]);

export const PARTS_FOLDER = 'catalogue/parts/';
export const MANIFESTS_FOLDER = 'catalogue/manifests/';

/** The segment that holds what a log entry says. */
export const segmentName = (id: string) => `catalogue/segments/${id}`;

export const partOf = (slot: number) => Math.floor(slot / PART_SLOTS);

/** The part that holds a record other than a tile. */
const partOfRecord = ({ table, key }: RecordEdit) => partOf(slotOfScene(table, key));

/** Throws TW_DHT_MANIFEST_DAMAGED, and what the store throws. */
export async function readManifest(
  objects: ObjectStore,
  checkpoint: Pick<StoredCheckpoint, 'manifest'> | undefined,
): Promise<Manifest> {
  if (!checkpoint) return new Array<null>(PART_COUNT).fill(null);
  const { manifest: name } = checkpoint;
  const bytes = await objects.get(name);
  let found: unknown;
  try {
    found = JSON.parse(bytes.toString());
  } catch (error) {
    throw manifestDamaged.because(error, name, 'it is no JSON');
  }
  const isManifest =
    Array.isArray(found) &&
    found.length === PART_COUNT &&
    found.every((part) => part === null || typeof part === 'string');
  if (!isManifest) throw manifestDamaged(name, `it does not name ${PART_COUNT} parts`);
  return found as Manifest;
}

/** What some slots of a checkpoint hold, and all other records of the parts that are read, by default all: together. */
export async function readParts(
  objects: ObjectStore,
  manifest: Manifest,
  wants: (slot: number) => boolean,
  parts: Iterable<number> = manifest.keys(),
): Promise<RecordState> {
  const state = new RecordState();
  const names = [...parts].flatMap((part) => manifest[part] ?? []);
  // No two parts have the same records, so that they may come in any order.
  await mapConcurrent(names, CONCURRENCY, async (name) =>
    state.apply(await readSegment(objects, name, wants)),
  );
  return state;
}

export interface CheckpointContext {
  log: CommitLog;
  objects: ObjectStore;
  prefixLengths: PrefixLengths;
}

/**
 * Brings the checkpoint up to the commit that is the last one now, and returns the number of the last commit that it holds. Commits that
 * arrive in the meantime wait for the next checkpoint, so this ends however fast they come. Another node may do the same at
 * the same time: one of them wins, and the objects of the other are garbage.
 */
export async function writeLogCheckpoint(context: CheckpointContext): Promise<number> {
  const { log } = context;
  const { head } = await log.bounds();
  for (;;) {
    const current = await log.readCheckpoint();
    if ((current?.seq ?? 0) >= head) return current?.seq ?? 0;
    const next = await nextCheckpoint(context, current, head);
    if (next) await log.moveCheckpoint(current, next);
  }
}

/**
 * A checkpoint that holds more than `current`, up to commit `head` at most; undefined if another node has moved the checkpoint so far that the
 * log no longer has the commits after `current`.
 */
async function nextCheckpoint(
  { log, objects, prefixLengths }: CheckpointContext,
  current: StoredCheckpoint | undefined,
  head: number,
): Promise<{ seq: number; manifest: string } | undefined> {
  const manifest = await readManifest(objects, current);
  const changes = new Map<number, Commit[]>();
  let seq = current?.seq ?? 0;
  let size = 0;
  for await (const entry of entriesSince(log, seq)) {
    const commit = await readSegment(objects, segmentName(entry.segment), () => true);
    for (const [part, itsShare] of splitByPart(commit, prefixLengths)) {
      const known = changes.get(part);
      if (known) known.push(itsShare);
      else changes.set(part, [itsShare]);
    }
    seq = entry.seq;
    size += commit.removed!.length + commit.added!.length;
    if (seq === head || size >= MAX_CHANGES) break;
  }
  if (seq === (current?.seq ?? 0)) return undefined;
  for (const [part, commits] of changes) {
    const state = new RecordState();
    const former = manifest[part];
    if (former) state.apply(await readSegment(objects, former, () => true));
    for (const commit of commits) state.apply(commit);
    const name = `${PARTS_FOLDER}${part}-${seq}-${randomUUID()}`;
    await objects.put(name, encodeSegment(state.toCommit(), prefixLengths).bytes);
    manifest[part] = name;
  }
  await new LogArchive(log, objects).archiveUpTo(seq);
  const name = `${MANIFESTS_FOLDER}${seq}-${randomUUID()}`;
  await objects.put(name, Buffer.from(JSON.stringify(manifest)));
  return { seq, manifest: name };
}

/** What of a commit falls into each part. */
function splitByPart(
  { removed = [], added = [], edits = [] }: Commit,
  prefixLengths: PrefixLengths,
): Map<number, Commit> {
  const parts = new Map<number, Required<Pick<Commit, 'removed' | 'added' | 'edits'>>>();
  const of = (part: number) => {
    const known = parts.get(part);
    if (known) return known;
    const share = { removed: [], added: [], edits: [] };
    parts.set(part, share);
    return share;
  };
  const ofTile = (tile: TileVersion) => of(partOf(slotOfCell(tile, prefixLengths)));
  for (const tile of removed) ofTile(tile).removed.push(tile);
  for (const tile of added) ofTile(tile).added.push(tile);
  for (const edit of edits) of(partOfRecord(edit)).edits.push(edit);
  return parts;
}

/** The entries after a commit, as far as the log has them. */
export async function* entriesSince(log: CommitLog, seq: number): AsyncGenerator<CommittedEntry> {
  for (let last = seq; ; ) {
    const page = await log.readSince(last);
    // A newer checkpoint holds them: who needs them begins there.
    if (page.kind === 'checkpoint') return;
    yield* page.entries;
    last = page.entries.at(-1)?.seq ?? last;
    if (!page.more) return;
  }
}
