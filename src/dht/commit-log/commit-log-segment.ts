/**
 * Segments: the changes of one commit, as one object in the tile store. Tile records are grouped by slot, so that a node reads only those
 * of its own slots:
 *
 *     'TWSG', format, length of the header, CRC-32 of the header   4 x 4 bytes, little endian
 *     header                                                       JSON, deflated
 *     parts in the order of their slots                            JSON, deflated, each with a CRC-32 in the header
 */
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
import { type PrefixLengths, slotOfCell } from '../placement/index.js';

const MAGIC = 'TWSG';
const FORMAT = 2;
const HEADER_START = 16;
/** One read fetches most segments completely, and at least the header of the others. */
const FIRST_READ_BYTES = 2 ** 18;
/** Parts that are closer together than this are read together. */
const MAX_GAP_BYTES = 2 ** 16;
/** A scene of a hundred thousand tiles needs less. The limit keeps a damaged length from exhausting the memory. */
const MAX_JSON_BYTES = 2 ** 29;

interface Part {
  slot: number;
  /** Offset from the end of the header. */
  offset: number;
  bytes: number;
  crc32: number;
}

interface Header {
  edits: RecordEdit[];
  formerModels: Commit['formerModels'];
  parts: Part[];
}

/** The content of a part: the changes to the tiles of a slot. */
interface SlotChange {
  removed: TileVersion[];
  added: TileBatch | EncodedTiles;
}

export interface Segment {
  bytes: Buffer;
  /** The slots of its tiles, ascending. */
  slots: number[];
}

export function encodeSegment(commit: Commit, prefixLengths: PrefixLengths): Segment {
  const bySlot = new Map<number, { removed: TileVersion[]; added: TileRecord[] }>();
  const changeOf = (tile: TileVersion) => {
    const slot = slotOfCell(tile, prefixLengths);
    const known = bySlot.get(slot);
    if (known) return known;
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
  const parts = bodies.map((body, i): Part => {
    const part = { slot: slots[i], offset, bytes: body.length, crc32: crc32(body) };
    offset += body.length;
    return part;
  });
  const header = deflateJson({
    edits: commit.edits ?? [],
    formerModels: commit.formerModels ?? [],
    parts,
  } satisfies Header);
  const start = Buffer.alloc(HEADER_START);
  start.write(MAGIC);
  start.writeUInt32LE(FORMAT, 4);
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
  let known = await read(0, FIRST_READ_BYTES);
  if (known.length < HEADER_START) throw segmentDamaged(name, 'it is cut off');
  if (known.toString('latin1', 0, 4) !== MAGIC || known.readUInt32LE(4) !== FORMAT)
    throw segmentDamaged(name, 'it is not a segment of this format');
  const headerEnd = HEADER_START + known.readUInt32LE(8);
  if (headerEnd > MAX_JSON_BYTES) throw segmentDamaged(name, 'its header is too long');
  if (headerEnd > known.length) known = Buffer.concat([known, await read(known.length, headerEnd)]);
  const json = known.subarray(HEADER_START, headerEnd);
  if (crc32(json) !== known.readUInt32LE(12)) throw segmentDamaged(name, 'its header has another checksum');
  const { edits, formerModels, parts }: Header = inflateJson(json);

  const wanted = parts.filter(({ slot }) => wants(slot));
  const commit = { removed: [] as TileVersion[], added: [] as TileRecord[], edits, formerModels };
  for (const run of contiguousReads(wanted)) {
    const from = headerEnd + run[0].offset;
    const last = run[run.length - 1];
    const to = headerEnd + last.offset + last.bytes;
    const held = to <= known.length ? known.subarray(from, to) : await read(from, to);
    for (const part of run) {
      const body = held.subarray(part.offset - run[0].offset, part.offset - run[0].offset + part.bytes);
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
function contiguousReads(parts: Part[]): Part[][] {
  const runs: Part[][] = [];
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
