/** Grids whose cells of one precision form a lattice of equal rectangles, numbered by column and row: geohash and quadtile. */

import ngeohash from 'ngeohash';
import { geocodeInvalid, geocodeOutside, geocodePrecision, geocodeTooMany, gridUnknown } from './errors.js';
import type { Grid, GridBounds } from './grid.js';

/**
 * One axis divided into equal cells. An edge is always computed by the same expression, so neighbouring cells share it bit
 * for bit. The same holds for cells of other counts that differ by a power of two (scaling by two is exact).
 */
export interface GridAxis {
  from: number;
  to: number;
  /** A power of two. */
  count: number;
}

/** The lower edge of cell `index`; the upper edge of the cell before it. */
export function edge(axis: GridAxis, index: number): number {
  return axis.from + index * ((axis.to - axis.from) / axis.count);
}

/**
 * Index of the cell that contains a coordinate of the axis: lower edge <= value < upper edge, and the last cell also contains
 * the end of the axis. The quotient is only a first guess, because it is rounded; the edges decide.
 */
export function cellAt(axis: GridAxis, value: number): number {
  const guess = Math.floor(((value - axis.from) / (axis.to - axis.from)) * axis.count);
  let index = Math.min(Math.max(guess, 0), axis.count - 1);
  while (index > 0 && value < edge(axis, index)) index--;
  while (index < axis.count - 1 && value >= edge(axis, index + 1)) index++;
  return index;
}

/** First and last cell that overlap [low, high] by more than an edge; undefined if the interval is outside of the axis. */
export function cellsBetween(
  axis: GridAxis,
  low: number,
  high: number,
): [first: number, last: number] | undefined {
  const start = Math.max(low, axis.from);
  const end = Math.min(high, axis.to);
  if (!(start <= end) || (start === end && low < high)) return undefined;
  const first = cellAt(axis, start);
  const last = cellAt(axis, end);
  return [first, last > first && edge(axis, last) === end ? last - 1 : last];
}

/** A cell by number: column 0 in the west, row 0 in the south. */
interface CellIndex {
  column: number;
  row: number;
}

/** The properties in which lattice grids differ. */
interface RegularGridDefinition
  extends Pick<Grid, 'name' | 'idPrefix' | 'epsg' | 'maxPrecision' | 'extent' | 'fromLonLat' | 'toLonLat'> {
  /** The characters of a geocode in ascending order. */
  alphabet: string;
  /** Powers of two. */
  columns(precision: number): number;
  rows(precision: number): number;
  geocodeOf(cell: CellIndex, precision: number): string;
  cellOf(geocode: string): CellIndex;
}

const MIN_PRECISION = 1;

/** Maximum number of listed cells. More indicate a wrong area or precision. */
const MAX_COVER = 4_000_000;

function createRegularGrid(lattice: RegularGridDefinition): Grid {
  const { name, alphabet, extent, maxPrecision, fromLonLat, toLonLat } = lattice;
  const base = alphabet.length;
  const pattern = new RegExp(`^[${alphabet}]{${MIN_PRECISION},${maxPrecision}}$`);

  const span = (precision: number) => base ** (maxPrecision - precision);
  const axes = (precision: number): { x: GridAxis; y: GridAxis } => ({
    x: { from: extent.west, to: extent.east, count: lattice.columns(precision) },
    y: { from: extent.south, to: extent.north, count: lattice.rows(precision) },
  });

  function checkPrecision(precision: number): void {
    if (!Number.isInteger(precision) || precision < MIN_PRECISION || precision > maxPrecision) {
      throw geocodePrecision(name, precision, MIN_PRECISION, maxPrecision);
    }
  }

  function checkGeocode(geocode: string): void {
    if (!pattern.test(geocode)) throw geocodeInvalid(name, geocode, alphabet, MIN_PRECISION, maxPrecision);
  }

  return {
    name,
    idPrefix: lattice.idPrefix,
    epsg: lattice.epsg,
    minPrecision: MIN_PRECISION,
    maxPrecision,
    extent,
    fromLonLat,
    toLonLat,

    accepts: (geocode) => pattern.test(geocode),

    encode(x, y, precision) {
      checkPrecision(precision);
      const inside = x >= extent.west && x <= extent.east && y >= extent.south && y <= extent.north;
      if (!inside) throw geocodeOutside(name, x, y);
      const axis = axes(precision);
      return lattice.geocodeOf({ column: cellAt(axis.x, x), row: cellAt(axis.y, y) }, precision);
    },

    bounds(geocode) {
      checkGeocode(geocode);
      const { column, row } = lattice.cellOf(geocode);
      const { x, y } = axes(geocode.length);
      return {
        west: edge(x, column),
        south: edge(y, row),
        east: edge(x, column + 1),
        north: edge(y, row + 1),
      };
    },

    cellSize(precision) {
      checkPrecision(precision);
      return {
        width: (extent.east - extent.west) / lattice.columns(precision),
        height: (extent.north - extent.south) / lattice.rows(precision),
      };
    },

    children(geocode) {
      checkGeocode(geocode);
      checkPrecision(geocode.length + 1);
      return Array.from(alphabet, (digit) => geocode + digit);
    },

    cover(bounds: GridBounds, precision) {
      checkPrecision(precision);
      const { x, y } = axes(precision);
      const columns = cellsBetween(x, bounds.west, bounds.east);
      const rows = cellsBetween(y, bounds.south, bounds.north);
      if (!columns || !rows) return [];
      const cells = (columns[1] - columns[0] + 1) * (rows[1] - rows[0] + 1);
      if (cells > MAX_COVER) throw geocodeTooMany(name, cells, precision, MAX_COVER);
      const geocodes: string[] = [];
      for (let row = rows[1]; row >= rows[0]; row--) {
        for (let column = columns[0]; column <= columns[1]; column++) {
          geocodes.push(lattice.geocodeOf({ column, row }, precision));
        }
      }
      return geocodes;
    },

    key(geocode) {
      checkGeocode(geocode);
      let value = 0;
      for (const digit of geocode) value = value * base + alphabet.indexOf(digit);
      const width = span(geocode.length);
      return { key: value * width, span: width };
    },

    geocode(key, precision) {
      checkPrecision(precision);
      let rest = Math.floor(key / span(precision));
      let text = '';
      for (let i = 0; i < precision; i++) {
        text = alphabet[rest % base] + text;
        rest = Math.floor(rest / base);
      }
      return text;
    },
  };
}

const GEOHASH_EXTENT = { west: -180, south: -90, east: 180, north: 90 };

/** A character has five bits, beginning with longitude: if 5p is odd, longitude has one bit more. */
const geohashColumns = (precision: number) => 2 ** Math.ceil((5 * precision) / 2);
const geohashRows = (precision: number) => 2 ** Math.floor((5 * precision) / 2);

/**
 * Geohash cells in EPSG:4326, precision 1-9. All cell edges are exact in doubles: multiples of 45 degrees divided by a
 * power of two. The package's encoder assigns a point on an edge to the cell west or south of it. Here the cell is
 * determined first, half-open as in every grid, and the package encodes its centre.
 */
export const geohash = createRegularGrid({
  name: 'geohash',
  idPrefix: 'g',
  epsg: 4326,
  maxPrecision: 9,
  extent: GEOHASH_EXTENT,
  alphabet: '0123456789bcdefghjkmnpqrstuvwxyz',
  columns: geohashColumns,
  rows: geohashRows,
  geocodeOf: ({ column, row }, precision) =>
    ngeohash.encode(
      ((row + 0.5) / geohashRows(precision)) * 180 - 90,
      ((column + 0.5) / geohashColumns(precision)) * 360 - 180,
      precision,
    ),
  cellOf(geocode) {
    const [south, west] = ngeohash.decode_bbox(geocode);
    return {
      column: ((west + 180) / 360) * geohashColumns(geocode.length),
      row: ((south + 90) / 180) * geohashRows(geocode.length),
    };
  },
  fromLonLat: (lon, lat) => [lon, lat],
  toLonLat: (x, y) => [x, y],
});

/** Half the length of the equator on the sphere of EPSG:3857, radius 6378137 m. */
const HALF_EXTENT_M = 20037508.342789244;
const RADIUS_M = HALF_EXTENT_M / Math.PI;
const DEGREES_PER_RADIAN = 180 / Math.PI;

/**
 * Quadkeys ("Bing Maps Tile System", Microsoft) in EPSG:3857, precision = zoom 1-24: digit = 2 * southern half + eastern
 * half, so tile 0 is in the north-west. A cell contains its western and southern edges, as in every grid here; the map's
 * northern and eastern edges belong to the first row and the last column. Latitudes beyond 85.0511 have no cell.
 */
export const quadtile = createRegularGrid({
  name: 'quadtile',
  idPrefix: 'q',
  epsg: 3857,
  maxPrecision: 24,
  extent: { west: -HALF_EXTENT_M, south: -HALF_EXTENT_M, east: HALF_EXTENT_M, north: HALF_EXTENT_M },
  alphabet: '0123',
  columns: (precision) => 2 ** precision,
  rows: (precision) => 2 ** precision,
  geocodeOf({ column, row }, precision) {
    const fromNorth = 2 ** precision - 1 - row;
    let text = '';
    for (let bit = precision - 1; bit >= 0; bit--) {
      text += ((fromNorth >> bit) & 1) * 2 + ((column >> bit) & 1);
    }
    return text;
  },
  cellOf(geocode) {
    let column = 0;
    let fromNorth = 0;
    for (const digit of geocode) {
      column = column * 2 + (Number(digit) & 1);
      fromNorth = fromNorth * 2 + (Number(digit) >> 1);
    }
    return { column, row: 2 ** geocode.length - 1 - fromNorth };
  },
  fromLonLat: (lon, lat) => [
    (lon / 180) * HALF_EXTENT_M,
    RADIUS_M * Math.asinh(Math.tan(lat / DEGREES_PER_RADIAN)),
  ],
  toLonLat: (x, y) => [(x / HALF_EXTENT_M) * 180, Math.atan(Math.sinh(y / RADIUS_M)) * DEGREES_PER_RADIAN],
});

/** All grids. */
export const grids: readonly Grid[] = [geohash, quadtile];

/** The grid with this name. Throws TW_GEOCODE_GRID. */
export function gridByName(name: string): Grid {
  const grid = grids.find((candidate) => candidate.name === name);
  if (!grid) throw gridUnknown(name);
  return grid;
}
