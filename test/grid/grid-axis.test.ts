/** Compares the cells of an axis with a search over all cells. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cellAt, cellsBetween, edge, type GridAxis } from '../../src/grid/regular-grid.js';

const runs = { seed: 42, numRuns: 500 };

const axes = fc
  .tuple(fc.integer({ min: -9, max: 9 }), fc.integer({ min: 1, max: 20 }), fc.nat(5))
  .map(([from, length, level]): GridAxis => ({ from, to: from + length, count: 2 ** level }));

/** An axis, and values on it and beyond its ends; half of them are edges of cells. */
const axisAndPlaces = (count: number) =>
  axes.chain((axis) => {
    const length = axis.to - axis.from;
    const anywhere = fc.double({ min: axis.from - length / 4, max: axis.to + length / 4, noNaN: true });
    const onEdge = fc
      .integer({ min: -2, max: axis.count + 2 })
      .map((i) => axis.from + (i / axis.count) * length);
    const places = fc.array(fc.oneof(anywhere, onEdge), { minLength: count, maxLength: count });
    return fc.tuple(fc.constant(axis), places);
  });

const cellsOf = ({ from, to, count }: GridAxis) =>
  Array.from({ length: count }, (_, i) => ({
    low: from + (i / count) * (to - from),
    high: from + ((i + 1) / count) * (to - from),
  }));

test('edges divide the axis into equal cells', () => {
  fc.assert(
    fc.property(axes, (axis) => {
      for (const [i, { low, high }] of cellsOf(axis).entries()) {
        assert.ok(Math.abs(edge(axis, i) - low) < 1e-12);
        assert.ok(Math.abs(edge(axis, i + 1) - high) < 1e-12);
      }
      assert.equal(edge(axis, axis.count), axis.to);
    }),
    runs,
  );
});

test('a value is in the cell whose lower edge is at or below it and whose upper edge is above it', () => {
  fc.assert(
    fc.property(axisAndPlaces(1), ([axis, [place]]) => {
      const index = cellAt(axis, place!);
      assert.ok(Number.isInteger(index) && index >= 0 && index < axis.count);
      assert.ok(index === 0 || edge(axis, index) <= place!);
      assert.ok(index === axis.count - 1 || place! < edge(axis, index + 1));
    }),
    runs,
  );
});

test('an interval overlaps the cells with which it shares more than an edge; a single value, its cell', () => {
  fc.assert(
    fc.property(axisAndPlaces(2), ([axis, places]) => {
      const [low, high] = [Math.min(...places), Math.max(...places)];
      const overlapped = Array.from({ length: axis.count }, (_, i) => i).filter(
        (i) => edge(axis, i) < high && edge(axis, i + 1) > low,
      );
      const expected = low === high ? [cellAt(axis, low)] : overlapped;
      const isOnAxis = high >= axis.from && low <= axis.to && expected.length > 0;
      assert.deepEqual(cellsBetween(axis, low, high), isOnAxis ? [expected[0], expected.at(-1)] : undefined);
      assert.equal(cellsBetween(axis, NaN, high), undefined);
    }),
    runs,
  );
});

test('the edges decide if the quotient of a value rounds to another cell', () => {
  let rounded = 0;
  for (let level = 0; level < 12; level++) {
    const axis: GridAxis = { from: -20037508.342789244, to: 20037508.342789244, count: 2 ** level };
    for (let i = 0; i < axis.count; i++) {
      const place = edge(axis, i);
      const guess = Math.floor(((place - axis.from) / (axis.to - axis.from)) * axis.count);
      if (guess !== i) rounded++;
      assert.equal(cellAt(axis, place), i);
      if (i > 0) assert.equal(cellAt(axis, place - 1e-8), place - 1e-8 < place ? i - 1 : i);
    }
  }
  assert.ok(rounded > 0);
});
