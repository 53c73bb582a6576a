/** Positions of the pixels of a raster on the Earth and on the grid, even across the antimeridian and around the poles. */
import { chordDistanceMetres, type Grid, type GridBounds, geohash, quadtile } from '../grid/index.js';
import {
  type Crs,
  createTransform,
  mapToPixel,
  type PointTransform,
  pixelToMap,
  type RasterHeader,
} from '../raster/index.js';
import { noGeographicExtent } from './errors.js';
import type { Resolution } from './scene.js';

/** Georeferencing and size of a raster. */
export type GeoBox = Pick<RasterHeader, 'crs' | 'transform' | 'width' | 'height'>;

/**
 * The projection from grid coordinates to a raster's own system. If that system repeats in x (degrees of longitude,
 * cylindrical maps), x is shifted by full turns of the Earth into [middle - half a turn, middle + half a turn) of the raster,
 * so that rasters from 0 to 360 degrees, or from 179 to 181, are reached from both sides.
 */
export function gridToSourceTransform(gridEpsg: Grid['epsg'], position: GeoBox): PointTransform {
  const { crs, transform, width, height } = position;
  const project = createTransform(`EPSG:${gridEpsg}`, crs);
  const turn = wrapPeriod(crs);
  if (turn === undefined) return extendPastEdge(project, gridEpsg);
  const [middle] = pixelToMap(transform, width / 2, height / 2);
  const start = middle - turn / 2;
  return extendPastEdge((x, y) => {
    const [u, v] = project(x, y);
    return [u + turn * Math.ceil((start - u) / turn), v];
  }, gridEpsg);
}

/** Converts a point in grid coordinates to a position in a raster, in pixels. */
export function gridToPixelTransform(gridEpsg: Grid['epsg'], position: GeoBox): PointTransform {
  const project = gridToSourceTransform(gridEpsg, position);
  return (x, y) => mapToPixel(position.transform, ...project(x, y));
}

/**
 * Continues a projection beyond the eastern and southern edges of the grid by point reflection through the edge. Points of
 * control grids lie there, and would otherwise jump to the other side of the map.
 */
function extendPastEdge(project: PointTransform, gridEpsg: Grid['epsg']): PointTransform {
  const { east, south } = (gridEpsg === geohash.epsg ? geohash : quadtile).extent;
  return (x, y) => {
    if (x < east && y >= south) return project(x, y);
    const edgeX = x < east ? x : east - EDGE_EPSILON * east;
    const edgeY = y < south ? south : y;
    const [u, v] = project(edgeX, edgeY);
    const [s, t] = project(2 * edgeX - x, 2 * edgeY - y);
    return [2 * u - s, 2 * v - t];
  };
}

/** On the edge itself, a projection may return either side. */
const EDGE_EPSILON = 1e-12;

const CYLINDRICAL = /\+proj=(merc|eqc|cea|mill)\b/;

/** The length of x in one turn around the Earth; undefined if the system does not repeat. */
function wrapPeriod(crs: Crs): number | undefined {
  if (crs.geographic) return 360;
  if (!CYLINDRICAL.test(crs.proj4)) return undefined;
  const lon0 = Number(/\+lon_0=(\S+)/.exec(crs.proj4)?.[1] ?? 0);
  const project = createTransform('EPSG:4326', crs);
  return 4 * (project(lon0 + 45, 0)[0] - project(lon0 - 45, 0)[0]);
}

/** A position whose round trip differs by more than this, in pixels, is not on the map. */
const MAX_ROUND_TRIP_ERROR_PIXELS = 0.1;

/**
 * Longitude (-180 to 180) and latitude of a position in a raster, in pixels. NaN if the map does not show the Earth there, as
 * in the corners of a sinusoidal map: inverse projections return other points for such positions.
 */
function pixelToLonLat(position: GeoBox): PointTransform {
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

/**
 * Rounds to three significant digits: scenes of a series differ in the last digits of their measured pixel size, and their
 * tiles must still stack.
 */
const toNominal = (metres: number) => Number(metres.toPrecision(3));

/** Ground metres of one pixel step along columns and rows at the raster's centre. Throws TW_INGEST_OFF_EARTH. */
export function measurePixelSize(header: RasterHeader): Resolution {
  const locate = pixelToLonLat(header);
  const { column, row, lon, lat } = centreLonLat(header);
  const step = (across: number, down: number) => {
    // A complete pixel if the map extends that far, else a small part of one, on the side where the map extends.
    for (const part of [1, -1, 1 / 64, -1 / 64]) {
      const place = locate(column + part * across, row + part * down);
      const metres = chordDistanceMetres([lon, lat], place) / Math.abs(part);
      if (metres > 0) return metres;
    }
    return NaN;
  };
  return { x: toNominal(step(1, 0)), y: toNominal(step(0, 1)) };
}

/** The pixel size of a product's projected grid; ground metres if its grid is not in metres. */
export function nominalPixelSize(header: RasterHeader): Resolution {
  if (header.crs.geographic) return measurePixelSize(header);
  const { xx, xy, yx, yy } = header.transform;
  return { x: toNominal(Math.hypot(xx, yx)), y: toNominal(Math.hypot(xy, yy)) };
}

/** A rectangle of the grid in the pixels of a raster. */
export interface ProjectedRectangle {
  /** Positions of nine points of the rectangle, as (column, row) in the raster; points without a counterpart are left out. */
  points: [column: number, row: number][];
  left: number;
  top: number;
  right: number;
  bottom: number;
  /**
   * The largest second differences of column and row between three points in a line. A parabola through the points exceeds
   * their range by at most an eighth of this. Infinite if a point has no counterpart.
   */
  curvature: { x: number; y: number };
}

/** Points next to the edges: on the edge of the map a projection may return either side. */
const SAMPLE_POSITIONS = [1e-9, 0.5, 1 - 1e-9];
/** The three rows, three columns and two diagonals of the nine points. */
const SAMPLE_LINES = [
  [0, 1, 2],
  [3, 4, 5],
  [6, 7, 8],
  [0, 3, 6],
  [1, 4, 7],
  [2, 5, 8],
  [0, 4, 8],
  [2, 4, 6],
];

/** `locate` converts from grid coordinates to (column, row). */
export function projectRectangle(
  { west, south, east, north }: GridBounds,
  locate: PointTransform,
): ProjectedRectangle {
  const all: [column: number, row: number][] = [];
  const points: ProjectedRectangle['points'] = [];
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const v of SAMPLE_POSITIONS) {
    for (const u of SAMPLE_POSITIONS) {
      const point = locate(west + (east - west) * u, south + (north - south) * v);
      const [column, row] = point;
      all.push(point);
      if (!(Number.isFinite(column) && Number.isFinite(row))) continue;
      points.push(point);
      if (column < box.left) box.left = column;
      if (column > box.right) box.right = column;
      if (row < box.top) box.top = row;
      if (row > box.bottom) box.bottom = row;
    }
  }
  return { points, ...box, curvature: { x: maxSecondDifference(all, 0), y: maxSecondDifference(all, 1) } };
}

function maxSecondDifference(points: [number, number][], axis: 0 | 1): number {
  let worst = 0;
  for (const [a, b, c] of SAMPLE_LINES) {
    const bend = Math.abs(points[a][axis] - 2 * points[b][axis] + points[c][axis]);
    if (!(bend <= worst)) worst = Number.isNaN(bend) ? Infinity : bend;
  }
  return worst;
}

/** The four quarters of a rectangle. */
export function splitIntoQuadrants({ west, south, east, north }: GridBounds): GridBounds[] {
  const x = (west + east) / 2;
  const y = (south + north) / 2;
  return [
    { west, south: y, east: x, north },
    { west: x, south: y, east, north },
    { west, south, east: x, north: y },
    { west: x, south, east, north: y },
  ];
}

/** A warning if the error of a scene's datum shift is large relative to its pixels; undefined if it is below half a pixel. */
export function datumWarning(position: GeoBox): string | undefined {
  const { datumErrorMetres = 0 } = position.crs;
  if (datumErrorMetres === 0) return undefined;
  if (datumErrorMetres === Infinity)
    return position.crs.proj4.includes('+towgs84=')
      ? 'the accuracy of the shift from its datum to WGS 84 is not known: compare some positions with a map'
      : 'its datum is treated as WGS 84, because the shift between them is not known: positions may be off by some hundred metres';
  const pixel = centrePixelMetres(position);
  if (datumErrorMetres <= pixel / 2) return undefined;
  return `the datum shift used is approximate: positions may be off by ${datumErrorMetres} m. For better positions, reproject with gdalwarp, which chooses the shift by the area and uses PROJ's grids if they are installed.`;
}

/** Side of the pixel in the middle of a raster; 0 if that is not on Earth. */
function centrePixelMetres(position: GeoBox): number {
  const locate = pixelToLonLat(position);
  const column = Math.floor(position.width / 2);
  const row = Math.floor(position.height / 2);
  const metres = chordDistanceMetres(locate(column, row), locate(column + 1, row));
  return Number.isFinite(metres) ? metres : 0;
}
