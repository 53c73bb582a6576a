/** Inputs and targets of models, from dates and pairs of dates. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Mask } from '../../../src/raster/index.js';
import { pairCloudyWithClear } from '../../../src/training/cells.js';
import { getModelSpec } from '../../../src/training/index.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import { clouded, field } from '../synthetic-land.js';

const DAY = 86_400_000;

describe('labelImages', () => {
  it('has the index of pixels that are clear and have all bands, and masks the others', () => {
    const date = field(8, 4);
    const codes = [Mask.nodata, Mask.clear, Mask.cloud, Mask.shadow, Mask.snow, Mask.notAssessed];
    date.mask.set(codes);
    date.bands.swir16[9] = NaN;
    date.bands.nir[10] = 0;
    date.bands.swir16[10] = 0;
    const [image] = labelImages(getModelSpec('ndmi'), [date]);
    assert.deepEqual([...image!.targetMask.subarray(0, 12)], [0, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1]);
    assert.equal(image!.inputMask[9], 0);
    // The date can be shown although its index has no meaning.
    assert.equal(image!.inputMask[10], 1);
    const [nir, swir] = [date.bands.nir[1]!, date.bands.swir16[1]!];
    assert.ok(Math.abs(image!.targets[0]![1]! - (nir - swir) / (nir + swir)) < 1e-6);
    // NDVI does not need the missing band.
    assert.equal(labelImages(getModelSpec('ndvi'), [date])[0]!.targetMask[9], 1);
  });

  it('pairs a cloudy date with a clear one: pixels without a clear value do not count', () => {
    const clear = field(64, 64);
    const cloudy = clouded(clear);
    clear.mask[5] = Mask.shadow;
    cloudy.mask[6] = Mask.nodata;
    cloudy.mask[7] = Mask.shadow;
    const spec = getModelSpec('cloud-removal');
    const [image, ...more] = labelImages(spec, [clear, cloudy], [{ cloudy: 1, clear: 0 }]);
    assert.equal(more.length, 0);
    assert.equal(image!.time, clear.time, 'the later one');
    const own = [cloudy.bands.red, cloudy.bands.green, cloudy.bands.blue];
    assert.deepEqual(image!.cloudy, own);
    assert.equal(image!.inputs.length, 13);
    image!.cloud!.forEach((is, at) => {
      for (const b of [0, 1, 2])
        assert.equal(image!.inputs[b]![at], is ? image!.inputs[9 + b]![at] : own[b]![at]);
    });
    assert.deepEqual(image!.targets, [clear.bands.red, clear.bands.green, clear.bands.blue]);
    assert.deepEqual([...image!.targetMask.subarray(4, 8)], [1, 0, 0, 1]);
    assert.deepEqual(
      image!.cloud,
      cloudy.mask.map((code) => (code === Mask.cloud || code === Mask.shadow ? 1 : 0)),
    );
  });

  it('has no cloud at pixels that were not assessed, because a prediction cannot know it either', () => {
    const clear = field(64, 64);
    const cloudy = clouded(clear);
    cloudy.mask.fill(Mask.notAssessed, 0, 64 * 32);
    const [image] = labelImages(getModelSpec('cloud-removal'), [clear, cloudy], [{ cloudy: 1, clear: 0 }]);
    assert.ok(image!.cloud!.subarray(0, 64 * 32).every((is) => is === 0));
    assert.ok(image!.cloud!.includes(1));
  });
});

describe('pairCloudyWithClear', () => {
  const tile = (day: number, cloudCover: number | null, coverage = 100) => ({
    start: day * DAY,
    cloudCover,
    coverage,
  });

  it('pairs each clear date with the nearest cloudy one', () => {
    const tiles = [tile(0, 30), tile(10, 0), tile(14, 20), tile(40, 0), tile(50, 5), tile(51, 60)];
    assert.deepEqual(pairCloudyWithClear(tiles), [
      { cloudy: 2, clear: 1, prior: [0, 3, 4, 5] },
      { cloudy: 4, clear: 3, prior: [5, 2, 1, 0] },
    ]);
  });

  it('excludes dates that are too far, too cloudy, not cloudy enough, incomplete or not assessed', () => {
    const clear = tile(100, 0);
    for (const other of [tile(69, 30), tile(101, 61), tile(101, 4.9), tile(101, 30, 94), tile(101, null)])
      assert.deepEqual(pairCloudyWithClear([other, clear]), []);
    assert.deepEqual(pairCloudyWithClear([tile(70, 30), tile(100, 0, 94)]), []);
    assert.deepEqual(pairCloudyWithClear([tile(70, 30), clear]), [{ cloudy: 0, clear: 1, prior: [] }]);
    // The earlier of two equally near dates is used.
    assert.deepEqual(pairCloudyWithClear([tile(110, 30), tile(90, 30), clear]), [
      { cloudy: 1, clear: 2, prior: [0] },
    ]);
  });
});
