/** Spatial relations by a second implementation, the topology library jsts, and shapes that are valid to it. */
import fc from 'fast-check';
import GeoJSONReader from 'jsts/org/locationtech/jts/io/GeoJSONReader.js';
import RelateOp, { type IntersectionMatrix } from 'jsts/org/locationtech/jts/operation/relate/RelateOp.js';
import UnaryUnionOp from 'jsts/org/locationtech/jts/operation/union/UnaryUnionOp.js';
import IsValidOp from 'jsts/org/locationtech/jts/operation/valid/IsValidOp.js';
import type { Bbox } from '../../src/grid/index.js';
import type { Geometry, Point, Shape } from '../../src/query/geometry.js';

const reader = new GeoJSONReader();

const dimensions = {
  Point: 0,
  MultiPoint: 0,
  LineString: 1,
  MultiLineString: 1,
  Polygon: 2,
  MultiPolygon: 2,
};

const ring = ([w, s, e, n]: Bbox): Point[] => [
  [w, s],
  [e, s],
  [e, n],
  [w, n],
  [w, s],
];

/** A box as GeoJSON; those across the antimeridian are two polygons. */
function geometryOf(shape: Shape): Exclude<Geometry, { type: 'GeometryCollection' }> {
  if (!('bbox' in shape)) {
    if (shape.type === 'GeometryCollection') throw new Error('jsts does not relate collections');
    return shape;
  }
  const [w, s, e, n] = shape.bbox;
  if (w > e) return { type: 'MultiPolygon', coordinates: [[ring([w, s, 180, n])], [ring([-180, s, e, n])]] };
  if (w === e && s === n) return { type: 'Point', coordinates: [w, s] };
  if (w === e || s === n)
    return {
      type: 'LineString',
      coordinates: [
        [w, s],
        [e, n],
      ],
    };
  return { type: 'Polygon', coordinates: [ring(shape.bbox)] };
}

const matrices = new WeakMap<Shape, Map<string, IntersectionMatrix>>();

/** The area of an Item: its cell, or the union of some boxes. */
type Area = Bbox | Bbox[];

function matrixOf(area: Area, shape: Shape): IntersectionMatrix {
  const known = matrices.get(shape) ?? new Map<string, IntersectionMatrix>();
  matrices.set(shape, known);
  const geometry = reader.read(geometryOf(shape));
  const matrix =
    known.get(area.join()) ??
    RelateOp.relate(
      unionOf(area),
      // Only the union of polygons that overlap or share edges is valid.
      geometryOf(shape).type === 'MultiPolygon' ? UnaryUnionOp.union(geometry) : geometry,
    );
  known.set(area.join(), matrix);
  return matrix;
}

const isBbox = (area: Area): area is Bbox => typeof area[0] === 'number';

function unionOf(area: Area) {
  const boxes = isBbox(area) ? [area] : area;
  return UnaryUnionOp.union(
    reader.read({ type: 'MultiPolygon', coordinates: boxes.map((box) => [ring(box)]) }),
  );
}

/** True if a geometry of GeoJSON is valid and has the same points as an area. */
export function isOutlineOf(geometry: Geometry, area: Area): boolean {
  return isValid(geometry) && RelateOp.relate(reader.read(geometry), unionOf(area)).isEquals(2, 2);
}

/** True if two geometries of GeoJSON share a point. */
export const shareAPoint = (a: Geometry, b: Shape): boolean =>
  RelateOp.relate(reader.read(a), reader.read(geometryOf(b))).isIntersects();

/** True if a function of CQL2 holds for the area of an Item and a shape other than a collection. */
export function relates(op: string, area: Area, shape: Shape): boolean {
  const matrix = matrixOf(area, shape);
  const dimension = dimensions[geometryOf(shape).type];
  switch (op) {
    case 's_intersects':
      return matrix.isIntersects();
    case 's_disjoint':
      return matrix.isDisjoint();
    case 's_within':
      return matrix.isWithin();
    case 's_contains':
      return matrix.isContains();
    case 's_equals':
      return matrix.isEquals(2, dimension);
    case 's_touches':
      return matrix.isTouches(2, dimension);
    case 's_crosses':
      return matrix.isCrosses(2, dimension);
    default:
      return matrix.isOverlaps(2, dimension);
  }
}

/** True if a point lies inside the union of the polygons of a shape, and not on its edge. */
export function containsPoint(shape: Shape, coordinates: Point): boolean {
  const geometries = geometryOf(shape);
  const polygons = geometries.type === 'MultiPolygon' ? geometries.coordinates : [];
  const point = reader.read({ type: 'Point', coordinates });
  return polygons.some((rings) =>
    RelateOp.relate(point, reader.read({ type: 'Polygon', coordinates: rings })).isWithin(),
  );
}

/** Multiples of a quarter of 5.625 degrees, on which edges of geohash cells often lie, and other coordinates. */
const STEP = 5.625 / 4;
const longitude = fc.oneof(
  fc.integer({ min: -128, max: 128 }).map((steps) => steps * STEP),
  fc.integer({ min: -8, max: 8 }).map((steps) => steps * STEP),
);
const latitude = fc.oneof(
  fc.integer({ min: -60, max: 60 }).map((steps) => steps * STEP),
  fc.integer({ min: -8, max: 8 }).map((steps) => steps * STEP),
);
const free = fc
  .tuple(fc.integer({ min: -180e6, max: 180e6 }), fc.integer({ min: -85e6, max: 85e6 }))
  .map(([x, y]): Point => [x / 1e6, y / 1e6]);
const point = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(longitude, latitude) },
  { weight: 1, arbitrary: free },
);

const line = fc.array(point, { minLength: 2, maxLength: 4 });

/** A polygon around a centre, its corners ordered by angle, and perhaps a hole of the same form. */
const polygon = fc
  .record({
    centre: point,
    corners: fc.array(fc.tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 1, max: 30 })), {
      minLength: 3,
      maxLength: 9,
    }),
    hole: fc.boolean(),
  })
  .map(({ centre: [x, y], corners, hole }): Point[][] => {
    const sorted = [...new Map(corners).entries()].sort(([a], [b]) => a - b);
    const snap = (value: number, most: number) =>
      Math.max(-most, Math.min(most, Math.round(value / STEP) * STEP));
    const around = (scale: number) => {
      const points = sorted.map(([hour, radius]): Point => {
        const angle = (hour / 24) * 2 * Math.PI;
        const r = radius * STEP * scale;
        return [snap(x + r * Math.cos(angle), 180), snap(y + r * Math.sin(angle), 85)];
      });
      return [...points, points[0]!];
    };
    return hole ? [around(1), around(0.4)] : [around(1)];
  });

export const isValid = (geometry: Geometry) => {
  try {
    return IsValidOp.isValid(reader.read(geometry));
  } catch {
    // Rings with too few points.
    return false;
  }
};

const boxes = fc
  .tuple(point, point)
  .map(([[w, s], [e, n]]): Shape => ({ bbox: [w, Math.min(s, n), e, Math.max(s, n)] }))
  .filter((shape) => {
    const [w, s, e, n] = (shape as { bbox: Bbox }).bbox;
    return w <= e || (w < 180 && e > -180 && s < n);
  });

/** A rectangle, also with edges on those of others, and perhaps with a hole that is or touches its half. */
const rectangle = fc
  .tuple(fc.integer({ min: -4, max: 3 }), fc.integer({ min: -4, max: 3 }), fc.nat(5), fc.nat(5), fc.nat(3))
  .map(([west, south, width, height, hole]): Point[][] => {
    const box = (w: number, s: number, e: number, n: number) =>
      ring([w * STEP, s * STEP, e * STEP, n * STEP]);
    const outline = box(west, south, west + width + 1, south + height + 1);
    const turned = (width + height) % 2 === 0 ? outline : outline.toReversed();
    return hole === 0
      ? [turned, box(west + 0.25, south + 0.25, west + 0.75 * (width + 1), south + 0.5 * (height + 1))]
      : [turned];
  });

/** Valid polygons that overlap, touch, nest or repeat. */
export const overlappingPolygons: fc.Arbitrary<Geometry> = fc
  .array(fc.oneof({ weight: 3, arbitrary: rectangle }, { weight: 1, arbitrary: polygon }), {
    minLength: 1,
    maxLength: 5,
  })
  .chain((parts) => fc.shuffledSubarray([...parts, ...parts.slice(0, 1)], { minLength: 1 }))
  .filter((parts) => parts.every((coordinates) => isValid({ type: 'Polygon', coordinates })))
  .map((coordinates) => ({ type: 'MultiPolygon', coordinates }));

export const shapes: fc.Arbitrary<Shape> = fc.oneof(
  { weight: 3, arbitrary: boxes },
  { weight: 1, arbitrary: point.map((coordinates): Geometry => ({ type: 'Point', coordinates })) },
  {
    weight: 1,
    arbitrary: fc
      .array(point, { minLength: 1, maxLength: 3 })
      .map((coordinates): Geometry => ({ type: 'MultiPoint', coordinates })),
  },
  {
    weight: 2,
    arbitrary: line.map((coordinates): Geometry => ({ type: 'LineString', coordinates })).filter(isValid),
  },
  {
    weight: 1,
    arbitrary: fc
      .array(line, { minLength: 1, maxLength: 2 })
      .map((coordinates): Geometry => ({ type: 'MultiLineString', coordinates }))
      .filter(isValid),
  },
  {
    weight: 5,
    arbitrary: polygon.map((coordinates): Geometry => ({ type: 'Polygon', coordinates })).filter(isValid),
  },
  {
    weight: 2,
    arbitrary: fc
      .array(polygon, { minLength: 1, maxLength: 2 })
      .map((coordinates): Geometry => ({ type: 'MultiPolygon', coordinates }))
      .filter(isValid),
  },
);
