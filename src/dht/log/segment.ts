/**
 * Segments: objects in the tile store with changes of records, grouped by slot, so that a node reads only those of its own slots. A commit
 * is one segment; a checkpoint consists of segments with the combined result of many commits.
 */
import { setImmediate } from 'node:timers/promises';
import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import {
  type Commit,
  decodeTiles,
  type EncodedTiles,
  type ObjectStore,
  type RecordEdit,
  TileBatch,
  type TileRecord,
  type TileVersion,
} from '../../storage/index.js';
import { segmentDamaged } from '../errors.js';
import { type PrefixLengths, slotOfCell, slotOfScene } from '../slots.js';

/** The name of the segment of a log entry. */
export const segmentName = (id: string) => `catalogue/segments/${id}`;

const MAGIC = 'TWSG';
const FORMAT = 3;
const HEADER_START = 16;
/** One read fetches most segments completely, and at least the header of the others. */
const FIRST_READ_BYTES = 2 ** 18;
/** Chunks that are closer together than this are read together, up to this sum. */
const MAX_GAP_BYTES = 2 ** 16;
const MAX_READ_BYTES = 2 ** 22;
/** The limit keeps a damaged length from exhausting the memory. */
const MAX_JSON_BYTES = 2 ** 29;
/** Records in a chunk: decoding a chunk blocks the event loop for about 20 ms. */
const CHUNK_RECORDS = 250;
/** Chunks of one read are passed on for so long before the event loop has its turn. */
const TURN_MS = 4;
/** Versions of removed tiles in a chunk. */
const CHUNK_REMOVED = 5000;

/** Position of changes of a slot. A slot may have several chunks, whose order counts. */
interface Chunk {
  slot: number;
  /** Offset from the end of the header. */
  offset: number;
  bytes: number;
  crc32: number;
}

/** Both lists ascend by slot. */
interface Header {
  edits: Chunk[];
  tiles: Chunk[];
  formerModels?: Commit['formerModels'];
}

/** The content of a chunk of tiles. The tiles are removed before others are added. */
interface TileChanges {
  removed: TileVersion[];
  added: TileRecord[];
}

/** A chunk of tiles as it is stored. */
interface StoredTileChanges {
  removed: TileVersion[];
  added: TileBatch | EncodedTiles;
}

/** The slot of a record other than a tile. */
export const slotOfRecord = ({ table, key }: Pick<RecordEdit, 'table' | 'key'>) => slotOfScene(table, key);

interface Segment {
  bytes: Buffer;
  /** The slots of its tiles, ascending. */
  slots: number[];
}

/**
 * The bytes of a segment:
 *
 *     'TWSG', format, length of the header, CRC-32 of the header   4 x 4 bytes, little endian
 *     header                                                       JSON, deflated
 *     chunks with edits, then chunks with tiles                    JSON, deflated, each with a CRC-32 in the header
 */
class SegmentWriter {
  private readonly bodies: Buffer[] = [];
  private readonly header: Header = { edits: [], tiles: [] };
  private offset = 0;

  /** Slots must ascend. */
  addEdits(slot: number, edits: RecordEdit[]): void {
    for (const some of slices(edits, CHUNK_RECORDS)) this.header.edits.push(this.chunk(slot, some));
  }

  /** Called after `addEdits`; slots must ascend. */
  addTiles(slot: number, { removed, added }: TileChanges): void {
    const { tiles } = this.header;
    const add = (changes: StoredTileChanges) => tiles.push(this.chunk(slot, changes));
    for (const some of slices(removed, CHUNK_REMOVED)) add({ removed: some, added: new TileBatch([]) });
    for (const some of slices(added, CHUNK_RECORDS)) add({ removed: [], added: new TileBatch(some) });
  }

  finish(formerModels?: Commit['formerModels']): Buffer {
    const header = deflateJson({ ...this.header, ...(formerModels && { formerModels }) } satisfies Header);
    const start = Buffer.alloc(HEADER_START);
    start.write(MAGIC);
    start.writeUInt32LE(FORMAT, 4);
    start.writeUInt32LE(header.length, 8);
    start.writeUInt32LE(crc32(header), 12);
    return Buffer.concat([start, header, ...this.bodies]);
  }

  private chunk(slot: number, content: unknown): Chunk {
    const body = deflateJson(content);
    const chunk = { slot, offset: this.offset, bytes: body.length, crc32: crc32(body) };
    this.bodies.push(body);
    this.offset += body.length;
    return chunk;
  }
}

/** The parts of a list with at most `length` elements, in order. */
export function* slices<T>(list: T[], length: number): Generator<T[]> {
  for (let from = 0; from < list.length; from += length) yield list.slice(from, from + length);
}

export function encodeSegment(commit: Commit, prefixLengths: PrefixLengths): Segment {
  const { removed = [], added = [], edits = [], formerModels } = commit;
  const changes = new SlotMap<TileChanges>(() => ({ removed: [], added: [] }));
  const ofTile = (tile: TileVersion) => changes.at(slotOfCell(tile, prefixLengths));
  for (const tile of removed) {
    const { id, grid, geocode, version } = tile;
    ofTile(tile).removed.push({ id, grid, geocode, version });
  }
  for (const tile of added) ofTile(tile).added.push(tile);
  const editsBySlot = new SlotMap<RecordEdit[]>(() => []);
  for (const edit of edits) editsBySlot.at(slotOfRecord(edit)).push(edit);

  const writer = new SegmentWriter();
  for (const [slot, some] of editsBySlot.ascending()) writer.addEdits(slot, some);
  const tiles = changes.ascending();
  for (const [slot, some] of tiles) writer.addTiles(slot, some);
  return { bytes: writer.finish(formerModels), slots: tiles.map(([slot]) => slot) };
}

/** Values by slot, created when they are first asked for. */
class SlotMap<T> {
  private readonly map = new Map<number, T>();

  constructor(private readonly create: () => T) {}

  at(slot: number): T {
    let value = this.map.get(slot);
    if (value === undefined) {
      value = this.create();
      this.map.set(slot, value);
    }
    return value;
  }

  ascending(): [number, T][] {
    return [...this.map].sort(([a], [b]) => a - b);
  }
}

/** Intact chunks of a segment, undecoded, with offsets in `bytes`: for another thread. */
export interface SegmentSlice {
  edits: Chunk[];
  tiles: Chunk[];
  bytes: Uint8Array;
}

type Wants = (slot: number) => boolean;

/** Reads a segment as far as it is asked for. All methods throw TW_DHT_SEGMENT_DAMAGED and errors of the store. */
export class SegmentReader {
  private constructor(
    private readonly objects: Pick<ObjectStore, 'get'>,
    private readonly name: string,
    private readonly header: Header,
    /** Length of the header with what precedes it. */
    private readonly headerEnd: number,
    /** The first bytes of the segment, at least up to the end of the header. */
    private readonly start: Buffer,
  ) {}

  static async open(objects: Pick<ObjectStore, 'get'>, name: string): Promise<SegmentReader> {
    let start = await objects.get(name, { offset: 0, length: FIRST_READ_BYTES });
    if (start.length < HEADER_START) throw segmentDamaged(name, 'it is cut off');
    if (start.toString('latin1', 0, 4) !== MAGIC || start.readUInt32LE(4) !== FORMAT)
      throw segmentDamaged(name, 'it is not a segment of this format');
    const headerEnd = HEADER_START + start.readUInt32LE(8);
    if (headerEnd > MAX_JSON_BYTES) throw segmentDamaged(name, 'its header is too long');
    if (headerEnd > start.length) {
      const rest = await objects.get(name, { offset: start.length, length: headerEnd - start.length });
      start = Buffer.concat([start, rest]);
    }
    const json = start.subarray(HEADER_START, headerEnd);
    if (crc32(json) !== start.readUInt32LE(12)) throw segmentDamaged(name, 'its header has another checksum');
    return new SegmentReader(objects, name, inflateJson(json), headerEnd, start);
  }

  get formerModels(): NonNullable<Commit['formerModels']> {
    return this.header.formerModels ?? [];
  }

  /** All edits, chunk by chunk. */
  async *edits(): AsyncGenerator<RecordEdit[]> {
    for await (const { json } of this.read(this.header.edits)) yield inflateJson<RecordEdit[]>(json);
  }

  /** The changes to the tiles of the wanted slots, chunk by chunk. */
  async *tiles(wants: Wants): AsyncGenerator<TileChanges> {
    const chunks = this.header.tiles.filter(({ slot }) => wants(slot));
    for await (const { json } of this.read(chunks)) yield decodeTileChanges(json);
  }

  /** The chunks of the wanted slots in one piece of memory that can be moved to another thread. */
  async slice(wants: Wants): Promise<SegmentSlice> {
    const { header } = this;
    const lists = [header.edits, header.tiles].map((list) => list.filter(({ slot }) => wants(slot)));
    const bytes = new Uint8Array(lists.flat().reduce((sum, chunk) => sum + chunk.bytes, 0));
    let offset = 0;
    const moved: Chunk[][] = [];
    for (const list of lists) {
      const there: Chunk[] = [];
      for await (const { chunk, json } of this.read(list)) {
        bytes.set(json, offset);
        there.push({ ...chunk, offset });
        offset += chunk.bytes;
      }
      moved.push(there);
    }
    return { edits: moved[0]!, tiles: moved[1]!, bytes };
  }

  private async *read(chunks: Chunk[]): AsyncGenerator<{ chunk: Chunk; json: Buffer }> {
    for (const run of contiguousReads(chunks)) {
      const first = run[0]!.offset;
      const last = run.at(-1)!;
      const from = this.headerEnd + first;
      const length = last.offset + last.bytes - first;
      const bytes =
        from + length <= this.start.length
          ? this.start.subarray(from, from + length)
          : await this.objects.get(this.name, { offset: from, length });
      let turnBegan = performance.now();
      for (const chunk of run) {
        if (performance.now() - turnBegan > TURN_MS) {
          await setImmediate();
          turnBegan = performance.now();
        }
        const json = bytes.subarray(chunk.offset - first, chunk.offset - first + chunk.bytes);
        if (json.length !== chunk.bytes || crc32(json) !== chunk.crc32)
          throw segmentDamaged(this.name, `a chunk of slot ${chunk.slot} has another checksum`);
        yield { chunk, json };
      }
    }
  }
}

function decodeTileChanges(json: Uint8Array): TileChanges {
  const { removed, added } = inflateJson<StoredTileChanges>(json);
  return { removed, added: decodeTiles(added) };
}

/** Groups neighbouring chunks that one read fetches. */
function contiguousReads(chunks: Chunk[]): Chunk[][] {
  const runs: Chunk[][] = [];
  for (const chunk of chunks) {
    const open = runs.at(-1);
    const last = open?.at(-1);
    const isNear = last && chunk.offset - (last.offset + last.bytes) <= MAX_GAP_BYTES;
    if (isNear && chunk.offset + chunk.bytes - open![0]!.offset <= MAX_READ_BYTES) open!.push(chunk);
    else runs.push([chunk]);
  }
  return runs;
}

/**
 * Reads a segment as a commit with the tiles of only those slots for which `wants` is true, and with all edits of other records. Throws
 * TW_DHT_SEGMENT_DAMAGED.
 */
export async function readSegment(
  objects: Pick<ObjectStore, 'get'>,
  name: string,
  wants: Wants,
): Promise<Required<Commit>> {
  const segment = await SegmentReader.open(objects, name);
  const commit: Required<Commit> = {
    removed: [],
    added: [],
    edits: [],
    formerModels: segment.formerModels,
  };
  // A spread would exceed the stack, because a slot may have a million tiles.
  for await (const edits of segment.edits()) for (const edit of edits) commit.edits.push(edit);
  for await (const { removed, added } of segment.tiles(wants)) {
    for (const tile of removed) commit.removed.push(tile);
    for (const tile of added) commit.added.push(tile);
  }
  return commit;
}

/**
 * Merges slices of segments, the earliest first, into one segment. With `isComplete` nothing precedes them, so that no removal is kept.
 */
export function mergeSegments(slices: SegmentSlice[], isComplete: boolean): Buffer {
  const writer = new SegmentWriter();
  for (const [slot, chunks] of chunksBySlot(slices, 'edits')) {
    const records = new Map<string, RecordEdit>();
    for (const json of chunks)
      for (const edit of inflateJson<RecordEdit[]>(json)) records.set(recordName(edit), edit);
    const edits = [...records.values()];
    writer.addEdits(slot, isComplete ? edits.filter(({ record }) => record !== null) : edits);
  }
  for (const [slot, chunks] of chunksBySlot(slices, 'tiles')) {
    const state = new TileState();
    for (const json of chunks) state.apply(decodeTileChanges(json));
    const { removed, added } = state.toChanges();
    writer.addTiles(slot, { removed: isComplete ? [] : removed, added });
  }
  return writer.finish();
}

/** The chunks of each slot in the order of the slices; slots ascend. */
function chunksBySlot(slices: SegmentSlice[], kind: 'edits' | 'tiles'): [number, Uint8Array[]][] {
  const chunks = new SlotMap<Uint8Array[]>(() => []);
  for (const { bytes, [kind]: list } of slices)
    for (const { slot, offset, bytes: length } of list)
      chunks.at(slot).push(bytes.subarray(offset, offset + length));
  return chunks.ascending();
}

/** The name of a record among those of all tables. */
export const recordName = ({ table, key }: Pick<RecordEdit, 'table' | 'key'>) => `${table}/${key}`;

/** The combined result of consecutive changes to tiles. */
export class TileState {
  /** By id: what is removed from the state before. A tile may also be added again. */
  private readonly removed = new Map<string, TileVersion>();
  private readonly added = new Map<string, TileRecord>();

  /** Applies the next changes. */
  apply({ removed, added }: TileChanges): void {
    for (const tile of removed) {
      this.added.delete(tile.id);
      this.removed.set(tile.id, tile);
    }
    for (const tile of added) this.added.set(tile.id, tile);
  }

  /** True if the changes replace or remove what precedes them of a tile. */
  has(id: string): boolean {
    return this.removed.has(id) || this.added.has(id);
  }

  toChanges(): TileChanges {
    return { removed: [...this.removed.values()], added: [...this.added.values()] };
  }
}

function deflateJson(value: unknown): Buffer {
  return deflateRawSync(JSON.stringify(value), { level: 1 });
}

function inflateJson<T>(bytes: Uint8Array): T {
  return JSON.parse(inflateRawSync(bytes, { maxOutputLength: MAX_JSON_BYTES }).toString()) as T;
}
