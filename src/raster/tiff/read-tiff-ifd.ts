/**
 * Reads directories (IFDs) of TIFF (TIFF 6.0) and BigTIFF files in either byte order. Every offset is checked against the file
 * before it is used, and no allocation is larger than the file.
 */
import { corrupt, truncated } from '../errors.js';
import type { ByteReader, SourceFile } from '../file-access/index.js';

/** Fields of one directory, by tag. */
export interface Ifd {
  littleEndian: boolean;
  /** Offset of the next directory, bytes; 0 after the last one. */
  next: number;
  numbers(tag: number): Float64Array | undefined;
  text(tag: number): string | undefined;
}

interface RawIfdEntry {
  type: number;
  count: number;
  bytes: DataView;
}

/** Reads a number of a type; types that are not listed are bytes. */
const READERS: Record<number, (bytes: DataView, at: number, littleEndian: boolean) => number> = {
  3: (bytes, at, littleEndian) => bytes.getUint16(at, littleEndian),
  4: (bytes, at, littleEndian) => bytes.getUint32(at, littleEndian),
  5: (bytes, at, littleEndian) => bytes.getUint32(at, littleEndian) / bytes.getUint32(at + 4, littleEndian),
  6: (bytes, at) => bytes.getInt8(at),
  8: (bytes, at, littleEndian) => bytes.getInt16(at, littleEndian),
  9: (bytes, at, littleEndian) => bytes.getInt32(at, littleEndian),
  10: (bytes, at, littleEndian) => bytes.getInt32(at, littleEndian) / bytes.getInt32(at + 4, littleEndian),
  11: (bytes, at, littleEndian) => bytes.getFloat32(at, littleEndian),
  12: (bytes, at, littleEndian) => bytes.getFloat64(at, littleEndian),
  13: (bytes, at, littleEndian) => bytes.getUint32(at, littleEndian),
  16: (bytes, at, littleEndian) => Number(bytes.getBigUint64(at, littleEndian)),
  17: (bytes, at, littleEndian) => Number(bytes.getBigInt64(at, littleEndian)),
  18: (bytes, at, littleEndian) => Number(bytes.getBigUint64(at, littleEndian)),
};
const readByte = (bytes: DataView, at: number) => bytes.getUint8(at);
/** Bytes of a value by its type code; 0 for unused codes. */
const TYPE_BYTES = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8];
const ASCII = 2;
/** Limit of the fields of a directory. */
const MAX_ENTRIES = 4096;
/** Limit of the bytes of one value: the offsets of 16 million blocks. */
const MAX_VALUE_BYTES = 2 ** 27;
/** Limit of the numbers of one value, which have 8 bytes each in memory, and can have 1 in the file. */
const MAX_NUMBERS = 2 ** 25;

/**
 * Reads the fields with the given tags from the directory at a byte offset of a TIFF, by default the first one, which is the
 * full image. Throws TW_RASTER_TRUNCATED and TW_RASTER_CORRUPT.
 */
export async function readIfd(
  { path, size, start: ahead, handle }: SourceFile<ByteReader>,
  tags: ReadonlySet<number>,
  at?: number,
): Promise<Ifd> {
  const bytesAt = async (offset: number, length: number, what: string): Promise<DataView> => {
    if (offset + length > size)
      throw truncated(path, `${what} ends at byte ${offset + length} of a file of ${size}`);
    if (offset + length <= ahead.length) return new DataView(ahead.buffer, ahead.byteOffset + offset, length);
    handle.checkPart?.(offset, length);
    const buffer = new ArrayBuffer(length);
    const { bytesRead } = await handle.read(new Uint8Array(buffer), 0, length, offset);
    if (bytesRead < length) throw truncated(path, `${what} could not be read to its end`);
    return new DataView(buffer);
  };

  const start = await bytesAt(0, Math.min(16, size), 'its header');
  if (start.byteLength < 8) throw truncated(path, 'its header is not complete');
  const littleEndian = start.getUint8(0) === 0x49;
  const big = start.getUint16(2, littleEndian) === 43;
  if (big && start.byteLength < 16) throw truncated(path, 'its header is not complete');
  const offsetAt = (view: DataView, at: number) =>
    big ? Number(view.getBigUint64(at, littleEndian)) : view.getUint32(at, littleEndian);

  const directory = at ?? offsetAt(start, big ? 8 : 4);
  const countBytes = big ? 8 : 2;
  const head = await bytesAt(directory, countBytes, 'its directory');
  const fieldCount = big ? offsetAt(head, 0) : head.getUint16(0, littleEndian);
  if (fieldCount === 0 || fieldCount > MAX_ENTRIES)
    throw corrupt(path, `its directory has ${fieldCount} fields`);
  const entryBytes = big ? 20 : 12;
  const entriesAt = directory + countBytes;
  const entriesBytes = fieldCount * entryBytes;
  const nextBytes = big ? 8 : 4;
  const entries = await bytesAt(entriesAt, entriesBytes, 'its directory');
  // Some writers omit this number in a file with one directory.
  const isCut = entriesAt + entriesBytes + nextBytes > size;
  const next = isCut ? 0 : offsetAt(await bytesAt(entriesAt + entriesBytes, nextBytes, 'its directory'), 0);

  const fields = new Map<number, RawIfdEntry>();
  for (let at = 0; at < entriesBytes; at += entryBytes) {
    const tag = entries.getUint16(at, littleEndian);
    if (!tags.has(tag)) continue;
    const type = entries.getUint16(at + 2, littleEndian);
    const count = offsetAt(entries, at + 4);
    const length = count * (TYPE_BYTES[type] ?? 0);
    if (length > MAX_VALUE_BYTES) throw corrupt(path, `the value of tag ${tag} has ${length} bytes`);
    const valueAt = at + (big ? 12 : 8);
    const inline = length <= (big ? 8 : 4);
    const bytes = inline
      ? new DataView(entries.buffer, entries.byteOffset + valueAt, length)
      : await bytesAt(offsetAt(entries, valueAt), length, `the value of tag ${tag}`);
    fields.set(tag, { type, count, bytes });
  }

  return {
    littleEndian,
    next,
    numbers(tag) {
      const field = fields.get(tag);
      if (!field || field.type === ASCII || field.bytes.byteLength === 0) return undefined;
      if (field.count > MAX_NUMBERS) throw corrupt(path, `tag ${tag} has ${field.count} numbers`);
      // Several times as fast as `from`; files have thousands of these values.
      const numbers = new Float64Array(field.count);
      const read = READERS[field.type] ?? readByte;
      const size = TYPE_BYTES[field.type];
      for (let i = 0; i < numbers.length; i++) numbers[i] = read(field.bytes, i * size, littleEndian);
      return numbers;
    },
    text(tag) {
      const field = fields.get(tag);
      if (!field || (field.type !== ASCII && field.type !== 1)) return undefined;
      return new TextDecoder().decode(field.bytes).replace(/\0+$/, '');
    },
  };
}
