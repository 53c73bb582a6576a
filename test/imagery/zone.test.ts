import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { gridByName } from '../../src/grid/index.js';
import { forEachPixelRun, parseZone } from '../../src/imagery/index.js';
import { containsPoint, overlappingPolygons } from '../query/spatial-oracle.js';
import { ringOfBox } from './maps.js';

const grid = gridByName('geohash');
const SIZE = { width: 23, height: 19 };

/** How often each pixel of the cell s is in a zone. */
function pixelCounts(geometry: unknown): number[] {
  const counts = new Array<number>(SIZE.width * SIZE.height).fill(0);
  forEachPixelRun(
    parseZone(geometry),
    grid,
    's',
    SIZE,
    () => {},
    (row, from, to) => {
      for (let column = from; column < to; column++) counts[row * SIZE.width + column]++;
    },
  );
  return counts;
}

function pixelCentres(): [lon: number, lat: number][] {
  const { west, south, east, north } = grid.bounds('s');
  return Array.from({ length: SIZE.width * SIZE.height }, (_, i) => [
    west + (((i % SIZE.width) + 0.5) / SIZE.width) * (east - west),
    north - ((Math.floor(i / SIZE.width) + 0.5) / SIZE.height) * (north - south),
  ]);
}

test('a zone has each pixel of its polygons once, even if they overlap, touch, nest or repeat', () => {
  const centres = pixelCentres();
  let pixels = 0;
  fc.assert(
    fc.property(overlappingPolygons, (shape) => {
      const expected = centres.map((centre) => Number(containsPoint(shape, centre)));
      pixels += expected.reduce((sum, count) => sum + count, 0);
      assert.deepEqual(pixelCounts(shape), expected);
    }),
    { seed: 42, numRuns: 60 },
  );
  assert.ok(pixels > 500, `${pixels}`);
});

test('a hole is never filled: not by another hole over it, nor beyond the outline', () => {
  const [outline, hole] = [ringOfBox(5, 5, 25, 25), ringOfBox(10, 10, 20, 20)];
  const island = ringOfBox(12, 12, 18, 18);
  const inside = ([w, s, e, n]: number[], [x, y]: number[]) => x! > w! && x! < e! && y! > s! && y! < n!;
  const inOutline = (point: number[]) => inside([5, 5, 25, 25], point);
  const cases: [unknown, (point: number[]) => boolean][] = [
    [[outline, hole, hole], (point) => inOutline(point) && !inside([10, 10, 20, 20], point)],
    [[outline, hole, island], (point) => inOutline(point) && !inside([10, 10, 20, 20], point)],
    [[outline, ringOfBox(15, 15, 40, 20)], (point) => inOutline(point) && !inside([15, 15, 40, 20], point)],
    [[outline, outline], () => false],
  ];
  for (const [coordinates, expected] of cases)
    assert.deepEqual(
      pixelCounts({ type: 'Polygon', coordinates }),
      pixelCentres().map((centre) => Number(expected(centre))),
    );
  assert.deepEqual(
    pixelCounts({ type: 'MultiPolygon', coordinates: [[outline, hole], [island]] }),
    pixelCentres().map((centre) =>
      Number(inOutline(centre) && (!inside([10, 10, 20, 20], centre) || inside([12, 12, 18, 18], centre))),
    ),
  );
});

test('an area is a geometry, a Feature, or the only Feature of a file as QGIS and ogr2ogr write it', () => {
  const geometry = { type: 'Point', coordinates: [15, 48] };
  const feature = { type: 'Feature', properties: {}, geometry };
  const file = (...features: object[]) => ({ type: 'FeatureCollection', features });
  const point = { kind: 'point', point: [15, 48] };
  for (const given of [geometry, feature, file(feature)]) assert.deepEqual(parseZone(given), point);
  for (const given of [
    file(),
    file(feature, feature),
    file(file(file({}))),
    { type: 'FeatureCollection' },
    null,
  ])
    assert.throws(() => parseZone(given), { code: 'TW_IMAGERY_REGION' });
});

test('the error for a latitude beyond 90 states the order of coordinates, and suggests the swapped point if that is valid', () => {
  const message = (...coordinates: number[]) => {
    try {
      parseZone({ type: 'Point', coordinates });
    } catch (error) {
      return String(error);
    }
    return '';
  };
  assert.match(message(-33.9, 151.2), /longitude comes first, so perhaps 151\.2,-33\.9 is meant/);
  assert.match(message(100, 95), /beyond 90 degrees of latitude; longitude comes first; give/);
  assert.match(message(181, 10), /beyond 180 degrees of longitude/);
});

test('a message quotes only the start of a long invalid text', () => {
  const long = 'x'.repeat(900_000);
  for (const given of [
    { type: long },
    { type: 'Point', coordinates: long },
    { type: 'Polygon', coordinates: [[[long]]] },
  ])
    assert.throws(
      () => parseZone(given),
      (error: Error) => /xxx\.\.\./.test(error.message) && error.message.length < 400,
    );
});
