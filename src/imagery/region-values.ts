/**
 * Values of an expression over the pixels of a place on one date, which several tiles may hold; of those that hold the same
 * pixel the first that shows it counts. Runs in worker threads; reads only the blocks it touches.
 */
import { Mask } from '../raster/index.js';
import type { BandFile } from './bands.js';
import { type Cog, readBlock } from './cog.js';
import { evaluate, type Program } from './expression/program.js';
import type { PixelList } from './region.js';
import { withTileFile } from './tile-file.js';

/** The pixels of a place in one cell, counted in an image of a size over that cell. */
export interface Place {
  pixels: PixelList;
  width: number;
  height: number;
}

/** The part of an acquisition that one tile holds. Plain data. */
export interface TilePart {
  place: Place;
  program: Program;
  bands: BandFile[];
  mask: BandFile | undefined;
}

/** Over clear pixels that hold data; NaN where there are none. */
export interface AcquisitionValues {
  valid: number;
  mean: number;
  /** Of the pixels as a whole population. */
  std: number;
  min: number;
  max: number;
  median: number;
}

/** Throws TW_IMAGERY_TILE_FILE. */
export function acquisitionValues(parts: TilePart[]): AcquisitionValues {
  const values: Float64Array[] = [];
  // One message keeps the places apart that were apart when it was sent, and equal ones equal.
  for (const place of new Set(parts.map((part) => part.place))) {
    const { pixels, width, height } = place;
    const found = new Float64Array(pixels.columns.length).fill(NaN);
    for (const part of parts.filter((one) => one.place === place)) {
      const open = found.map((value) => (Number.isNaN(value) ? 1 : 0));
      const clear = clearAt(part.mask, pixels, width, height);
      if (!open.some((wanted, i) => wanted === 1 && clear[i] === 1)) continue;
      const bands = part.bands.map((band) => physicalAt(band, pixels, width, height));
      const here = evaluate(part.program, bands, found.length);
      for (let i = 0; i < found.length; i++) if (open[i] === 1 && clear[i] === 1) found[i] = here[i];
    }
    values.push(found.filter((value) => !Number.isNaN(value)));
  }
  return statisticsOf(values);
}

function clearAt(mask: BandFile | undefined, pixels: PixelList, width: number, height: number): Uint8Array {
  const clear = new Uint8Array(pixels.columns.length).fill(1);
  if (!mask) return clear;
  const codes = storedAt(mask, pixels, width, height);
  for (let i = 0; i < clear.length; i++)
    if (codes[i] !== Mask.clear && codes[i] !== Mask.notAssessed) clear[i] = 0;
  return clear;
}

function physicalAt(file: BandFile, pixels: PixelList, width: number, height: number): Float64Array {
  const values = storedAt(file, pixels, width, height);
  for (let i = 0; i < values.length; i++)
    values[i] = values[i] === file.hole ? NaN : values[i] * file.scale + file.offset;
  return values;
}

/** Stored values at the centres of pixels of an image of `width` x `height` over the same cell. */
function storedAt(file: BandFile, pixels: PixelList, width: number, height: number): Float64Array {
  const out = new Float64Array(pixels.columns.length);
  const columns = pixels.columns.map((column) => Math.floor(((column + 0.5) * file.width) / width));
  const rows = pixels.rows.map((row) => Math.floor(((row + 0.5) * file.height) / height));
  withTileFile(file.path, (handle, cog) => {
    const { across, blockWidth, blockHeight } = cog.levels[0];
    for (const [block, { first, last }] of rowsOfBlocks(columns, rows, cog)) {
      const values = readBlock(handle, cog, { level: 0, band: file.band, block }, last + 1, first);
      const left = (block % across) * blockWidth;
      const top = Math.floor(block / across) * blockHeight;
      for (let i = 0; i < out.length; i++) {
        const column = columns[i] - left;
        const row = rows[i] - top;
        if (column >= 0 && column < blockWidth && row >= 0 && row < blockHeight)
          out[i] = values[row * blockWidth + column];
      }
    }
  });
  return out;
}

/** The first and last row that are needed of each block, counted within it. */
function rowsOfBlocks(
  columns: Int32Array,
  rows: Int32Array,
  cog: Cog,
): Map<number, { first: number; last: number }> {
  const { across, blockWidth, blockHeight } = cog.levels[0];
  const blocks = new Map<number, { first: number; last: number }>();
  for (let i = 0; i < columns.length; i++) {
    const block = Math.floor(rows[i] / blockHeight) * across + Math.floor(columns[i] / blockWidth);
    const row = rows[i] % blockHeight;
    const known = blocks.get(block);
    if (!known) blocks.set(block, { first: row, last: row });
    else if (row < known.first) known.first = row;
    else if (row > known.last) known.last = row;
  }
  return blocks;
}

function statisticsOf(parts: Float64Array[]): AcquisitionValues {
  const values = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    values.set(part, at);
    at += part.length;
  }
  values.sort();
  const valid = values.length;
  if (valid === 0) return { valid, mean: NaN, std: NaN, min: NaN, max: NaN, median: NaN };
  const mean = values.reduce((sum, value) => sum + value, 0) / valid;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / valid;
  const middle = valid >> 1;
  const median = valid % 2 === 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return { valid, mean, std: Math.sqrt(variance), min: values[0], max: values[valid - 1], median };
}
