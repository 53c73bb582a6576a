/** Lengths on the ground. */
import type { Grid } from './grid.js';

/** WGS84: semi-major axis in metres, and the square of the eccentricity from the flattening 1/298.257223563. */
const a = 6378137;
const f = 1 / 298.257223563;
const e2 = f * (2 - f);
const radians = Math.PI / 180;

/**
 * Metres of one degree of longitude and of latitude at a latitude on the WGS84 ellipsoid, from its radii of curvature
 * N = a / sqrt(1 - e2 sin2) across the meridian and M = a (1 - e2) / (1 - e2 sin2)^(3/2) along it (Snyder, "Map
 * Projections: A Working Manual", USGS Professional Paper 1395, 1987, equations 4-18 to 4-21).
 */
export function metresPerDegree(lat: number): { lon: number; lat: number } {
  const w = 1 - e2 * Math.sin(lat * radians) ** 2;
  const n = a / Math.sqrt(w);
  const m = (a * (1 - e2)) / w ** 1.5;
  return { lon: n * Math.cos(lat * radians) * radians, lat: m * radians };
}

/**
 * Width and height of a cell in ground metres at its centre latitude. Geohash: WGS84 arcs of the parallel and of the
 * meridian. Quadtile: metres of the projection times cos(latitude), the usual meaning of ground resolution on that map.
 */
export function groundSize(grid: Grid, geocode: string): { width: number; height: number } {
  const { west, south, east, north } = grid.bounds(geocode);
  const [, lat] = grid.toLonLat((west + east) / 2, (south + north) / 2);
  const metres =
    grid.epsg === 4326
      ? metresPerDegree(lat)
      : { lon: Math.cos(lat * radians), lat: Math.cos(lat * radians) };
  return { width: (east - west) * metres.lon, height: (north - south) * metres.lat };
}
