import { createRegularGrid } from './regular-grid.js';

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
