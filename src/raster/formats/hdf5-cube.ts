/**
 * Opens cubes whose bands are interleaved by row or pixel (`Hdf5CubeBlocks`), and reads their pixels chunk by chunk, so that each chunk is
 * decoded once. The product format supplies the georeferencing.
 */

import { stat } from 'node:fs/promises';
import { corrupt, unsupported } from '../errors.js';
import { bytesPerSample, fillValueFor } from '../pixels/data-types.js';
import type {
  Affine,
  Crs,
  DataType,
  Hdf5CubeBlocks,
  HeaderOf,
  MissingNumbers,
  PixelArray,
  RasterHeader,
  ReadTarget,
  Window,
} from '../raster.js';
import { MAX_BANDS, MAX_SIDE_PIXELS } from '../source.js';
import {
  isMissing,
  missingData,
  readHyperslab,
  readStoredDataset,
  type StoredDataset,
} from './hdf5-dataset.js';
import { type Hdf5File, withHdf5 } from './hdf5-file.js';

export type Hdf5CubeHeader = HeaderOf<Hdf5CubeBlocks>;

/** The library's memory holds about one piece at a time, or one chunk if chunks are larger. */
const HYPERSLAB_BYTES = 2 ** 22;

/**
 * Reads a window of some bands (from 0). The window must lie in the raster and fit the target.
 * Throws TW_RASTER_UNREADABLE and _CORRUPT.
 */
export async function readHdf5Cube(
  header: Hdf5CubeHeader,
  bands: number[],
  window: Window,
  target: ReadTarget,
  pieceBytes = HYPERSLAB_BYTES,
): Promise<void> {
  await withHdf5(header.path, (file) => {
    const { dataset, shape } = header.blocks;
    const cube = readStoredDataset(file, dataset);
    if (cube.shape.join() !== shape.join())
      throw corrupt(header.path, `${dataset} is not as it was when it was opened`);
    const sources = sourcesOf(file, header, window);
    const { arrays, offset, stride } = target;
    const nodata = fillValueFor(header.dataType, header.nodata);
    const out = (pixel: number) =>
      offset + Math.floor(pixel / window.width) * stride + (pixel % window.width);
    for (const [pixel, source] of sources.entries())
      if (source < 0) for (const array of arrays) array[out(pixel)] = nodata;
    for (const piece of planHyperslabs(header, cube, bands, sources, pieceBytes))
      copyHyperslab(file, header, cube, piece, bands, arrays, out, nodata);
  });
}

// --- positions of pixels in the cube -----------------------------------------------------------------------------

/** For each pixel of a window, row by row, its position in the cube: row * columns + column; -1 if it has none. */
function sourcesOf(file: Hdf5File, { path, blocks }: Hdf5CubeHeader, window: Window): Int32Array {
  const { lookup } = blocks;
  const [height, width] = gridOf(blocks);
  const sources = new Int32Array(window.width * window.height);
  if (!lookup) {
    for (let pixel = 0; pixel < sources.length; pixel++) {
      const row = window.row + Math.floor(pixel / window.width);
      sources[pixel] = row * width + window.column + (pixel % window.width);
    }
    return sources;
  }
  const columns = numbersOf(file, lookup.columns, window);
  const rows = numbersOf(file, lookup.rows, window);
  for (let pixel = 0; pixel < sources.length; pixel++) {
    const column = Math.abs(Number(columns[pixel]));
    const row = Math.abs(Number(rows[pixel]));
    if (column > width || row > height)
      throw corrupt(
        path,
        `${lookup.columns} and ${lookup.rows} name column ${column} and row ${row} of a swath of ${width} columns and ${height} rows`,
      );
    sources[pixel] = column >= 1 && row >= 1 ? (row - 1) * width + column - 1 : -1;
  }
  return sources;
}

function numbersOf(file: Hdf5File, layer: string, { column, row, width, height }: Window) {
  const { dataset } = readStoredDataset(file, layer);
  const numbers = file.slice(dataset, [
    [row, row + height],
    [column, column + width],
  ]);
  if (numbers.length !== width * height) throw corrupt(file.path, `${layer} cannot be read`);
  return numbers;
}

/** Rows and columns of the cube's own grid. */
const gridOf = ({ shape, bandAxis }: Hdf5CubeBlocks) => [shape[0], shape[3 - bandAxis]!] as const;

// --- pieces -------------------------------------------------------------------------------------------------------

type Range = [from: number, to: number];

/** A part of the cube that is read in one call, and the pixels of the window that come from it. */
interface Hyperslab {
  rows: Range;
  columns: Range;
  bands: Range;
  /** Indexes of pixels of the window. */
  pixels: number[];
  sources: Int32Array;
}

/** Pieces are complete chunks, cut to the part that the window needs. */
function* planHyperslabs(
  { blocks }: Hdf5CubeHeader,
  cube: StoredDataset,
  bands: number[],
  sources: Int32Array,
  pieceBytes: number,
): Generator<Hyperslab> {
  const [, width] = gridOf(blocks);
  const size = hyperslabSize(blocks, cube, pieceBytes);
  const across = Math.ceil(width / size.columns);
  const first = Math.min(...bands);
  const end = Math.max(...bands) + 1;
  for (const pixels of groupByChunk(sources, (source) => {
    const row = Math.floor(source / width);
    return Math.floor(row / size.rows) * across + Math.floor((source - row * width) / size.columns);
  })) {
    const rows = rangeOf(pixels, (pixel) => Math.floor(sources[pixel]! / width));
    const columns = rangeOf(pixels, (pixel) => sources[pixel]! % width);
    for (let from = first; from < end; ) {
      const to = Math.min(end, Math.floor(from / size.bands) * size.bands + size.bands);
      yield { rows, columns, bands: [from, to], pixels, sources };
      from = to;
    }
  }
}

/** Rows, columns and bands of a piece: a chunk, or as many as fit; a cube without chunks is read by complete rows. */
function hyperslabSize(
  { shape, bandAxis }: Hdf5CubeBlocks,
  { chunks, dataType }: StoredDataset,
  pieceBytes: number,
) {
  const grow = (size: number, whole: number, room: number) =>
    Math.min(whole, size * Math.max(1, Math.floor(room / size)));
  const chunk = chunks ?? [1, shape[1], shape[2]];
  const most = pieceBytes / bytesPerSample(dataType);
  const high = chunk[0]!;
  const wide = chunk[3 - bandAxis]!;
  const bands = grow(chunk[bandAxis]!, shape[bandAxis]!, most / (high * wide));
  const columns = grow(wide, shape[3 - bandAxis]!, most / (high * bands));
  const rows = grow(high, shape[0], most / (columns * bands));
  return { rows, columns, bands };
}

/** Indexes of pixels with a position, grouped by a key, each group in ascending order. */
function groupByChunk(sources: Int32Array, keyOf: (source: number) => number): number[][] {
  const groups = new Map<number, number[]>();
  for (let pixel = 0; pixel < sources.length; pixel++) {
    if (sources[pixel]! < 0) continue;
    const key = keyOf(sources[pixel]!);
    const group = groups.get(key);
    if (group) group.push(pixel);
    else groups.set(key, [pixel]);
  }
  return [...groups].sort(([a], [b]) => a - b).map(([, group]) => group);
}

function rangeOf(pixels: number[], value: (pixel: number) => number): Range {
  let least = Infinity;
  let most = -Infinity;
  for (const pixel of pixels) {
    const place = value(pixel);
    if (place < least) least = place;
    if (place > most) most = place;
  }
  return [least, most + 1];
}

// --- values -------------------------------------------------------------------------------------------------------

function copyHyperslab(
  file: Hdf5File,
  { path, blocks }: Hdf5CubeHeader,
  cube: StoredDataset,
  { rows, columns, bands: range, pixels, sources }: Hyperslab,
  bands: number[],
  arrays: PixelArray[],
  out: (pixel: number) => number,
  nodata: number,
): void {
  const { bandAxis, fill, missing, errors } = blocks;
  const ranges = bandAxis === 1 ? [rows, range, columns] : [rows, columns, range];
  const [, width] = gridOf(blocks);
  const across = columns[1] - columns[0];
  const deep = range[1] - range[0];
  const read = ({ dataset, dataType }: StoredDataset) => {
    const values = readHyperslab(file, dataset, dataType, ranges);
    if (values.length !== (rows[1] - rows[0]) * across * deep)
      throw corrupt(path, `rows ${rows[0]}-${rows[1]} of ${blocks.dataset} cannot be read`);
    return values;
  };
  const values = read(cube);
  const flags = errors && read(readStoredDataset(file, errors.dataset));
  // Offset of each pixel's first band in the piece, and the destination of the pixel.
  const places = new Int32Array(pixels.length);
  const targets = new Int32Array(pixels.length);
  for (const [i, pixel] of pixels.entries()) {
    const source = sources[pixel]!;
    const row = Math.floor(source / width) - rows[0];
    const column = (source % width) - columns[0];
    places[i] = bandAxis === 1 ? row * deep * across + column : (row * across + column) * deep;
    targets[i] = out(pixel);
  }
  const step = bandAxis === 1 ? across : 1;
  const hole = fill ?? NaN;
  const bits = errors?.bits ?? 0;
  for (const [b, band] of bands.entries()) {
    if (band < range[0] || band >= range[1]) continue;
    const array = arrays[b]!;
    const first = (band - range[0]) * step;
    for (let i = 0; i < places.length; i++) {
      const place = places[i]! + first;
      const value = values[place]!;
      const isHole =
        value === hole ||
        Number.isNaN(value) ||
        (missing !== undefined && isMissing(value, missing)) ||
        (flags !== undefined && (flags[place]! & bits) !== 0);
      array[targets[i]!] = isHole ? nodata : value;
    }
  }
}

/** Properties of a cube that each product stores in its own way. */
interface CubeLayout extends Pick<Hdf5CubeBlocks, 'dataset' | 'bandAxis' | 'lookup' | 'errors' | 'fill'> {
  crs: Crs;
  /** Georeferencing for the given width and height of the raster. */
  transform: (width: number, height: number) => Affine;
  nodata: number | undefined;
  /** Set if values are read as another type than the stored one. */
  dataType?: DataType;
}

/** A raster that a lookup table makes has no natural blocks; windows end at rows of this many pixels. */
const LOOKUP_BLOCK_PIXELS = 64;

/**
 * The header of a cube. Throws TW_RASTER_UNREADABLE, _CORRUPT, _UNSUPPORTED, and _NO_LAYER if the cube or one of its related
 * datasets is missing.
 */
export async function openHdf5Cube(path: string, layout: CubeLayout): Promise<RasterHeader> {
  const header = await withHdf5(path, (file) => headerOf(file, layout));
  return { ...header, fileBytes: (await stat(path)).size };
}

function headerOf(file: Hdf5File, layout: CubeLayout): Omit<RasterHeader, 'fileBytes'> {
  const { path } = file;
  const { dataset, bandAxis, lookup, errors, fill } = layout;
  const stored = readStoredDataset(file, dataset);
  const { shape, dataType, chunks } = stored;
  if (!isCube(shape))
    throw unsupported(path, `${dataset} is ${shape.join(' x ')}, and no cube of three dimensions`);
  const bands = shape[bandAxis];
  const grid = { height: shape[0], width: shape[3 - bandAxis]! };
  const { height, width } = lookup ? lookupSize(file, lookup) : grid;
  if (width > MAX_SIDE_PIXELS || height > MAX_SIDE_PIXELS || bands > MAX_BANDS)
    throw unsupported(path, `${dataset} has ${bands} bands of ${width} x ${height} pixels`);
  if (errors) requireShape(file, errors.dataset, shape, dataset);
  const block = lookup
    ? { width, height: LOOKUP_BLOCK_PIXELS }
    : { width: chunks?.[3 - bandAxis] ?? width, height: chunks?.[0] ?? 1 };
  const missing = missingNumbers(file, dataset, stored);
  const blocks: Hdf5CubeBlocks = {
    reader: 'hdf5-cube',
    ...block,
    dataset,
    bandAxis,
    shape,
    ...(fill !== undefined && { fill }),
    ...(missing && { missing }),
    ...(lookup && { lookup }),
    ...(errors && { errors }),
  };
  return {
    path,
    width,
    height,
    bands,
    blocks,
    dataType: layout.dataType ?? dataType,
    crs: layout.crs,
    transform: layout.transform(width, height),
    nodata: layout.nodata,
    bandTags: Array.from({ length: bands }, () => ({})),
    metadata: {},
  };
}

/** Missing data by the attributes of a cube. The nodata value of the raster is another number. */
function missingNumbers(
  file: Hdf5File,
  dataset: string,
  { types }: StoredDataset,
): MissingNumbers | undefined {
  const { nodata = NaN, missing } = missingData(file, dataset, types);
  if (Number.isNaN(nodata)) return missing;
  const { fills, min, max } = missing ?? { fills: [], min: -Infinity, max: Infinity };
  return { fills: [nodata, ...fills], min, max };
}

function isCube(shape: number[]): shape is [number, number, number] {
  return shape.length === 3;
}

function lookupSize(file: Hdf5File, { columns, rows }: NonNullable<Hdf5CubeBlocks['lookup']>) {
  const { shape } = readStoredDataset(file, columns);
  if (shape.length !== 2)
    throw unsupported(file.path, `${columns} is ${shape.join(' x ')}, and no table of rows and columns`);
  requireShape(file, rows, shape, columns);
  const [height, width] = shape as [number, number];
  return { width, height };
}

function requireShape(file: Hdf5File, layer: string, expected: number[], other: string): void {
  const { shape } = readStoredDataset(file, layer);
  if (shape.join() !== expected.join())
    throw corrupt(file.path, `${layer} is ${shape.join(' x ')}, but ${other} is ${expected.join(' x ')}`);
}
