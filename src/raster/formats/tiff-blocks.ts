/** Reads and decodes single blocks (tiles or strips) of a TIFF. */
import { readSync } from 'node:fs';
import { TilewrightError } from '../../errors.js';
import { inflate } from '../codecs/inflate.js';
import { decodeJpeg } from '../codecs/jpeg.js';
import {
  type BlockCodec,
  type BlockShape,
  decodeFloatPredictor,
  decodeHorizontalPredictor,
  decodeHorizontalPredictor64,
} from '../codecs/libraries.js';
import { decodeLzw, decodePackbits } from '../codecs/lzw.js';
import { corrupt, truncated, unsupported } from '../errors.js';
import { bytesPerSample, isFloat, swapBytes, UNSIGNED_BY_SIZE, viewPixels } from '../pixels/data-types.js';
import type { DataType, HeaderOf, PixelArray, RasterHeader, TiffBlocks } from '../raster.js';

export type TiffHeader = HeaderOf<TiffBlocks>;

/** Number of blocks across and down an image. */
function blockCounts({ width, height, blocks }: RasterHeader): { across: number; down: number } {
  return { across: Math.ceil(width / blocks.width), down: Math.ceil(height / blocks.height) };
}

/** Rows [from, to) extended to complete blocks and clipped to the image. */
export function alignToBlocks(
  { height, blocks }: RasterHeader,
  from: number,
  to: number,
): [start: number, end: number] {
  const start = Math.max(0, Math.floor(from / blocks.height) * blocks.height);
  return [Math.min(start, height), Math.min(height, Math.ceil(to / blocks.height) * blocks.height)];
}

/** Samples that a block interleaves for each pixel. */
export function samplesPerBlock({ bands, blocks }: TiffHeader): number {
  return blocks.planar ? 1 : bands;
}

/** Bytes of a row of a block. */
export function blockRowBytes(width: number, samples: number, dataType: DataType, bits?: 1): number {
  return bits ? Math.ceil((width * samples) / 8) : width * samples * bytesPerSample(dataType);
}

let reusedBuffer = Buffer.alloc(0);
/** The memory of larger blocks is not kept. */
const MAX_REUSED_BYTES = 2 ** 24;

/** A buffer for one stored block. Threads read many blocks, and the garbage collector frees such memory late. */
function reuseBuffer(bytes: number): Buffer {
  if (bytes > MAX_REUSED_BYTES) return Buffer.allocUnsafeSlow(bytes);
  if (reusedBuffer.length < bytes) reusedBuffer = Buffer.allocUnsafeSlow(bytes);
  return reusedBuffer.subarray(0, bytes);
}

/** A block of a file and the shape that it must decode to. */
interface BlockSource {
  /** Stored bytes. */
  count: number;
  /** Reads the stored bytes. Throws TW_RASTER_TRUNCATED. */
  read(into: Uint8Array): void;
  shape: BlockShape;
  /** For messages. */
  name: string;
}

/** Undefined for a block that was never written (a sparse file). */
function locateBlock(
  file: number,
  header: TiffHeader,
  column: number,
  row: number,
  band: number,
): BlockSource | undefined {
  const { blocks, dataType, path } = header;
  const { across, down } = blockCounts(header);
  const index = (blocks.planar ? band * across * down : 0) + row * across + column;
  const count = blocks.byteCounts[index];
  if (count === 0) return undefined;
  const name = `block ${index} (column ${column}, row ${row})`;
  const read = (into: Uint8Array) => {
    let filled = 0;
    while (filled < count) {
      const read = readSync(file, into, filled, count - filled, blocks.offsets[index] + filled);
      if (read === 0) throw truncated(path, `${name} ends after ${filled} of ${count} bytes`);
      filled += read;
    }
  };
  const { width, height } = blocks;
  const samples = samplesPerBlock(header);
  const rows = Math.min(height, header.height - row * height);
  const bytes = blockRowBytes(width, samples, dataType, blocks.bits) * height;
  return { count, read, name, shape: { width, height, rows, samples, dataType, bytes } };
}

/**
 * The pixels of one block, valid until the next one is decoded: rows of `blocks.width` pixels, samples interleaved. `band`
 * matters if bands have blocks of their own. `codec` is that of `libraryCodec`. Undefined for a block that was never written
 * (a sparse file). The last block of a strip file may be shorter. Throws TW_RASTER_CORRUPT or TW_RASTER_TRUNCATED naming the
 * block.
 */
export function decodeBlock(
  file: number,
  header: TiffHeader,
  column: number,
  row: number,
  band: number,
  codec: BlockCodec | undefined,
): PixelArray | undefined {
  const block = locateBlock(file, header, column, row, band);
  if (!block) return undefined;
  const { blocks, dataType, path } = header;
  const { count, read, name, shape } = block;
  const { rows, samples } = shape;
  let bytes: Uint8Array;
  try {
    bytes = decompress(count, read, blocks.compression, shape, codec);
  } catch (error) {
    throw damagedBlock(error, path, name);
  }
  requireRows(bytes, path, block);
  if (blocks.bits) return expandBits(bytes, shape.bytes / shape.height, shape.width * samples, rows);
  const size = bytesPerSample(dataType);
  const aligned = bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
  undoPredictor(aligned, header, rows, samples, size);
  return viewPixels(dataType, aligned.buffer, aligned.byteOffset, shape.width * samples * rows);
}

/** `decodeBlock` for images with JPEG blocks. The pixels stay valid. */
export async function decodeJpegBlock(
  file: number,
  header: TiffHeader,
  column: number,
  row: number,
  band: number,
): Promise<PixelArray | undefined> {
  const block = locateBlock(file, header, column, row, band);
  if (!block) return undefined;
  const stored = Buffer.allocUnsafeSlow(block.count);
  block.read(stored);
  const bytes = await decodeJpeg(stored, header.blocks.jpeg ?? { isYcbcr: false }, block.shape).catch(
    (error) => {
      throw damagedBlock(error, header.path, block.name);
    },
  );
  requireRows(bytes, header.path, block);
  return bytes;
}

function damagedBlock(error: unknown, path: string, name: string): Error {
  return error instanceof TilewrightError
    ? error
    : corrupt.because(error, path, `${name} cannot be decompressed`);
}

function requireRows(bytes: Uint8Array, path: string, { name, shape }: BlockSource): void {
  const needed = (shape.bytes / shape.height) * shape.rows;
  if (bytes.length < needed) throw corrupt(path, `${name} holds ${bytes.length} bytes, ${needed} are needed`);
}

function decompress(
  count: number,
  read: (stored: Uint8Array) => void,
  compression: number,
  shape: BlockShape,
  codec: BlockCodec | undefined,
): Uint8Array {
  if (compression === 8 || compression === 32946) return inflate(count, shape.bytes, read);
  const stored = reuseBuffer(count);
  read(stored);
  if (compression === 1) return stored;
  if (codec) return codec(stored, shape);
  const decode = compression === 5 ? decodeLzw : decodePackbits;
  const out = Buffer.allocUnsafeSlow(shape.bytes);
  return out.subarray(0, decode(stored, out));
}

/** Expands bits to pixels of 0 and 1, the highest bit first; rows start at whole bytes. */
function expandBits(bytes: Uint8Array, rowBytes: number, width: number, rows: number): Uint8Array {
  const out = new Uint8Array(width * rows);
  for (let row = 0, to = 0; row < rows; row++) {
    const from = row * rowBytes;
    for (let i = 0; i < width; i++, to++) out[to] = (bytes[from + (i >> 3)]! >> (7 - (i & 7))) & 1;
  }
  return out;
}

/** For files that GDAL does not read either. */
const WRITE_AGAIN = 'Write it again with the program that made it.';

/** Converts stored bytes to pixels in the byte order of this machine, in place. */
function undoPredictor(
  bytes: Uint8Array,
  header: TiffHeader,
  rows: number,
  samples: number,
  size: number,
): void {
  const { predictor, width, littleEndian } = header.blocks;
  const used = Buffer.from(bytes.buffer, bytes.byteOffset, width * samples * size * rows);
  if (predictor === 3 && !isFloat(header.dataType))
    throw unsupported(
      header.path,
      'its predictor 3 is for floating point numbers, but its pixels are integers',
      WRITE_AGAIN,
    );
  // The floating point predictor defines its own byte order, so that of the file does not apply.
  if (predictor === 3) decodeFloatPredictor(used, width, rows, samples, size);
  else if (!littleEndian) swapBytes(used, size);
  if (predictor === 1 || predictor === 3) return;
  if (predictor !== 2) throw unsupported(header.path, `its predictor ${predictor} is not known`, WRITE_AGAIN);
  const { buffer, byteOffset } = used;
  const count = used.length / size;
  if (size === 8)
    decodeHorizontalPredictor64(new BigUint64Array(buffer, byteOffset, count), width, rows, samples);
  else {
    const values = viewPixels(UNSIGNED_BY_SIZE[size], buffer, byteOffset, count);
    decodeHorizontalPredictor(values, width, rows, samples);
  }
}
