/**
 * Values of an expression over the pixels of a place on one date, which several tiles may hold; of those that hold the same
 * pixel the first that shows it counts. Runs in worker threads; reads only the blocks it touches.
 */
import type { BandFile } from './bands.js';
import { isClear } from './clear.js';
import { type Cog, readBlock, readMaskBlock } from './cog.js';
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
      const bands = physicalAt(part.bands, pixels, width, height);
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
  const [codes] = storedAt([mask], pixels, width, height);
  for (let i = 0; i < clear.length; i++) clear[i] = isClear(codes[i]) ? 1 : 0;
  return clear;
}

/** One array a band, NaN where it holds no data. */
function physicalAt(files: BandFile[], pixels: PixelList, width: number, height: number): Float64Array[] {
  const bands: Float64Array[] = new Array(files.length);
  // Bands of one file are read together, so that it is opened once.
  for (const path of new Set(files.map((file) => file.path))) {
    const ofFile = files.filter((file) => file.path === path);
    const stored = storedAt(ofFile, pixels, width, height);
    for (const [i, { hole, scale, offset }] of ofFile.entries()) {
      const values = stored[i];
      for (let k = 0; k < values.length; k++)
        values[k] = values[k] === hole ? NaN : values[k] * scale + offset;
      bands[files.indexOf(ofFile[i])] = values;
    }
  }
  return bands;
}

/**
 * Stored values of bands of one file at the centres of pixels of an image of `width` x `height` over the same cell; NaN where
 * the file's mask says that there is no data.
 */
function storedAt(files: BandFile[], pixels: PixelList, width: number, height: number): Float64Array[] {
  const [{ path, width: fileWidth, height: fileHeight }] = files;
  const columns = pixels.columns.map((column) => Math.floor(((column + 0.5) * fileWidth) / width));
  const rows = pixels.rows.map((row) => Math.floor(((row + 0.5) * fileHeight) / height));
  return withTileFile(path, (handle, cog) => {
    const { across, blockWidth, blockHeight } = cog.levels[0];
    const blocks = rowsOfBlocks(columns, rows, cog);
    return files.map(({ band }) => {
      const out = new Float64Array(columns.length);
      for (const [block, { first, last }] of blocks) {
        const values = readBlock(handle, cog, { level: 0, band, block }, last + 1, first);
        const mask = cog.masks[0] && readMaskBlock(handle, cog, { level: 0, block }, last + 1);
        const left = (block % across) * blockWidth;
        const top = Math.floor(block / across) * blockHeight;
        for (let i = 0; i < out.length; i++) {
          const column = columns[i] - left;
          const row = rows[i] - top;
          if (column < 0 || column >= blockWidth || row < 0 || row >= blockHeight) continue;
          const at = row * blockWidth + column;
          out[i] = mask?.[at] === 0 ? NaN : values[at];
        }
      }
      return out;
    });
  });
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
