import ngeohash from 'ngeohash';
import { createRegularGrid } from './regular-grid.js';

const EXTENT = { west: -180, south: -90, east: 180, north: 90 };

/** A character has five bits, beginning with longitude: if 5p is odd, longitude has one bit more. */
const columns = (precision: number) => 2 ** Math.ceil((5 * precision) / 2);
const rows = (precision: number) => 2 ** Math.floor((5 * precision) / 2);

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
  extent: EXTENT,
  alphabet: '0123456789bcdefghjkmnpqrstuvwxyz',
  columns,
  rows,
  geocodeOf: ({ column, row }, precision) =>
    ngeohash.encode(
      ((row + 0.5) / rows(precision)) * 180 - 90,
      ((column + 0.5) / columns(precision)) * 360 - 180,
      precision,
    ),
  cellOf(geocode) {
    const [south, west] = ngeohash.decode_bbox(geocode);
    return {
      column: ((west + 180) / 360) * columns(geocode.length),
      row: ((south + 90) / 180) * rows(geocode.length),
    };
  },
  fromLonLat: (lon, lat) => [lon, lat],
  toLonLat: (x, y) => [x, y],
});
