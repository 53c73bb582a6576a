/** Relations of a rectangle in degrees, the geometry of every Item, to the shape of a filter. */
import type { Bbox } from '../../grid/index.js';
import { SegmentIndex } from './geometry-segment-index.js';
import { bboxPolygon, type Geometry, type Point, type Shape } from './geometry-shape.js';

interface PreparedPart {
  bbox: Bbox;
  /** Segments of the rings of a polygon, or of a line. */
  segments: SegmentIndex;
}

/**
 * A shape prepared for many tests. Its parts form one set of points. Polygons are assumed to be valid by the simple features
 * standard: rings do not cross, and polygons share at most points.
 *
 * Why these tests are sufficient (R is a rectangle with an interior): a line meets the interior of R if one of its segments
 * does. If no edge of a polygon meets the interior of R, that interior is completely inside or completely outside of the
 * polygon, and its centre decides. A part that extends beyond R has a vertex beyond it, because R is convex.
 */
export class PreparedGeometry {
  private readonly points: Point[] = [];
  private readonly lines: PreparedPart[] = [];
  private readonly polygons: PreparedPart[] = [];
  readonly bbox: Bbox;
  /** 0 for points, 1 for lines, 2 for areas: the greatest among the parts. */
  readonly dimension: 0 | 1 | 2;

  constructor(shape: Shape) {
    for (const geometry of geometriesOf(shape)) this.add(geometry);
    this.dimension = this.polygons.length > 0 ? 2 : this.lines.length > 0 ? 1 : 0;
    const boxes = [...this.lines, ...this.polygons].map((part) => part.bbox);
    this.bbox = boundingBox([
      ...this.points,
      ...boxes.flatMap(([w, s, e, n]): Point[] => [
        [w, s],
        [e, n],
      ]),
    ]);
  }

  private add(geometry: Geometry): void {
    const part = (lines: Point[][]) => ({
      bbox: boundingBox(lines.flat()),
      segments: new SegmentIndex(lines),
    });
    switch (geometry.type) {
      case 'Point':
        this.points.push(geometry.coordinates);
        break;
      case 'MultiPoint':
        this.points.push(...geometry.coordinates);
        break;
      case 'LineString':
        this.lines.push(part([geometry.coordinates]));
        break;
      case 'MultiLineString':
        this.lines.push(part(geometry.coordinates));
        break;
      case 'Polygon':
        this.polygons.push(part(geometry.coordinates));
        break;
      case 'MultiPolygon':
        for (const rings of geometry.coordinates) this.polygons.push(part(rings));
        break;
      case 'GeometryCollection':
        for (const one of geometry.geometries) this.add(one);
    }
  }

  /** True if shape and rectangle share a point: with `open` of their interiors, otherwise including edges. */
  intersects(box: Bbox, open = false): boolean {
    const contains = open ? containsPointStrictly : containsPoint;
    return (
      this.points.some((point) => contains(box, point)) ||
      this.lines.some((part) => bboxesIntersect(part.bbox, box) && part.segments.intersects(box, open)) ||
      this.polygons.some(
        (part) =>
          bboxesIntersect(part.bbox, box) &&
          (part.segments.intersects(box, open) || part.segments.containsPoint(...centreOf(box))),
      )
    );
  }

  /** True if the rectangle is within the shape. */
  covers(box: Bbox): boolean {
    return this.polygons.some(
      (part) =>
        bboxContains(part.bbox, box) &&
        !part.segments.intersects(box, true) &&
        part.segments.containsPoint(...centreOf(box)),
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

export const bboxesIntersect = (a: Bbox, b: Bbox) =>
  b[2] >= a[0] && b[0] <= a[2] && b[3] >= a[1] && b[1] <= a[3];

const bboxContains = ([west, south, east, north]: Bbox, [w, s, e, n]: Bbox) =>
  w >= west && e <= east && s >= south && n <= north;
