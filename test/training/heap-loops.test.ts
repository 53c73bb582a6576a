import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import { loadEngine } from '../../src/training/engine/load-engine.js';
import { Heap } from '../../src/training/engine/wasm/loops/heap.js';
import { heapLoops } from '../../src/training/engine/wasm/loops/heap-loops.js';
import { loopsContract } from './loops-contract.js';

const { tf } = await loadEngine('wasm');
const loops = heapLoops(tf.backend() as BackendWasm);
loopsContract('the loops on the heap of tfjs', () => loops);

it('products that make the heap grow on their way are right', () => {
  const [a, b] = [tf.ones([2, 64, 100_000]), tf.ones([2, 100_000, 3])];
  const product = tf.matMul(a, b);
  assert.ok(product.dataSync().every((value) => value === 100_000));
  tf.dispose([a, b, product]);
});

it('an operation that needs more memory than WebAssembly has is refused, and the next one works', () => {
  const heap = new Heap(tf.backend() as BackendWasm);
  // malloc takes sizes modulo 4 GB, so it would return too little.
  assert.throws(() => heap.regions(2 ** 30 + 1000), { code: 'TW_TRAIN_ENGINE_MEMORY' });
  const [address] = heap.regions(1000);
  assert.ok(address! > 0);
});
