/** Zones of series and spectra, a point or the inside of polygons in degrees, and their pixels in each cell. */
import { excerpt } from '../errors.js';
import { type Bbox, type Grid, gridByName } from '../grid/index.js';
import { axisOrderHint } from '../query/index.js';
import type { TileRecord } from '../storage/index.js';
import { firstIndex } from '../utils/sorted.js';
import { badZone, zoneTooLarge } from './errors.js';

type Point = readonly [lon: number, lat: number];

/** A straight line in degrees, from its southern end to its northern end. */
interface Side {
  south: Point;
  north: Point;
}

/** The sides of each ring of a polygon: first those of its outline, then those of each hole. */
type PolygonSides = Side[][];

/** An area is the union of its polygons. A polygon is the inside of its outline without the insides of its holes. */
export type Zone = { kind: 'point'; point: Point } | { kind: 'area'; bbox: Bbox; polygons: PolygonSides[] };

/** Parses a GeoJSON geometry, a Feature, or a collection of one Feature. Throws TW_IMAGERY_REGION. */
export function parseZone(given: unknown): Zone {
  const { type, coordinates } = geometryOf(featureOf(given));
  switch (type) {
    case 'Point':
      return { kind: 'point', point: pointOf(coordinates) };
    case 'Polygon':
      return areaOf([ringsOf(coordinates)]);
    case 'MultiPolygon':
      return areaOf(listOf(coordinates, 'polygons').map(ringsOf));
    default:
      throw badZone(`its type is ${type === undefined ? 'missing' : excerpt(type)}`);
  }
}

type Json = Record<string, unknown>;

function featureOf(given: unknown): Json {
  const document = (given ?? {}) as Json;
  if (document['type'] !== 'FeatureCollection') return document;
  const features = listOf(document['features'], 'features');
  if (features.length > 1) throw badZone(`it has ${features.length} features`);
  return (features[0] ?? {}) as Json;
}

function geometryOf(feature: Json): Json {
  return feature['type'] === 'Feature' ? ((feature['geometry'] ?? {}) as Json) : feature;
}

function listOf(value: unknown, elements: string): unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw badZone(`it has no list of ${elements}`);
  return value;
}

const ringsOf = (polygon: unknown) => listOf(polygon, 'rings').map(ringOf);

function ringOf(value: unknown): Point[] {
  const ring = listOf(value, 'points').map(pointOf);
  if (ring.length < 4) throw badZone('a ring has fewer than four points');
  const [first, last] = [ring[0], ring[ring.length - 1]];
  if (first[0] !== last[0] || first[1] !== last[1])
    throw badZone('a ring does not end at the point where it starts');
  return ring;
}

function pointOf(value: unknown): Point {
  const [lon, lat] = Array.isArray(value) ? (value as unknown[]) : [];
  if (typeof lon !== 'number' || typeof lat !== 'number' || !Number.isFinite(lon + lat))
    throw badZone(`${excerpt(value)} is not a point`);
  if (Math.abs(lat) > 90)
    throw badZone(
      `${lon},${lat} is beyond 90 degrees of latitude; ${axisOrderHint([[lon, lat]], `${lat},${lon}`)}`,
    );
  if (Math.abs(lon) > 180) throw badZone(`${lon},${lat} is beyond 180 degrees of longitude`);
  return [lon, lat];
}

function areaOf(polygons: Point[][][]): Zone {
  const bbox: Bbox = [180, 90, -180, -90];
  for (const [lon, lat] of polygons.flat(2)) {
    bbox[0] = Math.min(bbox[0], lon);
    bbox[1] = Math.min(bbox[1], lat);
    bbox[2] = Math.max(bbox[2], lon);
    bbox[3] = Math.max(bbox[3], lat);
  }
  return { kind: 'area', bbox, polygons: polygons.map((rings) => rings.map(sidesOf)) };
}

/** Without sides along a parallel, which do not cross other parallels. */
function sidesOf(ring: Point[]): Side[] {
  return ring.slice(1).flatMap((point, i) => {
    const before = ring[i];
    if (before[1] === point[1]) return [];
    return before[1] < point[1] ? { south: before, north: point } : { south: point, north: before };
  });
}

export function zoneBbox(region: Zone): Bbox {
  return region.kind === 'area' ? region.bbox : [...region.point, ...region.point];
}

/** Pixels of an image, row by row, in shared memory. */
export interface PixelList {
  columns: Int32Array;
  rows: Int32Array;
}

/**
 * Throws an error if a zone is too large. `work`: sides of the zone times rows of pixels, reported in advance; `pixels`: pixels in the
 * zone.
 */
type CheckBudget = (work: number, pixels: number) => void;

/** The pixels of a cell whose centres are in a zone, or the pixel that contains a point. Throws the errors of `spend`. */
function pixelsInZone(
  region: Zone,
  grid: Grid,
  geocode: string,
  size: { width: number; height: number },
  spend: CheckBudget,
): PixelList {
  const columns: number[] = [];
  const rows: number[] = [];
  forEachPixelRun(region, grid, geocode, size, spend, (row, from, to) => {
    for (let column = from; column < to; column++) {
      columns.push(column);
      rows.push(row);
    }
  });
  return pixelList(columns, rows);
}

/** Calls `visit` with the same pixels as runs of columns [from, to), row by row. */
export function forEachPixelRun(
  region: Zone,
  grid: Grid,
  geocode: string,
  { width, height }: { width: number; height: number },
  spend: CheckBudget,
  visit: (row: number, from: number, to: number) => void,
): void {
  const { west, south, east, north } = grid.bounds(geocode);
  if (region.kind === 'point') {
    const [x, y] = grid.fromLonLat(...region.point);
    const { extent } = grid;
    // Cells are half-open, so a point on an edge belongs to one cell only.
    const inColumn = x >= west && (x < east || (x === east && east === extent.east));
    const inRow = y >= south && (y < north || (y === north && north === extent.north));
    if (!inColumn || !inRow) return;
    const column = Math.min(width - 1, Math.floor(((x - west) / (east - west)) * width));
    const row = Math.min(height - 1, Math.max(0, Math.ceil(((north - y) / (north - south)) * height) - 1));
    visit(row, column, column + 1);
    return;
  }
  const [westernmost, lowest] = grid.toLonLat(west, south);
  const [easternmost, highest] = grid.toLonLat(east, north);
  const [left, bottom, right, top] = region.bbox;
  if (right < westernmost || left > easternmost || top < lowest || bottom > highest) return;
  const rings = region.polygons.flatMap((polygon, part) =>
    polygon.map((sides, i) => ({
      part,
      isHole: i > 0,
      sides: sides.filter((side) => side.south[1] <= highest && side.north[1] >= lowest),
    })),
  );
  const sides = rings.reduce((sum, ring) => sum + ring.sides.length, 0);
  if (sides === 0) return;
  spend(sides * height, 0);
  const lons = Float64Array.from(
    { length: width },
    (_, i) => grid.toLonLat(west + ((i + 0.5) / width) * (east - west), north)[0],
  );
  const columnAt = (lon: number) => firstIndex(width, (column) => lons[column] >= lon);
  for (let row = 0; row < height; row++) {
    const [, lat] = grid.toLonLat(west, north - ((row + 0.5) / height) * (north - south));
    let pixels = 0;
    for (const [west, east] of intervalsAt(rings, lat)) {
      const [from, to] = [columnAt(west), columnAt(east)];
      if (from < to) visit(row, from, to);
      pixels += Math.max(0, to - from);
    }
    spend(0, pixels);
  }
}

interface Ring {
  /** Index of its polygon. */
  part: number;
  isHole: boolean;
  sides: Side[];
}

/** Disjoint intervals of longitudes of a parallel that are in an area, from west to east. */
function intervalsAt(rings: Ring[], lat: number): [west: number, east: number][] {
  const crossings = rings.flatMap((ring) => crossingsAt(ring.sides, lat).map((lon) => ({ lon, ring })));
  crossings.sort((a, b) => a.lon - b.lon);
  const intervals: [number, number][] = [];
  const entered = new Set<Ring>();
  /** By polygon: 1 inside of its outline, less the holes at the current longitude. */
  const depths = new Map<number, number>();
  let covering = 0;
  let start = 0;
  for (const { lon, ring } of crossings) {
    const enters = !entered.delete(ring);
    if (enters) entered.add(ring);
    const before = depths.get(ring.part) ?? 0;
    const after = before + (enters === ring.isHole ? -1 : 1);
    depths.set(ring.part, after);
    if (before > 0 === after > 0) continue;
    if (covering === 0) start = lon;
    covering += after > 0 ? 1 : -1;
    if (covering === 0) intervals.push([start, lon]);
  }
  return intervals;
}

/** Longitudes at which sides cross a parallel. A side includes its southern end, but not its northern end. */
function crossingsAt(sides: Side[], lat: number): number[] {
  const crossings: number[] = [];
  for (const { south, north } of sides) {
    if (south[1] > lat || north[1] <= lat) continue;
    const share = (lat - south[1]) / (north[1] - south[1]);
    crossings.push(south[0] + share * (north[0] - south[0]));
  }
  return crossings;
}

function pixelList(columns: number[], rows: number[]): PixelList {
  const toShared = (values: number[]) => {
    const array = new Int32Array(new SharedArrayBuffer(4 * values.length));
    array.set(values);
    return array;
  };
  return { columns: toShared(columns), rows: toShared(rows) };
}

/** The pixels of a zone in one cell, for an image of this size over the cell. */
export interface ZonePixels {
  /** Identifies the cell and the size. */
  key: string;
  pixels: PixelList;
  width: number;
  height: number;
}

/** Limit of sides of a zone times rows of pixels in its cells: about a second of work. */
const MAX_EDGE_CROSSINGS = 5_000_000;

/** Throws TW_IMAGERY_TOO_MUCH if the zones of all calls together are too complex or have more than `maxPixels` pixels. */
export function zoneBudget(maxPixels: number): CheckBudget {
  let crossings = 0;
  let pixels = 0;
  return (work, found) => {
    crossings += work;
    pixels += found;
    if (crossings > MAX_EDGE_CROSSINGS)
      throw zoneTooLarge(`an outline of ${crossings} sides in rows of pixels`, MAX_EDGE_CROSSINGS);
    if (pixels > maxPixels) throw zoneTooLarge(`${pixels} pixels a date`, maxPixels);
  };
}

/** `known`: cache of the pixels by cell and size. Throws the errors of `budget`. */
export function zonePixels(
  known: Map<string, ZonePixels>,
  zone: Zone,
  { grid, geocode }: Pick<TileRecord, 'grid' | 'geocode'>,
  { width, height }: { width: number; height: number },
  budget: CheckBudget,
): ZonePixels {
  const key = `${grid} ${geocode} ${width} ${height}`;
  const place = known.get(key) ?? {
    key,
    pixels: pixelsInZone(zone, gridByName(grid), geocode, { width, height }, budget),
    width,
    height,
  };
  known.set(key, place);
  return place;
}
