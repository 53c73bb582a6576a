/**
 * Lists the variables of a MATLAB 5 file (MathWorks, "MAT-File Format", version 5): a header of 128 bytes, then data elements,
 * each with a type and a length. The element of a variable may be compressed by zlib.
 */
import { constants, inflateSync } from 'node:zlib';
import { corrupt, truncated } from '../errors.js';
import type { SourceFile } from '../file-access/index.js';
import type { MatBlocks, StoredType } from '../raster-types.js';

const HEADER_BYTES = 128;
/** Names have at most 63 characters, so dimensions and name end well before this many bytes of an element. */
const ELEMENT_HEAD_BYTES = 1024;
/** Limit of the variables; files of pixels have fewer. */
const MAX_ELEMENTS = 1000;

/** Types of data elements. */
const MATRIX = 14;
const COMPRESSED = 15;
const NUMBERS: Record<number, StoredType> = {
  1: 'int8',
  2: 'uint8',
  3: 'int16',
  4: 'uint16',
  5: 'int32',
  6: 'uint32',
  7: 'float32',
  9: 'float64',
  12: 'int64',
  13: 'uint64',
};

/** Classes of numeric arrays: double, single and eight kinds of integers. Others are text, cells, structures ... */
const FIRST_NUMERIC = 6;
const LAST_NUMERIC = 15;
const COMPLEX = 0x800;

/** A numeric array of any number of dimensions, and the position of its numbers. */
export interface MatArray extends Omit<MatBlocks, 'reader' | 'width' | 'height'> {
  name: string;
  dimensions: number[];
  isComplex: boolean;
  /** Length of the numbers in the decompressed element, bytes. */
  dataBytes: number;
}

/** True if the numbers of a file are little-endian. Throws TW_RASTER_CORRUPT if its header does not say so. */
function byteOrder({ path, start }: SourceFile): boolean {
  const mark = Buffer.from(start.subarray(126, 128)).toString('latin1');
  if (mark !== 'IM' && mark !== 'MI') throw corrupt(path, 'its header does not say its byte order');
  return mark === 'IM';
}

/**
 * The numeric arrays of a file; skips variables of other kinds. Reads the start of each. Throws TW_RASTER_CORRUPT and
 * TW_RASTER_TRUNCATED.
 */
export async function matArrays(file: SourceFile): Promise<MatArray[]> {
  const littleEndian = byteOrder(file);
  const arrays: MatArray[] = [];
  let at = HEADER_BYTES;
  for (let count = 0; at + 8 <= file.size; count++) {
    if (count === MAX_ELEMENTS) throw corrupt(file.path, `it has more than ${MAX_ELEMENTS} variables`);
    const tag = readTag(await bytesAt(file, at, 8), 0, littleEndian);
    const isCompressed = tag.type === COMPRESSED;
    if (!isCompressed && tag.type !== MATRIX)
      throw corrupt(file.path, `the element at byte ${at} is of type ${tag.type}, which no variable has`);
    const start = isCompressed ? at + 8 : at;
    const bytes = isCompressed ? tag.bytes : 8 + tag.bytes;
    if (start + bytes > file.size)
      throw truncated(file.path, `the variable at byte ${at} ends at byte ${start + bytes} of ${file.size}`);
    const stored = await bytesAt(file, start, Math.min(bytes, ELEMENT_HEAD_BYTES));
    const head = isCompressed ? inflateHead(stored, file.path, at) : stored;
    const array = readHead(head, littleEndian, file.path, at);
    if (array) arrays.push({ ...array, start, bytes, isCompressed, littleEndian });
    at = start + bytes;
  }
  return arrays;
}

async function bytesAt({ path, handle }: SourceFile, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await handle.read(bytes, 0, length, at);
  if (bytesRead < length) throw truncated(path, `it ends at byte ${at + bytesRead}`);
  return bytes;
}

/** Decompresses the first bytes of a stream, to at most about a thousand times their size. */
function inflateHead(stored: Buffer, path: string, at: number): Buffer {
  try {
    return inflateSync(stored, { finishFlush: constants.Z_SYNC_FLUSH });
  } catch (error) {
    throw corrupt.because(error, path, `the variable at byte ${at} cannot be decompressed`);
  }
}

/** The parts of a variable: flags, dimensions, name, and the tag of its numbers. Undefined for other kinds of variables. */
function readHead(
  head: Buffer,
  littleEndian: boolean,
  path: string,
  at: number,
): Omit<MatArray, 'start' | 'bytes' | 'isCompressed' | 'littleEndian'> | undefined {
  try {
    const outer = readTag(head, 0, littleEndian);
    if (outer.type !== MATRIX || outer.bytes === 0) return undefined;
    const flags = readTag(head, 8, littleEndian);
    const word = readWord(head, flags.data, littleEndian);
    const kind = word & 0xff;
    if (kind < FIRST_NUMERIC || kind > LAST_NUMERIC) return undefined;
    const sizes = readTag(head, flags.next, littleEndian);
    const dimensions = Array.from(
      { length: sizes.bytes / 4 },
      (_, i) => readWord(head, sizes.data + 4 * i, littleEndian) | 0,
    );
    const name = readTag(head, sizes.next, littleEndian);
    const numbers = readTag(head, name.next, littleEndian);
    const storedType = NUMBERS[numbers.type];
    if (!storedType) throw new Error(`its numbers are of type ${numbers.type}`);
    return {
      name: head.toString('latin1', name.data, name.data + name.bytes),
      dimensions,
      isComplex: (word & COMPLEX) !== 0,
      storedType,
      dataOffset: numbers.data,
      dataBytes: numbers.bytes,
    };
  } catch (error) {
    // Buffer throws a RangeError for a read beyond the head.
    throw corrupt.because(error, path, `the start of the variable at byte ${at} cannot be read`);
  }
}

interface Tag {
  type: number;
  bytes: number;
  /** Offsets of its data and of the next element. */
  data: number;
  next: number;
}

/** Elements of up to four bytes have their data inside the tag. */
function readTag(from: Buffer, at: number, littleEndian: boolean): Tag {
  const first = readWord(from, at, littleEndian);
  const small = first >>> 16;
  if (small > 0) return { type: first & 0xffff, bytes: small, data: at + 4, next: at + 8 };
  const bytes = readWord(from, at + 4, littleEndian);
  return { type: first, bytes, data: at + 8, next: at + 8 + Math.ceil(bytes / 8) * 8 };
}

const readWord = (from: Buffer, at: number, littleEndian: boolean) =>
  littleEndian ? from.readUInt32LE(at) : from.readUInt32BE(at);
