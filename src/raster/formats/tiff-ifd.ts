/**
 * Reads directories (IFDs) of TIFF (TIFF 6.0) and BigTIFF files in either byte order, and the layout of blocks that they describe. Every
 * offset is checked against the file before it is used, and no allocation is larger than the file.
 */

import { JPEG, LERC } from '../codecs/libraries.js';
import { corrupt, truncated, unsupported } from '../errors.js';
import { bytesPerSample } from '../pixels/data-types.js';
import type { RasterShape, TiffBlocks } from '../raster.js';
import { type ByteReader, MAX_BLOCK_BYTES, type SourceFile } from '../source.js';
import { blockRowBytes } from './tiff-blocks.js';

/** Fields of one directory, by tag. */
export interface Ifd {
  littleEndian: boolean;
  /** Its own offset, bytes. */
  at: number;
  /** Offset of the next directory, bytes; 0 after the last one. */
  next: number;
  numbers(tag: number): Float64Array | undefined;
  text(tag: number): string | undefined;
}

interface RawIfdEntry {
  type: number;
  count: number;
  bytes: DataView;
}

/** Reads a number of a type; types that are not listed are bytes. */
const READERS: Record<number, (bytes: DataView, at: number, littleEndian: boolean) => number> = {
  3: (bytes, at, littleEndian) => bytes.getUint16(at, littleEndian),
  4: (bytes, at, littleEndian) => bytes.getUint32(at, littleEndian),
  5: (bytes, at, littleEndian) => bytes.getUint32(at, littleEndian) / bytes.getUint32(at + 4, littleEndian),
  6: (bytes, at) => bytes.getInt8(at),
  8: (bytes, at, littleEndian) => bytes.getInt16(at, littleEndian),
  9: (bytes, at, littleEndian) => bytes.getInt32(at, littleEndian),
  10: (bytes, at, littleEndian) => bytes.getInt32(at, littleEndian) / bytes.getInt32(at + 4, littleEndian),
  11: (bytes, at, littleEndian) => bytes.getFloat32(at, littleEndian),
  12: (bytes, at, littleEndian) => bytes.getFloat64(at, littleEndian),
  13: (bytes, at, littleEndian) => bytes.getUint32(at, littleEndian),
  16: (bytes, at, littleEndian) => Number(bytes.getBigUint64(at, littleEndian)),
  17: (bytes, at, littleEndian) => Number(bytes.getBigInt64(at, littleEndian)),
  18: (bytes, at, littleEndian) => Number(bytes.getBigUint64(at, littleEndian)),
};
const readByte = (bytes: DataView, at: number) => bytes.getUint8(at);
/** Bytes of a value by its type code; 0 for unused codes. */
const TYPE_BYTES = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8];
const ASCII = 2;
/** Limit of the fields of a directory. */
const MAX_ENTRIES = 4096;
/** Limit of the bytes of one value: the offsets of 16 million blocks. */
const MAX_VALUE_BYTES = 2 ** 27;
/** Limit of the numbers of one value, which have 8 bytes each in memory, and can have 1 in the file. */
const MAX_NUMBERS = 2 ** 25;

/**
 * Reads the fields with the given tags from the directory at a byte offset of a TIFF, by default the first one, which is the
 * full image. Throws TW_RASTER_TRUNCATED and TW_RASTER_CORRUPT.
 */
export async function readIfd(
  { path, size, start: ahead, handle }: SourceFile<ByteReader>,
  tags: ReadonlySet<number>,
  at?: number,
): Promise<Ifd> {
  const bytesAt = async (offset: number, length: number, what: string): Promise<DataView> => {
    if (offset + length > size)
      throw truncated(path, `${what} ends at byte ${offset + length} of a file of ${size}`);
    if (offset + length <= ahead.length) return new DataView(ahead.buffer, ahead.byteOffset + offset, length);
    handle.checkPart?.(offset, length);
    const buffer = new ArrayBuffer(length);
    const { bytesRead } = await handle.read(new Uint8Array(buffer), 0, length, offset);
    if (bytesRead < length) throw truncated(path, `${what} could not be read to its end`);
    return new DataView(buffer);
  };

  const start = await bytesAt(0, Math.min(16, size), 'its header');
  if (start.byteLength < 8) throw truncated(path, 'its header is not complete');
  const littleEndian = start.getUint8(0) === 0x49;
  const big = start.getUint16(2, littleEndian) === 43;
  if (big && start.byteLength < 16) throw truncated(path, 'its header is not complete');
  const offsetAt = (view: DataView, at: number) =>
    big ? Number(view.getBigUint64(at, littleEndian)) : view.getUint32(at, littleEndian);

  const directory = at ?? offsetAt(start, big ? 8 : 4);
  const countBytes = big ? 8 : 2;
  const head = await bytesAt(directory, countBytes, 'its directory');
  const fieldCount = big ? offsetAt(head, 0) : head.getUint16(0, littleEndian);
  if (fieldCount === 0 || fieldCount > MAX_ENTRIES)
    throw corrupt(path, `its directory has ${fieldCount} fields`);
  const entryBytes = big ? 20 : 12;
  const entriesAt = directory + countBytes;
  const entriesBytes = fieldCount * entryBytes;
  const nextBytes = big ? 8 : 4;
  const entries = await bytesAt(entriesAt, entriesBytes, 'its directory');
  // Some writers omit this number in a file with one directory.
  const isCut = entriesAt + entriesBytes + nextBytes > size;
  const next = isCut ? 0 : offsetAt(await bytesAt(entriesAt + entriesBytes, nextBytes, 'its directory'), 0);

  const fields = new Map<number, RawIfdEntry>();
  for (let at = 0; at < entriesBytes; at += entryBytes) {
    const tag = entries.getUint16(at, littleEndian);
    if (!tags.has(tag)) continue;
    const type = entries.getUint16(at + 2, littleEndian);
    const count = offsetAt(entries, at + 4);
    const length = count * (TYPE_BYTES[type] ?? 0);
    if (length > MAX_VALUE_BYTES) throw corrupt(path, `the value of tag ${tag} has ${length} bytes`);
    const valueAt = at + (big ? 12 : 8);
    const inline = length <= (big ? 8 : 4);
    const bytes = inline
      ? new DataView(entries.buffer, entries.byteOffset + valueAt, length)
      : await bytesAt(offsetAt(entries, valueAt), length, `the value of tag ${tag}`);
    fields.set(tag, { type, count, bytes });
  }

  return {
    littleEndian,
    at: directory,
    next,
    numbers(tag) {
      const field = fields.get(tag);
      if (!field || field.type === ASCII || field.bytes.byteLength === 0) return undefined;
      if (field.count > MAX_NUMBERS) throw corrupt(path, `tag ${tag} has ${field.count} numbers`);
      // Several times as fast as `from`; files have thousands of these values.
      const numbers = new Float64Array(field.count);
      const read = READERS[field.type] ?? readByte;
      const size = TYPE_BYTES[field.type];
      for (let i = 0; i < numbers.length; i++) numbers[i] = read(field.bytes, i * size, littleEndian);
      return numbers;
    },
    text(tag) {
      const field = fields.get(tag);
      if (!field || (field.type !== ASCII && field.type !== 1)) return undefined;
      return new TextDecoder().decode(field.bytes).replace(/\0+$/, '');
    },
  };
}

/** Tags of a TIFF directory: TIFF 6.0, OGC GeoTIFF 1.1 (19-008r4), and GDAL's own. */
export const TAG = {
  subfileType: 254,
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
  extraSamples: 338,
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

export const ALL_TAGS = new Set<number>(Object.values(TAG));

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
 * Returns the layout of the blocks of an image, all of which are inside the file. Throws TW_RASTER_TRUNCATED, _CORRUPT and _UNSUPPORTED.
 */
export function blockLayout(directory: Ifd, shape: ImageShape): TiffBlocks {
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
  const estimated = () =>
    compression === 1
      ? uncompressedCounts(shape, blockWidth, blockHeight, samples, count)
      : count === 1 && offsets
        ? Float64Array.of(shape.fileBytes - offsets[0])
        : undefined;
  const stored = (tiled && directory.numbers(TAG.tileByteCounts)) || directory.numbers(TAG.stripByteCounts);
  // As libtiff, which estimates the bytes of a single strip. A block that was never written has neither bytes nor an offset.
  const isUnknown = stored?.[0] === 0 && offsets?.[0] !== 0 && count === 1 && !tiled;
  const byteCounts = isUnknown ? estimated() : (stored ?? estimated());
  if (!offsets || !byteCounts || offsets.length < count || byteCounts.length < count) {
    throw corrupt(
      path,
      `its size requires ${count} blocks, but its directory lists ${Math.min(offsets?.length ?? 0, byteCounts?.length ?? 0)}`,
    );
  }
  for (let i = 0; i < count; i++) {
    if (byteCounts[i] === 0 && offsets[i] !== 0)
      throw corrupt(
        path,
        `block ${i} begins at byte ${offsets[i]} and has 0 bytes`,
        'Fetch or write the file again.',
      );
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
    directory: directory.at,
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
