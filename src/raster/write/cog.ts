/**
 * Writes Cloud Optimized GeoTIFFs: classic little-endian TIFF, tiled, deflate with a predictor, one band after another
 * (PlanarConfiguration 2), directories first, then pixels from the smallest overview to the full image. Masks are an image of one bit per
 * pixel beside each level: one mask for all bands, which GDAL calls PER_DATASET, or one after another for each band. Formats: TIFF 6.0;
 * OGC 19-008r4 (GeoTIFF 1.1); OGC 21-026 (COG); GDAL's tags 42112 and 42113.
 */

import { type BlockView, deflate, deflateWithPredictor } from '../codecs/deflate.js';
import { encodeFloatPredictor } from '../codecs/libraries.js';
import { isGeographicEpsg } from '../crs/crs.js';
import { imageTooLarge, invalidImage } from '../errors.js';
import { gdalMetadataXml } from '../metadata.js';
import { bytesPerSample, dataTypeOf, isFloat, UNSIGNED_BY_SIZE, viewPixels } from '../pixels/data-types.js';
import type { BandTags, ColourTable, DataType, PixelArray } from '../raster.js';
import { buildOverviews, type OverviewLevel, type OverviewResampling } from './overviews.js';
import { encodeHead, headSize, type IfdEntry } from './tiff.js';

/** Size, type and metadata of an image. */
export interface ImageDescription {
  width: number;
  height: number;
  dataType: DataType;
  /** Outer corner of the upper left pixel, and the size of a pixel; both sizes are positive, north is up. */
  transform: { originX: number; originY: number; pixelWidth: number; pixelHeight: number };
  epsg: number;
  nodata?: number | undefined;
  /** Colours of the codes of a single band of uint8. */
  colours?: ColourTable | undefined;
  /** True if the first three bands are red, green and blue for display. */
  rgb?: boolean;
  bandTags?: BandTags[];
  metadata?: Record<string, string>;
}

/** Blocks of one image of a file. */
export interface StoredBlocks {
  width: number;
  height: number;
  blockWidth: number;
  blockHeight: number;
  /** Band by band, rows of blocks from north to south. */
  offsets: ArrayLike<number>;
  byteCounts: ArrayLike<number>;
  isCompressed: boolean;
}

/** PhotometricInterpretation. */
const BLACK_IS_ZERO = 1;
const RGB = 2;
const PALETTE_COLOUR = 3;
const TRANSPARENCY_MASK = 4;

/** Compression. */
const NO_COMPRESSION = 1;
const DEFLATE = 8;

/** NewSubfileType. */
const REDUCED_RESOLUTION = 1;
const MASK_SUBFILE = 4;

/** The directory of an image or of an overview. Tags are in ascending order, as TIFF requires. */
export function imageIfd(
  facts: ImageDescription,
  bands: number,
  blocks: StoredBlocks,
  isOverview: boolean,
): IfdEntry[] {
  const { dataType, transform, nodata, colours, rgb } = facts;
  const photometric = colours ? PALETTE_COLOUR : rgb ? RGB : BLACK_IS_ZERO;
  // Samples beyond those of the photometric interpretation.
  const extra = bands - (rgb ? 3 : 1);
  const each = (value: number) => new Array<number>(bands).fill(value);
  const sampleFormat = isFloat(dataType) ? 3 : dataType.startsWith('u') ? 1 : 2;
  const entries: (IfdEntry | false)[] = [
    { tag: 254, type: 'long', value: [isOverview ? REDUCED_RESOLUTION : 0] },
    { tag: 256, type: 'long', value: [blocks.width] },
    { tag: 257, type: 'long', value: [blocks.height] },
    { tag: 258, type: 'short', value: each(bytesPerSample(dataType) * 8) },
    { tag: 259, type: 'short', value: [blocks.isCompressed ? DEFLATE : NO_COMPRESSION] },
    { tag: 262, type: 'short', value: [photometric] },
    { tag: 277, type: 'short', value: [bands] },
    { tag: 284, type: 'short', value: [bands > 1 ? 2 : 1] },
    blocks.isCompressed && { tag: 317, type: 'short', value: [isFloat(dataType) ? 3 : 2] },
    colours !== undefined && { tag: 320, type: 'short', value: colours },
    { tag: 322, type: 'long', value: [blocks.blockWidth] },
    { tag: 323, type: 'long', value: [blocks.blockHeight] },
    { tag: 324, type: 'long', value: blocks.offsets },
    { tag: 325, type: 'long', value: blocks.byteCounts },
    extra > 0 && { tag: 338, type: 'short', value: Array<number>(extra).fill(0) },
    { tag: 339, type: 'short', value: each(sampleFormat) },
  ];
  if (!isOverview) {
    entries.push(
      { tag: 33550, type: 'double', value: [transform.pixelWidth, transform.pixelHeight, 0] },
      { tag: 33922, type: 'double', value: [0, 0, 0, transform.originX, transform.originY, 0] },
      { tag: 34735, type: 'short', value: geoKeys(facts.epsg) },
    );
    const xml = gdalMetadataXml(facts.metadata ?? {}, facts.bandTags ?? []);
    if (xml !== undefined) entries.push({ tag: 42112, type: 'ascii', value: xml });
  }
  if (nodata !== undefined) entries.push({ tag: 42113, type: 'ascii', value: nodataText(nodata) });
  return entries.filter((entry) => entry !== false);
}

/** The directory of the masks of an image, one for all bands or one for each: one bit per pixel, always compressed. */
export function maskIfd(blocks: StoredBlocks, masks: number, isOverview: boolean): IfdEntry[] {
  return [
    { tag: 254, type: 'long', value: [isOverview ? MASK_SUBFILE | REDUCED_RESOLUTION : MASK_SUBFILE] },
    { tag: 256, type: 'long', value: [blocks.width] },
    { tag: 257, type: 'long', value: [blocks.height] },
    { tag: 258, type: 'short', value: new Array<number>(masks).fill(1) },
    { tag: 259, type: 'short', value: [DEFLATE] },
    { tag: 262, type: 'short', value: [TRANSPARENCY_MASK] },
    { tag: 277, type: 'short', value: [masks] },
    { tag: 284, type: 'short', value: [masks > 1 ? 2 : 1] },
    { tag: 322, type: 'long', value: [blocks.blockWidth] },
    { tag: 323, type: 'long', value: [blocks.blockHeight] },
    { tag: 324, type: 'long', value: blocks.offsets },
    { tag: 325, type: 'long', value: blocks.byteCounts },
  ];
}

function nodataText(nodata: number): string {
  if (Number.isNaN(nodata)) return 'nan';
  if (!Number.isFinite(nodata)) return nodata > 0 ? 'inf' : '-inf';
  return String(nodata);
}

/** GTModelType, GTRasterType = PixelIsArea, and the EPSG code of the system. */
function geoKeys(epsg: number): number[] {
  const geographic = isGeographicEpsg(epsg);
  const keys: [key: number, value: number][] = [
    [1024, geographic ? 2 : 1],
    [1025, 1],
    [geographic ? 2048 : 3072, epsg],
  ];
  return [1, 1, 0, keys.length, ...keys.flatMap(([key, value]) => [key, 0, 1, value])];
}

export interface CogImage extends ImageDescription {
  /** One array of width x height pixels for each band, rows from north to south. */
  bands: PixelArray[];
  /** Set if all values are data: 0 for pixels without data, in one mask for all bands or in one for each band. */
  masks?: Uint8Array[] | undefined;
  /** Resampling of overviews: `nearest` for codes and masks. */
  overviews: OverviewResampling;
}

/**
 * Side of a block in pixels. A reader of one pixel decodes one block. Smaller blocks make map tiles and series faster, and
 * files hardly larger.
 */
const MAX_BLOCK_SIDE = 256;
/** Classic TIFF has offsets of 32 bits. */
export const MAX_TIFF_BYTES = 2 ** 32 - 1;

/** The bytes of a COG. Throws TW_RASTER_INVALID_IMAGE, and TW_RASTER_TOO_LARGE beyond 4 GiB. */
export function encodeCog(image: CogImage): Buffer {
  checkImage(image);
  const levels = buildOverviews(image, image.dataType, image.nodata, image.overviews);
  // Each level is followed by its masks.
  const encoded = levels.flatMap((level) => [
    encodeBlocks(level, image.dataType),
    ...(level.masks ? [encodeMasks(level, level.masks)] : []),
  ]);
  const directories = levels.flatMap((level, i) => {
    const at = image.masks ? 2 * i : i;
    const own = imageIfd(image, image.bands.length, storedBlocks(level, encoded[at]), i > 0);
    if (!image.masks) return [own];
    return [own, maskIfd(storedBlocks(level, encoded[at + 1]), image.masks.length, i > 0)];
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

function checkImage({ width, height, bands, dataType, transform, masks, ...tags }: CogImage): void {
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
  if (masks && masks.length !== 1 && masks.length !== bands.length)
    throw invalidImage(`it has ${masks.length} masks for ${bands.length} bands`);
  for (const mask of masks ?? []) {
    if (mask.length !== width * height)
      throw invalidImage(`a mask of ${mask.length} pixels in an image of ${width} x ${height}`);
  }
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
type BlockPart = Omit<BlockView, 'pixels'>;

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

/** Mask by mask: one bit per pixel, the leftmost in the highest bit; rows of blocks start at whole bytes. */
export function encodeMasks(
  { width, height }: Pick<OverviewLevel, 'width' | 'height'>,
  masks: Uint8Array[],
  blockWidth = blockSideFor(width),
  blockHeight = blockSideFor(height),
): EncodedLevel {
  const blocks: Buffer[] = [];
  for (const mask of masks)
    for (let top = 0; top < height; top += blockHeight)
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
  return { blockWidth, blockHeight, blocks, offsets: new Uint32Array(blocks.length) };
}

/** A multiple of 16, as TIFF requires, chosen so that the last block of a row has little padding. */
function blockSideFor(side: number): number {
  const blocks = Math.ceil(side / MAX_BLOCK_SIDE);
  return Math.ceil(side / blocks / 16) * 16;
}

/** Consecutive bytes of the stored file. */
interface ByteRange {
  start: number;
  bytes: number;
}

/** A file that starts with `head` and continues with ranges of another file. */
export interface AssembledFile {
  head: Buffer;
  ranges: ByteRange[];
  /** Total size in bytes. */
  bytes: number;
}

/**
 * Assembles a band of a stored tile file as a separate file: new directories over the same blocks, which are neither decoded nor copied. A
 * Cloud Optimized GeoTIFF with one band. `levels` are the blocks of the band in the stored file, from the full image to the smallest
 * overview; `masks` are those of the band's mask at each level, if there are any. A block of 0 bytes is missing, and stays so.
 */
export function extractBand(
  facts: ImageDescription,
  levels: StoredBlocks[],
  masks: StoredBlocks[],
): AssembledFile {
  const images = levels.flatMap((level, i) => {
    const mask = masks[i];
    return [
      { blocks: level, isMask: false, isOverview: i > 0 },
      ...(mask ? [{ blocks: mask, isMask: true, isOverview: i > 0 }] : []),
    ].map((image) => ({ ...image, offsets: new Uint32Array(image.blocks.offsets.length) }));
  });
  const directories = images.map(({ blocks, offsets, isMask, isOverview }) =>
    isMask
      ? maskIfd({ ...blocks, offsets }, 1, isOverview)
      : imageIfd(facts, 1, { ...blocks, offsets }, isOverview),
  );
  let position = headSize(directories);
  const ranges: ByteRange[] = [];
  for (const { blocks, offsets } of images.toReversed())
    for (let i = 0; i < offsets.length; i++) {
      const start = blocks.offsets[i];
      const bytes = blocks.byteCounts[i];
      if (bytes === 0) continue;
      offsets[i] = position;
      position += bytes;
      const last = ranges.at(-1);
      if (last && last.start + last.bytes === start) last.bytes += bytes;
      else ranges.push({ start, bytes });
    }
  return { head: encodeHead(directories), ranges, bytes: position };
}
