/** Determines where on Earth the pixels of a raster lie. */
import { chordDistanceMetres, type Grid, type GridBounds } from '../../grid/index.js';
import { createTransform, type PointTransform, pixelToMap, type RasterHeader } from '../../raster/index.js';
import { noGeographicExtent } from '../errors.js';
import { type GeoBox, gridToPixelTransform } from './georeferenced-grid-transform.js';

/** A position whose round trip differs by more than this, in pixels, is not on the map. */
const MAX_ROUND_TRIP_ERROR_PIXELS = 0.1;

/**
 * Longitude (-180 to 180) and latitude of a position in a raster, in pixels. NaN if the map does not show the Earth there, as
 * in the corners of a sinusoidal map: inverse projections return other points for such positions.
 */
export function pixelToLonLat(position: GeoBox): PointTransform {
  const toLonLat = createTransform(position.crs, 'EPSG:4326');
  const toPixel = gridToPixelTransform(4326, position);
  return (column, row) => {
    const [turned, lat] = toLonLat(...pixelToMap(position.transform, column, row));
    const lon = turned - 360 * Math.floor((turned + 180) / 360);
    const [c, r] = toPixel(lon, lat);
    const found = Math.hypot(c - column, r - row) <= MAX_ROUND_TRIP_ERROR_PIXELS && Math.abs(lat) <= 90;
    return found ? [lon, lat] : [NaN, NaN];
  };
}

/** Number of steps along each side of a raster between sampled positions. */
const SAMPLES_PER_SIDE = 16;

/** Evenly spaced positions of a raster in pixels, including its border, row by row. */
function samplePixels({ width, height }: GeoBox): [column: number, row: number][] {
  const steps = Array.from({ length: SAMPLES_PER_SIDE + 1 }, (_, i) => i / SAMPLES_PER_SIDE);
  return steps.flatMap((v) => steps.map((u): [number, number] => [u * width, v * height]));
}

/** The position on Earth that is nearest to the middle of a raster. Throws TW_INGEST_OFF_EARTH if there is none. */
export function centreLonLat(header: RasterHeader): {
  column: number;
  row: number;
  lon: number;
  lat: number;
} {
  const { width, height } = header;
  const locate = pixelToLonLat(header);
  const fromMiddle = ([column, row]: [number, number]) =>
    Math.hypot(column / width - 0.5, row / height - 0.5);
  const places = samplePixels(header).sort((a, b) => fromMiddle(a) - fromMiddle(b));
  for (const [column, row] of places) {
    const [lon, lat] = locate(column, row);
    if (!Number.isNaN(lon)) return { column, row, lon, lat };
  }
  throw noGeographicExtent(header.path);
}

type LonLat = [lon: number, lat: number];

/** The approximate extent of a raster. */
export interface ExtentSample {
  /** Longitudes and latitudes of evenly spaced positions of the raster that are on Earth. */
  points: LonLat[];
  /** No part of the raster is further than `metres`, in a straight line, from `middle`. Infinite if parts are not on Earth. */
  centre: LonLat;
  radiusMetres: number;
}

export function sampleExtent(position: GeoBox): ExtentSample {
  const locate = pixelToLonLat(position);
  const all = samplePixels(position).map((place) => locate(...place));
  const points = all.filter(([lon]) => !Number.isNaN(lon));
  const centre = all[all.length >> 1];
  if (points.length < all.length) return { points, centre, radiusMetres: Infinity };
  const steps = all.flatMap((place, i) => [
    i % (SAMPLES_PER_SIDE + 1) === 0 ? 0 : chordDistanceMetres(place, all[i - 1]),
    i <= SAMPLES_PER_SIDE ? 0 : chordDistanceMetres(place, all[i - SAMPLES_PER_SIDE - 1]),
  ]);
  const furthest = Math.max(...all.map((place) => chordDistanceMetres(centre, place)));
  return { points, centre, radiusMetres: furthest + Math.max(...steps) };
}

/** At least the length of a degree anywhere on the ellipsoid, in metres. */
const MAX_METRES_PER_DEGREE = 111_700;

/** True if every point of a rectangle of the grid is too far from a raster to touch it. */
export function isOutOfRange(
  { west, south, east, north }: GridBounds,
  grid: Grid,
  sample: ExtentSample,
): boolean {
  if (sample.radiusMetres === Infinity) return false;
  const [left, bottom] = grid.toLonLat(west, south);
  const [right, top] = grid.toLonLat(east, north);
  const nearestEquator = bottom > 0 ? bottom : top < 0 ? top : 0;
  // Every point is reached from the middle along the meridian, and then along the parallel.
  const radius =
    (MAX_METRES_PER_DEGREE / 2) *
    (top - bottom + (right - left) * Math.cos((nearestEquator * Math.PI) / 180));
  const middle: LonLat = [(left + right) / 2, (bottom + top) / 2];
  return chordDistanceMetres(middle, sample.centre) - radius > sample.radiusMetres;
}
