/** Scores on whole tiles, from files. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { loadEngine } from '../../../src/engines/load.js';
import type { Tf } from '../../../src/engines/tfjs.js';
import { Mask } from '../../../src/raster/index.js';
import { readAcquisitions } from '../../../src/training/acquisitions.js';
import { initialFitStatistics, linearPredictor } from '../../../src/training/evaluation.js';
import { displayRange, imageScores, meanScores } from '../../../src/training/image-metrics.js';
import { getModelSpec } from '../../../src/training/index.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import { buildModel } from '../../../src/training/models/network.js';
import { makePatches } from '../../../src/training/patches.js';
import { ridge } from '../../../src/training/ridge-regression.js';
import { imagesToScore, scoreTile } from '../../../src/training/tile-scores.js';
import { tempFolder } from '../../support/temp.js';
import { writeDate } from '../acquisition-files.js';
import { clouded, field } from '../synthetic-land.js';

/** Acquisitions within three days are one pass. */
const STEP_MS = 5 * 86_400_000;
const timeOf = (day: number) => Date.UTC(2020, 5, 1) + day * STEP_MS;

/** A date whose first rows are under cloud. */
function date(width: number, height: number, day: number, cloudyRows: number) {
  const pixels = field(width, height, { seed: day + 1, time: timeOf(day) });
  pixels.mask.fill(Mask.cloud, 0, cloudyRows * width);
  return pixels;
}

describe('scores of entire tiles', () => {
  let tf: Tf;
  before(async () => {
    ({ tf } = await loadEngine('wasm'));
  });

  it('use at most three validation dates, those with the most pixels that count', () => {
    const spec = { ...getModelSpec('ndmi'), patchSize: 16 };
    const rows = [0, 0, 0, 0, 0, 0, 20, 3, 0, 9, 6];
    const images = labelImages(
      spec,
      rows.map((cloudy, day) => date(160, 160, day, cloudy)),
    );
    const outcome = makePatches(spec, images, { from: timeOf(8) });
    assert.ok('dataset' in outcome);
    assert.deepEqual(outcome.dataset.validationImages, [8, 9, 10]);
    assert.deepEqual(imagesToScore(images, [6, 7, 8, 9, 10]), [7, 8, 10]);
    assert.deepEqual(imagesToScore(images, [0, 1, 2, 3, 4]), [0, 1, 2]);
    assert.deepEqual(imagesToScore(images, [6, 9]), [6, 9]);
    // The order of the dates differs from the order of the images.
    const reversed = makePatches(spec, images.toReversed(), { from: timeOf(8) });
    assert.ok('dataset' in reversed);
    assert.deepEqual(reversed.dataset.validationImages, [0, 1, 2]);
  });

  it('are those of the linear function of an untrained model, with five scales, and leave no tensors behind', async (t) => {
    const folder = await tempFolder(t);
    const spec = { ...getModelSpec('ndmi'), minPatches: 6, minValidationPatches: 1 };
    const dates = [0, 1, 2].map((day) =>
      writeDate(folder, `${day}`, date(240, 256, day, day === 2 ? 20 : 0)),
    );
    const read = await readAcquisitions(dates);
    assert.ok('dates' in read);
    const images = labelImages(spec, read.dates);
    const outcome = makePatches(spec, images, { from: timeOf(2) });
    assert.ok('dataset' in outcome, JSON.stringify(outcome));
    const { train, validationImages } = outcome.dataset;
    const scored = imagesToScore(images, validationImages);
    const range = displayRange(train)!;
    const line = ridge(initialFitStatistics(train));
    const model = buildModel(tf, spec, 1, line);
    const before = tf.memory().numTensors;
    const source = { dates, scored };
    const score = await scoreTile(tf, model, spec, range, source);
    assert.deepEqual(await scoreTile(tf, model, spec, range, source, new Map()), score);
    assert.equal(tf.memory().numTensors, before);
    model.dispose();

    const expected = scored.map((i) => {
      const { width, height, inputs, targets, targetMask } = images[i]!;
      const pixels = width * height;
      const values = Float32Array.from(
        { length: 3 * pixels },
        (_, at) => inputs[at % 3]![Math.floor(at / 3)]!,
      );
      const whole = {
        ...{ count: pixels, size: 1, inputBands: 3, targetBands: 1 },
        ...{ inputs: values, targets: targets[0]!, targetMask: new Float32Array(pixels) },
      };
      const predicted = [linearPredictor(line)(whole)];
      return imageScores({ width, height, truth: targets, predicted, counts: targetMask }, range);
    });
    const mean = meanScores(expected);
    assert.ok(Math.abs(score.psnr! - mean.psnr!) < 0.01, `${score.psnr} is not ${mean.psnr}`);
    assert.ok(Math.abs(score.ssim! - mean.ssim!) < 1e-3);
    assert.ok(Math.abs(score.msSsim!.value - mean.msSsim!.value) < 1e-3);
    assert.equal(score.msSsim!.scales, 5);
    assert.deepEqual(score.images, { psnr: 1, ssim: 1, msSsim: 1 });
    assert.deepEqual(score.dates, ['2020-06-11T00:00:00.000Z']);
  });

  it('read both dates of pairs, and compare with the clear one', async (t) => {
    const folder = await tempFolder(t);
    const spec = getModelSpec('cloud-removal');
    const clear = field(180, 100);
    const cloudy = clouded(clear);
    const dates = [field(180, 100, { seed: 9 }), cloudy, clear].map((one, i) =>
      writeDate(folder, `${i}`, one),
    );
    const pairs = [
      { cloudy: 1, clear: 0 },
      { cloudy: 1, clear: 2 },
    ];
    // The untrained model returns the cloudy date outside of clouds. The whole image is compared with the clear date.
    const model = buildModel(tf, spec, 1);
    const own = await scoreTile(tf, model, spec, [0, 0.3], { dates, pairs, scored: [1] });
    const other = await scoreTile(tf, model, spec, [0, 0.3], { dates, pairs, scored: [0] });
    const both = await scoreTile(tf, model, spec, [0, 0.3], { dates, pairs, scored: [0, 1] });
    model.dispose();
    assert.ok(own.ssim! > other.ssim! + 0.1, `${own.ssim} and ${other.ssim}`);
    assert.equal(both.psnr, (own.psnr! + other.psnr!) / 2);
    assert.deepEqual([both.images.psnr, both.dates], [2, [new Date(cloudy.time).toISOString()]]);
    assert.equal(own.msSsim!.scales, 4, '100 pixels have room for four');
  });
});
