/** Lengths on the ground. */
import type { Grid } from './grid.js';

/** WGS84: semi-major axis in metres, and the square of the eccentricity from the flattening 1/298.257223563. */
const SEMI_MAJOR_AXIS_M = 6378137;
const FLATTENING = 1 / 298.257223563;
const ECCENTRICITY_SQUARED = FLATTENING * (2 - FLATTENING);
const RADIANS = Math.PI / 180;

/**
 * Metres of one degree of longitude and of latitude at a latitude on the WGS84 ellipsoid, from its radii of curvature
 * N = a / sqrt(1 - e2 sin2) across the meridian and M = a (1 - e2) / (1 - e2 sin2)^(3/2) along it (Snyder, "Map
 * Projections: A Working Manual", USGS Professional Paper 1395, 1987, equations 4-18 to 4-21).
 */
export function metresPerDegree(lat: number): { lon: number; lat: number } {
  const w = 1 - ECCENTRICITY_SQUARED * Math.sin(lat * RADIANS) ** 2;
  const n = SEMI_MAJOR_AXIS_M / Math.sqrt(w);
  const m = (SEMI_MAJOR_AXIS_M * (1 - ECCENTRICITY_SQUARED)) / w ** 1.5;
  return { lon: n * Math.cos(lat * RADIANS) * RADIANS, lat: m * RADIANS };
}

/**
 * Straight distance in metres between two points (longitude, latitude) on the WGS84 ellipsoid, from their geocentric
 * coordinates (Hofmann-Wellenhof et al., "GNSS", 2008, equation 8.2). It is equally accurate at the poles and across the
 * antimeridian; below 100 km it is shorter than the distance along the ground by at most one part in 100,000.
 */
export function chordDistanceMetres(a: readonly [number, number], b: readonly [number, number]): number {
  const p = geocentric(a);
  const q = geocentric(b);
  return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

function geocentric([lon, lat]: readonly [number, number]): [number, number, number] {
  const n = SEMI_MAJOR_AXIS_M / Math.sqrt(1 - ECCENTRICITY_SQUARED * Math.sin(lat * RADIANS) ** 2);
  const r = n * Math.cos(lat * RADIANS);
  return [
    r * Math.cos(lon * RADIANS),
    r * Math.sin(lon * RADIANS),
    n * (1 - ECCENTRICITY_SQUARED) * Math.sin(lat * RADIANS),
  ];
}

/**
 * Width and height of a cell in ground metres at its centre latitude. Geohash: WGS84 arcs of the parallel and of the
 * meridian. Quadtile: metres of the projection times cos(latitude), the usual meaning of ground resolution on that map.
 */
export function cellSizeMetres(grid: Grid, geocode: string): { width: number; height: number } {
  const { west, south, east, north } = grid.bounds(geocode);
  const [, lat] = grid.toLonLat((west + east) / 2, (south + north) / 2);
  const metres =
    grid.epsg === 4326
      ? metresPerDegree(lat)
      : { lon: Math.cos(lat * RADIANS), lat: Math.cos(lat * RADIANS) };
  return { width: (east - west) * metres.lon, height: (north - south) * metres.lat };
}
