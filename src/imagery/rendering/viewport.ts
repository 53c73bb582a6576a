/** Which part of a cell a picture shows, and where the pixels of the picture lie in it. */
import { type Grid, type GridBounds, quadtile } from '../../grid/index.js';

/**
 * Positions of the centres of a picture's columns and rows in a cell: 0 is its western or northern edge, 1 the eastern or
 * southern. Both grids have cells with sides along meridians and parallels, as web maps do, so columns and rows are apart.
 */
export interface Viewport {
  /** Where the view begins in the picture. */
  left: number;
  top: number;
  columns: Float64Array;
  rows: Float64Array;
  /** From one column or row to the next, roughly. */
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

/** `buffer`: pixels beyond each side of the tile, in steps of a half. */
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

/** The part of a map tile that a cell fills: pixels whose centres are in it. Undefined for none. */
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

/** A part of a cell: shares of its sides, 0 at the western and northern edge. */
export interface CellPart {
  west: number;
  east: number;
  north: number;
  south: number;
}

export const FULL_CELL: CellPart = { west: 0, east: 1, north: 0, south: 1 };

/** A whole cell as a picture of a size. */
export const fullCellViewport = (width: number, height: number): Viewport =>
  cellPartViewport(width, height, FULL_CELL);

/** A part of a cell as a picture of a size. */
export function cellPartViewport(
  width: number,
  height: number,
  { west, east, north, south }: CellPart,
): Viewport {
  const [columnStep, rowStep] = [(east - west) / width, (south - north) / height];
  return {
    ...{ left: 0, top: 0, columnStep, rowStep },
    columns: Float64Array.from({ length: width }, (_, i) => west + (i + 0.5) * columnStep),
    rows: Float64Array.from({ length: height }, (_, i) => north + (i + 0.5) * rowStep),
  };
}

/** The first of `count` indexes that holds; those after it hold too. */
function firstIndex(count: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
