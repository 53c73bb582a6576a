/**
 * Writes Cloud Optimized GeoTIFFs: classic little-endian TIFF, tiled, deflate with a predictor, one band after another
 * (PlanarConfiguration 2), directories first, then pixels from the smallest overview to the full image. A mask is an image of
 * one bit a pixel beside each level, which GDAL knows as PER_DATASET.
 * Formats: TIFF 6.0; OGC 19-008r4 (GeoTIFF 1.1); OGC 21-026 (COG); GDAL's tags 42112 and 42113.
 */
import { isGeographicEpsg } from './crs.js';
import { deflate, deflateDifferences } from './deflate.js';
import { invalidImage, tooLarge } from './errors.js';
import { gdalMetadataXml } from './gdal-metadata.js';
import { type ImageLevel, type OverviewResampling, pyramid } from './overviews.js';
import { bytesPerSample, dataTypeOf, isFloat } from './pixels.js';
import { predictFloatRow } from './predictor.js';
import { directoryBytes, type Entry, writeDirectory } from './tiff-directory.js';
import type { BandTags, ColourTable, DataType, PixelArray } from './types.js';

export interface CogImage {
  width: number;
  height: number;
  dataType: DataType;
  /** One array of width x height pixels a band, rows from north to south. */
  bands: PixelArray[];
  /** Outer corner of the upper left pixel, and the size of a pixel; both sizes are positive, north is up. */
  transform: { originX: number; originY: number; pixelWidth: number; pixelHeight: number };
  epsg: number;
  nodata?: number | undefined;
  /** 0 for pixels without data, of images whose values all mean something. */
  mask?: Uint8Array | undefined;
  /** Of the codes of a single band of uint8. */
  colours?: ColourTable | undefined;
  /** The first three bands are red, green and blue, to be shown as they are. */
  rgb?: boolean;
  bandTags?: BandTags[];
  metadata?: Record<string, string>;
  /** How overviews are made: `nearest` for codes and masks. */
  overviews: OverviewResampling;
}

/** What is read for one pixel; smaller blocks make map tiles and series faster, and files hardly larger. */
const LARGEST_BLOCK = 256;
/** The size that needs no overview: validators of COGs ask for one beyond. */
const LARGEST_OVERVIEW = 512;
const MAX_BYTES = 2 ** 32 - 1;

/** The bytes of a COG. Throws TW_RASTER_INVALID_IMAGE, and TW_RASTER_TOO_LARGE beyond 4 GiB. */
export function encodeCog(image: CogImage): Buffer {
  checkImage(image);
  const levels = pyramid(image, image.dataType, image.nodata, image.overviews, LARGEST_OVERVIEW);
  // Each level is followed by its mask.
  const encoded = levels.flatMap((level) => [
    encodeBlocks(level, image.dataType),
    ...(level.mask ? [encodeMask(level, level.mask)] : []),
  ]);
  const directories = levels.flatMap((level, i) => {
    const at = image.mask ? 2 * i : i;
    const own = directoryOf(image, level, encoded[at], i > 0);
    return image.mask ? [own, maskDirectoryOf(level, encoded[at + 1], i > 0)] : [own];
  });

  let position = 8;
  const starts = directories.map((entries) => {
    const start = position;
    position += directoryBytes(entries);
    return start;
  });
  const headBytes = position;
  const parts: Buffer[] = [];
  for (const { blocks, offsets } of encoded.toReversed()) {
    for (const [k, block] of blocks.entries()) {
      offsets[k] = position;
      position += block.length;
      parts.push(block);
    }
  }
  if (position > MAX_BYTES) throw tooLarge(position);

  const head = Buffer.alloc(headBytes);
  head.write('II*\0', 0, 'latin1');
  head.writeUInt32LE(starts[0], 4);
  for (const [i, entries] of directories.entries())
    writeDirectory(head, starts[i], entries, starts[i + 1] ?? 0);
  return Buffer.concat([head, ...parts], position);
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

function encodeBlocks(level: ImageLevel, dataType: DataType): EncodedLevel {
  const blockWidth = blockSide(level.width);
  const blockHeight = blockSide(level.height);
  const size = bytesPerSample(dataType);
  const blocks: Buffer[] = [];
  for (const band of level.bands) {
    for (let row = 0; row < level.height; row += blockHeight) {
      for (let column = 0; column < level.width; column += blockWidth) {
        const width = Math.min(blockWidth, level.width - column);
        const height = Math.min(blockHeight, level.height - row);
        const start = row * level.width + column;
        if (isFloat(dataType)) {
          const bytes = new Uint8Array(blockWidth * blockHeight * size);
          predictFloatBlock(band, start, level.width, width, height, size, bytes, blockWidth);
          blocks.push(deflate(bytes));
        } else {
          const pixels = unsignedView(band, size);
          const rows = { pixels, start, stride: level.width, width, height };
          blocks.push(deflateDifferences(rows, blockWidth, blockHeight));
        }
      }
    }
  }
  return { blockWidth, blockHeight, blocks, offsets: new Uint32Array(blocks.length) };
}

/** One bit a pixel, the leftmost in the highest bit; rows of blocks begin at whole bytes. */
function encodeMask({ width, height }: ImageLevel, mask: Uint8Array): EncodedLevel {
  const blockWidth = blockSide(width);
  const blockHeight = blockSide(height);
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

/** A multiple of 16, as TIFF asks; the last block of a row has hardly more padding than this needs. */
function blockSide(side: number): number {
  const blocks = Math.ceil(side / LARGEST_BLOCK);
  return Math.ceil(side / blocks / 16) * 16;
}

/** The same bytes as unsigned integers: differences wrap alike for signed ones. */
function unsignedView(pixels: PixelArray, size: number): Uint8Array | Uint16Array | Uint32Array {
  const { buffer, byteOffset, byteLength } = pixels;
  if (size === 1) return new Uint8Array(buffer, byteOffset, byteLength);
  if (size === 2) return new Uint16Array(buffer, byteOffset, byteLength / 2);
  return new Uint32Array(buffer, byteOffset, byteLength / 4);
}

function predictFloatBlock(
  band: PixelArray,
  start: number,
  stride: number,
  width: number,
  height: number,
  size: number,
  out: Uint8Array,
  outWidth: number,
): void {
  const source = new Uint8Array(band.buffer, band.byteOffset, band.byteLength);
  const row = new Uint8Array(outWidth * size);
  for (let y = 0; y < height; y++) {
    const from = (start + y * stride) * size;
    row.set(source.subarray(from, from + width * size));
    const to = y * outWidth * size;
    predictFloatRow(row, outWidth, size, out.subarray(to, to + outWidth * size));
  }
}

/** PhotometricInterpretation. */
const BLACK_IS_ZERO = 1;
const RGB = 2;
const PALETTE_COLOUR = 3;
const TRANSPARENCY_MASK = 4;

/** NewSubfileType. */
const REDUCED = 1;
const MASK = 4;

/** Tags in ascending order, as TIFF asks. */
function directoryOf(image: CogImage, level: ImageLevel, encoded: EncodedLevel, overview: boolean): Entry[] {
  const { dataType, bands, transform, nodata, colours, rgb } = image;
  const photometric = colours ? PALETTE_COLOUR : rgb ? RGB : BLACK_IS_ZERO;
  // Samples beyond those that the photometric interpretation has.
  const extra = bands.length - (rgb ? 3 : 1);
  const each = <T>(value: T) => bands.map(() => value);
  const sampleFormat = isFloat(dataType) ? 3 : dataType.startsWith('u') ? 1 : 2;
  const entries: (Entry | false)[] = [
    { tag: 254, type: 'long', value: [overview ? REDUCED : 0] },
    { tag: 256, type: 'long', value: [level.width] },
    { tag: 257, type: 'long', value: [level.height] },
    { tag: 258, type: 'short', value: each(bytesPerSample(dataType) * 8) },
    { tag: 259, type: 'short', value: [8] },
    { tag: 262, type: 'short', value: [photometric] },
    { tag: 277, type: 'short', value: [bands.length] },
    { tag: 284, type: 'short', value: [bands.length > 1 ? 2 : 1] },
    { tag: 317, type: 'short', value: [isFloat(dataType) ? 3 : 2] },
    colours !== undefined && { tag: 320, type: 'short', value: colours },
    { tag: 322, type: 'long', value: [encoded.blockWidth] },
    { tag: 323, type: 'long', value: [encoded.blockHeight] },
    { tag: 324, type: 'long', value: encoded.offsets },
    { tag: 325, type: 'long', value: encoded.blocks.map((block) => block.length) },
    extra > 0 && { tag: 338, type: 'short', value: Array<number>(extra).fill(0) },
    { tag: 339, type: 'short', value: each(sampleFormat) },
  ];
  if (!overview) {
    entries.push(
      { tag: 33550, type: 'double', value: [transform.pixelWidth, transform.pixelHeight, 0] },
      { tag: 33922, type: 'double', value: [0, 0, 0, transform.originX, transform.originY, 0] },
      { tag: 34735, type: 'short', value: geoKeys(image.epsg) },
    );
    const xml = gdalMetadataXml(image.metadata ?? {}, image.bandTags ?? []);
    if (xml !== undefined) entries.push({ tag: 42112, type: 'ascii', value: xml });
  }
  if (nodata !== undefined) entries.push({ tag: 42113, type: 'ascii', value: nodataText(nodata) });
  return entries.filter((entry) => entry !== false);
}

function maskDirectoryOf(level: ImageLevel, encoded: EncodedLevel, overview: boolean): Entry[] {
  return [
    { tag: 254, type: 'long', value: [overview ? MASK | REDUCED : MASK] },
    { tag: 256, type: 'long', value: [level.width] },
    { tag: 257, type: 'long', value: [level.height] },
    { tag: 258, type: 'short', value: [1] },
    { tag: 259, type: 'short', value: [8] },
    { tag: 262, type: 'short', value: [TRANSPARENCY_MASK] },
    { tag: 277, type: 'short', value: [1] },
    { tag: 284, type: 'short', value: [1] },
    { tag: 322, type: 'long', value: [encoded.blockWidth] },
    { tag: 323, type: 'long', value: [encoded.blockHeight] },
    { tag: 324, type: 'long', value: encoded.offsets },
    { tag: 325, type: 'long', value: encoded.blocks.map((block) => block.length) },
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
