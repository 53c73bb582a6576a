import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type { Tensor4D, TensorInfo } from '@tensorflow/tfjs-core';
import { WasmHeap } from '../../src/engines/compute-primitives/heap.js';
import { wasmPrimitives } from '../../src/engines/compute-primitives/wasm.js';
import { loadEngine } from '../../src/engines/load.js';
import { selfTest } from '../../src/engines/self-test.js';
import { loopsContract } from './compute-primitives-contract.js';

const { tf } = await loadEngine('wasm');
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
