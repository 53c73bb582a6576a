/** The interface of the grids, geohash (cells in EPSG:4326) and quadtile (cells in EPSG:3857), and the bounds of their cells. */

export type GridName = 'geohash' | 'quadtile';

/** A rectangle in a grid's own coordinates: degrees for geohash, metres for quadtile. West < east, south < north. */
export interface GridBounds {
  west: number;
  south: number;
  east: number;
  north: number;
}

/** Longitude and latitude bounds in degrees: west, south, east, north. If west > east, the box crosses the antimeridian. */
export type Bbox = [west: number, south: number, east: number, north: number];

export interface Grid {
  readonly name: GridName;
  /** The letter before the geocode in the ids of tiles and models. */
  readonly idPrefix: 'g' | 'q';
  readonly epsg: 4326 | 3857;
  readonly minPrecision: number;
  readonly maxPrecision: number;
  /** Extent of all cells together, in grid coordinates. */
  readonly extent: GridBounds;
  /**
   * The cell that contains a point, half-open: a point on a cell's western or southern edge belongs to it. The extent's
   * eastern and northern edges belong to the last cells. Throws TW_GEOCODE_OUTSIDE outside of the extent.
   */
  encode(x: number, y: number, precision: number): string;
  /** True if `geocode` names a cell of this grid (lower case only). */
  accepts(geocode: string): boolean;
  /** Bounds of a cell; the shared edges of neighbours, parents and children are the same numbers. Throws TW_GEOCODE_INVALID. */
  bounds(geocode: string): GridBounds;
  /** Size of one cell at a precision, in grid coordinates. */
  cellSize(precision: number): { width: number; height: number };
  /** The cells of the next precision that a cell consists of, in the order of their geocodes. */
  children(geocode: string): string[];
  /**
   * Cells that overlap `bounds` by more than an edge, row by row from north to south, west to east. Bounds
   * without width or height are covered by the cells that contain them.
   */
  cover(bounds: GridBounds, precision: number): string[];
  /** Grid coordinates of a longitude and latitude, and back. */
  fromLonLat(lon: number, lat: number): [x: number, y: number];
  toLonLat(x: number, y: number): [lon: number, lat: number];
  /**
   * The geocode as an integer that sorts like the string, left-aligned to the grid's longest geocode, so all
   * geocodes below a prefix are one range [key, key + span). A cell and its first child have the same key and differ
   * in precision.
   */
  key(geocode: string): { key: number; span: number };
  /** The geocode of a key at a precision: the inverse of `key`. */
  geocode(key: number, precision: number): string;
}

/** Bounds of a cell in degrees. Cells never cross the antimeridian. */
export function cellBbox(grid: Grid, geocode: string): Bbox {
  const { west, south, east, north } = grid.bounds(geocode);
  return [...grid.toLonLat(west, south), ...grid.toLonLat(east, north)];
}
