/** Opens MATLAB 5 files, and reads the pixels of an array in them, which is stored in column order, band after band. */
import { createReadStream } from 'node:fs';
import { constants, createInflate, inflateSync } from 'node:zlib';
import { TilewrightError } from '../../errors.js';
import {
  corrupt,
  noCrs,
  rasterUnreadable,
  subdatasetNotFound,
  subdatasetNotNamed,
  truncated,
  unsupported,
} from '../errors.js';
import { type GeoreferencingOverride, georeferenceByCorners } from '../metadata.js';
import { bytesPerStored, dataTypeOfStored, readStoredNumbers, swapBytes } from '../pixels/data-types.js';
import type {
  HeaderOf,
  MatBlocks,
  PixelArray,
  RasterHeader,
  ReadTarget,
  StoredType,
  Window,
} from '../raster.js';
import { MAX_BANDS, MAX_BLOCK_BYTES, MAX_SIDE_PIXELS, type SourceFile, withFile } from '../source.js';

type MatHeader = HeaderOf<MatBlocks>;

/** Limit of the padding at the end of an element, bytes. */
const MAX_PADDING_BYTES = 7;
const READ_BUFFER_BYTES = 2 ** 18;

/**
 * Reads a window of some bands (from 0); both lie within the image. Reads the array from its start to its end, one column at a
 * time, so that memory is bounded and its checksum is verified. Throws TW_RASTER_UNREADABLE, _CORRUPT and _TRUNCATED.
 */
export async function readMat(
  header: MatHeader,
  bands: number[],
  window: Window,
  target: ReadTarget,
): Promise<void> {
  const { path, blocks } = header;
  const { start, bytes, isCompressed } = blocks;
  const stored = createReadStream(path, { start, end: start + bytes - 1, highWaterMark: READ_BUFFER_BYTES });
  const element = isCompressed ? stored.pipe(createInflate({ chunkSize: READ_BUFFER_BYTES })) : stored;
  stored.once('error', (error) => element.destroy(error));
  const columns = new ColumnReader(header, bands, window, target);
  try {
    for await (const piece of element) columns.take(piece);
    columns.end();
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    const isOfZlib = String((error as NodeJS.ErrnoException).code).startsWith('Z_');
    if (isOfZlib) throw corrupt.because(error, path, 'its array cannot be decompressed');
    throw rasterUnreadable.because(error, path, error);
  } finally {
    stored.destroy();
  }
}

/**
 * Accepts the bytes of an element in pieces, and writes the pixels of a window to the target. Invariant: `done` columns of all
 * bands are complete; `column` holds the first `filled` bytes of the next one.
 */
class ColumnReader {
  private readonly arrays: ReadonlyMap<number, PixelArray>;
  /** Separate memory, so that numbers of every size are aligned. */
  private readonly column: Buffer;
  private readonly count: number;
  /** Remaining bytes before the first number, and bytes after the last one. */
  private before: number;
  private after = 0;
  private done = 0;
  private filled = 0;

  constructor(
    private readonly header: MatHeader,
    bands: number[],
    private readonly window: Window,
    private readonly target: ReadTarget,
  ) {
    const { width, height, blocks } = header;
    this.arrays = new Map(bands.map((band, i) => [band, target.arrays[i]!]));
    this.column = Buffer.from(new ArrayBuffer(height * bytesPerStored(blocks.storedType)));
    this.count = width * header.bands;
    this.before = blocks.dataOffset;
  }

  take(piece: Buffer): void {
    let at = Math.min(this.before, piece.length);
    this.before -= at;
    while (at < piece.length && this.done < this.count) {
      const copied = piece.copy(this.column, this.filled, at);
      at += copied;
      this.filled += copied;
      if (this.filled < this.column.length) continue;
      this.put(this.done++);
      this.filled = 0;
    }
    this.after += piece.length - at;
    if (this.after > MAX_PADDING_BYTES) throw corrupt(this.header.path, 'its array is longer than it says');
  }

  /** Throws TW_RASTER_TRUNCATED if columns are missing. */
  end(): void {
    const { done, count, header } = this;
    if (done < count) throw truncated(header.path, `its array ends after ${done} of ${count} columns`);
  }

  private put(index: number): void {
    const { column, row, height: rows, width: columns } = this.window;
    const { width, height, blocks } = this.header;
    const { offset, stride } = this.target;
    const array = this.arrays.get(Math.floor(index / width));
    const across = (index % width) - column;
    if (!array || across < 0 || across >= columns) return;
    if (!blocks.littleEndian) swapBytes(this.column, this.column.length / height);
    const numbers = readStoredNumbers(blocks.storedType, this.column.buffer, 0, height);
    for (let y = 0; y < rows; y++) array[offset + y * stride + across] = numbers[row + y]!;
  }
}

const HEADER_BYTES = 128;
/** Names have at most 63 characters, so dimensions and name end well before this many bytes of an element. */
const ELEMENT_HEAD_BYTES = 1024;
/** Limit of the variables; files of pixels have fewer. */
const MAX_ELEMENTS = 1000;

/** Types of data elements. */
const MATRIX_TYPE = 14;
const COMPRESSED_TYPE = 15;
const NUMBER_TYPES: Record<number, StoredType> = {
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
const FIRST_NUMERIC_CLASS = 6;
const LAST_NUMERIC_CLASS = 15;
const COMPLEX_FLAG = 0x800;

/** A numeric array of any number of dimensions, and the position of its numbers. */
interface MatArray extends Omit<MatBlocks, 'reader' | 'width' | 'height'> {
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
 * The numeric arrays of a file (MathWorks, "MAT-File Format", version 5): a header of 128 bytes, then data elements, each with a type and a
 * length. The element of a variable may be compressed by zlib. Skips variables of other kinds, and reads the start of each. Throws
 * TW_RASTER_CORRUPT and TW_RASTER_TRUNCATED.
 */
async function matArrays(file: SourceFile): Promise<MatArray[]> {
  const littleEndian = byteOrder(file);
  const arrays: MatArray[] = [];
  let at = HEADER_BYTES;
  for (let count = 0; at + 8 <= file.size; count++) {
    if (count === MAX_ELEMENTS) throw corrupt(file.path, `it has more than ${MAX_ELEMENTS} variables`);
    const tag = readTag(await bytesAt(file, at, 8), 0, littleEndian);
    const isCompressed = tag.type === COMPRESSED_TYPE;
    if (!isCompressed && tag.type !== MATRIX_TYPE)
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
    if (outer.type !== MATRIX_TYPE || outer.bytes === 0) return undefined;
    const flags = readTag(head, 8, littleEndian);
    const word = readWord(head, flags.data, littleEndian);
    const kind = word & 0xff;
    if (kind < FIRST_NUMERIC_CLASS || kind > LAST_NUMERIC_CLASS) return undefined;
    const sizes = readTag(head, flags.next, littleEndian);
    const dimensions = Array.from(
      { length: sizes.bytes / 4 },
      (_, i) => readWord(head, sizes.data + 4 * i, littleEndian) | 0,
    );
    const name = readTag(head, sizes.next, littleEndian);
    const numbers = readTag(head, name.next, littleEndian);
    const storedType = NUMBER_TYPES[numbers.type];
    if (!storedType) throw new Error(`its numbers are of type ${numbers.type}`);
    return {
      name: head.toString('latin1', name.data, name.data + name.bytes),
      dimensions,
      isComplex: (word & COMPLEX_FLAG) !== 0,
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

/** Deflate cannot compress data by more than this factor. */
const MAX_DEFLATE_RATIO = 1032;

/**
 * Opens a cube: a numeric array with rows, columns and bands. Opens the array named `layer`, or the only one with three dimensions. The
 * file has neither georeferencing nor wavelengths. Throws TW_RASTER_CORRUPT, _TRUNCATED, _UNSUPPORTED, _NO_LAYER, _SEVERAL_LAYERS, and
 * _NO_CRS without `position`.
 */
export function openMat(
  path: string,
  layer?: string,
  position?: GeoreferencingOverride,
): Promise<RasterHeader> {
  return withFile(path, async (file): Promise<RasterHeader> => {
    const array = chooseArray(await matArrays(file), path, layer);
    const [height, width, bands] = array.dimensions as [number, number, number];
    const { storedType, start, bytes, isCompressed, dataOffset, dataBytes, littleEndian } = array;
    const size = bytesPerStored(storedType);
    if (![height, width, bands].every((side) => side >= 1) || width * height * bands * size !== dataBytes)
      throw corrupt(path, `${array.name} of ${array.dimensions.join(' x ')} has ${dataBytes} bytes`);
    if (
      width > MAX_SIDE_PIXELS ||
      height > MAX_SIDE_PIXELS ||
      bands > MAX_BANDS ||
      width * bands * size > MAX_BLOCK_BYTES
    )
      throw unsupported(path, `${array.name} has ${array.dimensions.join(' x ')} values`, SAVE_OTHER);
    if (array.isComplex)
      throw unsupported(path, `${array.name} holds complex numbers`, 'Save its real part, or its magnitude.');
    const longest = isCompressed ? bytes * MAX_DEFLATE_RATIO : bytes;
    if (dataOffset + dataBytes > longest)
      throw corrupt(path, `${array.name} has ${dataBytes} bytes, which do not fit into ${bytes}`);
    if (!position) throw noCrs(path, 'MATLAB files have no position');
    return {
      path,
      fileBytes: file.size,
      width,
      height,
      bands,
      dataType: dataTypeOfStored(storedType),
      ...georeferenceByCorners(position, { path, width, height }),
      nodata: undefined,
      blocks: {
        reader: 'mat',
        width,
        height: 1,
        storedType,
        start,
        bytes,
        isCompressed,
        dataOffset,
        littleEndian,
      },
      bandTags: Array.from({ length: bands }, () => ({})),
      metadata: {},
    };
  });
}

const SAVE_OTHER = 'Save an array of rows x columns x bands in the file.';

function chooseArray(arrays: MatArray[], path: string, layer: string | undefined): MatArray {
  const cubes = arrays.filter(({ dimensions }) => dimensions.length === 3);
  const names = cubes.map(({ name }) => name);
  if (layer === undefined) {
    if (cubes.length > 1) throw subdatasetNotNamed(path, names);
    if (cubes[0]) return cubes[0];
    const found = arrays.map(({ name, dimensions }) => `${name} (${dimensions.join(' x ')})`);
    const others = found.length > 0 ? `, but ${found.join(', ')}` : '';
    throw unsupported(path, `it has no numeric array with rows, columns and bands${others}`, SAVE_OTHER);
  }
  const chosen = cubes.find(({ name }) => name === layer);
  if (!chosen) throw subdatasetNotFound(path, layer, names);
  return chosen;
}
