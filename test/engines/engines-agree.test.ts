import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { EngineName } from '../../src/engines/load.js';
import { reasonToSkip } from './engine-contract.js';

function lossesOf(engine: EngineName): Record<string, number[]> {
  const script = fileURLToPath(new URL('./losses-worker.js', import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, engine], {
    encoding: 'utf8',
    env: { ...process.env, OMP_NUM_THREADS: '1', OMP_WAIT_POLICY: 'passive' },
  });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

for (const engine of ['wasm-onednn', 'tfjs-node', 'tfjs-node-gpu'] as const)
  test(`each model has the same losses on ${engine} and on wasm`, async (t) => {
    const reason = await reasonToSkip(engine);
    if (reason !== undefined) return t.skip(reason);
    const [own, others] = [lossesOf(engine), lossesOf('wasm')];
    assert.deepEqual(Object.keys(own), Object.keys(others));
    for (const [model, losses] of Object.entries(own)) {
      losses.forEach((loss, step) => {
        const other = others[model]![step]!;
        assert.ok(Math.abs(loss - other) <= 1e-4 * other, `${model}, step ${step + 1}: ${loss} and ${other}`);
      });
    }
  });
