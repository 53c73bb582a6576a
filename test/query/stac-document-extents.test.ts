import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Bbox, cellBbox, type GridName, gridByName } from '../../src/grid/index.js';
import { collectionExtents, mergeExtents } from '../../src/query/index.js';
import type { Extent } from '../../src/query/stac/extents.js';
import { ColumnIndex, type TileRecord } from '../../src/storage/index.js';
import { tiles } from './tiles.js';

const eastOf = (from: number, lon: number) => (((lon - from) % 360) + 360) % 360;
const widthOf = ([west, , east]: Bbox) => (west <= east ? east - west : east + 360 - west);

function isWithin([west, , east]: Bbox, whole: Bbox): boolean {
  if (widthOf(whole) === 360) return true;
  const start = eastOf(whole[0], west);
  return start + east - west <= widthOf(whole) + 1e-9;
}

/** The shortest arc from the west side of one of the boxes that contains all of them. */
function shortestArc(boxes: Bbox[]): number {
  const widths = boxes.map(([from]) =>
    Math.max(...boxes.map(([west, , east]) => eastOf(from, west) + east - west)),
  );
  return Math.min(360, ...widths);
}

/** A record in a cell of precision 3, which is 1.4 degrees wide. */
function tileAt(lon: number, lat: number, id: string): TileRecord {
  const [tile] = fc.sample(tiles, { numRuns: 1, seed: 1 });
  return {
    ...tile!,
    id,
    collection: 'a',
    grid: 'geohash',
    geocode: gridByName('geohash').encode(lon, lat, 3),
  };
}

const extentAt = (...places: [lon: number, lat: number][]) => {
  const index = new ColumnIndex();
  index.load(places.map(([lon, lat], i) => tileAt(lon, lat, `t${i}`)));
  return collectionExtents(index);
};

test('the extent of a collection across the antimeridian is narrow, and so is that of several nodes', async () => {
  const both = (await extentAt([179.9, 10], [-179.9, 10])).get('a')!;
  assert.deepEqual(both.bbox, [178.59375, 9.84375, -178.59375, 11.25]);
  const parts = await Promise.all([extentAt([179.9, 10]), extentAt([-179.9, 10]), extentAt([170, 12])]);
  const merged = mergeExtents(parts).get('a')!;
  assert.deepEqual(merged.bbox.map(Math.round), [169, 10, -179, 13]);
  assert.deepEqual((await extentAt([-0.1, 0], [0.1, 0])).get('a')!.bbox, [-1.40625, 0, 1.40625, 1.40625]);
});

test('extents of nodes of earlier versions, which have only a box, are merged by it', async () => {
  const now = await extentAt([10, 0]);
  const earlier = new Map([['a', { bbox: [20, 1, 30, 5], start: 5, end: 6 } as unknown as Extent]]);
  for (const parts of [
    [now, earlier],
    [earlier, now],
  ]) {
    const { bbox, start, end } = mergeExtents(parts).get('a')!;
    assert.deepEqual(bbox, [9.84375, 0, 30, 5]);
    assert.deepEqual([start, end], [5, now.get('a')!.end]);
  }
});

test('consecutive tiles with the same key have one extent each', async () => {
  const { grid, geocode, ...rest } = tileAt(0, 0, 'x');
  const at = (id: string, collection: string, cell: { grid: GridName; geocode: string }) => ({
    ...rest,
    ...cell,
    id,
    collection,
  });
  const geohash = (geocode: string) => ({ grid: 'geohash' as const, geocode });
  const bboxes = (...records: TileRecord[]) =>
    Promise.all(
      [false, true].map(async (isSorted) => {
        const index = new ColumnIndex();
        if (isSorted) index.load(records);
        else index.add(records);
        return Object.fromEntries([...(await collectionExtents(index))].map(([id, { bbox }]) => [id, bbox]));
      }),
    );
  const [south, north] = [
    [-180, -90, -135, -45],
    [-180, 0, 0, cellBbox(gridByName('quadtile'), '0')[3]],
  ];
  const quad = { grid: 'quadtile' as const, geocode: '0' };
  const whole = { a: [-180, -90, 0, north![3]] };
  for (const found of [
    ...(await bboxes(at('t', 'a', geohash('0')), at('u', 'a', quad))),
    ...(await bboxes(at('t', 'a', quad), at('u', 'a', geohash('0')))),
  ])
    assert.deepEqual(found, whole);
  for (const found of await bboxes(at('t', 'a', geohash('00')), at('u', 'a', geohash('0'))))
    assert.deepEqual(found, { a: south });
  for (const found of await bboxes(
    at('t', 'b', geohash('0')),
    at('u', 'a', geohash('0')),
    at('v', 'b', quad),
    at('w', 'a', geohash('0')),
  ))
    assert.deepEqual(found, { a: south, b: whole.a });
});

test('a collection all around the Earth, or with too many gaps, has the entire globe as its extent', async () => {
  const around = Array.from({ length: 256 }, (_, i): [number, number] => [-179.5 + i * 1.40625, 0]);
  assert.deepEqual((await extentAt(...around)).get('a')!.bbox, [-180, 0, 180, 1.40625]);
  // Every second cell, and one gap at 90 degrees east: the box is the globe without that gap.
  const gappy = around.filter(([lon], i) => i % 2 === 0 && (lon < 90 || lon > 101));
  const [west, , east] = (await extentAt(...gappy)).get('a')!.bbox;
  assert.ok(west > east && east <= 90 && west >= 101, `${west} ${east}`);
});

test('the extent of a collection is exactly that of its tiles', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(tiles, { maxLength: 40, selector: ({ id }) => id }), async (records) => {
      const index = new ColumnIndex();
      index.load(records);
      const extents = await collectionExtents(index);
      assert.deepEqual([...extents.keys()].sort(), [...new Set(records.map((one) => one.collection))].sort());
      for (const [id, { bbox, start, end }] of extents) {
        const own = records.filter(({ collection }) => collection === id);
        const boxes = own.map((one) => cellBbox(gridByName(one.grid), one.geocode));
        const side = (i: number) => boxes.map((box) => box[i]!);
        assert.deepEqual([bbox[1], bbox[3]], [Math.min(...side(1)), Math.max(...side(3))]);
        assert.ok(boxes.every((box) => isWithin(box, bbox)));
        assert.ok(Math.abs(widthOf(bbox) - shortestArc(boxes)) < 1e-6, `${bbox}`);
        assert.equal(start, Math.min(...own.map((one) => one.start)));
        assert.equal(end, Math.max(...own.map((one) => one.end)));
      }
    }),
    { seed: 42, numRuns: 100 },
  );
});
