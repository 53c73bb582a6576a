/**
 * Checkpoints of the commit log in the tile store: each is the combined result of all commits up to one of them, so that a node need not
 * read every commit.
 */
import { randomUUID } from 'node:crypto';
import { mapConcurrent, TaskPool } from '../../async/index.js';
import type { ObjectStore, RecordEdit, TileRecord } from '../../storage/index.js';
import { parseJsonOr } from '../../utils/json-text.js';
import { manifestDamaged } from '../errors.js';
import { SLOTS, type SlotSet } from '../slots.js';
import { LogArchive } from './archive.js';
import { type CommitLog, entriesSince, type StoredCheckpoint } from './log.js';
import type { MergeHandlers } from './merge-worker.js';
import {
  mergeSegments,
  recordName,
  SegmentReader,
  type SegmentSlice,
  segmentName,
  slices,
  TileState,
} from './segment.js';

/** A part has the records of 64 consecutive slots. */
const PART_SLOTS = 64;
const PART_COUNT = SLOTS / PART_SLOTS;
/** Segments that are read at the same time. */
const CONCURRENT_READS = 4;
/** A checkpoint is written after this many bytes of segments, before more of the log is read, so that memory stays bounded. */
const MAX_CHECKPOINT_BYTES = 2 ** 25;
/** As long as no thread is started, fewer bytes are merged on this thread, in about 20 ms; the start of a thread takes longer. */
const MERGE_HERE_BYTES = 2 ** 16;
/** Deltas are merged into the parts when they exceed this share of the bytes of the parts, within these limits. */
const MAX_DELTA_SHARE = 0.25;
const DELTA_LIMITS = { min: 2 ** 20, max: 2 ** 27 };
/** Edits and tiles that are passed on together. */
const PAGE_RECORDS = 250;

interface StoredSegment {
  name: string;
  bytes: number;
}

/**
 * The manifest of a checkpoint. `parts` are segments with the records of equal ranges of slots; null for an empty part. `deltas` are
 * segments with later changes to records of any slot, the earliest first. Invariant: each delta has more than twice the bytes of the next
 * one, so that there are few, and each change is merged few times.
 */
export interface Manifest {
  parts: (StoredSegment | null)[];
  deltas: StoredSegment[];
}

/** The number of the last commit in a manifest or a segment of a checkpoint, parsed from its name; NaN for other names. */
export const seqOfObject = (name: string) => Number(/(\d+)-[0-9a-f]{8}-[0-9a-f-]{27}$/.exec(name)?.[1]);

/** The folder of the segments of checkpoints. */
export const PARTS_FOLDER = 'catalogue/parts/';
export const MANIFESTS_FOLDER = 'catalogue/manifests/';

const partOf = (slot: number) => Math.floor(slot / PART_SLOTS);

/** Throws TW_DHT_MANIFEST_DAMAGED and errors of the store. */
export async function readManifest(
  objects: ObjectStore,
  checkpoint: Pick<StoredCheckpoint, 'manifest'> | undefined,
): Promise<Manifest> {
  if (!checkpoint) return { parts: new Array<null>(PART_COUNT).fill(null), deltas: [] };
  const { manifest: name } = checkpoint;
  const manifest = parseJsonOr<Partial<Manifest> | null>((await objects.get(name)).toString(), (cause) =>
    manifestDamaged.because(cause, name, 'it is not JSON'),
  );
  const { parts, deltas } = manifest ?? {};
  const isSegment = (one: StoredSegment | null) => typeof one?.name === 'string' && one.bytes > 0;
  const hasParts = Array.isArray(parts) && parts.length === PART_COUNT;
  if (!hasParts || !parts.every((part) => part === null || isSegment(part)))
    throw manifestDamaged(name, `it does not name ${PART_COUNT} parts`);
  if (!Array.isArray(deltas) || !deltas.every(isSegment))
    throw manifestDamaged(name, 'it does not name its deltas');
  return { parts, deltas };
}

/** The names of all segments of a checkpoint. */
export const segmentsOf = ({ parts, deltas }: Manifest): string[] =>
  [...parts, ...deltas].flatMap((segment) => segment?.name ?? []);

/** Yields all records of a checkpoint except tiles, some at a time. */
export async function* checkpointRecords(
  objects: ObjectStore,
  { parts, deltas }: Manifest,
): AsyncGenerator<RecordEdit[]> {
  const changed = new Map<string, RecordEdit>();
  for (const segment of await openAll(objects, deltas))
    for await (const edits of segment.edits()) for (const edit of edits) changed.set(recordName(edit), edit);
  const unchanged = (edit: RecordEdit) => !changed.has(recordName(edit));
  for (const some of slices(parts, CONCURRENT_READS))
    for (const segment of await openAll(objects, some))
      for await (const edits of segment.edits()) yield edits.filter(unchanged);
  const edits = [...changed.values()].filter(({ record }) => record !== null);
  yield* slices(edits, PAGE_RECORDS);
}

/** Yields all tiles that a checkpoint has in some slots, some at a time. */
export async function* checkpointTiles(
  objects: ObjectStore,
  { parts, deltas }: Manifest,
  slots: SlotSet,
): AsyncGenerator<TileRecord[]> {
  const changes = await openAll(objects, deltas);
  for (const part of new Set([...slots].map(partOf))) {
    const wants = (slot: number) => partOf(slot) === part && slots.has(slot);
    const changed = new TileState();
    for (const segment of changes) for await (const some of segment.tiles(wants)) changed.apply(some);
    for (const segment of await openAll(objects, [parts[part]!]))
      for await (const { added } of segment.tiles(wants)) yield added.filter(({ id }) => !changed.has(id));
    yield* slices(changed.toChanges().added, PAGE_RECORDS);
  }
}

function openAll(
  objects: ObjectStore,
  segments: readonly (StoredSegment | null)[],
): Promise<SegmentReader[]> {
  const present = segments.filter((segment) => segment !== null);
  return mapConcurrent(present, CONCURRENT_READS, ({ name }) => SegmentReader.open(objects, name));
}

interface CheckpointContext {
  log: CommitLog;
  objects: ObjectStore;
}

/**
 * Advances the checkpoint to the commit that is the last one at the start of the call, and returns the number of the last commit in the
 * checkpoint. Later commits wait for the next checkpoint, so this ends however fast they arrive. If two nodes do this at the same
 * time, one of them wins, and the objects of the other are garbage.
 */
export async function writeLogCheckpoint(context: CheckpointContext): Promise<number> {
  const { log } = context;
  const { head } = await log.bounds();
  const writer = new CheckpointWriter(context);
  try {
    for (;;) {
      const current = await log.readCheckpoint();
      if ((current?.seq ?? 0) >= head) return current?.seq ?? 0;
      const next = await writer.next(current, head);
      if (next) await log.moveCheckpoint(current, next);
    }
  } finally {
    await writer.close();
  }
}

class CheckpointWriter {
  private pool: TaskPool<MergeHandlers> | undefined;

  constructor(private readonly context: CheckpointContext) {}

  async close(): Promise<void> {
    await this.pool?.close();
  }

  /**
   * Writes a checkpoint with more commits than `current`, at most up to commit `head`. Returns undefined if another node has moved the
   * checkpoint so far that the log no longer has the commits after `current`.
   */
  async next(
    current: StoredCheckpoint | undefined,
    head: number,
  ): Promise<{ seq: number; manifest: string } | undefined> {
    const { log, objects } = this.context;
    const { parts, deltas } = await readManifest(objects, current);
    const commits: SegmentSlice[] = [];
    let seq = current?.seq ?? 0;
    let bytes = 0;
    for await (const entry of entriesSince(log, seq)) {
      const commit = await this.slice(segmentName(entry.segment));
      commits.push(commit);
      seq = entry.seq;
      bytes += commit.bytes.length;
      if (seq === head || bytes >= MAX_CHECKPOINT_BYTES) break;
    }
    if (seq === (current?.seq ?? 0)) return undefined;

    const earlier: StoredSegment[] = [];
    while (deltas.length > 0 && deltas.at(-1)!.bytes <= 2 * bytes) {
      const delta = deltas.pop()!;
      earlier.unshift(delta);
      bytes += delta.bytes;
    }
    const slices = await this.slicesOf(await openAll(objects, earlier), () => true);
    deltas.push(await this.put(`delta-${seq}`, await this.merge([...slices, ...commits], false)));
    const next = isDue({ parts, deltas })
      ? { parts: await this.mergedParts({ parts, deltas }, seq), deltas: [] }
      : { parts, deltas };
    await new LogArchive(log, objects).archiveUpTo(seq);
    const name = `${MANIFESTS_FOLDER}${seq}-${randomUUID()}`;
    await objects.put(name, Buffer.from(JSON.stringify(next satisfies Manifest)));
    return { seq, manifest: name };
  }

  /** The parts with the changes of the deltas. Parts without changes stay. */
  private async mergedParts({ parts, deltas }: Manifest, seq: number): Promise<Manifest['parts']> {
    const changes = await openAll(this.context.objects, deltas);
    const merged = [...parts];
    for (const [part, former] of parts.entries()) {
      const slices = await this.slicesOf(changes, (slot) => partOf(slot) === part);
      if (slices.every(({ bytes }) => bytes.length === 0)) continue;
      const base = former ? [await this.slice(former.name)] : [];
      merged[part] = await this.put(`${part}-${seq}`, await this.merge([...base, ...slices], true));
    }
    return merged;
  }

  private slicesOf(segments: SegmentReader[], wants: (slot: number) => boolean): Promise<SegmentSlice[]> {
    return mapConcurrent(segments, CONCURRENT_READS, (segment) => segment.slice(wants));
  }

  private async slice(name: string): Promise<SegmentSlice> {
    return (await SegmentReader.open(this.context.objects, name)).slice(() => true);
  }

  private async put(name: string, bytes: Uint8Array): Promise<StoredSegment> {
    const segment = { name: `${PARTS_FOLDER}${name}-${randomUUID()}`, bytes: bytes.length };
    await this.context.objects.put(segment.name, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    return segment;
  }

  private async merge(slices: SegmentSlice[], isComplete: boolean): Promise<Uint8Array> {
    const bytes = slices.reduce((sum, slice) => sum + slice.bytes.length, 0);
    if (!this.pool && bytes < MERGE_HERE_BYTES) return mergeSegments(slices, isComplete);
    this.pool ??= new TaskPool(new URL('./merge-worker.bundle.js', import.meta.url), 1);
    const transfer = slices.map((slice) => slice.bytes.buffer as ArrayBuffer);
    return this.pool.run({ kind: 'merge', slices, isComplete }, { transfer });
  }
}

/** True if the deltas of a checkpoint should be merged into its parts. */
function isDue({ parts, deltas }: Manifest): boolean {
  const sum = (segments: readonly (StoredSegment | null)[]) =>
    segments.reduce((total, segment) => total + (segment?.bytes ?? 0), 0);
  const { min, max } = DELTA_LIMITS;
  return sum(deltas) > Math.min(max, Math.max(min, MAX_DELTA_SHARE * sum(parts)));
}
