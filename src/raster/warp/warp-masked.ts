/** Warps sources whose valid pixels are marked by a mask or an alpha band. */

import {
  allocatePixels,
  dataTypeOf,
  fillValueFor,
  minValue,
  nodataAsType,
  typedKernels,
} from '../pixels/index.js';
import type { DataType, PixelArray, Resampling, Window } from '../raster-types.js';
import { sourceExtent, type WarpSource, warp } from './warp.js';
import type { ControlGrid } from './warp-control-grid.js';

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
