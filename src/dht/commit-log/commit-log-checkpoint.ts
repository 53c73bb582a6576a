/**
 * Checkpoints: the combined result of all commits up to one of them, so that a node need not read every commit. A checkpoint is a manifest
 * that names 256 parts. A part is a segment that adds all tiles of 64 consecutive slots, and the other records whose keys fall into
 * these slots. Only changed parts are rewritten.
 */
import { randomUUID } from 'node:crypto';
import { mapConcurrent } from '../../async/index.js';
import type { Commit, ObjectStore, RecordEdit, TileVersion } from '../../storage/index.js';
import { parseJsonOr } from '../../utils/json-text.js';
import { manifestDamaged } from '../errors.js';
import { type PrefixLengths, SLOTS, slotOfCell, slotOfScene } from '../placement/index.js';
import type { CommitLog, CommittedEntry, StoredCheckpoint } from './commit-log.js';
import { LogArchive } from './commit-log-archive.js';
import { encodeSegment, readSegment } from './commit-log-segment.js';
import { RecordState } from './commit-log-state.js';

const PART_SLOTS = 64;
/** Parts that are read at the same time. */
const CONCURRENCY = 4;
export const PART_COUNT = SLOTS / PART_SLOTS;
/** A checkpoint is written after this many changed tiles, before more of the log is read, so that memory stays bounded. */
const MAX_CHANGES = 100_000;

/** Object names of the parts, by number; null for an empty part. */
export type Manifest = (string | null)[];

/** The number of the last commit in a manifest or a part, parsed from its name; NaN for other names. */
export const seqOfObject = (name: string) => Number(/(\d+)-[0-9a-f]{8}-[0-9a-f-]{27}$/.exec(name)?.[1]);

export const PARTS_FOLDER = 'catalogue/parts/';
export const MANIFESTS_FOLDER = 'catalogue/manifests/';

/** The name of the segment of a log entry. */
export const segmentName = (id: string) => `catalogue/segments/${id}`;

export const partOf = (slot: number) => Math.floor(slot / PART_SLOTS);

/** The part with a record other than a tile. */
const partOfRecord = ({ table, key }: RecordEdit) => partOf(slotOfScene(table, key));

/** Throws TW_DHT_MANIFEST_DAMAGED and errors of the store. */
export async function readManifest(
  objects: ObjectStore,
  checkpoint: Pick<StoredCheckpoint, 'manifest'> | undefined,
): Promise<Manifest> {
  if (!checkpoint) return new Array<null>(PART_COUNT).fill(null);
  const { manifest: name } = checkpoint;
  const manifest = parseJsonOr<unknown>((await objects.get(name)).toString(), (cause) =>
    manifestDamaged.because(cause, name, 'it is not JSON'),
  );
  const isManifest =
    Array.isArray(manifest) &&
    manifest.length === PART_COUNT &&
    manifest.every((part) => part === null || typeof part === 'string');
  if (!isManifest) throw manifestDamaged(name, `it does not name ${PART_COUNT} parts`);
  return manifest as Manifest;
}

/** Reads the tiles of the wanted slots, and all other records, from `parts` of a checkpoint (default: all parts). */
export async function readParts(
  objects: ObjectStore,
  manifest: Manifest,
  wants: (slot: number) => boolean,
  parts: Iterable<number> = manifest.keys(),
): Promise<RecordState> {
  const state = new RecordState();
  const names = [...parts].flatMap((part) => manifest[part] ?? []);
  // No record is in two parts, so the order of the parts does not matter.
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
 * Advances the checkpoint to the commit that is the last one at the start of the call, and returns the number of the last commit in the
 * checkpoint. Later commits wait for the next checkpoint, so this ends however fast they arrive. If two nodes do this at the same
 * time, one of them wins, and the objects of the other are garbage.
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
 * Writes a checkpoint with more commits than `current`, at most up to commit `head`. Returns undefined if another node has moved the
 * checkpoint so far that the log no longer has the commits after `current`.
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
    for (const [part, changesOfPart] of splitByPart(commit, prefixLengths)) {
      const known = changes.get(part);
      if (known) known.push(changesOfPart);
      else changes.set(part, [changesOfPart]);
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

/** Splits a commit by the parts that it changes. */
function splitByPart(
  { removed = [], added = [], edits = [] }: Commit,
  prefixLengths: PrefixLengths,
): Map<number, Commit> {
  const parts = new Map<number, Required<Pick<Commit, 'removed' | 'added' | 'edits'>>>();
  const of = (part: number) => {
    const known = parts.get(part);
    if (known) return known;
    const empty = { removed: [], added: [], edits: [] };
    parts.set(part, empty);
    return empty;
  };
  const ofTile = (tile: TileVersion) => of(partOf(slotOfCell(tile, prefixLengths)));
  for (const tile of removed) ofTile(tile).removed.push(tile);
  for (const tile of added) ofTile(tile).added.push(tile);
  for (const edit of edits) of(partOfRecord(edit)).edits.push(edit);
  return parts;
}

/** Yields the entries after a commit, as far as the log has them. */
export async function* entriesSince(log: CommitLog, seq: number): AsyncGenerator<CommittedEntry> {
  for (let last = seq; ; ) {
    const page = await log.readSince(last);
    // The entries are only in a newer checkpoint, from which the caller must start.
    if (page.kind === 'checkpoint') return;
    yield* page.entries;
    last = page.entries.at(-1)?.seq ?? last;
    if (!page.more) return;
  }
}
