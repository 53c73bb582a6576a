/** The positions of the pixels of an image in a cell. */

import { type Grid, type GridBounds, quadtile } from '../../grid/index.js';
import { firstIndex } from '../../utils/bisection.js';

/**
 * Positions of the centres of an image's columns and rows in a cell: 0 is its western or northern edge, 1 the eastern or southern edge.
 * Cells of both grids have sides along meridians and parallels, as web maps do, so columns and rows are independent.
 */
export interface Viewport {
  /** First column and row of the image that lie in the cell. */
  left: number;
  top: number;
  columns: Float64Array;
  rows: Float64Array;
  /** Approximate distance between columns and between rows. */
  columnStep: number;
  rowStep: number;
}

/** A tile of WebMercatorQuad: zoom, column from the west, row from the north. */
export interface MapTile {
  z: number;
  x: number;
  y: number;
}

export const MAX_ZOOM = 24;

/** Centres of the columns and rows of a map tile in the coordinates of a grid. */
export interface MapPixelCentres {
  xs: Float64Array;
  ys: Float64Array;
}

/** Side of a pixel of a map tile, metres of EPSG:3857. */
export const mapPixelSize = ({ z }: MapTile, size: number): number =>
  (quadtile.extent.east - quadtile.extent.west) / 2 ** z / size;

/** `buffer`: additional pixels on each side of the tile, a multiple of 0.5. */
export function mapPixelCentres(tile: MapTile, size: number, grid: Grid, buffer = 0): MapPixelCentres {
  const { west, north } = quadtile.extent;
  const pixel = mapPixelSize(tile, size);
  const length = size + 2 * buffer;
  const xs = Float64Array.from({ length }, (_, i) => west + (tile.x * size - buffer + i + 0.5) * pixel);
  const ys = Float64Array.from({ length }, (_, i) => north - (tile.y * size - buffer + i + 0.5) * pixel);
  if (grid.epsg === 3857) return { xs, ys };
  return {
    xs: xs.map((value) => quadtile.toLonLat(value, 0)[0]),
    ys: ys.map((value) => quadtile.toLonLat(0, value)[1]),
  };
}

/** The pixels of a map tile whose centres are in a cell; undefined if there are none. */
export function viewportOfCell(
  { xs, ys }: MapPixelCentres,
  { west, south, east, north }: GridBounds,
): Viewport | undefined {
  const left = firstIndex(xs.length, (i) => xs[i] >= west);
  const right = firstIndex(xs.length, (i) => xs[i] >= east);
  const top = firstIndex(ys.length, (i) => ys[i] < north);
  const bottom = firstIndex(ys.length, (i) => ys[i] < south);
  if (left >= right || top >= bottom) return undefined;
  return {
    left,
    top,
    columns: xs.subarray(left, right).map((x) => (x - west) / (east - west)),
    rows: ys.subarray(top, bottom).map((y) => (north - y) / (north - south)),
    columnStep: (xs[1] - xs[0]) / (east - west),
    rowStep: (ys[0] - ys[1]) / (north - south),
  };
}

/** A part of a cell, in shares of its sides from the western and northern edge. */
export interface CellPart {
  west: number;
  east: number;
  north: number;
  south: number;
}

export const FULL_CELL: CellPart = { west: 0, east: 1, north: 0, south: 1 };

/** The viewport of an image of an entire cell. */
export const fullCellViewport = (width: number, height: number): Viewport =>
  cellPartViewport(width, height, FULL_CELL);

/** The viewport of an image of a part of a cell. */
export function cellPartViewport(
  width: number,
  height: number,
  { west, east, north, south }: CellPart,
): Viewport {
  const columnStep = (east - west) / width;
  const rowStep = (south - north) / height;
  return {
    left: 0,
    top: 0,
    columnStep,
    rowStep,
    columns: Float64Array.from({ length: width }, (_, i) => west + (i + 0.5) * columnStep),
    rows: Float64Array.from({ length: height }, (_, i) => north + (i + 0.5) * rowStep),
  };
}
