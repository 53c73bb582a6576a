/** The block layout of one image of a TIFF, checked against its size. */

import { JPEG, LERC } from '../compression/index.js';
import { corrupt, truncated, unsupported } from '../errors.js';
import { MAX_BLOCK_BYTES } from '../file-access/index.js';
import { bytesPerSample } from '../pixels/index.js';
import type { RasterShape, TiffBlocks } from '../raster-types.js';
import { blockRowBytes } from './read-tiff-block.js';
import type { Ifd } from './read-tiff-ifd.js';
import { TAG } from './tiff-tags.js';

/** Codecs that are decoded, and names of others for messages. */
const SUPPORTED_COMPRESSIONS = new Set([1, 5, 7, 8, 32773, 32946, 34887, 50000]);
const UNSUPPORTED_COMPRESSIONS: Record<number, string> = {
  2: 'CCITT',
  3: 'CCITT',
  4: 'CCITT',
  6: 'old-style JPEG',
  34712: 'JPEG 2000',
  34925: 'LZMA',
  50001: 'WebP',
  50002: 'JPEG XL',
};

/** Size and type of an image of a file. */
export interface ImageShape extends RasterShape {
  /** Set for masks of one bit per pixel. */
  bits?: 1;
}

/** The blocks of the image with directory index `number`. Throws TW_RASTER_TRUNCATED, _CORRUPT and _UNSUPPORTED. */
export function blockLayout(directory: Ifd, number: number, shape: ImageShape): TiffBlocks {
  const { path, width, height, bands, dataType, bits } = shape;
  const one = (tag: number, otherwise: number) => directory.numbers(tag)?.[0] ?? otherwise;
  const tiled = directory.numbers(TAG.tileWidth) !== undefined;
  const blockWidth = tiled ? one(TAG.tileWidth, 0) : width;
  const blockHeight = tiled ? one(TAG.tileHeight, 0) : Math.min(height, one(TAG.rowsPerStrip, height));
  if (!(blockWidth > 0 && blockHeight > 0))
    throw corrupt(path, `its blocks are ${blockWidth} x ${blockHeight} pixels`);
  const planar = bands > 1 && one(TAG.planarConfiguration, 1) === 2;
  const samples = planar ? 1 : bands;
  if (blockWidth * blockHeight * samples * bytesPerSample(dataType) > MAX_BLOCK_BYTES) {
    throw unsupported(path, `one of its blocks is ${blockWidth} x ${blockHeight} pixels, more than 1 GiB`);
  }
  const compression = one(TAG.compression, 1);
  if (!SUPPORTED_COMPRESSIONS.has(compression)) {
    throw unsupported(
      path,
      `it is compressed with ${UNSUPPORTED_COMPRESSIONS[compression] ?? `the unknown codec ${compression}`}`,
    );
  }
  if (compression === LERC && !directory.littleEndian)
    throw unsupported(path, 'it is big-endian and compressed with LERC');
  if (compression === JPEG && dataType !== 'uint8') throw unsupported(path, `it is JPEG of ${dataType}`);
  if (one(TAG.fillOrder, 1) !== 1)
    throw unsupported(path, 'its bits are stored in reverse order (FillOrder 2)');
  requireKnownColours(path, one(TAG.photometric, 1), compression === JPEG && bands === 3 && !planar);

  const count = Math.ceil(width / blockWidth) * Math.ceil(height / blockHeight) * (planar ? bands : 1);
  // Some old writers list tiles as strips.
  const offsets = (tiled && directory.numbers(TAG.tileOffsets)) || directory.numbers(TAG.stripOffsets);
  const byteCounts =
    (tiled && directory.numbers(TAG.tileByteCounts)) ||
    directory.numbers(TAG.stripByteCounts) ||
    (compression === 1 ? uncompressedCounts(shape, blockWidth, blockHeight, samples, count) : undefined);
  if (!offsets || !byteCounts || offsets.length < count || byteCounts.length < count) {
    throw corrupt(
      path,
      `it has ${count} blocks but lists ${Math.min(offsets?.length ?? 0, byteCounts?.length ?? 0)}`,
    );
  }
  for (let i = 0; i < count; i++) {
    if (offsets[i] + byteCounts[i] > shape.fileBytes) {
      throw truncated(
        path,
        `block ${i} ends at byte ${offsets[i] + byteCounts[i]} of a file of ${shape.fileBytes}`,
      );
    }
  }
  return {
    reader: 'tiff',
    width: blockWidth,
    height: blockHeight,
    planar,
    compression,
    predictor: one(TAG.predictor, 1),
    offsets,
    byteCounts,
    littleEndian: directory.littleEndian,
    directory: number,
    ...(bits && { bits }),
    ...(compression === JPEG && { jpeg: jpegLayout(directory) }),
    ...(compression === LERC && { lerc: directory.numbers(TAG.lercParameters)?.[1] ?? 0 }),
  };
}

function jpegLayout(directory: Ifd): TiffBlocks['jpeg'] {
  const tables = directory.numbers(TAG.jpegTables);
  const isYcbcr = directory.numbers(TAG.photometric)?.[0] === YCBCR;
  return { isYcbcr, ...(tables && { tables: Uint8Array.from(tables) }) };
}

/** Colour models other than red, green and blue, by PhotometricInterpretation (TIFF 6.0, sections 16 to 23). */
const UNSUPPORTED_PHOTOMETRIC: Record<number, string> = { 5: 'CMYK', 8: 'CIELab', 9: 'ICCLab', 10: 'ITULab' };
/** YCbCr, in which most JPEG blocks are stored. */
const YCBCR = 6;

function requireKnownColours(path: string, photometric: number, isJpegOfThree: boolean): void {
  const model = photometric === YCBCR && !isJpegOfThree ? 'YCbCr' : UNSUPPORTED_PHOTOMETRIC[photometric];
  if (model) throw unsupported(path, `its colours are stored as ${model}, not as red, green and blue`);
}

/** Old writers omit the byte counts of uncompressed strips. */
function uncompressedCounts(
  { width, height, dataType, bits }: ImageShape,
  blockWidth: number,
  blockHeight: number,
  samples: number,
  count: number,
): Float64Array {
  const down = Math.ceil(height / blockHeight);
  const rowBytes = blockRowBytes(blockWidth, samples, dataType, bits);
  const strips = blockWidth === width;
  return Float64Array.from({ length: count }, (_, i) => {
    const last = strips && i % down === down - 1;
    return rowBytes * (last ? height - (down - 1) * blockHeight : blockHeight);
  });
}
