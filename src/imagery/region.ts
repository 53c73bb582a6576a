/** Places of which series are made: a point, or the inside of polygons, in degrees. */
import type { Bbox, Grid } from '../geocode/index.js';
import { badRegion } from './errors.js';

type Point = readonly [lon: number, lat: number];

/** Polygons as rings; a place is inside where a line from it crosses an odd number of them. */
export type Region = { kind: 'point'; point: Point } | { kind: 'area'; rings: Point[][] };

/** The region of a GeoJSON geometry, or of a Feature's. Throws TW_IMAGERY_REGION. */
export function parseRegion(given: unknown): Region {
  const { type, geometry, coordinates } = (given ?? {}) as Record<string, unknown>;
  if (type === 'Feature') return parseRegion(geometry);
  switch (type) {
    case 'Point':
      return { kind: 'point', point: pointOf(coordinates) };
    case 'Polygon':
      return { kind: 'area', rings: listOf(coordinates, 'rings').map(ringOf) };
    case 'MultiPolygon':
      return {
        kind: 'area',
        rings: listOf(coordinates, 'polygons').flatMap((polygon) => listOf(polygon, 'rings').map(ringOf)),
      };
    default:
      throw badRegion(`its type is ${JSON.stringify(type) ?? 'missing'}`);
  }
}

function listOf(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw badRegion(`it has no list of ${what}`);
  return value;
}

function ringOf(value: unknown): Point[] {
  const ring = listOf(value, 'points').map(pointOf);
  if (ring.length < 4) throw badRegion('a ring has fewer than four points');
  const [first, last] = [ring[0], ring[ring.length - 1]];
  if (first[0] !== last[0] || first[1] !== last[1]) throw badRegion('a ring does not end where it begins');
  return ring;
}

function pointOf(value: unknown): Point {
  const [lon, lat] = Array.isArray(value) ? (value as unknown[]) : [];
  if (typeof lon !== 'number' || typeof lat !== 'number' || !Number.isFinite(lon + lat))
    throw badRegion(`${JSON.stringify(value)} is no point`);
  if (Math.abs(lon) > 180 || Math.abs(lat) > 90) throw badRegion(`${lon},${lat} is beyond 180 or 90 degrees`);
  return [lon, lat];
}

export function bboxOf(region: Region): Bbox {
  const box: Bbox = [180, 90, -180, -90];
  for (const [lon, lat] of region.kind === 'point' ? [region.point] : region.rings.flat()) {
    box[0] = Math.min(box[0], lon);
    box[1] = Math.min(box[1], lat);
    box[2] = Math.max(box[2], lon);
    box[3] = Math.max(box[3], lat);
  }
  return box;
}

/** Pixels of an image, row by row. In shared memory, so that threads need no copies. */
export interface PixelList {
  columns: Int32Array;
  rows: Int32Array;
}

/** The pixels of a cell whose centres lie in a region; the one that holds a point. `tooMany` is thrown beyond `most`. */
export function pixelsIn(
  region: Region,
  grid: Grid,
  geocode: string,
  { width, height }: { width: number; height: number },
  most: number,
  tooMany: () => Error,
): PixelList {
  const { west, south, east, north } = grid.bounds(geocode);
  if (region.kind === 'point') {
    const [x, y] = grid.fromLonLat(...region.point);
    const { extent } = grid;
    // Half-open, as cells are: a point on an edge is of one cell only.
    const inColumn = x >= west && (x < east || (x === east && east === extent.east));
    const inRow = y >= south && (y < north || (y === north && north === extent.north));
    if (!inColumn || !inRow) return pixelList([], []);
    const column = Math.min(width - 1, Math.floor(((x - west) / (east - west)) * width));
    const row = Math.min(height - 1, Math.max(0, Math.ceil(((north - y) / (north - south)) * height) - 1));
    return pixelList([column], [row]);
  }
  const columns: number[] = [];
  const rows: number[] = [];
  const lons = Float64Array.from(
    { length: width },
    (_, i) => grid.toLonLat(west + ((i + 0.5) / width) * (east - west), north)[0],
  );
  for (let row = 0; row < height; row++) {
    const [, lat] = grid.toLonLat(west, north - ((row + 0.5) / height) * (north - south));
    const crossings = crossingsAt(region.rings, lat);
    for (let i = 0; i + 1 < crossings.length; i += 2) {
      for (let column = firstAfter(lons, crossings[i]); lons[column] < crossings[i + 1]; column++) {
        columns.push(column);
        rows.push(row);
      }
    }
    if (columns.length > most) throw tooMany();
  }
  return pixelList(columns, rows);
}

/** Where the sides of rings cross a parallel, from west to east. A side holds its southern end. */
function crossingsAt(rings: Point[][], lat: number): number[] {
  const crossings: number[] = [];
  for (const ring of rings) {
    for (let i = 1; i < ring.length; i++) {
      const [a, b] = [ring[i - 1], ring[i]];
      if (a[1] <= lat !== b[1] <= lat) crossings.push(a[0] + ((lat - a[1]) / (b[1] - a[1])) * (b[0] - a[0]));
    }
  }
  return crossings.sort((a, b) => a - b);
}

/** Index of the first of ascending values that is at least `from`. */
function firstAfter(values: Float64Array, from: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] >= from) high = middle;
    else low = middle + 1;
  }
  return low;
}

function pixelList(columns: number[], rows: number[]): PixelList {
  const shared = (values: number[]) => {
    const array = new Int32Array(new SharedArrayBuffer(4 * values.length));
    array.set(values);
    return array;
  };
  return { columns: shared(columns), rows: shared(rows) };
}
