import assert from 'node:assert/strict';
import { it } from 'node:test';
import { loadEngine } from '../../src/engines/load.js';
import { engineContract } from './engine-contract.js';
import { selfTestContract } from './self-test-contract.js';

engineContract('wasm');
selfTestContract('wasm');

it('runs the SIMD build on one thread', async () => {
  const { tf } = await loadEngine('wasm');
  assert.equal(tf.getBackend(), 'wasm');
  assert.equal(tf.env().getBool('WASM_HAS_SIMD_SUPPORT'), true);
  const { getThreadsCount } = await import('@tensorflow/tfjs-backend-wasm');
  assert.ok(getThreadsCount() <= 1);
});

it('allows one engine per process', async () => {
  await loadEngine('wasm');
  await assert.rejects(loadEngine('tfjs-node'), { code: 'TW_TRAIN_ENGINE', message: /already runs wasm/ });
});
