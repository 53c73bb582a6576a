/** How a rectangle in degrees, the geometry of every Item, lies to the shape of a filter. */
import type { Bbox } from '../../grid/index.js';
import { SegmentIndex } from './segment-index.js';
import type { Geometry, Point, Shape } from './shape.js';

interface PreparedPart {
  bbox: Bbox;
  /** Of the rings of a polygon, or of a line. */
  segments: SegmentIndex;
}

/**
 * A shape made ready for many questions. Its parts are taken together as one set of points; polygons are taken to be
 * valid, as the simple features standard says: rings that do not cross, polygons that share no more than points.
 *
 * Why these tests are enough (R is the rectangle, with an inside): a line meets the inside of R where one of its segments
 * does. Where no edge of a polygon meets the inside of R, that inside is wholly within the polygon or wholly outside, so
 * its centre tells which. And whatever reaches beyond R has a vertex beyond it, because R is convex.
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

  /** Whether the shape's own rectangle and another share a point: else the shape does not either. */
  bboxIntersects(box: Bbox): boolean {
    return bboxesIntersect(this.bbox, box);
  }

  /** Whether shape and rectangle share a point, edges included. */
  intersects(box: Bbox): boolean {
    return (
      this.points.some((point) => containsPoint(box, point)) ||
      this.lines.some((part) => bboxesIntersect(part.bbox, box) && part.segments.intersects(box, false)) ||
      this.polygons.some(
        (part) =>
          bboxesIntersect(part.bbox, box) &&
          (part.segments.intersects(box, false) || part.segments.containsPoint(...centreOf(box))),
      )
    );
  }

  /** Whether the insides of shape and rectangle share a point. */
  intersectsInterior(box: Bbox): boolean {
    return (
      this.points.some((point) => containsPointStrictly(box, point)) ||
      this.lines.some((part) => bboxesIntersect(part.bbox, box) && part.segments.intersects(box, true)) ||
      this.polygons.some(
        (part) =>
          bboxesIntersect(part.bbox, box) &&
          (part.segments.intersects(box, true) || part.segments.containsPoint(...centreOf(box))),
      )
    );
  }

  /** Whether the rectangle lies in the shape. */
  covers(box: Bbox): boolean {
    return this.polygons.some(
      (part) =>
        bboxContains(part.bbox, box) &&
        !part.segments.intersects(box, true) &&
        part.segments.containsPoint(...centreOf(box)),
    );
  }

  /** Whether the shape lies in the rectangle. */
  isWithin(box: Bbox): boolean {
    return bboxContains(box, this.bbox);
  }
}

/** A box as a polygon, as two where it crosses the antimeridian, as a line or a point where it has no area. */
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
  const ring: Point[] = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ];
  return [{ type: 'Polygon', coordinates: [ring] }];
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

const bboxesIntersect = (a: Bbox, b: Bbox) => b[2] >= a[0] && b[0] <= a[2] && b[3] >= a[1] && b[1] <= a[3];

const bboxContains = ([west, south, east, north]: Bbox, [w, s, e, n]: Bbox) =>
  w >= west && e <= east && s >= south && n <= north;
