/** Everything that is known of a GeoTIFF before its pixels are read. */
import { isInvertible } from '../affine.js';
import { corrupt, noCrs, truncated, unsupported } from '../errors.js';
import { parseGdalMetadata } from '../gdal-metadata.js';
import { type GivenPosition, placeAt } from '../given-position.js';
import { MAX_BANDS, MAX_BLOCK_BYTES, MAX_SIDE } from '../limits.js';
import { bytesPerSample, parseNodata } from '../pixels.js';
import type { SourceFile } from '../source-file.js';
import type { Affine, DataType, RasterHeader, TiffBlocks } from '../types.js';
import { crsFromGeoKeys, type GeoKeys, parseGeoKeys, pixelIsPoint } from './geo-keys.js';
import { JPEG, LERC } from './library-codecs.js';
import { readTiffDirectory, type TiffDirectory } from './tiff.js';

const TAG = {
  width: 256,
  height: 257,
  bitsPerSample: 258,
  compression: 259,
  photometric: 262,
  fillOrder: 266,
  stripOffsets: 273,
  samplesPerPixel: 277,
  rowsPerStrip: 278,
  stripByteCounts: 279,
  planarConfiguration: 284,
  dateTime: 306,
  predictor: 317,
  colourMap: 320,
  tileWidth: 322,
  tileHeight: 323,
  tileOffsets: 324,
  tileByteCounts: 325,
  sampleFormat: 339,
  jpegTables: 347,
  pixelScale: 33550,
  tiepoints: 33922,
  transformation: 34264,
  geoKeys: 34735,
  geoDoubles: 34736,
  geoText: 34737,
  gdalMetadata: 42112,
  gdalNodata: 42113,
  lercParameters: 50674,
} as const;

const TAGS = new Set<number>(Object.values(TAG));

/** PhotometricInterpretation of images with a colour table. */
const PALETTE_COLOUR = 3;
/** Colours as brightness and two differences from it, as JPEG mostly stores them. */
const YCBCR_COLOUR = 6;

/** Codecs that are decoded, and names for those that are not. */
const CODECS = new Set([1, 5, 7, 8, 32773, 32946, 34887, 50000]);
const OTHER_CODECS: Record<number, string> = {
  2: 'CCITT',
  3: 'CCITT',
  4: 'CCITT',
  6: 'old-style JPEG',
  34712: 'JPEG 2000',
  34925: 'LZMA',
  50001: 'WebP',
  50002: 'JPEG XL',
};

/**
 * Reads the header of a GeoTIFF. A given position replaces its own. Throws TW_RASTER_TRUNCATED, _CORRUPT, _UNSUPPORTED, _NO_CRS and _UNKNOWN_CRS.
 */
export async function readTiffHeader(file: SourceFile, position?: GivenPosition): Promise<RasterHeader> {
  const { path, size } = file;
  const directory = await readTiffDirectory(file, TAGS);
  const one = (tag: number, otherwise: number) => directory.numbers(tag)?.[0] ?? otherwise;
  const width = one(TAG.width, 0);
  const height = one(TAG.height, 0);
  const bands = one(TAG.samplesPerPixel, 1);
  if (!(width > 0 && height > 0 && bands > 0))
    throw corrupt(path, `its size is ${width} x ${height} x ${bands}`);
  if (width > MAX_SIDE || height > MAX_SIDE || bands > MAX_BANDS) {
    throw unsupported(path, `its size is ${width} x ${height} with ${bands} bands`);
  }
  const dataType = dataTypeOf(directory, path);
  const blocks = blockLayout(directory, { path, fileBytes: size, width, height, bands, dataType });
  const keys = parseGeoKeys(
    directory.numbers(TAG.geoKeys) ?? [],
    directory.numbers(TAG.geoDoubles) ?? [],
    directory.text(TAG.geoText) ?? '',
  );
  const palette = one(TAG.photometric, 1) === PALETTE_COLOUR;
  const colours = palette && dataType === 'uint8' ? directory.numbers(TAG.colourMap) : undefined;
  return {
    path,
    fileBytes: size,
    width,
    height,
    bands,
    dataType,
    ...(position
      ? placeAt(position, { path, width, height })
      : { crs: crsFromGeoKeys(keys, path), transform: transformOf(directory, keys, path) }),
    nodata: parseNodata(directory.text(TAG.gdalNodata)),
    palette,
    ...(colours?.length === 768 && { colours }),
    blocks,
    ...parseGdalMetadata(directory.text(TAG.gdalMetadata) ?? '', bands),
    dateTime: directory.text(TAG.dateTime),
  };
}

/** By sample format (1 unsigned, 2 signed, 3 floating) and bits. */
const DATA_TYPES: Record<string, DataType> = {
  '1/8': 'uint8',
  '1/16': 'uint16',
  '1/32': 'uint32',
  '2/8': 'int8',
  '2/16': 'int16',
  '2/32': 'int32',
  '3/32': 'float32',
  '3/64': 'float64',
};

function dataTypeOf(directory: TiffDirectory, path: string): DataType {
  const bits = new Set(directory.numbers(TAG.bitsPerSample) ?? [1]);
  const formats = new Set(directory.numbers(TAG.sampleFormat) ?? [1]);
  if (bits.size > 1 || formats.size > 1) throw unsupported(path, 'its bands are of different data types');
  const [bit] = bits;
  const [format] = formats;
  // 4 is "undefined", which readers take as unsigned.
  const dataType = DATA_TYPES[`${format === 4 ? 1 : format}/${bit}`];
  if (dataType) return dataType;
  const kind =
    { 1: 'unsigned', 2: 'signed', 3: 'floating point', 5: 'complex', 6: 'complex' }[format ?? 0] ?? 'unknown';
  throw unsupported(path, `its pixels are ${bit}-bit ${kind} numbers`);
}

type ImageShape = Pick<RasterHeader, 'path' | 'fileBytes' | 'width' | 'height' | 'bands' | 'dataType'>;

function blockLayout(directory: TiffDirectory, shape: ImageShape): TiffBlocks {
  const { path, width, height, bands, dataType } = shape;
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
  if (!CODECS.has(compression)) {
    throw unsupported(
      path,
      `it is compressed with ${OTHER_CODECS[compression] ?? `the unknown codec ${compression}`}`,
    );
  }
  if (compression === LERC && !directory.littleEndian)
    throw unsupported(path, 'it is big-endian and compressed with LERC');
  if (compression === JPEG && dataType !== 'uint8') throw unsupported(path, `it is JPEG of ${dataType}`);
  if (one(TAG.fillOrder, 1) !== 1)
    throw unsupported(path, 'its bits are stored in reverse order (FillOrder 2)');
  if (one(TAG.photometric, 1) === YCBCR_COLOUR && (compression !== JPEG || bands !== 3 || planar))
    throw unsupported(path, 'its colours are stored as YCbCr');

  const count = Math.ceil(width / blockWidth) * Math.ceil(height / blockHeight) * (planar ? bands : 1);
  const offsets = directory.numbers(tiled ? TAG.tileOffsets : TAG.stripOffsets);
  const byteCounts =
    directory.numbers(tiled ? TAG.tileByteCounts : TAG.stripByteCounts) ??
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
    ...(compression === JPEG && { jpeg: jpegLayout(directory) }),
    ...(compression === LERC && { lerc: directory.numbers(TAG.lercParameters)?.[1] ?? 0 }),
  };
}

function jpegLayout(directory: TiffDirectory): TiffBlocks['jpeg'] {
  const tables = directory.numbers(TAG.jpegTables);
  const isYcbcr = directory.numbers(TAG.photometric)?.[0] === YCBCR_COLOUR;
  return { isYcbcr, ...(tables && { tables: Uint8Array.from(tables) }) };
}

/** Old writers leave the byte counts of uncompressed strips out. */
function uncompressedCounts(
  { width, height, dataType }: ImageShape,
  blockWidth: number,
  blockHeight: number,
  samples: number,
  count: number,
): Float64Array {
  const down = Math.ceil(height / blockHeight);
  const rowBytes = blockWidth * samples * bytesPerSample(dataType);
  const strips = blockWidth === width;
  return Float64Array.from({ length: count }, (_, i) => {
    const last = strips && i % down === down - 1;
    return rowBytes * (last ? height - (down - 1) * blockHeight : blockHeight);
  });
}

function transformOf(directory: TiffDirectory, keys: GeoKeys, path: string): Affine {
  const corner = cornerTransform(directory);
  if (!corner) {
    const points = (directory.numbers(TAG.tiepoints)?.length ?? 0) / 6;
    throw noCrs(
      path,
      points > 0 ? `it has ${points} control points but no pixel size` : 'it has no position',
    );
  }
  if (!isInvertible(corner)) throw noCrs(path, 'its pixels have no extent');
  if (!pixelIsPoint(keys)) return corner;
  return {
    ...corner,
    originX: corner.originX - 0.5 * (corner.xx + corner.xy),
    originY: corner.originY - 0.5 * (corner.yx + corner.yy),
  };
}

function cornerTransform(directory: TiffDirectory): Affine | undefined {
  const m = directory.numbers(TAG.transformation);
  if (m && m.length >= 8) return { originX: m[3], originY: m[7], xx: m[0], xy: m[1], yx: m[4], yy: m[5] };
  const scale = directory.numbers(TAG.pixelScale);
  const tie = directory.numbers(TAG.tiepoints);
  if (!scale || !tie || scale.length < 2 || tie.length < 6) return undefined;
  const xx = scale[0];
  // Rows run south; the sign of a negative scale is a known mistake of writers and is ignored, as GDAL does.
  const yy = -Math.abs(scale[1]);
  return { originX: tie[3] - tie[0] * xx, originY: tie[4] - tie[1] * yy, xx, xy: 0, yx: 0, yy };
}
