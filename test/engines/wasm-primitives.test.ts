import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type { Tensor4D, TensorInfo } from '@tensorflow/tfjs-core';
import fc from 'fast-check';
import { WasmHeap } from '../../src/engines/compute-primitives/heap.js';
import { FILTER_GRADIENT, FORWARD, INPUT_GRADIENT } from '../../src/engines/compute-primitives/primitives.js';
import { wasmPrimitives } from '../../src/engines/compute-primitives/wasm.js';
import { loadEngine } from '../../src/engines/load.js';
import { selfTest } from '../../src/engines/self-test.js';
import { beforeTests } from '../support/before-tests.js';
import { loopsContract } from './compute-primitives-contract.js';
import { one, whole } from './contract-values.js';

const { tf } = await beforeTests(loadEngine('wasm'));
const loops = wasmPrimitives(tf.backend() as BackendWasm);
loopsContract('the loops on the heap of tfjs', () => loops);

it('products that grow the heap are correct', () => {
  const [a, b] = [tf.ones([2, 64, 100_000]), tf.ones([2, 100_000, 3])];
  const product = tf.matMul(a, b);
  assert.ok(product.dataSync().every((value) => value === 100_000));
  tf.dispose([a, b, product]);
});

it('an operation that needs too much memory is refused, and the next one works', () => {
  const backend = tf.backend() as BackendWasm;
  const heap = new WasmHeap(backend);
  // malloc takes sizes modulo 4 GB, so it would return too little.
  assert.throws(() => heap.scratch(2 ** 30 + 1000), { code: 'TW_TRAIN_ENGINE_MEMORY' });
  assert.throws(() => backend.makeOutput([2 ** 30 + 1000], 'float32'), { code: 'TW_TRAIN_ENGINE_MEMORY' });
  const [address] = heap.scratch(1000);
  assert.ok(address! > 0);
});

it('unsupported operations are refused', () => {
  const [x, f] = [tf.ones([1, 6, 6, 1]), tf.ones([2, 2, 1, 1])] as [Tensor4D, Tensor4D];
  assert.throws(() => tf.conv2d(x, f, 3, 0, 'NHWC', 1, 'ceil'), /rounds sizes by ceil/);
  assert.throws(() => tf.conv2d(x, f, 1, -1), /negative padding/);
  assert.throws(() => tf.maxPool(x, 2, 1, 2), /outside of the image/);
  assert.throws(
    () => tf.conv2d(tf.ones([1, 4, 4, 0]) as Tensor4D, tf.ones([1, 1, 0, 2]) as Tensor4D, 1, 'same'),
    /of nothing/,
  );
  assert.equal(tf.maxPool(tf.ones([1, 4, 4, 0]) as Tensor4D, 2, 2, 'same').size, 0);
  assert.throws(() => tf.matMul(tf.ones([2, 2], 'int32'), tf.ones([2, 2], 'int32')), /not yet supported/);
});

type Pad = number | [[0, 0], [number, number], [number, number], [0, 0]] | 'same' | 'valid';

const side = fc.nat(3);
const PADDINGS: fc.Arbitrary<Pad> = fc.oneof(
  fc.constantFrom('same' as const, 'valid' as const),
  side,
  fc
    .tuple(fc.tuple(side, side), fc.tuple(side, side))
    .map(([rows, columns]): Pad => [[0, 0], rows, columns, [0, 0]]),
);

/** For each axis: first row or column of the image that the first window covers, and number of windows. */
function windowsOf(pad: Pad, size: number, filter: number, stride: number, axis: 0 | 1): [number, number] {
  const count = Math.ceil(size / stride);
  const missing = Math.max(0, (count - 1) * stride + filter - size);
  const [before, after] =
    pad === 'same'
      ? [Math.floor(missing / 2), Math.ceil(missing / 2)]
      : pad === 'valid'
        ? [0, 0]
        : typeof pad === 'number'
          ? [pad, pad]
          : pad[axis === 0 ? 1 : 2];
  return [-before, Math.floor((size + before + after - filter) / stride) + 1];
}

it('convolutions and pools with any padding, strides and filter match plain loops, or are refused', () => {
  let refused = 0;
  fc.assert(
    fc.property(
      one(fc.integer({ min: 1, max: 9 })),
      one(fc.integer({ min: 1, max: 5 })),
      one(fc.integer({ min: 1, max: 4 })),
      PADDINGS,
      fc.constantFrom([3, 2] as const, [8, 16] as const),
      fc.nat(1000),
      (size, filter, strides, pad, [channels, outputs], seed) => {
        const x = whole(size[0] * size[1] * channels, seed);
        const weights = whole(filter[0] * filter[1] * channels * outputs, seed + 1);
        const [[top, rows], [left, columns]] = ([0, 1] as const).map((axis) =>
          windowsOf(pad, size[axis], filter[axis], strides[axis], axis),
        );
        const image = tf.tensor4d(x, [1, ...size, channels]);
        const taps = tf.tensor4d(weights, [...filter, channels, outputs]);
        const convolve = (a: Tensor4D, b: Tensor4D) => tf.conv2d<Tensor4D>(a, b, strides, pad);
        const pool = (a: Tensor4D) => tf.maxPool<Tensor4D>(a, filter, strides, pad);
        try {
          if (rows < 1 || columns < 1) {
            assert.throws(() => convolve(image, taps), /larger than the padded image/);
            assert.throws(() => pool(image), /larger than the padded image|outside of the image/);
            refused++;
            return;
          }
          const dy = whole(rows * columns * outputs, seed + 2);
          const [y, dx, dw] = [dy, x, weights].map(({ length }) => new Float64Array(length));
          const most = new Float64Array(rows * columns * channels).fill(-Infinity);
          for (let at = 0; at < rows * columns; at++)
            for (let tap = 0; tap < filter[0] * filter[1]; tap++) {
              const row = top + Math.floor(at / columns) * strides[0] + Math.floor(tap / filter[1]);
              const column = left + (at % columns) * strides[1] + (tap % filter[1]);
              if (row < 0 || row >= size[0] || column < 0 || column >= size[1]) continue;
              for (let c = 0; c < channels; c++) {
                const from = (row * size[1] + column) * channels + c;
                most[at * channels + c] = Math.max(most[at * channels + c], x[from]);
                for (let o = 0; o < outputs; o++) {
                  const weight = (tap * channels + c) * outputs + o;
                  y[at * outputs + o] += x[from] * weights[weight];
                  dx[from] += weights[weight] * dy[at * outputs + o];
                  dw[weight] += x[from] * dy[at * outputs + o];
                }
              }
            }
          const { value, grads } = tf.valueAndGrads((a, b) => convolve(a as Tensor4D, b as Tensor4D))(
            [image, taps],
            tf.tensor4d(dy, [1, rows, columns, outputs]),
          );
          assert.deepEqual(value.shape, [1, rows, columns, outputs]);
          for (const [found, expected] of [
            [value, y],
            [grads[0], dx],
            [grads[1], dw],
          ] as const)
            found.dataSync().forEach((number, i) => {
              assert.ok(Math.abs(number - expected[i]) < 1e-3, `${number}, not ${expected[i]}`);
            });
          // Each window needs a pixel of the image.
          if (most.includes(-Infinity)) assert.throws(() => pool(image), /outside of the image/);
          else assert.deepEqual(Array.from(pool(image).dataSync()), Array.from(most));
        } finally {
          tf.dispose([image, taps]);
        }
      },
    ),
    { seed: 42, numRuns: 400 },
  );
  assert.ok(refused > 0);
  const [x, f] = [tf.ones([1, 6, 6, 1]), tf.ones([2, 2, 1, 1])] as [Tensor4D, Tensor4D];
  for (const pad of [0.5, NaN]) {
    assert.throws(() => tf.conv2d(x, f, 1, pad), /a padding of .* pixels is not supported/);
    assert.throws(() => tf.maxPool(x, 2, 1, pad), /padding/);
  }
});

it('arrays of another length than the geometry says are refused', () => {
  // One image of 3 x 4 pixels and 2 channels, 5 outputs, filter 2 x 1, stride 1, without padding: 2 x 4 pixels.
  const geometry = Int32Array.of(1, 3, 4, 2, 5, 2, 1, 1, 1, 1, 1, 0, 0, 0, 0);
  const lengths = [24, 20, 40, 5];
  const run = (direction: number, [x, filter, y, bias]: number[]) =>
    loops.convolve(
      direction,
      geometry,
      new Float32Array(x),
      new Float32Array(filter),
      new Float32Array(y),
      direction === FORWARD ? new Float32Array(bias) : null,
    );
  for (const direction of [FORWARD, INPUT_GRADIENT, FILTER_GRADIENT]) {
    run(direction, lengths);
    for (const [i, length] of lengths.entries())
      for (const other of [0, length - 1, length + 1, 2 * length])
        if (i < 3 || direction === FORWARD)
          assert.throws(
            () => run(direction, lengths.with(i, other)),
            new RegExp(`${other} values in place of`),
          );
  }
  const tall = Int32Array.from(geometry).with(5, 4);
  assert.throws(
    () => loops.convolve(FORWARD, tall, new Float32Array(24), new Float32Array(40), new Float32Array(), null),
    /larger than the padded image/,
  );
});

it('the self-test refuses an engine whose gradients are NaN', async () => {
  const kernel = tf.getKernel(tf.Conv2DBackpropFilter, 'wasm')!;
  const { kernelFunc } = kernel;
  kernel.kernelFunc = (given) => {
    const result = kernelFunc(given) as TensorInfo;
    (tf.backend() as BackendWasm).typedArrayFromHeap(result).fill(NaN);
    return result;
  };
  const { passed, error } = await selfTest(tf);
  kernel.kernelFunc = kernelFunc;
  assert.deepEqual([passed, error], [false, Infinity]);
});
