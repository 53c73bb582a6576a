import { latticeGrid } from './regular-grid.js';

/** Half the length of the equator on the sphere of EPSG:3857, radius 6378137 m. */
const HALF = 20037508.342789244;
const RADIUS = HALF / Math.PI;
const DEGREES = 180 / Math.PI;

/**
 * Quadkeys ("Bing Maps Tile System", Microsoft) in EPSG:3857, precision = zoom 1-24: digit = 2 * southern half + eastern
 * half, so tile 0 is in the north-west. A cell holds its western and southern edges, as in every grid here; the map's
 * northern and eastern edges belong to the first row and the last column. Latitudes beyond 85.0511 have no cell.
 */
export const quadtile = latticeGrid({
  name: 'quadtile',
  letter: 'q',
  epsg: 3857,
  maxPrecision: 24,
  extent: { west: -HALF, south: -HALF, east: HALF, north: HALF },
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
  fromLonLat: (lon, lat) => [(lon / 180) * HALF, RADIUS * Math.asinh(Math.tan(lat / DEGREES))],
  toLonLat: (x, y) => [(x / HALF) * 180, Math.atan(Math.sinh(y / RADIUS)) * DEGREES],
});
