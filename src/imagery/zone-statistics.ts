/**
 * Statistics of an expression, and spectra, over the pixels of a zone on one date. If several tiles have the same pixel, the first one in
 * which it is clear and has a value counts. Runs in worker threads, and reads only the required blocks.
 */
import { evaluateProgram, type Program } from '../expressions/index.js';
import { imageKey } from '../raster/index.js';
import { medianOfSorted } from '../utils/sorted.js';
import { type BandFile, isClear, physicalValue } from './band-files.js';
import {
  type MedianBounds,
  type QuantileSketch,
  quantileSketch,
  type ValuesInBounds,
  valuesInBounds,
} from './distributed-median.js';
import {
  readBlock,
  readBlockOfAllBands,
  readMaskBlock,
  type TileGeoTiff,
  withOpenTile,
} from './tile-geotiff.js';
import type { PixelList, ZonePixels } from './zone.js';

/** The part of an acquisition in one tile. Plain data. */
interface AcquisitionPart {
  place: ZonePixels;
  program: Program;
  bands: BandFile[];
  mask: BandFile | undefined;
}

export interface Acquisition {
  parts: AcquisitionPart[];
  /** The requested result: the median, the median and a sketch, or the values within bounds. */
  wants: 'median' | 'sketch' | MedianBounds;
}

/** Statistics of the values of a zone in one cell, over the clear pixels that have data, at least one. */
export interface ZoneStatistics {
  /** Key of the `ZonePixels`. */
  key: string;
  valid: number;
  mean: number;
  /** Sum of squared differences from the mean. */
  squares: number;
  min: number;
  max: number;
}

/** Plain JSON. */
export interface AcquisitionStatistics {
  /** One for each cell with values. */
  places: ZoneStatistics[];
  /** Present if requested, and if there are values, like the following members. */
  median?: number;
  sketch?: QuantileSketch;
  within?: ValuesInBounds;
}

/** Throws TW_IMAGERY_TILE_FILE. */
function acquisitionStatistics({ parts, wants }: Acquisition): AcquisitionStatistics {
  const places: ZoneStatistics[] = [];
  const all: Float64Array[] = [];
  // Structured cloning preserves the identity of objects within one message.
  for (const place of new Set(parts.map((part) => part.place))) {
    const values = valuesOf(
      parts.filter((one) => one.place === place),
      place,
    );
    if (values.length === 0) continue;
    places.push({ key: place.key, ...statisticsOf(values) });
    all.push(values);
  }
  if (all.length === 0) return { places };
  const together = joined(all);
  if (wants === 'median') return { places, median: medianOf(together) };
  together.sort();
  return wants === 'sketch'
    ? { places, median: medianOfSorted(together), sketch: quantileSketch(together) }
    : { places: [], within: valuesInBounds(together, wants) };
}

/** The values of a zone in one cell, without NaN. */
function valuesOf(parts: AcquisitionPart[], { pixels, width, height }: ZonePixels): Float64Array {
  const found = new Float64Array(pixels.columns.length).fill(NaN);
  for (const part of parts) {
    const wanted = clearAt(part.mask, pixels, width, height);
    for (let i = 0; i < found.length; i++) if (!Number.isNaN(found[i])) wanted[i] = 0;
    if (!wanted.includes(1)) continue;
    const bands = physicalAt(part.bands, pixels, width, height);
    const values = evaluateProgram(part.program, bands, found.length);
    for (let i = 0; i < found.length; i++) if (wanted[i] === 1) found[i] = values[i];
  }
  return withoutNaN(found);
}

/** Removes NaN in place. */
function withoutNaN(values: Float64Array): Float64Array {
  let count = 0;
  for (let i = 0; i < values.length; i++) if (!Number.isNaN(values[i])) values[count++] = values[i];
  return values.subarray(0, count);
}

/** 1 for the pixels of a zone that are clear, filled or not assessed in a mask. */
function clearAt(mask: BandFile | undefined, pixels: PixelList, width: number, height: number): Uint8Array {
  const clear = new Uint8Array(pixels.columns.length).fill(1);
  if (!mask) return clear;
  const [codes] = storedAt([mask], pixels, width, height);
  for (let i = 0; i < clear.length; i++) clear[i] = isClear(codes[i]) ? 1 : 0;
  return clear;
}

/** Returns the values of a band at the centres of all pixels of an image over the same cell, row by row; NaN for no data. */
export function readCellValues(file: BandFile, width: number, height: number): Float64Array {
  const count = width * height;
  const columns = Int32Array.from({ length: count }, (_, i) => i % width);
  const rows = Int32Array.from({ length: count }, (_, i) => Math.floor(i / width));
  return physicalAt([file], { columns, rows }, width, height)[0];
}

/** Physical values, one array per band; NaN for no data. */
function physicalAt(files: BandFile[], pixels: PixelList, width: number, height: number): Float64Array[] {
  const bands: Float64Array[] = new Array(files.length);
  // Bands of one image are read together, so that its file is opened once.
  for (const key of new Set(files.map(imageKey))) {
    const ofFile = files.filter((file) => imageKey(file) === key);
    const stored = storedAt(ofFile, pixels, width, height);
    for (const [i, file] of ofFile.entries())
      bands[files.indexOf(file)] = stored[i].map((value) => physicalValue(value, file));
  }
  return bands;
}

/** Cache by pixels and file layout: all dates have the same pixels, and files of one size have the same blocks. */
const pixelsByBlockCache = new WeakMap<PixelList, Map<string, BlockPixels[]>>();

/**
 * Stored values of bands of one file at the centres of pixels of an image of `width` x `height` over the same cell; NaN for pixels without
 * data in the mask of the file.
 */
function storedAt(files: BandFile[], pixels: PixelList, width: number, height: number): Float64Array[] {
  const [image] = files;
  const { width: fileWidth, height: fileHeight } = image;
  return withOpenTile(image, (handle, cog) => {
    const { blockWidth, blockHeight, ...level } = cog.levels[0];
    if (level.width !== fileWidth || level.height !== fileHeight)
      throw new Error(`it has ${level.width} x ${level.height} pixels, not ${fileWidth} x ${fileHeight}`);
    const key = [width, height, fileWidth, fileHeight, blockWidth, blockHeight].join(' ');
    const known = pixelsByBlockCache.get(pixels) ?? new Map<string, BlockPixels[]>();
    pixelsByBlockCache.set(pixels, known);
    let blocks = known.get(key);
    if (!blocks) {
      const columns = mapAxisPositions(pixels.columns, width, fileWidth);
      const rows = mapAxisPositions(pixels.rows, height, fileHeight);
      blocks = pixelsByBlock(columns, rows, cog);
      known.set(key, blocks);
    }
    return files.map(({ band }) => {
      const out = new Float64Array(pixels.columns.length);
      for (const { block, first, last, order, places } of blocks) {
        // The mask is a copy; the values are valid until the next block is read.
        const mask = cog.masks[0] && readMaskBlock(handle, cog, { level: 0, band, block }, last + 1);
        const values = readBlock(handle, cog, { level: 0, band, block }, last + 1, first);
        for (let n = 0; n < order.length; n++)
          out[order[n]] = mask?.[places[n]] === 0 ? NaN : values[places[n]];
      }
      return out;
    });
  });
}

/** Converts positions along an axis from an image of `from` pixels to one of `to` pixels. */
function mapAxisPositions(positions: Int32Array, from: number, to: number): Int32Array {
  return from === to ? positions : positions.map((position) => Math.floor(((position + 0.5) * to) / from));
}

/** The pixels of a list in one block. */
interface BlockPixels {
  block: number;
  /** The first and the last required row of the block. */
  first: number;
  last: number;
  /** Indexes of the pixels in the list. */
  order: Int32Array;
  /** Positions of the pixels in the block. */
  places: Int32Array;
}

function pixelsByBlock(columns: Int32Array, rows: Int32Array, cog: TileGeoTiff): BlockPixels[] {
  const { across, perBand, blockWidth, blockHeight } = cog.levels[0];
  const blocks = new Int32Array(columns.length);
  const ends = new Int32Array(perBand + 1);
  for (let i = 0; i < blocks.length; i++) {
    blocks[i] = Math.floor(rows[i] / blockHeight) * across + Math.floor(columns[i] / blockWidth);
    ends[blocks[i] + 1]++;
  }
  for (let block = 0; block < perBand; block++) ends[block + 1] += ends[block];
  const next = ends.slice();
  const order = new Int32Array(columns.length);
  const places = new Int32Array(columns.length);
  for (let i = 0; i < blocks.length; i++) {
    const n = next[blocks[i]]++;
    order[n] = i;
    places[n] = (rows[i] % blockHeight) * blockWidth + (columns[i] % blockWidth);
  }
  const found: BlockPixels[] = [];
  for (let block = 0; block < perBand; block++) {
    const [start, end] = [ends[block], ends[block + 1]];
    if (start === end) continue;
    const own = places.subarray(start, end);
    let [first, last] = [blockHeight, 0];
    for (let n = 0; n < own.length; n++) {
      const row = Math.floor(own[n] / blockWidth);
      if (row < first) first = row;
      if (row > last) last = row;
    }
    found.push({ block, first, last, order: order.subarray(start, end), places: own });
  }
  return found;
}

function joined(parts: Float64Array[]): Float64Array {
  if (parts.length === 1) return parts[0];
  const values = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    values.set(part, at);
    at += part.length;
  }
  return values;
}

function statisticsOf(values: Float64Array): Omit<ZoneStatistics, 'key'> {
  const valid = values.length;
  let [sum, min, max] = [0, Infinity, -Infinity];
  for (let i = 0; i < valid; i++) {
    const value = values[i];
    sum += value;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  const mean = sum / valid;
  let squares = 0;
  for (let i = 0; i < valid; i++) squares += (values[i] - mean) ** 2;
  return { valid, mean, squares, min, max };
}

/** The median of at least one value. Reorders the values. */
function medianOf(values: Float64Array): number {
  const middle = values.length >> 1;
  const upper = quickselect(values, middle);
  if (values.length % 2 === 1) return upper;
  let lower = -Infinity;
  for (let i = 0; i < middle; i++) if (values[i] > lower) lower = values[i];
  return (lower + upper) / 2;
}

/** Returns the value of this rank and reorders the values so that no value before it is larger (Hoare 1961, FIND). */
function quickselect(values: Float64Array, rank: number): number {
  for (let left = 0, right = values.length - 1; left < right; ) {
    const pivot = values[(left + right) >> 1];
    let [i, j] = [left, right];
    while (i <= j) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i > j) break;
      const value = values[i];
      values[i++] = values[j];
      values[j--] = value;
    }
    if (rank <= j) right = j;
    else if (rank >= i) left = i;
    else break;
  }
  return values[rank];
}

/** The part of an acquisition in one tile. Plain data. */
export interface SpectrumPart {
  place: ZonePixels;
  /** All bands of one file, in the order of the file. */
  bands: BandFile[];
  /** One flag per band: only good bands decide whether a pixel holds data. */
  good: boolean[];
  mask: BandFile | undefined;
}

/** Statistics over the pixels of a zone in one cell, one number for each band. Plain JSON. */
export interface SpectrumSums {
  /** Key of the `ZonePixels`. */
  key: string;
  /** Clear pixels that have data in a good band. */
  valid: number;
  counts: number[];
  means: number[];
  /** Sums of squared differences from the mean. */
  squares: number[];
}

/** Returns one result for each cell with a clear pixel that has data. Throws TW_IMAGERY_TILE_FILE. */
function spectrumSums(parts: SpectrumPart[]): SpectrumSums[] {
  const sums: SpectrumSums[] = [];
  for (const place of new Set(parts.map((part) => part.place))) {
    const shown = new Uint8Array(place.pixels.columns.length);
    const values = parts
      .filter((part) => part.place === place)
      .map((part) => spectraOf(part, shown))
      .filter((spectra) => spectra.some((band) => band.length > 0));
    const [first] = values;
    if (!first) continue;
    const bands = first.map((_, band) => values.flatMap((spectra) => [...spectra[band]]));
    const means = bands.map((band) => band.reduce((sum, value) => sum + value, 0) / band.length);
    sums.push({
      key: place.key,
      valid: shown.reduce((sum, one) => sum + one, 0),
      counts: bands.map((band) => band.length),
      means: means.map((mean) => (Number.isNaN(mean) ? 0 : mean)),
      squares: bands.map((band, i) => band.reduce((sum, value) => sum + (value - means[i]) ** 2, 0)),
    });
  }
  return sums;
}

/** Physical values of each band at the clear pixels that are not yet `shown`. Marks pixels that have data as shown. */
function spectraOf({ place, bands, good, mask }: SpectrumPart, shown: Uint8Array): Float64Array[] {
  const { pixels, width, height } = place;
  const wanted = clearAt(mask, pixels, width, height);
  for (let i = 0; i < wanted.length; i++) if (shown[i] === 1) wanted[i] = 0;
  if (!wanted.includes(1)) return [];
  return storedSpectra(bands, place).map((stored, b) => {
    const found: number[] = [];
    for (let i = 0; i < wanted.length; i++) {
      const value = physicalValue(stored[i], bands[b]);
      if (wanted[i] === 0 || !Number.isFinite(value)) continue;
      found.push(value);
      if (good[b]) shown[i] = 1;
    }
    return Float64Array.from(found);
  });
}

/** Stored values of all bands of a file at the pixels of a zone; NaN for pixels without data in a mask of the file. */
function storedSpectra(
  [image, ...others]: BandFile[],
  { pixels, width, height }: ZonePixels,
): Float64Array[] {
  const count = 1 + others.length;
  return withOpenTile(image, (handle, cog) => {
    const [level] = cog.levels;
    if (level.width !== width || level.height !== height || cog.bands !== count)
      throw new Error(`it has ${cog.bands} bands of ${level.width} x ${level.height} pixels`);
    const out = Array.from({ length: count }, () => new Float64Array(pixels.columns.length));
    for (const { block, first, last, order, places } of pixelsByBlock(pixels.columns, pixels.rows, cog))
      for (const [band, found] of readBlockOfAllBands(handle, cog, block, last + 1, first).entries()) {
        for (let n = 0; n < order.length; n++) out[band][order[n]] = found[places[n]];
        if (cog.maskCount === 0) continue;
        const mask = readMaskBlock(handle, cog, { level: 0, band, block }, last + 1);
        for (let n = 0; n < order.length; n++) if (mask[places[n]] === 0) out[band][order[n]] = NaN;
      }
    return out;
  });
}

export const SERIES_HANDLERS = {
  series: ({ acquisitions }: { acquisitions: Acquisition[] }) => acquisitions.map(acquisitionStatistics),
  spectra: ({ parts }: { parts: SpectrumPart[] }) => spectrumSums(parts),
};

export type SeriesHandlers = typeof SERIES_HANDLERS;
