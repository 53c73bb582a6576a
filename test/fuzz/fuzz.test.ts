/** Some thousand hostile inputs of a fixed seed; `npm run test:fuzz` makes more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzz } from './run.js';
import { availableTargets, SHARES } from './targets.js';

/** All targets together. */
const INPUTS = 4_000;

for (const target of availableTargets())
  test(`hostile inputs of ${target}`, async () => {
    const { findings } = await fuzz(target, 1, 0, Math.max(10, Math.round(INPUTS * SHARES[target])));
    // Other work on the machine makes inputs slow, too.
    assert.deepEqual(
      findings.filter(({ kind }) => kind !== 'slow'),
      [],
    );
  });
