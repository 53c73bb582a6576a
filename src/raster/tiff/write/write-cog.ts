/**
 * Writes Cloud Optimized GeoTIFFs: classic little-endian TIFF, tiled, deflate with a predictor, one band after another
 * (PlanarConfiguration 2), directories first, then pixels from the smallest overview to the full image. A mask is an image of
 * one bit per pixel beside each level, which GDAL calls PER_DATASET. Formats: TIFF 6.0; OGC 19-008r4 (GeoTIFF 1.1); OGC 21-026
 * (COG); GDAL's tags 42112 and 42113.
 */

import { type BlockView, deflate, deflateWithPredictor } from '../../compression/deflate/index.js';
import { encodeFloatPredictor } from '../../compression/index.js';
import { imageTooLarge, invalidImage } from '../../errors.js';
import { bytesPerSample, dataTypeOf, isFloat, UNSIGNED_BY_SIZE, viewPixels } from '../../pixels/index.js';
import type { DataType, PixelArray } from '../../raster-types.js';
import { type ImageDescription, imageIfd, maskIfd, type StoredBlocks } from './write-cog-ifds.js';
import { encodeHead, headSize } from './write-tiff-ifd.js';
import { buildOverviews, type OverviewLevel, type OverviewResampling } from './write-tiff-overviews.js';

export interface CogImage extends ImageDescription {
  /** One array of width x height pixels for each band, rows from north to south. */
  bands: PixelArray[];
  /** Set if all values are data: 0 for pixels without data. */
  mask?: Uint8Array | undefined;
  /** Resampling of overviews: `nearest` for codes and masks. */
  overviews: OverviewResampling;
}

/**
 * Side of a block in pixels. A reader of one pixel decodes one block. Smaller blocks make map tiles and series faster, and
 * files hardly larger.
 */
const MAX_BLOCK_SIDE = 256;
/** Largest size without an overview: validators of COGs require one above. */
const MAX_SMALLEST_OVERVIEW_SIDE = 512;
/** Classic TIFF has offsets of 32 bits. */
export const MAX_TIFF_BYTES = 2 ** 32 - 1;

/** The bytes of a COG. Throws TW_RASTER_INVALID_IMAGE, and TW_RASTER_TOO_LARGE beyond 4 GiB. */
export function encodeCog(image: CogImage): Buffer {
  checkImage(image);
  const levels = buildOverviews(
    image,
    image.dataType,
    image.nodata,
    image.overviews,
    MAX_SMALLEST_OVERVIEW_SIDE,
  );
  // Each level is followed by its mask.
  const encoded = levels.flatMap((level) => [
    encodeBlocks(level, image.dataType),
    ...(level.mask ? [encodeMask(level, level.mask)] : []),
  ]);
  const directories = levels.flatMap((level, i) => {
    const at = image.mask ? 2 * i : i;
    const own = imageIfd(image, image.bands.length, storedBlocks(level, encoded[at]), i > 0);
    return image.mask ? [own, maskIfd(storedBlocks(level, encoded[at + 1]), i > 0)] : [own];
  });

  let position = headSize(directories);
  const parts: Buffer[] = [];
  for (const { blocks, offsets } of encoded.toReversed()) {
    for (const [k, block] of blocks.entries()) {
      offsets[k] = position;
      position += block.length;
      parts.push(block);
    }
  }
  if (position > MAX_TIFF_BYTES) throw imageTooLarge(position);
  return Buffer.concat([encodeHead(directories), ...parts], position);
}

function storedBlocks({ width, height }: OverviewLevel, { blocks, ...encoded }: EncodedLevel): StoredBlocks {
  return { width, height, ...encoded, byteCounts: blocks.map(({ length }) => length), isCompressed: true };
}

function checkImage({ width, height, bands, dataType, transform, mask, ...tags }: CogImage): void {
  const { bandTags, colours, rgb } = tags;
  if (!(Number.isInteger(width) && Number.isInteger(height) && width > 0 && height > 0)) {
    throw invalidImage(`it is ${width} x ${height} pixels`);
  }
  if (bands.length === 0) throw invalidImage('it has no bands');
  for (const band of bands) {
    if (dataTypeOf(band) !== dataType)
      throw invalidImage(`a ${dataTypeOf(band)} band in a ${dataType} image`);
    if (band.length !== width * height) {
      throw invalidImage(`a band of ${band.length} pixels in an image of ${width} x ${height}`);
    }
  }
  if (mask && mask.length !== width * height)
    throw invalidImage(`a mask of ${mask.length} pixels in an image of ${width} x ${height}`);
  if (bandTags && bandTags.length > bands.length) throw invalidImage('it has more band tags than bands');
  if (colours && (bands.length > 1 || dataType !== 'uint8' || colours.length !== 768))
    throw invalidImage('only one band of uint8 can have colours, 256 of them');
  if (rgb && bands.length < 3) throw invalidImage('it has no three bands for red, green and blue');
  const { originX, originY, pixelWidth, pixelHeight } = transform;
  if (!(Number.isFinite(originX + originY + pixelWidth + pixelHeight) && pixelWidth > 0 && pixelHeight > 0)) {
    throw invalidImage(`its pixels are ${pixelWidth} x ${pixelHeight} at ${originX}, ${originY}`);
  }
}

interface EncodedLevel {
  blockWidth: number;
  blockHeight: number;
  /** Band by band, rows of blocks from north to south. */
  blocks: Buffer[];
  offsets: Uint32Array;
}

function encodeBlocks(level: OverviewLevel, dataType: DataType): EncodedLevel {
  const blockWidth = blockSideFor(level.width);
  const blockHeight = blockSideFor(level.height);
  const blocks: Buffer[] = [];
  for (const pixels of level.bands)
    for (let row = 0; row < level.height; row += blockHeight)
      for (let column = 0; column < level.width; column += blockWidth) {
        const part = {
          start: row * level.width + column,
          stride: level.width,
          width: Math.min(blockWidth, level.width - column),
          height: Math.min(blockHeight, level.height - row),
        };
        blocks.push(encodeBlock(pixels, part, blockWidth, blockHeight, dataType));
      }
  return { blockWidth, blockHeight, blocks, offsets: new Uint32Array(blocks.length) };
}

/** Row and column of a block in its band. */
export type BlockPart = Omit<BlockView, 'pixels'>;

/** A block as a zlib stream of its differences, padded to blockWidth x blockHeight pixels. */
export function encodeBlock(
  pixels: PixelArray,
  { start, stride, width, height }: BlockPart,
  blockWidth: number,
  blockHeight: number,
  dataType: DataType,
): Buffer {
  const size = bytesPerSample(dataType);
  const { buffer, byteOffset, byteLength } = pixels;
  if (!isFloat(dataType)) {
    // The same bytes as unsigned integers: differences wrap like those of signed ones.
    const unsigned = viewPixels(UNSIGNED_BY_SIZE[size], buffer, byteOffset, byteLength / size);
    const rows = { pixels: unsigned as BlockView['pixels'], start, stride, width, height };
    return deflateWithPredictor(rows, blockWidth, blockHeight);
  }
  const source = new Uint8Array(buffer, byteOffset, byteLength);
  const rowBytes = blockWidth * size;
  const row = new Uint8Array(rowBytes);
  const out = new Uint8Array(rowBytes * blockHeight);
  for (let y = 0; y < height; y++) {
    const from = (start + y * stride) * size;
    row.set(source.subarray(from, from + width * size));
    encodeFloatPredictor(row, blockWidth, size, out.subarray(y * rowBytes, (y + 1) * rowBytes));
  }
  return deflate(out);
}

/** One bit per pixel, the leftmost in the highest bit; rows of blocks start at whole bytes. */
export function encodeMask(
  { width, height }: Pick<OverviewLevel, 'width' | 'height'>,
  mask: Uint8Array,
  blockWidth = blockSideFor(width),
  blockHeight = blockSideFor(height),
): EncodedLevel {
  const blocks: Buffer[] = [];
  for (let top = 0; top < height; top += blockHeight) {
    for (let left = 0; left < width; left += blockWidth) {
      const bits = new Uint8Array((blockWidth * blockHeight) / 8);
      const right = Math.min(blockWidth, width - left);
      for (let row = 0; row < Math.min(blockHeight, height - top); row++) {
        const from = (top + row) * width + left;
        const to = row * blockWidth;
        for (let i = 0; i < right; i++)
          if (mask[from + i] !== 0) bits[(to + i) >> 3] |= 128 >> ((to + i) & 7);
      }
      blocks.push(deflate(bits));
    }
  }
  return { blockWidth, blockHeight, blocks, offsets: new Uint32Array(blocks.length) };
}

/** A multiple of 16, as TIFF requires, chosen so that the last block of a row has little padding. */
function blockSideFor(side: number): number {
  const blocks = Math.ceil(side / MAX_BLOCK_SIDE);
  return Math.ceil(side / blocks / 16) * 16;
}
