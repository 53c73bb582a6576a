/**
 * Resamples source pixels onto the pixel grid of a destination, by inverse mapping over a control grid. A mask or an alpha band may mark
 * the valid pixels of the source.
 */

import { isDeepStrictEqual } from 'node:util';
import { invalidImage, windowOutside } from '../errors.js';
import {
  allocatePixels,
  dataTypeOf,
  fillValueFor,
  isFloat,
  minValue,
  nodataAsType,
  nodataReplacementFor,
} from '../pixels/data-types.js';
import { loadPerDataType, typedKernels } from '../pixels/masks.js';
import type { DataType, PixelArray, Resampling, Window } from '../raster.js';
import { bilinearWasm } from './bilinear-wasm.js';
import { type ControlGrid, lerp, OFF_MAP } from './control-grid.js';
import { cloneForWarp, type GridSquares, prepareSquares } from './squares.js';

type WarpKernels = typeof import('./nearest.js') & typeof import('./bilinear.js');

/** The resampling kernels, one copy for each data type. */
const warpKernels = await loadPerDataType<WarpKernels>(async (dataType) => ({
  ...(await import(new URL(`./nearest.js?${dataType}`, import.meta.url).href)),
  ...(await import(new URL(`./bilinear.js?${dataType}`, import.meta.url).href)),
}));

/** A window of a scene whose pixels are in memory. */
export interface WarpSource {
  pixels: PixelArray;
  /** The part of the scene that the pixels cover. */
  window: Window;
  /** Size of the scene. There is no data beyond it. */
  rasterWidth: number;
  rasterHeight: number;
  nodata: number | undefined;
}

/**
 * Warps one band into `out` (grid.width x grid.height, of the source's type) and returns the number of pixels with data.
 *
 * A pixel holds data if the source pixel that contains its centre does. Otherwise `out` becomes the nodata value (without one:
 * NaN for floats, else 0) and `valid` becomes 0. Pixels with data do not change `valid`, so fill it with 1 before the first
 * band; after the last band it marks the pixels that hold data in every band.
 * If `simd` is false, only the plain kernel is used, which is slower and differs by rounding.
 * Throws TW_RASTER_WINDOW_OUTSIDE if the window lacks pixels of the scene that are needed.
 */
export function warp(
  resampling: Resampling,
  source: WarpSource,
  grid: ControlGrid,
  out: PixelArray,
  valid: Uint8Array,
  simd = true,
): number {
  const { pixels, window, nodata } = source;
  const dataType = dataTypeOf(pixels);
  const size = grid.width * grid.height;
  if (dataTypeOf(out) !== dataType || out.length !== size || valid.length !== size) {
    throw invalidImage(
      `${grid.width} x ${grid.height} pixels of ${dataType} do not fit ${out.length} of ${dataTypeOf(out)}`,
    );
  }
  if (pixels.length < window.width * window.height) {
    throw invalidImage(`a window of ${window.width} x ${window.height} from ${pixels.length} pixels`);
  }
  const geometry = warpGeometry(grid, window);
  checkWindow(source, geometry.extent, resampling === 'bilinear' ? 0.5 : 0);
  const typedNodata = nodataAsType(dataType, nodata) ?? NaN;
  const fillValue = fillValueFor(dataType, nodata);
  const kernelSource = { pixels, ...window, nodata: typedNodata };
  if (resampling === 'nearest')
    return warpKernels[dataType].nearest(kernelSource, grid, out, valid, fillValue);
  const nodataReplacement = nodataReplacementFor(dataType, typedNodata);
  geometry.squares ??= prepareSquares(grid, window);
  const work = cloneForWarp(geometry.squares);
  if (simd) bilinearWasm(kernelSource, grid, work, out, nodataReplacement);
  const round = !isFloat(dataType);
  return warpKernels[dataType].bilinear(
    kernelSource,
    grid,
    work,
    out,
    valid,
    fillValue,
    round,
    nodataReplacement,
  );
}

/** Values that depend only on the grid and the window. */
interface WarpGeometry {
  grid: ControlGrid;
  window: Window;
  extent: SourceExtent;
  /** Only for bilinear interpolation. */
  squares?: GridSquares;
}

/** Cache of the last geometry: consecutive bands of a group share the same grid and window. */
let cachedGeometry: WarpGeometry | undefined;

function warpGeometry(grid: ControlGrid, window: Window): WarpGeometry {
  if (cachedGeometry?.grid !== grid || !isDeepStrictEqual(cachedGeometry.window, window))
    cachedGeometry = { grid, window: { ...window }, extent: sourceExtent(grid) };
  return cachedGeometry;
}

/** Checks that the window has all needed pixels of the scene. `margin`: distance of the neighbours that are used, in pixels. */
function checkWindow(
  { window, rasterWidth, rasterHeight }: WarpSource,
  { left, top, right, bottom }: SourceExtent,
  margin: number,
): void {
  const endColumn = window.column + window.width;
  const endRow = window.row + window.height;
  const isInScene =
    right + margin > 0 && left - margin < rasterWidth && bottom + margin > 0 && top - margin < rasterHeight;
  const missing =
    isInScene &&
    ((window.column > 0 && left - margin < window.column) ||
      (window.row > 0 && top - margin < window.row) ||
      (endColumn < rasterWidth && right + margin > endColumn) ||
      (endRow < rasterHeight && bottom + margin > endRow));
  if (missing) {
    const { column, row, width, height } = window;
    throw windowOutside(
      `the window of ${width} x ${height} pixels at ${column}, ${row} of a scene`,
      `all pixels from ${left}, ${top} to ${right}, ${bottom}`,
    );
  }
}

interface SourceExtent {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/**
 * The part of the source that the centres of a grid's pixels cover, in source pixels. Empty (left > right) if there is none.
 */
export function sourceExtent({ width, height, step, columns, rows, x, y }: ControlGrid): SourceExtent {
  const extent = {
    left: Infinity,
    top: Infinity,
    right: -Infinity,
    bottom: -Infinity,
  };
  // Positions are bilinear between grid points, so the extremes are at points, or where the last pixels cut the last squares.
  for (let j = 0; j < rows; j++) {
    const row = Math.min(j, (height - 1) / step);
    const above = Math.floor(row);
    for (let i = 0; i < columns; i++) {
      const column = Math.min(i, (width - 1) / step);
      const before = Math.floor(column);
      const node = above * columns + before;
      const u = interpolate(x, node, columns, column - before, row - above);
      const v = interpolate(y, node, columns, column - before, row - above);
      if (Number.isNaN(u) || Number.isNaN(v) || u === OFF_MAP) continue;
      extent.left = Math.min(extent.left, u);
      extent.right = Math.max(extent.right, u);
      extent.top = Math.min(extent.top, v);
      extent.bottom = Math.max(extent.bottom, v);
    }
  }
  return extent;
}

/** The position in the square that starts at a grid point. Ignores points that have no weight, because they may be NaN. */
function interpolate(
  nodes: Float64Array,
  node: number,
  columns: number,
  across: number,
  down: number,
): number {
  const upper = lerp(nodes[node], nodes[node + 1], across);
  return down === 0
    ? upper
    : lerp(upper, lerp(nodes[node + columns], nodes[node + columns + 1], across), down);
}

/** A type that has a number for missing data that no pixel of the other type has. */
const WIDER_TYPES: Record<DataType, DataType> = {
  uint8: 'int16',
  int8: 'int16',
  uint16: 'int32',
  int16: 'int32',
  uint32: 'float64',
  int32: 'float64',
  float32: 'float32',
  float64: 'float64',
};

/** Pixels beyond the exact ones: a bilinear neighbour, and one for rounding. */
const NEIGHBOUR_MARGIN = 2;

/**
 * `warp` for a source with a validity band: an array of the window's size whose zeros mark pixels without data, in addition to
 * nodata. These pixels do not contribute to bilinear means.
 */
export function warpMasked(
  resampling: Resampling,
  source: WarpSource,
  validity: PixelArray,
  grid: ControlGrid,
  out: PixelArray,
  valid: Uint8Array,
): number {
  const dataType = dataTypeOf(source.pixels);
  const nodata = nodataAsType(dataType, source.nodata);
  const type = nodata === undefined ? WIDER_TYPES[dataType] : dataType;
  const hole = nodata ?? (type.startsWith('float') ? NaN : minValue(type));
  const window = requiredWindow(source.window, grid);
  const start = (window.row - source.window.row) * source.window.width + window.column - source.window.column;
  const part = allocatePixels(type, window.width * window.height);
  typedKernels[dataType].applyValidity(
    source.pixels,
    validity,
    start,
    source.window.width,
    window.width,
    window.height,
    part,
    hole,
  );
  const input = { ...source, pixels: part, window, nodata: hole };
  if (type === dataType) return warp(resampling, input, grid, out, valid);
  const wide = allocatePixels(type, out.length);
  const count = warp(resampling, input, grid, wide, valid);
  typedKernels[dataType].roundToType(wide, hole, out, fillValueFor(dataType, undefined));
  return count;
}

/** The part of a window that a grid reads, at least one pixel. */
function requiredWindow(window: Window, grid: ControlGrid): Window {
  const { left, top, right, bottom } = sourceExtent(grid);
  const [fromX, toX] = clip(left, right, window.column, window.width);
  const [fromY, toY] = clip(top, bottom, window.row, window.height);
  return { column: fromX, row: fromY, width: toX - fromX, height: toY - fromY };
}

/** Integer range around [from, to] with a margin, clipped to `length` pixels from `start` on; at least one pixel. */
function clip(from: number, to: number, start: number, length: number): [number, number] {
  const end = start + length;
  const low = Math.max(start, Math.min(end - 1, Math.floor(from) - NEIGHBOUR_MARGIN));
  return [low, Math.max(low + 1, Math.min(end, Math.ceil(to) + NEIGHBOUR_MARGIN))];
}
