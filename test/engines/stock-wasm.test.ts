/** The self-test must refuse what the stock WASM backend computes. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import * as core from '@tensorflow/tfjs-core';
import * as layers from '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-wasm';
import { wasmPrimitives } from '../../src/engines/compute-primitives/wasm.js';
import { selfTest } from '../../src/engines/self-test.js';
import type { Tf } from '../../src/engines/tfjs.js';
import { registerTrainingKernels } from '../../src/engines/wasm-kernels/register.js';
import { beforeTests } from '../support/before-tests.js';

const tf = { ...core, ...layers } as Tf;
await beforeTests(tf.setBackend('wasm'));
const loops = wasmPrimitives(tf.backend() as BackendWasm);

it('refuses the stock kernels: some are missing, one is wrong; the extended backend passes', async () => {
  await assert.rejects(selfTest(tf), /not yet supported in gradients|not registered/);

  const stock = { ...tf.getKernel(tf.MaxPoolGrad, 'wasm')! };
  registerTrainingKernels(tf, loops);
  const repaired = tf.getKernel(tf.MaxPoolGrad, 'wasm')!;
  const { kernelFunc } = repaired;
  repaired.kernelFunc = stock.kernelFunc;
  const wrong = await selfTest(tf);
  assert.equal(wrong.passed, false);
  assert.ok(wrong.error > 1e-3, `error ${wrong.error}`);
  assert.match(wrong.where, /^gradient of /);

  repaired.kernelFunc = kernelFunc;
  const sound = await selfTest(tf);
  assert.equal(sound.passed, true, `${sound.where}: ${sound.error}`);
});
