/** The self-test must refuse what the stock WASM backend computes; this process never registers the repaired kernels. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import * as core from '@tensorflow/tfjs-core';
import * as layers from '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-wasm';
import { gradientSelfTest } from '../../src/training/engine/self-test.js';
import type { Tf } from '../../src/training/engine/tf.js';
import { conv2dBackpropFilter } from '../../src/training/engine/wasm/conv2d.js';
import { heapLoops } from '../../src/training/engine/wasm/loops/heap-loops.js';
import { maxPoolGrad } from '../../src/training/engine/wasm/pool.js';

const tf = { ...core, ...layers } as Tf;
await tf.setBackend('wasm');
const loops = heapLoops(tf.backend() as BackendWasm);

it('refuses the stock kernels: first one is missing, then one is wrong, and the repaired one passes', async () => {
  await assert.rejects(gradientSelfTest(tf), /Conv2DBackpropFilter/);

  tf.registerKernel(conv2dBackpropFilter(tf, loops));
  const wrong = await gradientSelfTest(tf);
  assert.equal(wrong.passed, false);
  assert.ok(wrong.error > 0.01, `error ${wrong.error}`);
  assert.notEqual(wrong.where, 'loss');

  tf.unregisterKernel(tf.MaxPoolGrad, 'wasm');
  tf.registerKernel(maxPoolGrad(tf, loops));
  const repaired = await gradientSelfTest(tf);
  assert.equal(repaired.passed, true, `${repaired.where}: ${repaired.error}`);
});
