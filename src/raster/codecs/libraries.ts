/**
 * Codecs from libraries, Zstandard and LERC, and predictors of TIFF. The decoders of libraries allocate the size that a block declares, so
 * each block is first checked against the header of the image, and never decodes to more.
 */

import { createRequire } from 'node:module';
import { inflateSync } from 'node:zlib';
import type * as Lerc from 'lerc';
import { allocatePixels, isFloat, UNSIGNED_BY_SIZE } from '../pixels/data-types.js';
import { typedKernels } from '../pixels/masks.js';
import type { DataType, PixelArray, TiffBlocks } from '../raster.js';

const LERC_MAGIC = 'Lerc2 ';
const LERC_TYPES: DataType[] = ['int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'float32', 'float64'];

interface LercHeader {
  width: number;
  height: number;
  samples: number;
  dataType: DataType;
  /** Valid pixels. */
  valid: number;
  /** Bytes of the blob. */
  length: number;
}

/**
 * Reads the header of a LERC blob (Lerc2, versions 2 to 6), which is checked before a decoder allocates memory for its declared size.
 * Throws an Error if the bytes are not one blob.
 */
function lercHeader(bytes: Uint8Array): LercHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = String.fromCharCode(...bytes.subarray(0, LERC_MAGIC.length));
  if (magic !== LERC_MAGIC || bytes.length < 58) throw new Error('no LERC blob');
  const version = view.getInt32(6, true);
  if (version < 2 || version > 6) throw new Error(`a LERC blob of version ${version}`);
  let at = version >= 3 ? 14 : 10;
  const next = () => {
    at += 4;
    return view.getInt32(at - 4, true);
  };
  const height = next();
  const width = next();
  const samples = version >= 4 ? next() : 1;
  const valid = next();
  const unit = next();
  const length = next();
  const type = next();
  const dataType = LERC_TYPES[type];
  if (!dataType) throw new Error(`a LERC blob of type ${type}`);
  if (!(valid >= 0 && valid <= width * height)) throw new Error(`${valid} valid pixels in a LERC blob`);
  if (!(unit >= 1 && unit <= 1024)) throw new Error(`LERC units of ${unit} pixels`);
  if (!(length > 0 && length <= bytes.length))
    throw new Error(`a LERC blob of ${length} bytes in ${bytes.length}`);
  return { width, height, samples, dataType, valid, length };
}

/** The headers of the blobs of a block, one after another: a writer makes one for each band if their masks differ. */
function lercHeaders(bytes: Uint8Array, { samples }: BlockShape): LercHeader[] {
  const headers: LercHeader[] = [];
  for (let at = 0; at < bytes.length; at += headers.at(-1)!.length) {
    if (headers.length === samples) throw new Error(`more than ${samples} LERC blobs`);
    headers.push(lercHeader(bytes.subarray(at)));
  }
  return headers;
}

/**
 * The shape that a block must decode to. The last strip of an image may have fewer rows than the others, but at least `rows`.
 */
export interface BlockShape {
  width: number;
  height: number;
  rows: number;
  samples: number;
  dataType: DataType;
  /** Bytes of `height` rows. */
  bytes: number;
}

/** Decodes a stored block to no more than its bytes. Throws if the block is damaged. */
export type BlockCodec = (stored: Uint8Array, shape: BlockShape) => Uint8Array;

export const JPEG = 7;
export const LERC = 34887;
const ZSTD = 50000;
/** `LercParameters`: an additional compression of the blob. */
const LERC_DEFLATE = 1;
const LERC_ZSTD = 2;

/** A blob is at most about as long as its pixels; some formats add tables. */
const lercLimit = ({ bytes }: BlockShape) => 2 * bytes + 2 ** 16;
/** The memory of the other libraries ends at 2 GiB. */
const MAX_ZSTD_BYTES = 1.5 * 2 ** 30;
const MAX_LERC_BYTES = 2 ** 29;

/** The codec of an image; undefined for compressions without a library. */
export async function libraryCodec({ compression, lerc }: TiffBlocks): Promise<BlockCodec | undefined> {
  if (compression === LERC) return lercCodec(lerc ?? 0);
  if (compression !== ZSTD) return undefined;
  const decode = await zstd();
  return (stored, { bytes }) => decode(stored, bytes);
}

type Inflate = (stored: Uint8Array, limit: number) => Uint8Array;

/** Like `ZSTD_decompress`: all frames, nothing else, within `limit` bytes. The library returns no bytes for damaged data. */
async function zstd(): Promise<Inflate> {
  const { ZSTDDecoder } = await import('zstddec');
  const decoder = new ZSTDDecoder();
  await decoder.init();
  return (stored, limit) => {
    if (stored.length + limit > MAX_ZSTD_BYTES) throw new Error(`a Zstandard block of ${limit} bytes`);
    const bytes = decoder.decode(stored, limit);
    if (bytes.length === 0) throw new Error('the Zstandard data are damaged, or hold more than the block');
    return bytes;
  };
}

async function lercCodec(compression: number): Promise<BlockCodec> {
  // Node cannot import the package's module for bundlers, which is not marked as a module.
  const lerc: typeof Lerc = createRequire(import.meta.url)('lerc');
  await lerc.load();
  const inflate = await lercInflate(compression);
  return (stored, shape) => {
    if (shape.bytes > MAX_LERC_BYTES) throw new Error(`a LERC block of ${shape.bytes} bytes`);
    const blob = inflate(stored, lercLimit(shape));
    const headers = lercHeaders(blob, shape);
    const samples = headers[0]?.samples ?? 0;
    // As libtiff, which stores an alpha band of 0 and 255 as the mask of the other bands.
    const hasAlpha = headers.length === 1 && samples === shape.samples - 1 && shape.dataType === 'uint8';
    const each = headers.length > 1 ? 1 : hasAlpha ? samples : shape.samples;
    for (const header of headers) {
      requireSize(header, { ...shape, samples: each });
      if (header.dataType !== shape.dataType) throw new Error(`a LERC blob of ${header.dataType}`);
      if (header.height !== headers[0]!.height) throw new Error('LERC blobs of different heights');
    }
    if (headers.length > 1 && headers.length !== shape.samples)
      throw new Error(`${headers.length} LERC blobs for ${shape.samples} samples`);
    // The library decodes nothing if the first band has no valid pixel.
    const from = headers.findIndex(({ valid }) => valid > 0);
    const start = headers.slice(0, from).reduce((sum, { length }) => sum + length, 0);
    const found = from < 0 ? undefined : lerc.decode(blob.subarray(start), { returnInterleaved: true });
    const isValid = (pixel: number, band: number) =>
      found !== undefined && band >= from && (found.bandMasks?.[band - from] ?? found.mask)?.[pixel] !== 0;
    const count = shape.width * headers[0]!.height;
    const isOne = found !== undefined && headers.length === 1 && !hasAlpha;
    const values = isOne ? found.pixels[0]! : allocatePixels(shape.dataType, count * shape.samples);
    if (!isOne)
      for (const [band, stored] of found?.pixels.entries() ?? [])
        for (let i = 0; i < count * each; i++)
          values[Math.floor(i / each) * shape.samples + (i % each) + from + band] = stored[i]!;
    if (hasAlpha)
      for (let i = 0; i < count; i++) values[i * shape.samples + samples] = isValid(i, 0) ? 255 : 0;
    // As in libtiff, invalid pixels are NaN if the type has NaN.
    if (isFloat(shape.dataType) && (from !== 0 || found?.mask))
      for (let i = 0; i < values.length; i++)
        if (!isValid(Math.floor(i / shape.samples), headers.length > 1 ? i % shape.samples : 0))
          values[i] = NaN;
    return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  };
}

async function lercInflate(compression: number): Promise<Inflate> {
  if (compression === LERC_ZSTD) return zstd();
  if (compression === LERC_DEFLATE) return (stored, limit) => inflateSync(stored, { maxOutputLength: limit });
  return (stored) => stored;
}

/** Throws an Error if the declared size of a block differs from that of the image. */
export function requireSize(
  found: { width: number; height: number; samples: number },
  { width, height, rows, samples }: BlockShape,
): void {
  if (found.width === width && found.samples === samples && found.height >= rows && found.height <= height)
    return;
  throw new Error(
    `it is ${found.width} x ${found.height} pixels of ${found.samples} samples in place of ${width} x ${height} of ${samples}`,
  );
}

/**
 * Reverts horizontal differences in place: `samples` interleaved values per pixel, `width` pixels per row. Signed values wrap like unsigned
 * ones.
 *
 * TIFF predictors: neighbouring pixels differ little, so differences compress better than values. 2 is horizontal differencing of integers
 * (TIFF 6.0, section 14; `kernels.ts` has its loops), 3 is for floating point numbers (Adobe Photoshop TIFF note 3). Values are in the byte
 * order of this machine, which is little-endian on all common hardware that runs Node.
 */
export function decodeHorizontalPredictor(
  values: PixelArray,
  width: number,
  height: number,
  samples: number,
): void {
  typedKernels[UNSIGNED_BY_SIZE[values.BYTES_PER_ELEMENT]].horizontalSums(values, width, height, samples);
}

/** Reverts horizontal differences of 64-bit values in place: `samples` interleaved values per pixel, `width` pixels per row. */
export function decodeHorizontalPredictor64(
  values: BigUint64Array,
  width: number,
  height: number,
  samples: number,
): void {
  const rowLength = width * samples;
  for (let start = 0; start < rowLength * height; start += rowLength)
    for (let at = start + samples; at < start + rowLength; at++) values[at] += values[at - samples];
}

/**
 * Floating point predictor of one row: groups the bytes of `width` little-endian values of `size` bytes by significance,
 * highest first, and then takes the differences of the row of bytes.
 */
export function encodeFloatPredictor(row: Uint8Array, width: number, size: number, out: Uint8Array): void {
  for (let plane = 0; plane < size; plane++) {
    const byte = size - 1 - plane;
    for (let i = 0; i < width; i++) out[plane * width + i] = row[i * size + byte];
  }
  for (let i = width * size - 1; i > 0; i--) out[i] = out[i] - out[i - 1];
}

/** Reverts `encodeFloatPredictor` for each row; `width` counts values (pixels times interleaved samples). */
export function decodeFloatPredictor(
  bytes: Uint8Array,
  width: number,
  height: number,
  samples: number,
  size: number,
): void {
  const values = width * samples;
  const rowBytes = values * size;
  const row = new Uint8Array(rowBytes);
  for (let y = 0; y < height; y++) {
    const start = y * rowBytes;
    for (let i = start + samples; i < start + rowBytes; i++) bytes[i] = bytes[i] + bytes[i - samples];
    row.set(bytes.subarray(start, start + rowBytes));
    for (let plane = 0; plane < size; plane++) {
      const byte = size - 1 - plane;
      for (let i = 0; i < values; i++) bytes[start + i * size + byte] = row[plane * values + i];
    }
  }
}
