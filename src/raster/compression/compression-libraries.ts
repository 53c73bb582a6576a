/**
 * Codecs from libraries: Zstandard and LERC. Their decoders allocate the size that a block declares, so each block is first
 * checked against the header of the image, and never decodes to more.
 */
import { createRequire } from 'node:module';
import { inflateSync } from 'node:zlib';
import type * as Lerc from 'lerc';
import { isFloat } from '../pixels/index.js';
import type { DataType, TiffBlocks } from '../raster-types.js';
import { lercHeader } from './lerc-header.js';

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
    const header = lercHeader(blob);
    requireSize(header, shape);
    if (header.dataType !== shape.dataType) throw new Error(`a LERC blob of ${header.dataType}`);
    const { pixels, mask } = lerc.decode(blob, { returnInterleaved: true });
    const [values] = pixels;
    // As in libtiff, invalid pixels are NaN if the type has NaN.
    if (mask && isFloat(shape.dataType))
      for (let i = 0; i < values.length; i++) if (mask[Math.floor(i / shape.samples)] === 0) values[i] = NaN;
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
