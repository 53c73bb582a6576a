/** Grids whose cells of one precision form a lattice of equal rectangles, numbered by column and row. */

import { geocodeInvalid, geocodeOutside, geocodePrecision, geocodeTooMany } from './errors.js';
import type { Grid, GridBounds } from './grid.js';
import { cellAt, cellsBetween, edge, type GridAxis } from './grid-axis.js';

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

const minPrecision = 1;

/** Maximum number of listed cells. More indicate a wrong area or precision. */
const MAX_COVER = 4_000_000;

export function createRegularGrid(lattice: RegularGridDefinition): Grid {
  const { name, alphabet, extent, maxPrecision, fromLonLat, toLonLat } = lattice;
  const base = alphabet.length;
  const pattern = new RegExp(`^[${alphabet}]{${minPrecision},${maxPrecision}}$`);

  const span = (precision: number) => base ** (maxPrecision - precision);
  const axes = (precision: number): { x: GridAxis; y: GridAxis } => ({
    x: { from: extent.west, to: extent.east, count: lattice.columns(precision) },
    y: { from: extent.south, to: extent.north, count: lattice.rows(precision) },
  });

  function checkPrecision(precision: number): void {
    if (!Number.isInteger(precision) || precision < minPrecision || precision > maxPrecision) {
      throw geocodePrecision(name, precision, minPrecision, maxPrecision);
    }
  }

  function checkGeocode(geocode: string): void {
    if (!pattern.test(geocode)) throw geocodeInvalid(name, geocode, alphabet, minPrecision, maxPrecision);
  }

  return {
    name,
    idPrefix: lattice.idPrefix,
    epsg: lattice.epsg,
    minPrecision,
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
