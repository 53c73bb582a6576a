import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Mask } from '../../src/raster/index.js';
import { imagesOf } from '../../src/training/images.js';
import { modelNamed } from '../../src/training/index.js';
import { cutPatches as cut, halves, type PatchDataset, somePatches } from '../../src/training/patches.js';
import { type Field, field } from './fields.js';

const spec = modelNamed('ndvi');
const { patchSize: PATCH_SIZE, leastPatches: MIN_PATCHES, leastValidation: MIN_VALIDATION_PATCHES } = spec;
const PATCH_VALUES = PATCH_SIZE ** 2 * 3;
const cutPatches = (dates: Field[]) => cut(spec, imagesOf(spec, dates));

const DAY = 86_400_000;

function datasetOf(dates: Field[]): PatchDataset {
  const outcome = cutPatches(dates);
  assert.ok('dataset' in outcome, 'skipped' in outcome ? outcome.skipped : '');
  return outcome.dataset;
}

function reasonOf(dates: Field[]): string {
  const outcome = cutPatches(dates);
  assert.ok('skipped' in outcome, 'not skipped');
  return outcome.skipped;
}

/** A date whose red says where and when a pixel is: column + width * row, and the date's number in green. */
function located(width: number, height: number, date: number): Field {
  const pixels = field(width, height, { time: date * DAY });
  pixels.bands.red = Float32Array.from(pixels.bands.red, (_, at) => at);
  pixels.bands.green.fill(date);
  pixels.bands.nir.fill(width * height);
  return pixels;
}

/** Where and when the pixels of a set of located patches are. */
function places(inputs: Float32Array, width: number): { column: number; row: number; date: number }[] {
  return Array.from({ length: inputs.length / 3 }, (_, i) => ({
    column: inputs[3 * i]! % width,
    row: Math.floor(inputs[3 * i]! / width),
    date: inputs[3 * i + 1]!,
  }));
}

/** How a pair is divided whose cloudy date has cloud where `isCloud` says. */
function splitOfPair(isCloud: (column: number, row: number) => boolean): string {
  const [width, height] = [320, 320];
  const [clear, cloudy] = [1, 2].map((day) => field(width, height, { time: day * DAY })) as [Field, Field];
  cloudy.mask = cloudy.mask.map((code, at) =>
    isCloud(at % width, Math.floor(at / width)) ? Mask.cloud : code,
  );
  const removal = modelNamed('cloud-removal');
  const outcome = cut(removal, imagesOf(removal, [clear, cloudy], [{ clear: 0, cloudy: 1 }]));
  assert.ok('dataset' in outcome);
  return /^validation: (\w+) side/.exec(outcome.dataset.split)![1]!;
}

describe('cutPatches', () => {
  it('holds out a side with as much cloud as there is in training, where cloud is to be removed', () => {
    assert.equal(
      splitOfPair((column, row) => (column + row) % 7 < 2),
      'eastern',
    );
    // The east has none of it, the west nearly all.
    assert.equal(
      splitOfPair((column) => column < 160),
      'southern',
    );
    // No side has half of what the rest has; the north comes nearest.
    assert.equal(
      splitOfPair((column, row) => (row < 10 && column < 64) || (row >= 250 && column < 90)),
      'northern',
    );
  });

  it('cuts the inputs and the mean NDVI of clear land', () => {
    const date = field(128, 128);
    const { validation, counts, train } = datasetOf([date]);
    // Eight patches a row: two in the east for validation, a gap of one, five for training.
    assert.deepEqual(counts, { train: 40, validation: 16 });
    assert.equal(validation.count, 16);
    assert.equal(train.count, 9 * 15);
    // The first validation patch, by a plain loop.
    let sum = 0;
    for (let y = 0; y < 16; y++) {
      for (let x = 0; x < 16; x++) {
        const at = y * 128 + 96 + x;
        sum += (date.bands.nir[at]! - date.bands.red[at]!) / (date.bands.nir[at]! + date.bands.red[at]!);
        assert.equal(validation.inputs[(y * 16 + x) * 3], date.bands.red[at]);
        assert.equal(validation.inputs[(y * 16 + x) * 3 + 2], date.bands.blue[at]);
      }
    }
    assert.ok(Math.abs(validation.targets[0]! - sum / 256) < 1e-6);
  });

  it('never trains near a validation pixel, nor on a validation date', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 112, max: 170 }),
        fc.integer({ min: 112, max: 170 }),
        fc.integer({ min: 1, max: 5 }),
        (width, height, count) => {
          const dates = Array.from({ length: count }, (_, n) => located(width, height, n));
          const { train, validation } = datasetOf(dates);
          const trained = places(train.inputs, width);
          const held = places(validation.inputs, width);
          const from = Math.min(...held.map(({ column }) => column));
          const to = Math.max(...trained.map(({ column }) => column));
          assert.ok(from - to > PATCH_SIZE, `training ends at ${to}, validation starts at ${from}`);
          const last = Math.max(...trained.map(({ date }) => date));
          const first = Math.min(...held.map(({ date }) => date));
          assert.ok(
            count === 1 ? first === last : last < first,
            `trained to ${last}, validated from ${first}`,
          );
        },
      ),
      { seed: 42, numRuns: 15 },
    );
  });

  it('keeps dates of the same time together', () => {
    const dates = [located(128, 128, 0), located(128, 128, 0), located(128, 128, 1), located(128, 128, 1)];
    const { train, validation } = datasetOf(dates);
    assert.deepEqual(new Set(places(train.inputs, 128).map(({ date }) => date)), new Set([0]));
    assert.deepEqual(new Set(places(validation.inputs, 128).map(({ date }) => date)), new Set([1]));
  });

  it('takes the mean of the usable pixels, and fills the others with it', () => {
    const date = field(128, 128);
    for (const code of [Mask.cloud, Mask.shadow, Mask.snow, Mask.nodata]) {
      const clouded = structuredClone(date);
      // A corner of the first validation patch: 8x8 of its 256 pixels, bright and without vegetation.
      for (let y = 0; y < 8; y++) {
        for (let x = 0; x < 8; x++) {
          const at = y * 128 + 96 + x;
          clouded.mask[at] = code;
          clouded.bands.red[at] = 0.9;
          clouded.bands.nir[at] = 0.9;
        }
      }
      const { validation } = datasetOf([clouded]);
      let red = 0;
      let ndvi = 0;
      for (let i = 0; i < 256; i++) {
        const at = Math.floor(i / 16) * 128 + 96 + (i % 16);
        if (clouded.mask[at] !== Mask.clear) continue;
        red += date.bands.red[at]! / 192;
        ndvi +=
          (date.bands.nir[at]! - date.bands.red[at]!) / (date.bands.nir[at]! + date.bands.red[at]!) / 192;
      }
      assert.ok(Math.abs(validation.inputs[0]! - red) < 1e-6);
      assert.ok(Math.abs(validation.targets[0]! - ndvi) < 1e-6);
    }
  });

  it('counts pixels that nobody assessed as clear', () => {
    const date = field(128, 128);
    const clear = datasetOf([date]);
    date.mask.fill(Mask.notAssessed);
    assert.deepEqual(datasetOf([date]), clear);
  });

  it('leaves out a patch with less than three quarters of usable pixels', () => {
    const date = field(128, 128);
    const hide = (rows: number) => {
      for (let y = 0; y < rows; y++) date.mask.fill(Mask.cloud, y * 128 + 96, y * 128 + 112);
    };
    hide(4);
    assert.equal(datasetOf([date]).counts.validation, 16);
    hide(5);
    assert.equal(datasetOf([date]).counts.validation, 15);
  });

  it('passes over missing values and sums of zero', () => {
    const date = field(128, 128);
    date.bands.red[96] = Number.NaN;
    date.bands.red[97] = -date.bands.nir[97]!;
    const { validation } = datasetOf([date]);
    assert.ok(validation.inputs.every(Number.isFinite));
    assert.ok(validation.targets.every((ndvi) => ndvi >= -1 && ndvi <= 1));
  });

  it('holds out another side where the eastern one is covered', () => {
    const date = field(128, 128);
    for (let y = 0; y < 128; y++) date.mask.fill(Mask.nodata, y * 128 + 112, (y + 1) * 128);
    assert.match(datasetOf([date]).split, /eastern/);
    for (let y = 0; y < 128; y++) date.mask.fill(Mask.nodata, y * 128 + 96, (y + 1) * 128);
    assert.match(datasetOf([date]).split, /western/);
  });

  it('validates on more of the later dates where the latest is covered', () => {
    const dates = [0, 1, 2, 3].map((n) => located(128, 128, n));
    dates[3]!.mask.fill(Mask.cloud);
    const { split, validation } = datasetOf(dates);
    assert.match(split, /2 dates from 1970-01-03; training: 2 earlier dates/);
    assert.equal(validation.count, 16);
  });

  it('says why a place is skipped', () => {
    assert.match(reasonOf([]), /^no dates/);
    assert.match(reasonOf([field(40, 40)]), /^40x40 px are too few/);
    const date = field(96, 96);
    assert.match(
      reasonOf([date]),
      /^30 usable patches of 16x16 px, at least 40 are needed \(coverage 100 %, cloud 0 %\)$/,
    );
    date.mask.fill(Mask.nodata, 0, 96 * 48);
    date.mask.fill(Mask.cloud, 96 * 72);
    assert.match(
      reasonOf([date]),
      /^5 usable patches of 16x16 px, at least 40 are needed \(coverage 50 %, cloud 50 %\)$/,
    );
    date.mask.fill(Mask.notAssessed);
    assert.match(reasonOf([date]), /cloud not assessed/);
    // Enough for training, but a large tile with a held-out side under cloud on every edge.
    const ringed = field(256, 256);
    for (let at = 0; at < ringed.mask.length; at++) {
      const x = at % 256;
      const y = Math.floor(at / 256);
      if (Math.min(x, y, 255 - x, 255 - y) < 62) ringed.mask[at] = Mask.cloud;
    }
    assert.match(reasonOf([ringed]), /usable/);
  });

  it('asks for enough patches of both kinds, of full size', () => {
    const { train, validation, counts } = datasetOf([field(140, 163)]);
    assert.ok(counts.train + counts.validation >= MIN_PATCHES && counts.validation >= MIN_VALIDATION_PATCHES);
    assert.equal(train.inputs.length, train.count * PATCH_VALUES);
    assert.equal(validation.inputs.length, validation.count * PATCH_VALUES);
  });

  it('halves a set: no patch is in both, none is lost', () => {
    const { train } = datasetOf([field(140, 163)]);
    for (const count of [2, 5, 12]) {
      const set = somePatches(train, count);
      const [first, second] = halves(set);
      assert.ok(first.count > 0 && Math.abs(first.count - second.count) <= 1);
      assert.deepEqual(Float32Array.of(...first.inputs, ...second.inputs), set.inputs);
      assert.deepEqual(Float32Array.of(...first.targets, ...second.targets), set.targets);
    }
    const single = somePatches(train, 1);
    assert.deepEqual(halves(single), [single, single]);
  });
});
