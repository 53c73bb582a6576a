/** Pixel sizes of a collection: nearly equal sizes are the same, whatever scenes follow. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  computePixelGrids,
  geohash,
  matchPixelSizes,
  type PixelSizes,
  pixelGridsFor,
} from '../../src/grid/index.js';

const square = (...sizes: number[]) => sizes.map((size) => ({ x: size, y: size }));
const fit = (known: PixelSizes, ...sizes: number[]) => {
  const found = matchPixelSizes(known, square(...sizes));
  return { fitted: found.fitted.map(({ x }) => x), known: found.known };
};
const runs = { seed: 42, numRuns: 300 };
const scenes = fc.array(
  fc.array(fc.double({ min: 0.3, max: 5000, noNaN: true }), { minLength: 1, maxLength: 4 }),
  {
    minLength: 1,
    maxLength: 8,
  },
);

test('sizes within five percent of a known one are replaced by it, the nearest first; standard ones are known from the start', () => {
  assert.deepEqual(fit([], 30.2, 15.1), { fitted: [30, 15], known: [square(30, 15)] });
  assert.deepEqual(fit([], 928), { fitted: [926.6254], known: [square(926.6254)] });
  const first = fit([], 3020);
  assert.deepEqual(first, { fitted: [3020], known: [square(3020)] });
  assert.deepEqual(fit(first.known, 3030), { fitted: [3020], known: first.known });
  assert.deepEqual(fit(first.known, 3190).fitted, [3190]);
  // Two sizes of one scene remain two.
  assert.deepEqual(fit([square(3)], 3.1, 3), { fitted: [3.1, 3], known: [square(3), square(3.1)] });
  // Sizes are equal only if both axes match.
  const flat = matchPixelSizes([square(40)], [{ x: 40, y: 80 }]);
  assert.deepEqual(flat.fitted, [{ x: 40, y: 80 }]);
  // A finer size is computed with a coarser one that exists, a coarser one by itself.
  assert.deepEqual(fit([square(60)], 20, 180).known, [square(60, 20), square(180)]);
});

test('an earlier scene gets the same sizes and pixels again, whatever scenes came after it', () => {
  fc.assert(
    fc.property(scenes, (all) => {
      let known: PixelSizes = [];
      const taken = all.map((sizes) => {
        const found = matchPixelSizes(known, square(...sizes));
        known = found.known;
        return { sizes, fitted: found.fitted, grids: pixelGridsFor(known, geohash, '9q8yy', found.fitted) };
      });
      for (const { sizes, fitted, grids } of taken) {
        for (const [i, { x }] of fitted.entries())
          assert.ok(Math.abs(Math.log(x / sizes[i]!)) <= 0.05 + 0.02);
        assert.deepEqual(pixelGridsFor(known, geohash, '9q8yy', fitted), grids);
        assert.equal(matchPixelSizes(known, fitted).known, known);
      }
    }),
    runs,
  );
});

test('no two sizes that a collection gets from scenes of one size each match', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 1, max: 2000, noNaN: true }), { maxLength: 30 }), (sizes) => {
      const known = sizes.reduce<PixelSizes>((list, size) => matchPixelSizes(list, square(size)).known, []);
      const all = known.flat().map(({ x }) => x);
      for (const [i, a] of all.entries())
        for (const b of all.slice(i + 1)) assert.ok(Math.abs(Math.log(a / b)) > 0.05, `${a} ${b}`);
    }),
    runs,
  );
});

test('the sizes of the first scene are computed together, and so are unknown ones', () => {
  const sizes = square(10, 20, 60);
  const { known } = matchPixelSizes([], sizes);
  assert.deepEqual(pixelGridsFor(known, geohash, '9q8yy', sizes), computePixelGrids(geohash, '9q8yy', sizes));
  assert.deepEqual(pixelGridsFor([], geohash, '9q8yy', sizes), computePixelGrids(geohash, '9q8yy', sizes));
  // 10 m alone would be 377 x 488, which would not stack with the tiles of complete scenes.
  assert.deepEqual(pixelGridsFor(known, geohash, '9q8yy', square(10)), [{ width: 378, height: 486 }]);
});

test('a new size is added to the first list whose coarsest size is not finer, in both axes', () => {
  const known = [square(60, 20), square(300)];
  assert.deepEqual(fit(known, 40).known, [square(60, 20, 40), square(300)]);
  assert.deepEqual(fit(known, 100).known, [square(60, 20), square(300, 100)]);
  assert.deepEqual(fit(known, 1500).known, [...known, square(1500)]);
  for (const long of [
    { x: 10, y: 100 },
    { x: 100, y: 10 },
  ])
    assert.deepEqual(matchPixelSizes(known, [long]).known, [square(60, 20), [...square(300), long]]);
  // Sizes that are equal in one axis only are two sizes.
  const both = [
    { x: 40, y: 80 },
    { x: 40, y: 120 },
    { x: 45, y: 80 },
  ];
  assert.deepEqual(matchPixelSizes([], both).fitted, both);
  assert.deepEqual(
    pixelGridsFor([both], geohash, '9q8yy', [both[1]!]),
    computePixelGrids(geohash, '9q8yy', both).slice(1, 2),
  );
});
