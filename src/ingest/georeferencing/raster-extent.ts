/** Where on Earth the pixels of a raster lie. */
import { type Bounds, type Grid, groundDistance } from '../../grid/index.js';
import { type Projection, pixelToMap, projector, type RasterHeader } from '../../raster/index.js';
import { offEarth } from '../errors.js';
import { type Position, sourceLocator } from './grid-to-source.js';

/** A place that comes back this far from where it was, in pixels, is not on the map. */
const TOLERANCE = 0.1;

/**
 * Longitude (-180 to 180) and latitude of a place in a raster, in pixels. NaN where the map shows no place there, such as
 * the corners of a sinusoidal map: inverse projections answer there too, with places that lie elsewhere.
 */
export function earthLocator(position: Position): Projection {
  const toLonLat = projector(position.crs, 'EPSG:4326');
  const toPixel = sourceLocator(4326, position);
  return (column, row) => {
    const [turned, lat] = toLonLat(...pixelToMap(position.transform, column, row));
    const lon = turned - 360 * Math.floor((turned + 180) / 360);
    const [c, r] = toPixel(lon, lat);
    const found = Math.hypot(c - column, r - row) <= TOLERANCE && Math.abs(lat) <= 90;
    return found ? [lon, lat] : [NaN, NaN];
  };
}

/** Steps along each side of a raster between the places at which it is looked at. */
const STEPS = 16;

/** Places of a raster in pixels, evenly over it with its border, row by row. */
function placesOf({ width, height }: Position): [column: number, row: number][] {
  const steps = Array.from({ length: STEPS + 1 }, (_, i) => i / STEPS);
  return steps.flatMap((v) => steps.map((u): [number, number] => [u * width, v * height]));
}

/** The place of a raster nearest to its middle that is on Earth. Throws TW_INGEST_OFF_EARTH where none is. */
export function middleOnEarth(header: RasterHeader): {
  column: number;
  row: number;
  lon: number;
  lat: number;
} {
  const { width, height } = header;
  const locate = earthLocator(header);
  const fromMiddle = ([column, row]: [number, number]) =>
    Math.hypot(column / width - 0.5, row / height - 0.5);
  const places = placesOf(header).sort((a, b) => fromMiddle(a) - fromMiddle(b));
  for (const [column, row] of places) {
    const [lon, lat] = locate(column, row);
    if (!Number.isNaN(lon)) return { column, row, lon, lat };
  }
  throw offEarth(header.path);
}

type LonLat = [lon: number, lat: number];

/** Where a raster roughly lies. */
export interface EarthSample {
  /** Longitude and latitude of places evenly over the raster, as far as they are on Earth. */
  places: LonLat[];
  /** No part of the raster is further than `metres`, in a straight line, from `middle`. Infinite where parts are not on Earth. */
  middle: LonLat;
  metres: number;
}

export function sampleEarth(position: Position): EarthSample {
  const locate = earthLocator(position);
  const all = placesOf(position).map((place) => locate(...place));
  const places = all.filter(([lon]) => !Number.isNaN(lon));
  const middle = all[all.length >> 1];
  if (places.length < all.length) return { places, middle, metres: Infinity };
  const steps = all.flatMap((place, i) => [
    i % (STEPS + 1) === 0 ? 0 : groundDistance(place, all[i - 1]),
    i <= STEPS ? 0 : groundDistance(place, all[i - STEPS - 1]),
  ]);
  const furthest = Math.max(...all.map((place) => groundDistance(middle, place)));
  return { places, middle, metres: furthest + Math.max(...steps) };
}

/** At least the length of a degree anywhere on the ellipsoid, in metres. */
const DEGREE = 111_700;

/** Whether all of a rectangle of the grid is too far from a raster to touch it. */
export function isBeyondReach(
  { west, south, east, north }: Bounds,
  grid: Grid,
  sample: EarthSample,
): boolean {
  if (sample.metres === Infinity) return false;
  const [left, bottom] = grid.toLonLat(west, south);
  const [right, top] = grid.toLonLat(east, north);
  const nearestEquator = bottom > 0 ? bottom : top < 0 ? top : 0;
  // From its middle along the meridian, and then along the parallel, one comes to every point of it.
  const radius = (DEGREE / 2) * (top - bottom + (right - left) * Math.cos((nearestEquator * Math.PI) / 180));
  const middle: LonLat = [(left + right) / 2, (bottom + top) / 2];
  return groundDistance(middle, sample.middle) - radius > sample.metres;
}
