/**
 * Reads the images of tile files with their overviews. It supports only those of `encodeCog` and `CubeFile`: classic little-endian TIFF,
 * tiled, one band after another, with deflate and a predictor or no compression. Blocks without data may be missing. If an image has a
 * mask, each level is followed by its mask. Because of this layout one short read returns the complete structure, and a block is decoded
 * only up to the last required row.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { messageOf } from '../errors.js';
import {
  allocatePixels,
  bytesPerSample,
  DATA_TYPES,
  type DataType,
  decodeFloatPredictor,
  decodeHorizontalPredictor,
  type ImageFile,
  inflatePrefix,
  nodataAsType,
  type PixelArray,
  parseNodata,
  viewPixels,
} from '../raster/index.js';
import { tileUnreadable } from './errors.js';

/** The full image or an overview of it. */
export interface Level {
  width: number;
  height: number;
  blockWidth: number;
  blockHeight: number;
}

interface StoredLevel extends Level {
  /** Number of blocks in a row of blocks. */
  across: number;
  /** Number of blocks of a band. */
  perBand: number;
  /** Band by band, rows of blocks from north to south. */
  offsets: Uint32Array | Float64Array;
  byteCounts: Uint32Array;
  isCompressed: boolean;
}

export interface TileGeoTiff {
  dataType: DataType;
  bands: number;
  /** Value of the pixels of missing blocks. */
  fillValue: number;
  /** From the full image to the smallest overview. */
  levels: StoredLevel[];
  /** The masks of each level, one bit per pixel; empty if a nodata value or no value marks pixels without data. */
  masks: StoredLevel[];
  /** Number of masks: one for all bands, or one for each. 0 if there is none. */
  maskCount: number;
}

/** Limit against damaged files; blocks of tiles have at most 512 x 512 pixels. */
const MAX_BLOCK_PIXELS = 2 ** 22;
/** Limit of compressed bytes per pixel, against damaged files. */
const MAX_BYTES_PER_PIXEL = 16;

/** The directories of most tiles fit into this size; larger ones need a second read. */
const FIRST_READ_BYTES = 4096;
/** Limit of the size of the directories. */
const MAX_HEADER_BYTES = 2 ** 26;
const MAX_NODATA_LENGTH = 40;

/** Reads the structure of an image of an open tile file. Throws an Error if its range of the file does not hold it. */
export function readTileGeoTiff(file: number, { start, bytes: end }: Omit<ImageFile, 'path'>): TileGeoTiff {
  for (let length = FIRST_READ_BYTES; length <= MAX_HEADER_BYTES; ) {
    const bytes = Buffer.allocUnsafe(Math.min(length, end));
    const read = readSync(file, bytes, 0, bytes.length, start);
    const cog = parseTileGeoTiff(bytes.subarray(0, read));
    if (typeof cog !== 'number') {
      requireBlocks(cog, end);
      return start === 0 ? cog : placed(cog, start);
    }
    if (read < length) throw new Error('its directory lies beyond its end');
    length = Math.max(cog, 2 * length);
  }
  throw new Error('its directory is too long');
}

/** Throws an Error unless each block lies before byte `end` of the image, where another image may begin, or is missing. */
function requireBlocks({ levels, masks }: TileGeoTiff, end: number): void {
  for (const { offsets, byteCounts } of [...levels, ...masks])
    for (let i = 0; i < offsets.length; i++) {
      if (offsets[i] + byteCounts[i] > end) throw new Error(`block ${i} lies beyond its end`);
      if ((offsets[i] === 0) !== (byteCounts[i] === 0)) throw new Error(`block ${i} is listed in part`);
    }
}

/** The structure with offsets from the start of the file instead of that of the image. */
function placed(cog: TileGeoTiff, start: number): TileGeoTiff {
  const place = (level: StoredLevel): StoredLevel => ({
    ...level,
    offsets: Float64Array.from(level.offsets, (offset) => (offset === 0 ? 0 : offset + start)),
  });
  return { ...cog, levels: cog.levels.map(place), masks: cog.masks.map(place) };
}

/** Returns the structure, or the number of bytes from the start of the image that are needed to parse it. */
function parseTileGeoTiff(bytes: Buffer): TileGeoTiff | number {
  if (bytes.length < 8 || bytes.toString('latin1', 0, 4) !== 'II*\0')
    throw new Error('it is not a tile file');
  let cog: TileGeoTiff | undefined;
  for (let at = bytes.readUInt32LE(4); at !== 0; ) {
    if (at + 2 > bytes.length) return at + 2;
    const end = at + 6 + bytes.readUInt16LE(at) * 12;
    if (end > bytes.length) return end;
    const fields = new Map<number, Uint32Array>();
    let nodataText: string | undefined;
    for (let entry = at + 2; entry < end - 4; entry += 12) {
      const values = numbersAt(bytes, entry);
      if (typeof values === 'number') return values;
      const tag = bytes.readUInt16LE(entry);
      fields.set(tag, values);
      if (tag === GDAL_NODATA_TAG && !cog) {
        const text = textAt(bytes, entry);
        if (typeof text === 'number') return text;
        nodataText = text;
      }
    }
    const level = levelOf(fields);
    if (cog && (fields.get(254)?.[0] ?? 0) & MASK_SUBFILE_TYPE) {
      cog.masks.push(level);
      cog.maskCount = level.offsets.length / level.perBand;
    } else {
      const dataType = dataTypeOf(fields);
      const fillValue = nodataAsType(dataType, parseNodata(nodataText, dataType)) ?? 0;
      cog ??= {
        dataType,
        bands: fields.get(277)?.[0] ?? 1,
        fillValue,
        levels: [],
        masks: [],
        maskCount: 0,
      };
      cog.levels.push(level);
    }
    const next = bytes.readUInt32LE(end - 4);
    if (next !== 0 && next <= at) throw new Error('its directories form a cycle');
    at = next;
  }
  if (!cog) throw new Error('it has no image');
  requireMasks(cog);
  return cog;
}

/** Throws an Error unless all levels have masks of the same size and blocks, one for all bands or one for each, or no level has a mask. */
function requireMasks({ levels, masks, bands }: TileGeoTiff): void {
  const alike = (a: Level, b: Level | undefined) =>
    a.width === b?.width &&
    a.height === b.height &&
    a.blockWidth === b.blockWidth &&
    a.blockHeight === b.blockHeight;
  if (masks.length > 0 && !levels.every((level, i) => alike(level, masks[i])))
    throw new Error('its masks have another size than its images');
  const counts = new Set(masks.map(({ offsets, perBand }) => offsets.length / perBand));
  if (counts.size > 1 || [...counts].some((count) => count !== 1 && count !== bands))
    throw new Error(`it has ${[...counts].join(' and ')} masks for ${bands} bands`);
}

const TIFF_ASCII = 2;
const TIFF_SHORT = 3;
const TIFF_LONG = 4;
/** NewSubfileType. */
const MASK_SUBFILE_TYPE = 4;
/** Tag of GDAL for the nodata value, as text. */
const GDAL_NODATA_TAG = 42113;

/** Returns the text of an entry, or the number of bytes from the start of the image that are needed to read it. */
function textAt(bytes: Buffer, entry: number): string | number {
  const count = bytes.readUInt32LE(entry + 4);
  if (bytes.readUInt16LE(entry + 2) !== TIFF_ASCII || count > MAX_NODATA_LENGTH) return '';
  const start = count <= 4 ? entry + 8 : bytes.readUInt32LE(entry + 8);
  return start + count > bytes.length ? start + count : bytes.toString('latin1', start, start + count - 1);
}

/** Returns the integers of an entry, or the number of bytes that are needed to read them. Entries of other types have no integers. */
function numbersAt(bytes: Buffer, entry: number): Uint32Array | number {
  const type = bytes.readUInt16LE(entry + 2);
  if (type !== TIFF_SHORT && type !== TIFF_LONG) return new Uint32Array(0);
  const count = bytes.readUInt32LE(entry + 4);
  const size = type === TIFF_SHORT ? 2 : 4;
  const start = count * size <= 4 ? entry + 8 : bytes.readUInt32LE(entry + 8);
  if (start + count * size > bytes.length) return start + count * size;
  const values = new Uint32Array(count);
  for (let i = 0; i < count; i++)
    values[i] = type === TIFF_SHORT ? bytes.readUInt16LE(start + 2 * i) : bytes.readUInt32LE(start + 4 * i);
  return values;
}

function levelOf(fields: Map<number, Uint32Array>): StoredLevel {
  const one = (tag: number) => fields.get(tag)?.[0] ?? 0;
  const [width, height, blockWidth, blockHeight] = [256, 257, 322, 323].map(one);
  const offsets = fields.get(324) ?? new Uint32Array(0);
  const byteCounts = fields.get(325) ?? new Uint32Array(0);
  if (!(width && height && blockWidth && blockHeight)) throw new Error('its image has no size');
  if (blockWidth * blockHeight > MAX_BLOCK_PIXELS) throw new Error('its blocks are too large');
  const compression = one(259);
  if (compression !== 8 && compression !== 1)
    throw new Error(`its pixels have the unsupported compression ${compression}`);
  const across = Math.ceil(width / blockWidth);
  const perBand = across * Math.ceil(height / blockHeight);
  const blocks = perBand * (one(277) || 1);
  if (offsets.length !== blocks || byteCounts.length !== blocks)
    throw new Error(`it lists ${offsets.length} blocks, and its size requires ${blocks}`);
  const isCompressed = compression === 8;
  return { width, height, blockWidth, blockHeight, across, perBand, offsets, byteCounts, isCompressed };
}

/** The type by sample format (1 unsigned, 2 signed, 3 floating point) and bits. */
function dataTypeOf(fields: Map<number, Uint32Array>): DataType {
  const kind = ['', 'uint', 'int', 'float'][fields.get(339)?.[0] ?? 1];
  const name = `${kind}${fields.get(258)?.[0]}`;
  const dataType = DATA_TYPES.find((one) => one === name);
  if (!dataType) throw new Error(`its pixels are of the unknown type ${name}`);
  return dataType;
}

/** To decode a part of a block, a proportional part of the compressed bytes plus this margin is read, which usually suffices. */
const READ_AHEAD_FACTOR = 1.15;
const READ_AHEAD_BYTES = 1024;

/**
 * Reads the rows [0, rows) of a block, each `blockWidth` pixels long. They are valid until the next block is read. Rows before `firstRow`
 * are not decoded.
 */
export function readBlock(
  file: number,
  cog: TileGeoTiff,
  { level, band, block }: { level: number; band: number; block: number },
  rows: number,
  firstRow = 0,
): PixelArray {
  const stored = cog.levels[level];
  const { blockWidth, perBand } = stored;
  const index = band * perBand + block;
  if (!(block < perBand && band < cog.bands)) throw new Error(`it has no block ${block} of band ${band}`);
  if (stored.byteCounts[index] === 0)
    return allocatePixels(cog.dataType, rows * blockWidth).fill(cog.fillValue);
  const rowBytes = blockWidth * bytesPerSample(cog.dataType);
  if (!stored.isCompressed) {
    if (stored.byteCounts[index] < rows * rowBytes)
      throw new Error(`block ${index} has less than ${rows * rowBytes} bytes`);
    const plain = new Uint8Array(rows * rowBytes);
    readBytes(file, plain.subarray(firstRow * rowBytes), stored.offsets[index] + firstRow * rowBytes);
    return viewPixels(cog.dataType, plain.buffer, 0, rows * blockWidth);
  }
  const bytes = inflateRows(file, stored, index, rows, rowBytes);
  const pixels = viewPixels(cog.dataType, bytes.buffer, bytes.byteOffset, rows * blockWidth);
  undoPredictor(pixels, cog.dataType, blockWidth, firstRow);
  return pixels;
}

/**
 * Reads the rows [0, rows) of a block of every band of the full image, as `readBlock` does. If the blocks are adjacent and not compressed,
 * as in cubes, all rows are read by one call. `memory`: the buffer of an earlier call, which is overwritten.
 */
export function readBlockOfAllBands(
  file: number,
  cog: TileGeoTiff,
  block: number,
  rows: number,
  firstRow = 0,
  memory?: ArrayBufferLike,
): PixelArray[] {
  const { bands, dataType } = cog;
  const [level] = cog.levels;
  const { perBand, offsets, byteCounts, isCompressed, blockWidth, blockHeight } = level;
  const all = Array.from({ length: bands }, (_, band) => band);
  const each = blockWidth * blockHeight * bytesPerSample(dataType);
  const start = offsets[block];
  const areAdjacent = all.every((band) => {
    const at = band * perBand + block;
    return !isCompressed && byteCounts[at] === each && offsets[at] === start + band * each;
  });
  // The next block of a compressed file is read into the same memory.
  if (!areAdjacent)
    return all.map((band) => readBlock(file, cog, { level: 0, band, block }, rows, firstRow).slice());
  const size = bands * each;
  const bytes = memory?.byteLength === size ? new Uint8Array(memory) : new Uint8Array(size);
  readBytes(file, bytes, start);
  return all.map((band) => viewPixels(dataType, bytes.buffer, band * each, blockWidth * blockHeight));
}

/** Reads the rows [0, rows) of a block of the mask of a band: 1 for pixels with data, else 0. The file must have a mask. */
export function readMaskBlock(
  file: number,
  { masks, maskCount }: TileGeoTiff,
  { level, band, block }: { level: number; band: number; block: number },
  rows: number,
): Uint8Array {
  const { blockWidth, perBand } = masks[level];
  if (block >= perBand) throw new Error(`its mask has no block ${block}`);
  const index = (maskCount > 1 ? band * perBand : 0) + block;
  const bits = inflateRows(file, masks[level], index, rows, blockWidth / 8);
  return Uint8Array.from({ length: rows * blockWidth }, (_, i) => (bits[i >> 3] >> (7 - (i & 7))) & 1);
}

/** The bytes of the first rows of a block, valid until the next block is read. */
function inflateRows(
  file: number,
  { blockWidth, blockHeight, offsets, byteCounts }: StoredLevel,
  index: number,
  rows: number,
  rowBytes: number,
): Uint8Array {
  if (byteCounts[index] > blockWidth * blockHeight * MAX_BYTES_PER_PIXEL)
    throw new Error(`block ${index} has ${byteCounts[index]} bytes`);
  const wanted = rows * rowBytes;
  const share = rows / blockHeight;
  const size = byteCounts[index];
  const estimate = Math.min(size, Math.ceil(size * share * READ_AHEAD_FACTOR) + READ_AHEAD_BYTES);
  const isWhole = rows === blockHeight;
  const inflate = (length: number) =>
    inflatePrefix(length, wanted, (into) => readBytes(file, into, offsets[index]), isWhole);
  const bytes = inflate(estimate) ?? inflate(size);
  if (!bytes) throw new Error(`block ${index} has less than ${wanted} bytes`);
  return bytes;
}

function readBytes(file: number, into: Uint8Array, from: number): void {
  const read = readSync(file, into, 0, into.length, from);
  if (read < into.length) throw new Error(`it ends at byte ${from + read}, ${from + into.length} are needed`);
}

function undoPredictor(
  { buffer, byteOffset, length, BYTES_PER_ELEMENT: size }: PixelArray,
  dataType: DataType,
  width: number,
  firstRow: number,
): void {
  const rows = length / width - firstRow;
  const at = byteOffset + firstRow * width * size;
  const count = rows * width;
  if (dataType.startsWith('float'))
    decodeFloatPredictor(new Uint8Array(buffer, at, count * size), width, rows, 1, size);
  else if (size === 1) decodeHorizontalPredictor(new Uint8Array(buffer, at, count), width, rows, 1);
  else if (size === 2) decodeHorizontalPredictor(new Uint16Array(buffer, at, count), width, rows, 1);
  else decodeHorizontalPredictor(new Uint32Array(buffer, at, count), width, rows, 1);
}

/**
 * Opens a tile file for one read: there are many files, and opening one is cheap. Passes the file and the structure of an image to `read`.
 * Throws TW_IMAGERY_TILE_FILE for every error.
 */
export function withOpenTile<T>(
  { path, ...range }: ImageFile,
  read: (file: number, cog: TileGeoTiff) => T,
): T {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    return read(file, readTileGeoTiff(file, range));
  } catch (error) {
    // Clients must not learn the path of the data folder.
    const name = path.slice(path.lastIndexOf('/tiles/') + 1);
    throw tileUnreadable.because(error, name, messageOf(error).replaceAll(path, name));
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

export interface TileStructure {
  dataType: DataType;
  /** The full image and its overviews, the largest first. */
  levels: Level[];
  /** Number of masks that define which pixels have data: 0, one for all bands, or one for each. */
  masks: number;
}

/** A block of a band, or of the mask of a band, at a level. */
export interface BlockTask extends ImageFile {
  level: number;
  band: number;
  block: number;
  isMask: boolean;
}

export const READ_HANDLERS = {
  structure: (image: ImageFile): TileStructure =>
    withOpenTile(image, (_, { dataType, levels, maskCount }) => ({
      dataType,
      masks: maskCount,
      levels: levels.map(({ width, height, blockWidth, blockHeight }) => ({
        width,
        height,
        blockWidth,
        blockHeight,
      })),
    })),
  block: ({ level, band, block, isMask, ...image }: BlockTask): PixelArray =>
    withOpenTile(image, (file, cog) => {
      const rows = cog.levels[level].blockHeight;
      if (isMask) return readMaskBlock(file, cog, { level, band, block }, rows);
      // The thread reads its next block into the same memory.
      return readBlock(file, cog, { level, band, block }, rows).slice();
    }),
};

export type ReadHandlers = typeof READ_HANDLERS;
