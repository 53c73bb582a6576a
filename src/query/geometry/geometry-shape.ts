/** Geometries of filters: GeoJSON (RFC 7946) or a box, in degrees, with two coordinates per point. */
import { excerpt } from '../../errors.js';
import type { Bbox } from '../../grid/index.js';
import { badGeometry } from '../errors.js';
import { axisOrderHint } from '../values/index.js';

export type Point = [x: number, y: number];

type SimpleGeometry =
  | { type: 'Point'; coordinates: Point }
  | { type: 'MultiPoint' | 'LineString'; coordinates: Point[] }
  | { type: 'MultiLineString' | 'Polygon'; coordinates: Point[][] }
  | { type: 'MultiPolygon'; coordinates: Point[][][] };

export type Geometry = SimpleGeometry | { type: 'GeometryCollection'; geometries: SimpleGeometry[] };

/** A geometry, or a box, which may cross the antimeridian (west > east). */
export type Shape = Geometry | { bbox: Bbox };

/** Counterclockwise and closed, as GeoJSON requires. */
export function bboxPolygon([west, south, east, north]: Bbox): { type: 'Polygon'; coordinates: Point[][] } {
  const ring: Point[] = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ];
  return { type: 'Polygon', coordinates: [ring] };
}

/** Number of points of a shape. */
export function vertexCount(shape: Shape): number {
  if ('bbox' in shape) return 4;
  if (shape.type === 'GeometryCollection')
    return shape.geometries.reduce((sum, part) => sum + vertexCount(part), 0);
  return (shape.coordinates as unknown[]).flat(Infinity).length / 2;
}

/** Checks that a value is a GeoJSON geometry, and drops heights. Throws TW_QUERY_GEOMETRY. */
export function readGeometry(value: unknown): Geometry {
  if (memberOf(value, 'type') !== 'GeometryCollection') return readSimple(value);
  const parts = memberOf(value, 'geometries');
  if (!Array.isArray(parts) || parts.length === 0)
    throw badGeometry('the collection has no list of geometries');
  return { type: 'GeometryCollection', geometries: parts.map(readSimple) };
}

function readSimple(value: unknown): SimpleGeometry {
  const type = memberOf(value, 'type');
  const coordinates = memberOf(value, 'coordinates');
  switch (type) {
    case 'Point':
      return { type, coordinates: readPoint(coordinates) };
    case 'MultiPoint':
      return { type, coordinates: readList(coordinates, readPoint) };
    case 'LineString':
      return { type, coordinates: readLine(coordinates) };
    case 'MultiLineString':
      return { type, coordinates: readList(coordinates, readLine) };
    case 'Polygon':
      return { type, coordinates: readList(coordinates, readRing) };
    case 'MultiPolygon':
      return { type, coordinates: readList(coordinates, (rings) => readList(rings, readRing)) };
    case 'GeometryCollection':
      throw badGeometry('a collection lies in another one');
    default:
      throw badGeometry(`the type is ${type === undefined ? 'missing' : excerpt(type)}`);
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function readList<T>(value: unknown, read: (one: unknown) => T): T[] {
  if (!Array.isArray(value) || value.length === 0) throw badGeometry('a list of coordinates is missing');
  return value.map(read);
}

function readPoint(value: unknown): Point {
  const [x, y] = Array.isArray(value) && value.length >= 2 && value.length <= 4 ? value : [];
  if (!Number.isFinite(x) || !Number.isFinite(y)) throw badGeometry('a point is not two or three numbers');
  if (Math.abs(y) > 90)
    throw badGeometry(
      `the point ${x},${y} lies beyond 90 degrees of latitude; ${axisOrderHint([[x, y]], `${y},${x}`)}`,
    );
  if (Math.abs(x) > 180) throw badGeometry(`the point ${x},${y} lies beyond 180 degrees of longitude`);
  return [x, y];
}

function readLine(value: unknown): Point[] {
  const points = readList(value, readPoint);
  if (points.length < 2) throw badGeometry('a line has less than two points');
  return points;
}

function readRing(value: unknown): Point[] {
  const points = readList(value, readPoint);
  const first = points[0]!;
  const last = points.at(-1)!;
  if (points.length < 4) throw badGeometry('the ring of a polygon has less than four points');
  if (first[0] !== last[0] || first[1] !== last[1])
    throw badGeometry('the ring of a polygon does not end at the point where it starts');
  return points;
}
