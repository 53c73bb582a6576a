/** Brings source pixels onto the pixel grid of a destination, by inverse mapping over a control grid. */
import { bilinearSimd } from './bilinear-simd.js';
import type { ControlGrid } from './control-grid.js';
import { invalidImage, windowOutside } from './errors.js';
import { kernels } from './kernels-by-type.js';
import { dataTypeOf, emptyPixel, isFloat, lowestPixel, storedNodata } from './pixels.js';
import { squaresOf } from './squares.js';
import type { PixelArray, Resampling, Window } from './types.js';

/** A window of a scene, of which all pixels are in memory. */
export interface WarpSource {
  pixels: PixelArray;
  /** Which part of the scene the pixels are. */
  window: Window;
  /** Size of the whole scene: what lies beyond it holds no data. */
  sceneWidth: number;
  sceneHeight: number;
  nodata: number | undefined;
}

/**
 * Warps one band into `out` (grid.width x grid.height, of the source's type) and returns the number of pixels that hold data.
 *
 * A pixel holds data where the source pixel that its centre falls into does. Elsewhere `out` becomes the nodata value (where the
 * source has none: NaN for floats, else 0) and `valid` becomes 0; where there is data, `valid` is left as it is. So fill it
 * with 1 before the first band, and after the last it says which pixels hold data in every band.
 * `simd` false takes the plain kernel, which gives the same and is slower.
 * Throws TW_RASTER_WINDOW_OUTSIDE where the window lacks pixels of the scene that are needed.
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
  const extent = sourceExtent(grid);
  checkWindow(source, extent, resampling === 'bilinear' ? 0.5 : 0);
  const hole = storedNodata(dataType, nodata) ?? NaN;
  const empty = emptyPixel(dataType, nodata);
  const kernelSource = { pixels, ...window, hole };
  if (resampling === 'nearest') return kernels[dataType].nearest(kernelSource, grid, out, valid, empty);
  const notHole = hole === lowestPixel(dataType) ? hole + 1 : hole - 1;
  const squares = squaresOf(grid, window);
  if (simd) bilinearSimd(kernelSource, grid, squares, out, notHole);
  const round = !isFloat(dataType);
  return kernels[dataType].bilinear(kernelSource, grid, squares, out, valid, empty, round, notHole);
}

/** Checks that no pixel needed lies in the scene but not in the window. `margin`: how far neighbours are used, in pixels. */
function checkWindow(
  { window, sceneWidth, sceneHeight }: WarpSource,
  { left, top, right, bottom }: SourceExtent,
  margin: number,
): void {
  const missing =
    (window.column > 0 && left - margin < window.column && right + margin > 0) ||
    (window.row > 0 && top - margin < window.row && bottom + margin > 0) ||
    (window.column + window.width < sceneWidth &&
      right + margin > window.column + window.width &&
      left - margin < sceneWidth) ||
    (window.row + window.height < sceneHeight &&
      bottom + margin > window.row + window.height &&
      top - margin < sceneHeight);
  if (missing) {
    const { column, row, width, height } = window;
    throw windowOutside(
      `the window of ${width} x ${height} pixels at ${column}, ${row} of a scene`,
      `all pixels from ${left}, ${top} to ${right}, ${bottom}`,
    );
  }
}

export interface SourceExtent {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** The part of the source that the centres of a grid's pixels cover, in source pixels. Empty (left > right) if none. */
export function sourceExtent({ width, height, step, columns, rows, x, y }: ControlGrid): SourceExtent {
  const extent = {
    left: Infinity,
    top: Infinity,
    right: -Infinity,
    bottom: -Infinity,
  };
  // Positions are bilinear between nodes, so the extremes are at nodes, or where the last pixels cut the last squares.
  const at = (values: Float64Array, i: number, j: number) => {
    const column = Math.min(i, (width - 1) / step);
    const row = Math.min(j, (height - 1) / step);
    const node = Math.min(Math.floor(row), rows - 2) * columns + Math.min(Math.floor(column), columns - 2);
    const across = (start: number) => between(values[start], values[start + 1], column % 1);
    return row % 1 === 0 ? across(node) : between(across(node), across(node + columns), row % 1);
  };
  for (let j = 0; j < rows; j++) {
    for (let i = 0; i < columns; i++) {
      const u = at(x, i, j);
      const v = at(y, i, j);
      if (Number.isNaN(u) || Number.isNaN(v)) continue;
      extent.left = Math.min(extent.left, u);
      extent.right = Math.max(extent.right, u);
      extent.top = Math.min(extent.top, v);
      extent.bottom = Math.max(extent.bottom, v);
    }
  }
  return extent;
}

/** Without touching the second value where it has no part: it may be NaN. */
function between(a: number, b: number, part: number): number {
  return part === 0 ? a : a + (b - a) * part;
}
