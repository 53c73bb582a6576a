/** Geometries of filters, and the relations of the area of an Item, which consists of rectangles in degrees, to them. */
import { orient2d } from 'robust-predicates';
import { runAtOnce } from '../async/index.js';
import { excerpt } from '../errors.js';
import { type Bbox, cellBbox, type DividedCell, type Grid, grids } from '../grid/index.js';
import type { CellKeyRange } from '../storage/index.js';
import { firstIndex } from '../utils/sorted.js';
import { badGeometry } from './errors.js';
import { axisOrderHint } from './values.js';

/** Average number of segments in a strip. */
const SEGMENTS_PER_STRIP = 16;
const MAX_STRIPS = 256;
/** Maximum average number of edges of strips that a segment crosses. */
const EDGES_PER_SEGMENT = 8;
/** Lower shapes are not divided into strips, whose edges would be inexact. */
const MIN_HEIGHT_DEGREES = 1e-9;

/** Segments that overlap a strip of latitudes. */
interface Strip {
  /** Ordered by their western ends. */
  segments: Uint32Array;
  /** Width of the widest segment, degrees. */
  widest: number;
}

/** Line segments with an exact test against rectangles. Finds them by their latitudes, and then by their western ends. */
class SegmentIndex {
  private readonly ax: Float64Array;
  private readonly ay: Float64Array;
  private readonly bx: Float64Array;
  private readonly by: Float64Array;
  private readonly strips: Strip[];
  private readonly south: number;
  private readonly perDegree: number;

  /** The segments between the points of each line. */
  constructor(lines: readonly (readonly Point[])[]) {
    const starts = lines.flatMap((line) => line.slice(0, -1));
    const ends = lines.flatMap((line) => line.slice(1));
    this.ax = Float64Array.from(starts, (point) => point[0]);
    this.ay = Float64Array.from(starts, (point) => point[1]);
    this.bx = Float64Array.from(ends, (point) => point[0]);
    this.by = Float64Array.from(ends, (point) => point[1]);
    const latitudes = lines.flat().map((point) => point[1]);
    this.south = latitudes.reduce((a, b) => Math.min(a, b), Infinity);
    const height = latitudes.reduce((a, b) => Math.max(a, b), -Infinity) - this.south;
    const count = Math.ceil(starts.length / SEGMENTS_PER_STRIP);
    const total = this.ay.reduce((sum, y, i) => sum + Math.abs(y - this.by[i]), 0);
    // Long segments are in many strips.
    const most = Math.min(MAX_STRIPS, Math.ceil((EDGES_PER_SEGMENT * starts.length * height) / total));
    const strips = height < MIN_HEIGHT_DEGREES ? 1 : Math.min(most, count);
    this.perDegree = strips === 1 ? 0 : strips / height;
    this.strips = this.fill(strips);
  }

  private fill(count: number): Strip[] {
    const { ax, ay, bx, by } = this;
    const west = ax.map((x, i) => Math.min(x, bx[i]));
    const lists = Array.from({ length: count }, () => ({ segments: [] as number[], widest: 0 }));
    // In this order, so that each strip is in order as well.
    for (const i of Uint32Array.from(ax.keys()).sort((i, j) => west[i] - west[j])) {
      const last = this.stripAt(Math.max(ay[i], by[i]), count);
      const width = Math.abs(ax[i] - bx[i]);
      for (let strip = this.stripAt(Math.min(ay[i], by[i]), count); strip <= last; strip++) {
        const list = lists[strip];
        list.segments.push(i);
        if (width > list.widest) list.widest = width;
      }
    }
    return lists.map(({ segments, widest }) => ({ segments: Uint32Array.from(segments), widest }));
  }

  /** True if a segment meets a rectangle: with `open` its interior, otherwise also its edge. */
  intersects(box: Bbox, open: boolean): boolean {
    return this.some(box, (i) => this.segmentIntersects(i, box, open));
  }

  /** True if `test` is, for a segment near a rectangle. A long segment may be tested several times. */
  some(box: Bbox, test: (segment: number) => boolean): boolean {
    const [west, , east] = box;
    const last = this.stripAt(box[3]);
    for (let strip = this.stripAt(box[1]); strip <= last; strip++) {
      const { segments, widest } = this.strips[strip];
      for (let at = this.firstFrom(segments, west - widest); at < segments.length; at++) {
        const i = segments[at];
        if (this.ax[i] > east && this.bx[i] > east) break;
        if (test(i)) return true;
      }
    }
    return false;
  }

  /** Index of the first segment of a strip with a western end at or east of a longitude. */
  private firstFrom(segments: Uint32Array, longitude: number): number {
    let low = 0;
    let high = segments.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const i = segments[middle];
      if (this.ax[i] < longitude || this.bx[i] < longitude) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** True if a point that is not on a segment is inside the closed lines of the segments, by the even-odd rule. */
  containsPoint(x: number, y: number): boolean {
    const { ax, ay, bx, by } = this;
    const { segments } = this.strips[this.stripAt(y)];
    let inside = false;
    for (let at = 0; at < segments.length; at++) {
      const i = segments[at];
      if (ax[i] > x && bx[i] > x) break;
      if (ay[i] > y === by[i] > y) continue;
      const isWest = orient2d(ax[i], ay[i], bx[i], by[i], x, y) > 0 === by[i] > ay[i];
      if (isWest) inside = !inside;
    }
    return inside;
  }

  private stripAt(y: number, count = this.strips.length): number {
    const strip = Math.floor((y - this.south) * this.perDegree);
    return Math.max(0, Math.min(count - 1, strip));
  }

  /**
   * By separating axes: a segment and a rectangle are disjoint if a line along an edge of the rectangle or along the
   * segment separates them. `orient2d` is exact in sign (Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast
   * Robust Geometric Predicates", 1997), so the answer is exact for the given numbers.
   */
  private segmentIntersects(i: number, box: Bbox, open: boolean): boolean {
    const ax = this.ax[i];
    const ay = this.ay[i];
    const bx = this.bx[i];
    const by = this.by[i];
    const west = box[0];
    const south = box[1];
    const east = box[2];
    const north = box[3];
    if ((ax < west && bx < west) || (ax > east && bx > east)) return false;
    if ((ay < south && by < south) || (ay > north && by > north)) return false;
    if (open) {
      if ((ax <= west && bx <= west) || (ax >= east && bx >= east)) return false;
      if ((ay <= south && by <= south) || (ay >= north && by >= north)) return false;
    }
    if (ax === bx || ay === by) return true;
    // These two corners are the farthest on both sides of the segment's line.
    const rises = bx > ax === by > ay;
    const left = orient2d(ax, ay, bx, by, west, rises ? north : south);
    const right = orient2d(ax, ay, bx, by, east, rises ? south : north);
    if (left === 0 || right === 0) return !open;
    return left > 0 !== right > 0;
  }
}

export type Point = [x: number, y: number];

type SimpleGeometry =
  | { type: 'Point'; coordinates: Point }
  | { type: 'MultiPoint' | 'LineString'; coordinates: Point[] }
  | { type: 'MultiLineString' | 'Polygon'; coordinates: Point[][] }
  | { type: 'MultiPolygon'; coordinates: Point[][][] };

export type Geometry = SimpleGeometry | { type: 'GeometryCollection'; geometries: SimpleGeometry[] };

/**
 * The geometry of a filter, in degrees, with two coordinates per point: GeoJSON (RFC 7946), or a box, which may cross the antimeridian
 * (west > east).
 */
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
  const { type, coordinates } = shape;
  if (type === 'Point') return 1;
  const lists: unknown[][] = type === 'MultiPolygon' ? coordinates.flat() : coordinates;
  if (type === 'MultiPoint' || type === 'LineString') return lists.length;
  return lists.reduce((sum, { length }) => sum + length, 0);
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

interface PreparedPart {
  bbox: Bbox;
  /** Segments of a line, or of the boundary of an area. */
  segments: SegmentIndex;
}

/** Limit of the steps that find the boundary of polygons: about half a second of work. */
const MAX_UNION_STEPS = 5_000_000;
/** A pair of segments whose boxes are compared. */
const STEPS_OF_VISIT = 0.1;
/** Steps of a crossing, whose point stays in memory. */
const STEPS_OF_CROSSING = 20;

type Segment = [a: Point, b: Point];

interface Union {
  boundary: Segment[];
  spikes: Segment[];
}

/**
 * The boundary of the union of polygons, as segments. A polygon is the inside of its outline without the insides of its holes. Polygons
 * may overlap, touch, nest and repeat, and rings may cross. Segments that cross are cut at the rounded point; all others keep their
 * numbers. `spikes`: parts of an outline that enclose no area, such as a ring that returns along the same line.
 */
function* unionOf(polygons: readonly (readonly Point[][])[]): Generator<void, Union> {
  const rings = polygons.flatMap((polygon, part) =>
    polygon.map((ring, i) => ({ ring, part, isHole: i > 0 })),
  );
  const segments: RingSegment[] = rings.flatMap(({ ring }, index) =>
    ring.slice(1).map((b, i) => ({ a: ring[i], b, ring: index, box: boundingBox([ring[i], b]) })),
  );
  yield;
  const index = new SegmentIndex(rings.map(({ ring }) => ring));
  yield;
  let steps = 0;
  const spend = (work: number) => {
    steps += work;
    if (steps > MAX_UNION_STEPS)
      throw badGeometry('its lines cross too often, or are too long and close together; simplify it');
  };
  const { cuts, collinear } = yield* cutSegments(segments, spend);

  /** Rings whose insides contain the points beside the middle of a piece of segment `i`. */
  const ringsBeside = (i: number, [x, y]: Point, isHorizontal: boolean): [Set<number>, Set<number>] => {
    const beside: [Set<number>, Set<number>] = [new Set(), new Set()];
    const toggle = (rings: Set<number>, ring: number) => rings.delete(ring) || rings.add(ring);
    const coincident = collinear[i].filter((j) => isBetween(segments[j].box, [x, y]));
    const seen = new Set([i, ...coincident]);
    index.some([-180, y, x, y], (j) => {
      spend(1);
      if (seen.has(j)) return false;
      seen.add(j);
      const { a, b, ring } = segments[j];
      const isWest = orient2d(...a, ...b, x, y) > 0 === b[1] > a[1];
      if (a[1] === b[1] || !isWest) return false;
      if (a[1] > y !== b[1] > y) toggle(beside[0], ring);
      if (isHorizontal ? a[1] >= y !== b[1] >= y : a[1] > y !== b[1] > y) toggle(beside[1], ring);
      return false;
    });
    // A horizontal piece lies between the points above and below it. Any other one lies between its west and east.
    if (!isHorizontal) for (const j of [i, ...coincident]) toggle(beside[1], segments[j].ring);
    return beside;
  };
  const isCovered = (around: Set<number>) => {
    const depths = new Map<number, number>();
    for (const ring of around) {
      const { part, isHole } = rings[ring];
      depths.set(part, (depths.get(part) ?? 0) + (isHole ? -1 : 1));
    }
    return [...depths.values()].some((depth) => depth > 0);
  };

  const kindOf = (i: number, middle: Point): 'boundary' | 'spike' | 'inside' => {
    // Pieces of the same line are the boundary once.
    if (collinear[i].some((j) => j < i && isBetween(segments[j].box, middle))) return 'inside';
    const { a, b, ring } = segments[i];
    const beside = ringsBeside(i, middle, a[1] === b[1]);
    const [left, right] = beside.map(isCovered);
    if (left !== right) return 'boundary';
    const isSpike = !left && !rings[ring].isHole && beside[0].has(ring) === beside[1].has(ring);
    return isSpike ? 'spike' : 'inside';
  };
  yield;
  const nodes = nodesOf(segments, cuts);
  yield;
  const boundary: Segment[] = [];
  const spikes: Segment[] = [];
  let kind: ReturnType<typeof kindOf> | undefined;
  for (const [i, { a, b, ring }] of segments.entries()) {
    yield;
    if (segments[i - 1]?.ring !== ring) kind = undefined;
    const points = [a, ...cuts[i], b];
    for (const [at, to] of points.slice(1).entries()) {
      const from = points[at];
      if (from[0] === to[0] && from[1] === to[1]) continue;
      // Up to the next node, both sides of a ring stay the same.
      if (kind === undefined || nodes.has(String(from))) kind = kindOf(i, centreOf([...from, ...to]));
      if (kind === 'boundary') boundary.push([from, to]);
      else if (kind === 'spike') spikes.push([from, to]);
    }
  }
  return { boundary, spikes };
}

/** Points at which a ring meets another one, or itself. */
function nodesOf(segments: { a: Point }[], cuts: Point[][]): Set<string> {
  const starts = segments.map(({ a }) => String(a));
  const seen = new Set<string>();
  return new Set([
    ...cuts.flat().map(String),
    ...starts.filter((point) => seen.size === seen.add(point).size),
  ]);
}

/** True if a point of a line lies inside a segment of the line with this box, and not at its end. */
const isBetween = ([west, south, east, north]: Bbox, [x, y]: Point) =>
  west === east ? y > south && y < north : x > west && x < east;

interface RingSegment {
  a: Point;
  b: Point;
  /** Index of its ring. */
  ring: number;
  box: Bbox;
}

/** Points inside of each segment at which it meets others, in its direction; and the segments on the same line that overlap it. */
function* cutSegments(segments: RingSegment[], spend: (steps: number) => void) {
  const cuts: Point[][] = segments.map(() => []);
  const collinear: number[][] = segments.map(() => []);
  const cut = (i: number, point: Point, isOnLine: boolean) => {
    if (isOnLine && isBetween(segments[i].box, point)) cuts[i].push(point);
  };
  yield* forEachPair(segments, spend, (i, j) => {
    spend(1);
    const { a, b } = segments[i];
    const { a: c, b: d } = segments[j];
    const sideC = orient2d(a[0], a[1], b[0], b[1], c[0], c[1]);
    const sideD = orient2d(a[0], a[1], b[0], b[1], d[0], d[1]);
    if (sideC * sideD > 0) return;
    const sideA = orient2d(c[0], c[1], d[0], d[1], a[0], a[1]);
    const sideB = orient2d(c[0], c[1], d[0], d[1], b[0], b[1]);
    cut(i, c, sideC === 0);
    cut(i, d, sideD === 0);
    cut(j, a, sideA === 0);
    cut(j, b, sideB === 0);
    if (sideC === 0 && sideD === 0) {
      spend(STEPS_OF_CROSSING);
      collinear[i].push(j);
      collinear[j].push(i);
    } else if (sideC * sideD < 0 && sideA * sideB < 0) {
      spend(STEPS_OF_CROSSING);
      const share = sideC / (sideC - sideD);
      // Lines along an axis keep their exact coordinate.
      const at = (axis: 0 | 1) => (a[axis] === b[axis] ? a[axis] : c[axis] + share * (d[axis] - c[axis]));
      const point: Point = [at(0), at(1)];
      cuts[i].push(point);
      cuts[j].push(point);
    }
  });
  for (const [i, { a, b }] of segments.entries())
    cuts[i].sort((p, q) => (p[0] - q[0]) * Math.sign(b[0] - a[0]) || (p[1] - q[1]) * Math.sign(b[1] - a[1]));
  return { cuts, collinear };
}

/** Visits the pairs of segments whose boxes meet: sweeps along the axis on which fewer of them overlap. */
function* forEachPair(
  segments: RingSegment[],
  spend: (steps: number) => void,
  visit: (i: number, j: number) => void,
): Generator<void> {
  const sweepAlong = (axis: 0 | 1) => {
    const order = Array.from(segments.keys()).sort((i, j) => segments[i].box[axis] - segments[j].box[axis]);
    const starts = order.map((i) => segments[i].box[axis]);
    // Each segment may meet those after it up to this one.
    const ends = order.map((i) => firstIndex(starts.length, (at) => starts[at] > segments[i].box[axis + 2]));
    return { order, ends, pairs: ends.reduce((sum, end, at) => sum + end - at - 1, 0) };
  };
  const eastward = sweepAlong(0);
  yield;
  const northward = sweepAlong(1);
  yield;
  const { order, ends, pairs } = eastward.pairs <= northward.pairs ? eastward : northward;
  spend(STEPS_OF_VISIT * pairs);
  for (const [at, i] of order.entries()) {
    for (let other = at + 1; other < ends[at]; other++)
      if (bboxesIntersect(segments[i].box, segments[order[other]].box)) visit(i, order[other]);
    yield;
  }
}

function polygonsOf(shape: Shape): Point[][][] {
  const polygons = (geometry: Geometry): Point[][][] => {
    if (geometry.type === 'Polygon') return [geometry.coordinates];
    if (geometry.type === 'MultiPolygon') return geometry.coordinates;
    return geometry.type === 'GeometryCollection' ? geometry.geometries.flatMap(polygons) : [];
  };
  return geometriesOf(shape).flatMap(polygons);
}

/**
 * A shape prepared for many tests. Its parts form one set of points, and its polygons one area.
 *
 * Why these tests are sufficient (R is a rectangle with an interior): a line meets the interior of R if one of its segments
 * does. If no segment of the boundary of an area meets the interior of R, that interior is completely inside or completely
 * outside of the area, and its centre decides. A part that extends beyond R has a vertex beyond it, because R is convex.
 */
export class PreparedGeometry {
  private readonly points: Point[] = [];
  private readonly lines: PreparedPart[] = [];
  private readonly area: PreparedPart | undefined;
  readonly bbox: Bbox;
  /** 0 for points, 1 for lines, 2 for areas: the greatest among the parts. */
  readonly dimension: 0 | 1 | 2;

  /** `union` is that of the polygons of the shape, whose computation may take some tenths of a second. */
  constructor(shape: Shape, { boundary, spikes }: Union = runAtOnce(unionOf(polygonsOf(shape)))) {
    for (const geometry of geometriesOf(shape)) this.add(geometry);
    if (boundary.length > 0) this.area = preparedPart(boundary);
    if (spikes.length > 0) this.lines.push(preparedPart(spikes));
    this.dimension = this.area ? 2 : this.lines.length > 0 ? 1 : 0;
    const boxes = [...this.lines, ...(this.area ? [this.area] : [])].map((part) => part.bbox);
    this.bbox = boundingBox([
      ...this.points,
      ...boxes.flatMap(([w, s, e, n]): Point[] => [
        [w, s],
        [e, n],
      ]),
    ]);
  }

  private add(geometry: Geometry): void {
    switch (geometry.type) {
      case 'Point':
        this.points.push(geometry.coordinates);
        break;
      case 'MultiPoint':
        this.points.push(...geometry.coordinates);
        break;
      case 'LineString':
        this.lines.push(preparedPart([geometry.coordinates]));
        break;
      case 'MultiLineString':
        this.lines.push(preparedPart(geometry.coordinates));
        break;
      case 'GeometryCollection':
        for (const part of geometry.geometries) this.add(part);
    }
  }

  /** True if shape and rectangle share a point: with `open` of their interiors, otherwise including edges. */
  intersects(box: Bbox, open = false): boolean {
    const contains = open ? containsPointStrictly : containsPoint;
    const meets = (part: PreparedPart) =>
      bboxesIntersect(part.bbox, box) && part.segments.intersects(box, open);
    return (
      this.points.some((point) => contains(box, point)) ||
      this.lines.some(meets) ||
      (this.area !== undefined &&
        bboxesIntersect(this.area.bbox, box) &&
        (meets(this.area) || this.area.segments.containsPoint(...centreOf(box))))
    );
  }

  /** True if the rectangle is within the shape. */
  covers(box: Bbox): boolean {
    return (
      this.area !== undefined &&
      bboxContains(this.area.bbox, box) &&
      !this.area.segments.intersects(box, true) &&
      this.area.segments.containsPoint(...centreOf(box))
    );
  }

  /** True if the shape is within the rectangle. */
  isWithin(box: Bbox): boolean {
    return bboxContains(box, this.bbox);
  }
}

/** A box as a polygon; as two if it crosses the antimeridian; as a line or a point if it has no area. */
function geometriesOf(shape: Shape): Geometry[] {
  if (!('bbox' in shape)) return [shape];
  const [west, south, east, north] = shape.bbox;
  if (west > east) {
    const sides: Bbox[] = [
      [west, south, 180, north],
      [-180, south, east, north],
    ];
    return sides.flatMap((bbox) => geometriesOf({ bbox }));
  }
  if (west === east && south === north) return [{ type: 'Point', coordinates: [west, south] }];
  if (west === east || south === north) {
    const coordinates: Point[] = [
      [west, south],
      [east, north],
    ];
    return [{ type: 'LineString', coordinates }];
  }
  return [bboxPolygon(shape.bbox)];
}

const preparedPart = (lines: Point[][]): PreparedPart => ({
  bbox: boundingBox(lines.flat()),
  segments: new SegmentIndex(lines),
});

function boundingBox(points: readonly Point[]): Bbox {
  const box: Bbox = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    box[0] = Math.min(box[0], x);
    box[1] = Math.min(box[1], y);
    box[2] = Math.max(box[2], x);
    box[3] = Math.max(box[3], y);
  }
  return box;
}

const centreOf = ([west, south, east, north]: Bbox): Point => [(west + east) / 2, (south + north) / 2];

const containsPoint = ([west, south, east, north]: Bbox, [x, y]: Point) =>
  x >= west && x <= east && y >= south && y <= north;

const containsPointStrictly = ([west, south, east, north]: Bbox, [x, y]: Point) =>
  x > west && x < east && y > south && y < north;

const bboxesIntersect = (a: Bbox, b: Bbox) => b[2] >= a[0] && b[0] <= a[2] && b[3] >= a[1] && b[1] <= a[3];

const bboxContains = ([west, south, east, north]: Bbox, [w, s, e, n]: Bbox) =>
  w >= west && e <= east && s >= south && n <= north;

/** The area of an Item in its cell: `exterior` has everything outside of the area that shapes within the cell can meet. */
type ItemArea = ReturnType<DividedCell['area']> & { cell: Bbox };

export const areaOfCell = (cell: Bbox): ItemArea => ({
  cell,
  boxes: [cell],
  interior: () => [cell],
  exterior: () => [],
});

const touches = ({ boxes }: ItemArea, shape: PreparedGeometry) => boxes.some((box) => shape.intersects(box));
const meets = ({ interior }: ItemArea, shape: PreparedGeometry) =>
  interior().some((box) => shape.intersects(box, true));
const isCovered = ({ boxes }: ItemArea, shape: PreparedGeometry) => boxes.every((box) => shape.covers(box));
const holds = ({ cell, exterior }: ItemArea, shape: PreparedGeometry) =>
  shape.isWithin(cell) && !exterior().some((box) => shape.intersects(box, true));

/**
 * The spatial functions of CQL2, by the dimensionally extended nine-intersection model (OGC 06-103r4, section 6.1.15): relations of the
 * area of an Item to a shape. The cases of points and lines as Items are omitted.
 */
export const spatialRelations = {
  s_intersects: touches,
  s_disjoint: (area: ItemArea, shape: PreparedGeometry) => !touches(area, shape),
  s_within: isCovered,
  s_contains: (area: ItemArea, shape: PreparedGeometry) => holds(area, shape) && meets(area, shape),
  s_equals: (area: ItemArea, shape: PreparedGeometry) => holds(area, shape) && isCovered(area, shape),
  s_touches: (area: ItemArea, shape: PreparedGeometry) => touches(area, shape) && !meets(area, shape),
  s_crosses: (area: ItemArea, shape: PreparedGeometry) =>
    shape.dimension < 2 && !holds(area, shape) && meets(area, shape),
  s_overlaps: (area: ItemArea, shape: PreparedGeometry) =>
    shape.dimension === 2 && !holds(area, shape) && meets(area, shape) && !isCovered(area, shape),
};

export type SpatialOp = keyof typeof spatialRelations;

/** The equivalent function with swapped arguments, for functions that are not symmetric. */
export const spatialConverse: Partial<Record<SpatialOp, SpatialOp>> = {
  s_within: 's_contains',
  s_contains: 's_within',
};

/** If more cells are on the edge of a shape, they are not divided further, and their tiles are tested individually. */
const MAX_EDGE_CELLS = 16;

export interface CellCovering {
  /**
   * Keys of cells within the shape; all their tiles touch it. (A larger cell with the key of one of these contains
   * that cell, so it touches the shape as well.)
   */
  inside: CellKeyRange[];
  /** Keys of cells on the edge of the shape; each of their tiles is tested. */
  edge: CellKeyRange[];
}

/**
 * Covers a shape by ranges of geocode keys. Descends each grid from its largest cells, as long as few cells are on the edge of the shape.
 */
export function* coverGeometry(shape: PreparedGeometry): Generator<void, CellCovering> {
  const inside: CellKeyRange[] = [];
  const edge: CellKeyRange[] = [];
  for (const grid of grids) {
    let cells = rootsOf(grid);
    for (let precision = grid.minPrecision; cells.length > 0; precision++) {
      const onEdge: Cell[] = [];
      for (const cell of cells) {
        // A quick test: most cells are far away.
        if (!bboxesIntersect(shape.bbox, cell.bbox)) continue;
        yield;
        if (shape.covers(cell.bbox)) inside.push(descendantKeys(grid, cell.geocode, cell));
        else if (shape.intersects(cell.bbox)) onEdge.push(cell);
      }
      const descends = onEdge.length <= MAX_EDGE_CELLS && precision < grid.maxPrecision;
      for (const cell of onEdge) edge.push((descends ? cellKey : descendantKeys)(grid, cell.geocode, cell));
      cells = descends ? onEdge.flatMap((cell) => childrenOf(grid, cell)) : [];
    }
  }
  return { inside, edge };
}

interface PreparedShape {
  outline: PreparedGeometry;
  covering: CellCovering;
}

/** Shapes of filters that are in use: each query compiles its filter more than once. */
const preparedShapes = new WeakMap<Shape, PreparedShape>();

/** Prepares a shape in steps, for `preparedShape`. Throws TW_QUERY_GEOMETRY. */
export function* prepareShape(shape: Shape): Generator<void, PreparedShape> {
  let prepared = preparedShapes.get(shape);
  if (!prepared) {
    const outline = new PreparedGeometry(shape, yield* unionOf(polygonsOf(shape)));
    prepared = { outline, covering: yield* coverGeometry(outline) };
    preparedShapes.set(shape, prepared);
  }
  return prepared;
}

/** A prepared shape, which this prepares at once if `prepareShape` has not. Throws TW_QUERY_GEOMETRY. */
export const preparedShape = (shape: Shape): PreparedShape => runAtOnce(prepareShape(shape));

type Keys = ReturnType<Grid['key']>;

/** The keys of a cell and of all cells below it. */
export function descendantKeys(grid: Grid, cell: string, { key, span }: Keys = grid.key(cell)): CellKeyRange {
  return { grid: grid.name, from: key, to: key + span };
}

/** The key of a cell. The first cells below it have the same key, but another precision. */
export function cellKey(grid: Grid, cell: string, { key }: Keys = grid.key(cell)): CellKeyRange {
  return { grid: grid.name, from: key, to: key + 1, precision: cell.length };
}

interface Cell extends Keys {
  geocode: string;
  bbox: Bbox;
  children?: Cell[];
}

/** Searches visit the same large cells repeatedly, so cells below `rootCells` are cached, at most this many. */
const MAX_CACHED_CELLS = 50_000;
const rootCells = new Map<Grid, Cell[]>();
let cachedCells = 0;

function rootsOf(grid: Grid): Cell[] {
  if (cachedCells > MAX_CACHED_CELLS) {
    rootCells.clear();
    cachedCells = 0;
  }
  let known = rootCells.get(grid);
  if (!known) {
    known = grid.cover(grid.extent, grid.minPrecision).map((root) => cellOf(grid, root, grid.key(root)));
    rootCells.set(grid, known);
  }
  return known;
}

function childrenOf(grid: Grid, cell: Cell): Cell[] {
  if (!cell.children) {
    const geocodes = grid.children(cell.geocode);
    const span = cell.span / geocodes.length;
    cell.children = geocodes.map((child, i) => cellOf(grid, child, { key: cell.key + i * span, span }));
  }
  return cell.children;
}

function cellOf(grid: Grid, geocode: string, { key, span }: Keys): Cell {
  cachedCells++;
  return { geocode, bbox: cellBbox(grid, geocode), key, span };
}
