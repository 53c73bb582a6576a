/** Uploads of models that were trained outside of the node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeUpload, encodeUpload, modelUploadSchema } from '../../../src/training/remote-training.js';
import type { TrainedCell } from '../../../src/training/report.js';
import { requestCheck } from '../../../src/utils/json-schema.js';

const images = { psnr: 3, ssim: 3, msSsim: 2 };
const scores = { mse: 0.01, r2: 0.5, psnr: 30, ssim: 0.9, msSsim: { value: 0.8, scales: 3 }, images };
const { mse: _mse, r2: _r2, ...ofTile } = scores;
const weights = Float32Array.of(1, -2);
const files = { 'model.json': Buffer.from('{}'), 'weights.bin': new Uint8Array(weights.buffer) };
const trained: TrainedCell = {
  files,
  bestEpoch: 1,
  epochs: 1,
  losses: [{ epoch: 1, train: 0.1, validation: 0.2 }],
  metrics: { train: scores, validation: scores, tile: { ...ofTile, dates: ['2024-06-01T00:00:00.000Z'] } },
  displayRange: [0.02, 0.31],
  spread: { count: 3, mean: 0.5, squares: 1 },
  selection: { mse: 0.02, mean: 0.05, spread: { count: 2, mean: 0.4, squares: 0.5 } },
  baseline: { mean: scores, linear: scores, unchanged: scores },
  skill: { value: 0.5, interval: [0.1, 0.8] },
  patches: { train: 10, validation: 3 },
  split: 'validation: eastern side',
  bytesRead: 100,
  seconds: 1,
};

test('all image metrics arrive with a model that was trained elsewhere', () => {
  const model = JSON.parse(JSON.stringify(encodeUpload(trained)));
  assert.equal(requestCheck(modelUploadSchema)(model), undefined);
  assert.deepEqual(decodeUpload(model, files), trained);
});

test('scores of older clients are accepted, and unknown members refused', () => {
  const check = requestCheck(modelUploadSchema);
  const { images: _, ...older } = scores;
  const { displayRange: _range, ...model } = encodeUpload({
    ...trained,
    metrics: { train: older, validation: older },
    baseline: { mean: older, linear: older },
  });
  assert.equal(check(model), undefined);
  assert.match(check({ ...model, metrics: { ...model.metrics, other: older } })!, /other/);
  assert.match(check({ ...model, displayRange: [1] })!, /displayRange/);
});
