/**
 * The commit log in the tile store: segments with the changes of commits, the archive of its entries, and checkpoints, each the combined
 * result of all commits up to one of them, so that a node need not read every commit.
 */

import { randomUUID } from 'node:crypto';
import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import { mapConcurrent } from '../../async/index.js';
import {
  type Commit,
  decodeTiles,
  type EncodedTiles,
  type ObjectStore,
  type RecordEdit,
  storeExists,
  TileBatch,
  type TileRecord,
  type TileVersion,
} from '../../storage/index.js';
import { parseJsonOr } from '../../utils/json-text.js';
import { archivedEntryDamaged, conflictingWriter, manifestDamaged, segmentDamaged } from '../errors.js';
import { type PrefixLengths, SLOTS, slotOfCell, slotOfScene } from '../slots.js';
import { type CommitLog, type CommittedEntry, RecordState, type StoredCheckpoint } from './log.js';

const ENTRIES_FOLDER = 'catalogue/log/';
const CONCURRENT_ENTRIES = 16;

/** The name of the copy of a log entry. */
export const archivedEntryName = (seq: number) => `${ENTRIES_FOLDER}${`${seq}`.padStart(16, '0')}`;

/**
 * The archive of the log: copies of its entries in the tile store. The log can be rebuilt from them and the manifest of a checkpoint.
 *
 * Invariant: an entry is archived only after all entries before it that are not in a checkpoint, so the archive has no gap after a
 * checkpoint.
 */
export class LogArchive {
  /** All entries up to this one are archived. */
  private archivedUpTo = 0;
  /** Set once the archive contains an entry of another cluster; this node must then stop committing. */
  private conflict: Error | undefined;

  constructor(
    private readonly log: CommitLog,
    private readonly objects: ObjectStore,
  ) {}

  /** Throws TW_DHT_OTHER_WRITER if another cluster was found to write its entries to this store. */
  requireNoConflictingWriter(): void {
    if (this.conflict) throw this.conflict;
  }

  /** Archives an entry and earlier missing ones, whose writers were killed or have not finished. TW_DHT_OTHER_WRITER. */
  async archive(entry: CommittedEntry): Promise<void> {
    await this.archiveUpTo(entry.seq - 1);
    await this.put(entry);
  }

  async archiveUpTo(seq: number): Promise<void> {
    const first = await this.firstMissing(seq);
    for (let last = first - 1; last < seq; ) {
      const page = await this.log.readSince(last);
      // The writer of the checkpoint has archived its entries.
      if (page.kind === 'checkpoint') {
        last = page.checkpoint.seq;
        continue;
      }
      for (const entry of page.entries.filter((one) => one.seq <= seq)) await this.put(entry);
      last = page.entries.at(-1)?.seq ?? seq;
    }
    this.archivedUpTo = Math.max(this.archivedUpTo, seq);
  }

  private async firstMissing(seq: number): Promise<number> {
    const isMissing = async (at: number) =>
      at > this.archivedUpTo && !(await this.objects.head(archivedEntryName(at)));
    if (!(await isMissing(seq))) return seq + 1;
    const covered = (await this.log.readCheckpoint())?.seq ?? 0;
    let first = seq;
    while (first - 1 > covered && (await isMissing(first - 1))) first--;
    return first;
  }

  /** All nodes write the same bytes. */
  private async put({ seq, segment, slots, claim, fence }: CommittedEntry): Promise<void> {
    const copy: CommittedEntry = { seq, segment, slots, claim, fence };
    const bytes = Buffer.from(JSON.stringify(copy));
    await this.objects.put(archivedEntryName(seq), bytes, { ifAbsent: true }).catch((error) => {
      if (!storeExists.is(error)) throw error;
      this.conflict = conflictingWriter.because(error, seq, this.objects.url);
      throw this.conflict;
    });
    if (this.archivedUpTo === seq - 1) this.archivedUpTo = seq;
  }
}

/** The numbers of the archived entries, ascending. */
export async function listArchived(objects: ObjectStore): Promise<number[]> {
  const numbers: number[] = [];
  for await (const { name } of objects.list(ENTRIES_FOLDER)) {
    const seq = Number(name.slice(ENTRIES_FOLDER.length));
    if (archivedEntryName(seq) === name) numbers.push(seq);
  }
  return numbers;
}

/** Reads the archived entries after number `since` up to `last`. Throws TW_STORE_NOT_FOUND, TW_DHT_COPY_DAMAGED. */
export function readArchived(objects: ObjectStore, since: number, last: number): Promise<CommittedEntry[]> {
  const numbers = Array.from({ length: last - since }, (_, i) => since + 1 + i);
  return mapConcurrent(numbers, CONCURRENT_ENTRIES, (seq) => readArchivedEntry(objects, seq));
}

async function readArchivedEntry(objects: ObjectStore, seq: number): Promise<CommittedEntry> {
  const name = archivedEntryName(seq);
  const text = (await objects.get(name)).toString();
  const entry = parseJsonOr<Partial<CommittedEntry>>(text, (cause) =>
    archivedEntryDamaged.because(cause, name, 'it is not JSON'),
  );
  const { segment, slots, claim, fence } = entry;
  if (entry.seq !== seq || typeof segment !== 'string' || typeof slots !== 'string')
    throw archivedEntryDamaged(name, 'it is the entry of another number');
  if (typeof claim !== 'string' || typeof fence !== 'number')
    throw archivedEntryDamaged(name, 'it does not name its lock');
  return { seq, segment, slots, claim, fence };
}

const SEGMENT_MAGIC = 'TWSG';
const SEGMENT_FORMAT = 2;
const HEADER_START = 16;
/** One read fetches most segments completely, and at least the header of the others. */
const FIRST_READ_BYTES = 2 ** 18;
/** Parts that are closer together than this are read together. */
const MAX_GAP_BYTES = 2 ** 16;
/** A scene of a hundred thousand tiles needs less. The limit keeps a damaged length from exhausting the memory. */
const MAX_JSON_BYTES = 2 ** 29;

interface SegmentPart {
  slot: number;
  /** Offset from the end of the header. */
  offset: number;
  bytes: number;
  crc32: number;
}

interface SegmentHeader {
  edits: RecordEdit[];
  formerModels: Commit['formerModels'];
  parts: SegmentPart[];
}

/** The content of a part: the changes to the tiles of a slot. */
interface SlotChange {
  removed: TileVersion[];
  added: TileBatch | EncodedTiles;
}

/**
 * A segment: the changes of one commit, as one object in the tile store. Tile records are grouped by slot, so that a node reads only those
 * of its own slots:
 *
 *     'TWSG', format, length of the header, CRC-32 of the header   4 x 4 bytes, little endian
 *     header                                                       JSON, deflated
 *     parts in the order of their slots                            JSON, deflated, each with a CRC-32 in the header
 */
interface Segment {
  bytes: Buffer;
  /** The slots of its tiles, ascending. */
  slots: number[];
}

export function encodeSegment(commit: Commit, prefixLengths: PrefixLengths): Segment {
  const bySlot = new Map<number, { removed: TileVersion[]; added: TileRecord[] }>();
  const changeOf = (tile: TileVersion) => {
    const slot = slotOfCell(tile, prefixLengths);
    const slotChange = bySlot.get(slot);
    if (slotChange) return slotChange;
    const change = { removed: [], added: [] };
    bySlot.set(slot, change);
    return change;
  };
  for (const { id, grid, geocode, version } of commit.removed ?? [])
    changeOf({ id, grid, geocode, version }).removed.push({ id, grid, geocode, version });
  for (const tile of commit.added ?? []) changeOf(tile).added.push(tile);

  const slots = [...bySlot.keys()].sort((a, b) => a - b);
  const bodies = slots.map((slot) => {
    const { removed, added } = bySlot.get(slot)!;
    return deflateJson({ removed, added: new TileBatch(added) } satisfies SlotChange);
  });
  let offset = 0;
  const parts = bodies.map((body, i): SegmentPart => {
    const part = { slot: slots[i], offset, bytes: body.length, crc32: crc32(body) };
    offset += body.length;
    return part;
  });
  const header = deflateJson({
    edits: commit.edits ?? [],
    formerModels: commit.formerModels ?? [],
    parts,
  } satisfies SegmentHeader);
  const start = Buffer.alloc(HEADER_START);
  start.write(SEGMENT_MAGIC);
  start.writeUInt32LE(SEGMENT_FORMAT, 4);
  start.writeUInt32LE(header.length, 8);
  start.writeUInt32LE(crc32(header), 12);
  return { bytes: Buffer.concat([start, header, ...bodies]), slots };
}

/**
 * Reads a segment as a commit with the tiles of only those slots for which `wants` is true, and with all edits of other records. Throws
 * TW_DHT_SEGMENT_DAMAGED.
 */
export async function readSegment(
  objects: Pick<ObjectStore, 'get'>,
  name: string,
  wants: (slot: number) => boolean,
): Promise<Commit> {
  const read = (from: number, to: number) => objects.get(name, { offset: from, length: to - from });
  let start = await read(0, FIRST_READ_BYTES);
  if (start.length < HEADER_START) throw segmentDamaged(name, 'it is cut off');
  if (start.toString('latin1', 0, 4) !== SEGMENT_MAGIC || start.readUInt32LE(4) !== SEGMENT_FORMAT)
    throw segmentDamaged(name, 'it is not a segment of this format');
  const headerEnd = HEADER_START + start.readUInt32LE(8);
  if (headerEnd > MAX_JSON_BYTES) throw segmentDamaged(name, 'its header is too long');
  if (headerEnd > start.length) start = Buffer.concat([start, await read(start.length, headerEnd)]);
  const json = start.subarray(HEADER_START, headerEnd);
  if (crc32(json) !== start.readUInt32LE(12)) throw segmentDamaged(name, 'its header has another checksum');
  const { edits, formerModels, parts }: SegmentHeader = inflateJson(json);

  const wantedParts = parts.filter(({ slot }) => wants(slot));
  const commit = { removed: [] as TileVersion[], added: [] as TileRecord[], edits, formerModels };
  for (const run of contiguousReads(wantedParts)) {
    const from = headerEnd + run[0].offset;
    const last = run[run.length - 1];
    const to = headerEnd + last.offset + last.bytes;
    const bytes = to <= start.length ? start.subarray(from, to) : await read(from, to);
    for (const part of run) {
      const body = bytes.subarray(part.offset - run[0].offset, part.offset - run[0].offset + part.bytes);
      if (body.length !== part.bytes || crc32(body) !== part.crc32)
        throw segmentDamaged(name, `its part of slot ${part.slot} has another checksum`);
      const change: SlotChange = inflateJson(body);
      // A spread would exceed the stack, because a slot may have a million tiles.
      for (const tile of change.removed) commit.removed.push(tile);
      for (const tile of decodeTiles(change.added)) commit.added.push(tile);
    }
  }
  return commit;
}

/** Groups neighbouring parts that one read fetches. */
function contiguousReads(parts: SegmentPart[]): SegmentPart[][] {
  const runs: SegmentPart[][] = [];
  for (const part of parts) {
    const open = runs.at(-1);
    const last = open?.at(-1);
    if (open && last && part.offset - (last.offset + last.bytes) <= MAX_GAP_BYTES) open.push(part);
    else runs.push([part]);
  }
  return runs;
}

function deflateJson(value: unknown): Buffer {
  return deflateRawSync(JSON.stringify(value), { level: 1 });
}

function inflateJson<T>(bytes: Buffer): T {
  return JSON.parse(inflateRawSync(bytes, { maxOutputLength: MAX_JSON_BYTES }).toString()) as T;
}

/**
 * A checkpoint is a manifest that names 256 parts. A part is a segment that adds all tiles of 64 consecutive slots, and the other records
 * whose keys fall into these slots. Only changed parts are rewritten.
 */
const PART_SLOTS = 64;
/** Parts that are read at the same time. */
const CONCURRENT_PARTS = 4;
export const PART_COUNT = SLOTS / PART_SLOTS;
/** A checkpoint is written after this many changed tiles, before more of the log is read, so that memory stays bounded. */
const MAX_CHECKPOINT_CHANGES = 100_000;

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
  await mapConcurrent(names, CONCURRENT_PARTS, async (name) =>
    state.apply(await readSegment(objects, name, wants)),
  );
  return state;
}

interface CheckpointContext {
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
      const earlierChanges = changes.get(part);
      if (earlierChanges) earlierChanges.push(changesOfPart);
      else changes.set(part, [changesOfPart]);
    }
    seq = entry.seq;
    size += commit.removed!.length + commit.added!.length;
    if (seq === head || size >= MAX_CHECKPOINT_CHANGES) break;
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
    const partChange = parts.get(part);
    if (partChange) return partChange;
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
