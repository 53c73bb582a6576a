/** Convolutions and their gradients against plain loops. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { FILTER_GRADIENT, FORWARD, INPUT_GRADIENT } from '../../src/engines/compute-primitives/primitives.js';
import { one, type Tested, uniform, whole } from './contract-values.js';

interface Sizes {
  batch: number;
  height: number;
  width: number;
  channels: number;
  outputs: number;
  filter: [number, number];
  stride: [number, number];
  dilation: [number, number];
  /** Top, left, bottom, right. */
  pad: [number, number, number, number];
}

interface Shape extends Sizes {
  rows: number;
  columns: number;
}

/** Undefined if the filter does not fit into the image. */
function shapeOf(sizes: Sizes): Shape | undefined {
  const { height, width, filter, stride, dilation, pad } = sizes;
  const size = (length: number, axis: 0 | 1) =>
    Math.floor(
      (length + pad[axis]! + pad[axis + 2]! - ((filter[axis] - 1) * dilation[axis] + 1)) / stride[axis] + 1,
    );
  const [rows, columns] = [size(height, 0), size(width, 1)];
  return rows > 0 && columns > 0 ? { ...sizes, rows, columns } : undefined;
}

const geometryOf = ({ batch, height, width, channels, outputs, filter, stride, dilation, pad }: Sizes) =>
  Int32Array.of(batch, height, width, channels, outputs, ...filter, ...stride, ...dilation, ...pad);

/** Each product of an input and a weight that contributes to an output. */
function forEachProduct(s: Shape, visit: (x: number, weight: number, y: number) => void): void {
  for (let n = 0; n < s.batch; n++)
    for (let row = 0; row < s.rows; row++)
      for (let column = 0; column < s.columns; column++)
        for (let i = 0; i < s.filter[0]; i++)
          for (let j = 0; j < s.filter[1]; j++) {
            const y = row * s.stride[0] + i * s.dilation[0] - s.pad[0];
            const x = column * s.stride[1] + j * s.dilation[1] - s.pad[1];
            if (y < 0 || y >= s.height || x < 0 || x >= s.width) continue;
            for (let c = 0; c < s.channels; c++)
              for (let o = 0; o < s.outputs; o++)
                visit(
                  ((n * s.height + y) * s.width + x) * s.channels + c,
                  ((i * s.filter[1] + j) * s.channels + c) * s.outputs + o,
                  ((n * s.rows + row) * s.columns + column) * s.outputs + o,
                );
          }
}

const sizes: fc.Arbitrary<Sizes> = fc.record({
  batch: fc.integer({ min: 1, max: 3 }),
  height: fc.integer({ min: 1, max: 9 }),
  width: fc.integer({ min: 1, max: 9 }),
  channels: fc.integer({ min: 1, max: 18 }),
  outputs: fc.integer({ min: 1, max: 18 }),
  filter: one(fc.integer({ min: 1, max: 4 })),
  stride: one(fc.integer({ min: 1, max: 3 })),
  dilation: one(fc.integer({ min: 1, max: 2 })),
  pad: fc.tuple(fc.nat(2), fc.nat(2), fc.nat(2), fc.nat(2)),
});
/** Convolutions of single pixels, which an engine may compute in another way. */
const ofPixels = sizes.map(
  (given): Sizes => ({ ...given, filter: [1, 1], stride: [1, 1], dilation: [1, 1], pad: [0, 0, 0, 0] }),
);

/** Convolutions of 3 x 3 pixels. The padding is a multiple of the distance between the taps. */
const inTiles: fc.Arbitrary<Sizes> = fc
  .record({
    batch: fc.integer({ min: 1, max: 2 }),
    height: fc.integer({ min: 1, max: 15 }),
    width: fc.integer({ min: 1, max: 15 }),
    channels: fc.constantFrom(8, 16, 24),
    outputs: fc.constantFrom(8, 16, 40),
    distance: fc.integer({ min: 1, max: 3 }),
    pad: fc.tuple(fc.nat(3), fc.nat(3), fc.nat(3), fc.nat(3)),
  })
  .map(({ distance, pad: [top, left, bottom, right], ...rest }) => ({
    ...rest,
    filter: [3, 3],
    stride: [1, 1],
    dilation: [distance, distance],
    pad: [top * distance, left * distance, bottom, right],
  }));

/** Rows that fill registers, of filters without dilation whose size is a multiple of their stride. */
const inRows: fc.Arbitrary<Sizes> = fc
  .record({
    batch: fc.integer({ min: 1, max: 2 }),
    height: fc.integer({ min: 1, max: 12 }),
    width: fc.integer({ min: 8, max: 24 }),
    channels: fc.constantFrom(1, 3, 8, 16),
    outputs: fc.constantFrom(8, 24),
    stride: one(fc.integer({ min: 1, max: 2 })),
    times: one(fc.integer({ min: 1, max: 2 })),
    pad: fc.tuple(fc.nat(3), fc.nat(3), fc.nat(3), fc.nat(3)),
  })
  .map(({ stride, times, ...rest }) => ({
    ...rest,
    stride,
    filter: [stride[0] * times[0], stride[1] * times[1]],
    dilation: [1, 1],
  }));

/** Errors are relative to the largest value. */
const TOLERANCE = 2e-5;

type Values = (length: number, seed: number) => Float32Array;

/** Winograd's tiles have factors such as 1/6, so whole numbers are not exact in them. */
const mayBeTiled = ({ channels, outputs, filter }: Shape) =>
  channels % 8 === 0 && outputs % 8 === 0 && filter[0] === filter[1] && filter[0] >= 3;

/** The largest error of a convolution and its gradients, compared with plain loops in float64. */
function largestError(loops: Tested, s: Shape, values: (length: number, of: number) => Float32Array): number {
  const x = values(s.batch * s.height * s.width * s.channels, 0);
  const filter = values(s.filter[0] * s.filter[1] * s.channels * s.outputs, 1);
  const dy = values(s.batch * s.rows * s.columns * s.outputs, 2);
  const bias = values(s.outputs, 3);
  const y = Float64Array.from(dy, (_, i) => bias[i % s.outputs]!);
  const dx = new Float64Array(x.length);
  const dw = new Float64Array(filter.length);
  forEachProduct(s, (atX, atFilter, atY) => {
    y[atY]! += x[atX]! * filter[atFilter]!;
    dx[atX]! += filter[atFilter]! * dy[atY]!;
    dw[atFilter]! += x[atX]! * dy[atY]!;
  });
  // Kernels must not read the former contents of their outputs.
  const [toY, toDx, toDw] = [y, dx, dw].map(({ length }) => new Float32Array(length).fill(NaN));
  const geometry = geometryOf(s);
  loops.convolve(FORWARD, geometry, x, filter, toY!, bias);
  loops.convolve(INPUT_GRADIENT, geometry, toDx!, filter, dy, null);
  loops.convolve(FILTER_GRADIENT, geometry, x, toDw!, dy, null);
  let most = 0;
  for (const [found, wanted] of [
    [toY!, y],
    [toDx!, dx],
    [toDw!, dw],
  ] as const) {
    const largest = wanted.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
    for (const [i, value] of wanted.entries()) {
      const error = Math.abs(found[i]! - value) / largest;
      most = Number.isNaN(error) ? Infinity : Math.max(most, error);
    }
  }
  return most;
}

/** Registers the tests of convolutions; `loops` is called in them. */
export function convolutionContract(loops: () => Tested): void {
  /** Compares convolutions and their gradients with plain loops. */
  const agrees = (
    given: fc.Arbitrary<Sizes>,
    values: Values,
    tolerance: (s: Shape) => number,
    numRuns: number,
  ) =>
    fc.assert(
      fc.property(given, fc.nat(1000), (sizes, seed) => {
        const shape = shapeOf(sizes);
        fc.pre(shape !== undefined);
        const error = largestError(loops(), shape!, (length, of) => values(length, seed + of));
        assert.ok(error <= tolerance(shape!), `${error}`);
      }),
      { seed: 42, numRuns },
    );

  it('convolutions and their gradients match plain loops; exactly for small integers, except in tiles', () => {
    agrees(fc.oneof(sizes, ofPixels), whole, (s) => (mayBeTiled(s) ? TOLERANCE : 0), 300);
  });

  it('convolutions of 3 x 3 pixels and complete vectors of channels, in tiles, match plain loops', () => {
    agrees(inTiles, uniform, () => TOLERANCE, 100);
  });

  it('convolutions of 4 x 4 pixels with stride 2 match plain loops', () => {
    const ofFour = inTiles.map(
      ({ dilation: _, ...rest }): Sizes => ({
        ...{ ...rest, filter: [4, 4], stride: [2, 2], dilation: [1, 1] },
        ...{ height: rest.height + 20, width: rest.width + 24 },
      }),
    );
    agrees(ofFour, uniform, () => TOLERANCE, 30);
  });

  it('convolutions whose inputs are read in place match plain loops', () => {
    agrees(inRows, uniform, () => TOLERANCE, 200);
    agrees(inRows, whole, () => 0, 100);
  });

  it('convolutions of rows of 7 and 5 taps with stride 2 match plain loops', () => {
    const ofRows = inRows.map(
      ({ filter, ...rest }): Sizes => ({
        ...rest,
        filter: [filter[0]! % 2 === 0 ? 5 : 1, 7],
        stride: [1, 2],
      }),
    );
    const square = ofRows.map(
      (given): Sizes => ({ ...given, height: given.height + 6, filter: [5, 7], stride: [2, 2] }),
    );
    agrees(fc.oneof(ofRows, square), whole, () => 0, 100);
  });
}
