/** The positions of the pixels of an image in a cell, and the bounds, zoom levels and initial view of a collection on a map. */
import { type Bbox, cellBbox, type Grid, type GridBounds, gridByName, quadtile } from '../grid/index.js';
import type { CollectionRecord, TileRecord } from '../storage/index.js';
import { firstIndex } from '../utils/sorted.js';

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

/** The latitude at which web maps end, degrees. */
const MAX_LATITUDE = 85.0511;
/** Limit of cells in a map tile, each of which needs at least one block of a file. */
const MAX_CELLS = 256;
/** Size of the view for which the initial zoom is chosen. */
const VIEW_SIDE_PX = 512;
const MAP_TILE_SIDE_PX = 256;

const worldWidth = (): number => quadtile.extent.east - quadtile.extent.west;

interface View {
  bounds: Bbox;
  minZoom: number;
  /** The zoom of the finest pixels; larger zooms enlarge them. */
  maxZoom: number;
  /** Centre and zoom of the initial view: the entire extent if it fits, else one tile. */
  center: [lon: number, lat: number, zoom: number];
}

/** `reference`: the tile of the initial view if the extent `bbox` does not fit. */
export function mapView(
  collection: CollectionRecord,
  reference: TileRecord,
  bbox: Bbox,
  minZoom: number,
): View {
  // TileJSON forbids bounds that cross the antimeridian. The centre is computed from the extent, which may cross it.
  const isCrossing = bbox[0] > bbox[2];
  const bounds: Bbox = isCrossing ? [-180, bbox[1], 180, bbox[3]] : bbox;
  const unwrapped: Bbox = isCrossing ? [bbox[0], bbox[1], bbox[2] + 360, bbox[3]] : bbox;
  const finest = Math.max(
    zoomOfFinestPixels(reference),
    zoomOfNominalPixels(collection, (bounds[1] + bounds[3]) / 2),
  );
  const maxZoom = Math.max(minZoom, finest);
  const isTooLarge = zoomOfExtent(unwrapped) < minZoom;
  const shown = isTooLarge ? cellBbox(gridByName(reference.grid), reference.geocode) : unwrapped;
  const [west, south, east, north] = shown;
  const zoom = Math.min(maxZoom, Math.max(minZoom, zoomOfExtent(shown)));
  const middle = (west + east) / 2;
  const longitude = middle > 180 ? middle - 360 : middle;
  return { bounds, minZoom, maxZoom, center: [longitude, (south + north) / 2, zoom] };
}

/**
 * The smallest zoom at which no map tile shows more than 256 cells. Cells are counted at the equator, where a map tile has the most.
 * `share`: the side of the shown area as a multiple of the side of a map tile.
 */
export function smallestZoom({ grid: name, precision }: CollectionRecord, share: number): number {
  const grid: Grid = gridByName(name);
  const { width, height } = grid.cellSize(precision);
  const across = (grid.extent.east - grid.extent.west) / width;
  // A map tile at the equator is as high as it is wide, and the latitudes of a grid in degrees span half of its longitudes.
  const down = grid.epsg === 3857 ? across : (2 * (grid.extent.north - grid.extent.south)) / height;
  for (let zoom = 0; ; zoom++) if (across * down * (share / 2 ** zoom) ** 2 <= MAX_CELLS) return zoom;
}

/** The largest zoom at which an extent fits into a view. */
function zoomOfExtent([west, south, east, north]: Bbox): number {
  const [left, bottom] = quadtile.fromLonLat(west, Math.max(south, -MAX_LATITUDE));
  const [right, top] = quadtile.fromLonLat(east, Math.min(north, MAX_LATITUDE));
  const side = Math.max(right - left, top - bottom);
  return Math.max(0, Math.floor(Math.log2((worldWidth() / side) * (VIEW_SIDE_PX / MAP_TILE_SIDE_PX))));
}

/** The zoom at which the pixels of a map are as fine as the finest pixels of a tile. */
function zoomOfFinestPixels({ grid: name, geocode, groups }: TileRecord): number {
  const grid = gridByName(name);
  const { west, south, east, north } = grid.bounds(geocode);
  const toMap = (x: number, y: number) => quadtile.fromLonLat(...grid.toLonLat(x, y))[0];
  const metres = toMap(east, south) - toMap(west, north);
  return zoomOfPixel(metres / Math.max(...groups.map((group) => group.width)));
}

/** The zoom for the finest nominal pixels of a collection; 0 if these are unknown. */
function zoomOfNominalPixels({ pixelSizes = [] }: CollectionRecord, latitude: number): number {
  const ground = Math.min(...pixelSizes.flat().map(({ x, y }) => Math.max(x, y)));
  return zoomOfPixel(ground / Math.cos((Math.min(Math.abs(latitude), MAX_LATITUDE) * Math.PI) / 180));
}

/** `metres`: size of a pixel in metres of the map, which are shorter on the ground. */
function zoomOfPixel(metres: number): number {
  return Math.min(
    MAX_ZOOM,
    Math.max(0, Math.ceil(Math.log2(worldWidth() / MAP_TILE_SIDE_PX / metres) - 0.1)),
  );
}
