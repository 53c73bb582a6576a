import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ScaleCheck } from '../../src/hyperspectral/output-tile.js';

const check = (trained: number[], ...pixels: number[][]) => {
  const one = new ScaleCheck(trained);
  for (const pixel of pixels) one.add(pixel);
  one.finish();
};

test('values that are not reflectance are refused, and the message names the side without a scale', () => {
  const code = 'TW_ANALYSIS_OTHER_SCALE';
  assert.throws(() => check([0.05, 0.3], [500, 3000], [700, 3500]), {
    code,
    message: /3250 here.*ingest this/,
  });
  assert.throws(() => check([500, 3000], [0.05, 0.3]), { code, message: /0\.3 here.*the training again/ });
  assert.throws(() => check([0.05, 0.3], [4, 30]), { code });
});

test('dark water, snow, shadow, derivatives and radiance do not count as a different scale', () => {
  check([0.05, 0.4], [0.007, 0.002]);
  check([0.02, 0.001], [0.3, 0.4]);
  check([0.05, 0.3], [1.1, 0.9]);
  check([0.05, 0.3], [-0.01, -0.02]);
  check([1e-3, -1e-4], [1e-6, 1e-7]);
  check([60, 20], [3, 0.4]);
  check([0.05, 0.3]);
});
