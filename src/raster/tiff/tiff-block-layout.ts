/** Reads the block layout of one image of a TIFF file, and checks that all blocks are inside the file. */

import { JPEG, LERC } from '../compression/index.js';
import { corrupt, truncated, unsupported } from '../errors.js';
import { MAX_BLOCK_BYTES } from '../file-access/index.js';
import { bytesPerSample } from '../pixels/index.js';
import type { RasterShape, TiffBlocks } from '../raster-types.js';
import { blockRowBytes } from './read-tiff-block.js';
import type { Ifd } from './read-tiff-ifd.js';
import { TAG } from './tiff-tags.js';

/** Values of the tag Compression that this program can decode. */
const SUPPORTED_COMPRESSIONS = new Set([1, 5, 7, 8, 32773, 32946, 34887, 50000]);
/** Names of unsupported codecs, for error messages. */
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

/** Size and data type of one image in a TIFF file. */
export interface ImageShape extends RasterShape {
  /** 1 if the image is a mask with one bit per pixel; otherwise undefined. */
  bits?: 1;
}

/**
 * Returns the layout of the blocks of an image. `number` is the index of its directory in the file. Throws TW_RASTER_TRUNCATED, _CORRUPT
 * and _UNSUPPORTED.
 */
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
    throw unsupported(
      path,
      `one of its blocks has ${blockWidth} x ${blockHeight} pixels and needs more than 1 GiB`,
    );
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
  if (compression === JPEG && dataType !== 'uint8')
    throw unsupported(path, `it is compressed with JPEG, but its values are ${dataType}`);
  if (one(TAG.fillOrder, 1) !== 1)
    throw unsupported(path, 'its bits are stored in reverse order (FillOrder 2)');
  requireKnownColours(path, one(TAG.photometric, 1), compression === JPEG && bands === 3 && !planar);

  const count = Math.ceil(width / blockWidth) * Math.ceil(height / blockHeight) * (planar ? bands : 1);
  // Some old programs store the offsets of tiles in the tags for strips.
  const offsets = (tiled && directory.numbers(TAG.tileOffsets)) || directory.numbers(TAG.stripOffsets);
  const byteCounts =
    (tiled && directory.numbers(TAG.tileByteCounts)) ||
    directory.numbers(TAG.stripByteCounts) ||
    (compression === 1 ? uncompressedCounts(shape, blockWidth, blockHeight, samples, count) : undefined);
  if (!offsets || !byteCounts || offsets.length < count || byteCounts.length < count) {
    throw corrupt(
      path,
      `its size requires ${count} blocks, but its directory lists ${Math.min(offsets?.length ?? 0, byteCounts?.length ?? 0)}`,
    );
  }
  for (let i = 0; i < count; i++) {
    if (offsets[i] + byteCounts[i] > shape.fileBytes) {
      throw truncated(
        path,
        `block ${i} ends at byte ${offsets[i] + byteCounts[i]}, but the file has only ${shape.fileBytes} bytes`,
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

/** Names of unsupported colour models, by the value of the tag PhotometricInterpretation (TIFF 6.0, sections 16 to 23). */
const UNSUPPORTED_PHOTOMETRIC: Record<number, string> = { 5: 'CMYK', 8: 'CIELab', 9: 'ICCLab', 10: 'ITULab' };
/** The value of PhotometricInterpretation for YCbCr, the colour model of most JPEG blocks. */
const YCBCR = 6;

function requireKnownColours(path: string, photometric: number, isJpegOfThree: boolean): void {
  const model = photometric === YCBCR && !isJpegOfThree ? 'YCbCr' : UNSUPPORTED_PHOTOMETRIC[photometric];
  if (model) throw unsupported(path, `its colours are stored as ${model}, not as red, green and blue`);
}

/** Computes the byte counts of uncompressed blocks, because old programs do not store these counts. */
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
