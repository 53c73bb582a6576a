import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Mask } from '../../../src/raster/index.js';
import { getModelSpec } from '../../../src/training/index.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import {
  concatPatches,
  makePatches as cut,
  type Patches,
  type TrainValidationPatches,
} from '../../../src/training/patches.js';
import { type Field, field } from '../synthetic-land.js';

const spec = getModelSpec('ndvi');
const { patchSize: PATCH_SIZE, minPatches: MIN_PATCHES, minValidationPatches: MIN_VALIDATION_PATCHES } = spec;
const PATCH_VALUES = PATCH_SIZE ** 2 * 3;
const cutPatches = (dates: Field[], from?: number) =>
  cut(spec, labelImages(spec, dates), from === undefined ? undefined : { from });

/** Time between the dates of a test: acquisitions within three days are one pass. */
const STEP_MS = 5 * 86_400_000;

function datasetOf(dates: Field[], from?: number): TrainValidationPatches {
  const outcome = cutPatches(dates, from);
  assert.ok('dataset' in outcome, 'skipped' in outcome ? outcome.skipped : '');
  return outcome.dataset;
}

function reasonOf(dates: Field[]): string {
  const outcome = cutPatches(dates);
  assert.ok('skipped' in outcome, 'not skipped');
  return outcome.skipped;
}

/** A date whose bands encode the origin of each pixel: column + width * row in red, the number of the date in green. */
function located(width: number, height: number, date: number): Field {
  const pixels = field(width, height, { time: date * STEP_MS });
  pixels.bands.red = Float32Array.from(pixels.bands.red, (_, at) => at);
  pixels.bands.green.fill(date);
  pixels.bands.nir.fill(width * height);
  return pixels;
}

/** Position and date of each pixel in a set of located patches. */
function positionsAndDates(
  inputs: Float32Array,
  width: number,
): { column: number; row: number; date: number }[] {
  return Array.from({ length: inputs.length / 3 }, (_, i) => ({
    column: inputs[3 * i]! % width,
    row: Math.floor(inputs[3 * i]! / width),
    date: inputs[3 * i + 1]!,
  }));
}

describe('makePatches', () => {
  it('trains and validates cloud removal only on patches with cloud', () => {
    const removal = getModelSpec('cloud-removal');
    const outcomeOf = (width: number, isCloud: (column: number, row: number) => boolean) => {
      const [clear, cloudy] = [1, 2].map((day) => field(width, width, { time: day * STEP_MS })) as [
        Field,
        Field,
      ];
      cloudy.mask = cloudy.mask.map((code, at) =>
        isCloud(at % width, Math.floor(at / width)) ? Mask.cloud : code,
      );
      return cut(removal, labelImages(removal, [clear, cloudy], [{ clear: 0, cloudy: 1 }]));
    };
    // The eastern side, columns 231 to 358, has no cloud.
    const outcome = outcomeOf(384, (column) => column < 192 || column >= 370);
    assert.ok('dataset' in outcome, JSON.stringify(outcome));
    const { dataset } = outcome;
    assert.equal(dataset.holdOut.side, 'western');
    // One of the three columns of training patches has cloud.
    assert.deepEqual(dataset.counts, { train: 6, validation: 10 });
    for (const set of [dataset.selection!, dataset.validation]) {
      assert.ok(set.targetMask!.includes(1));
      assert.ok(set.targetMask!.every((is, at) => is === 0 || set.cloud![at] === 1));
    }
    const none = outcomeOf(448, (column, row) => column < 20 && row < 20);
    assert.match(
      'skipped' in none ? none.skipped : '',
      /^4 usable patches with cloud of 16x16 px, at least 12 are needed/,
    );
  });

  it('adapts the patches of maps to the cell, with the receptive field between validation and training', () => {
    const clear = (width: number, height: number) => located(width, height, 0);
    const cutCell = (name: string, width: number, height: number) => {
      const model = getModelSpec(name);
      const dates = [clear(width, height)];
      if (name !== 'cloud-removal') return cut(model, labelImages(model, dates));
      const cloudy = located(width, height, 1);
      cloudy.mask.fill(Mask.cloud);
      return cut(model, labelImages(model, [dates[0]!, cloudy], [{ clear: 0, cloudy: 1 }]));
    };
    const sizes = new Set<number>();
    fc.assert(
      fc.property(
        fc.constantFrom(['ndmi', 32] as const, ['cloud-removal', 25] as const),
        fc.integer({ min: 60, max: 420 }),
        fc.integer({ min: 60, max: 420 }),
        ([name, field], width, height) => {
          const outcome = cutCell(name, width, height);
          if ('skipped' in outcome) {
            // Patches of 16 pixels need a gap on both sides of the validation ground, and room for six and three of them.
            assert.ok(
              Math.min(width, height) < 2 * field + 3 * 16 + 64,
              `${width}x${height}: ${outcome.skipped}`,
            );
            return;
          }
          const { train, selection, validation, holdOut, counts } = outcome.dataset;
          sizes.add(train.size);
          assert.ok([64, 32, 16].includes(train.size) && holdOut.gap === field);
          assert.ok(counts.train + counts.validation >= 12 && counts.validation >= 3);
          // Large cells use large patches.
          assert.ok(train.size === 64 || Math.min(width, height) < 6 * 2 * train.size + 2 * field);
          if (name === 'cloud-removal') return;
          const bands = ({ inputs }: Patches) => positionsAndDates(inputs, width);
          const box = (positions: { column: number; row: number }[]) =>
            positions.reduce(
              ({ left, right, top, bottom }, { column, row }) => ({
                ...{ left: Math.min(left, column), right: Math.max(right, column) },
                ...{ top: Math.min(top, row), bottom: Math.max(bottom, row) },
              }),
              { left: width, right: -1, top: height, bottom: -1 },
            );
          const held = box(bands(validation));
          for (const set of [train, selection!]) {
            assert.equal(set.size, validation.size);
            const known = box(bands(set));
            const apart = Math.max(
              ...[held.left - known.right, known.left - held.right],
              ...[held.top - known.bottom, known.top - held.bottom],
            );
            assert.ok(apart > field, `${apart} pixels between training and validation`);
          }
          const edge = Math.min(held.left, held.top, width - 1 - held.right, height - 1 - held.bottom);
          assert.ok(edge >= field, `${edge} pixels from the edge of the cell`);
        },
      ),
      { seed: 42, numRuns: 60 },
    );
    assert.deepEqual([...sizes].sort(), [16, 32, 64]);
    // Cells of Landsat at the default precision, at the equator and at 45 degrees.
    for (const [width, height] of [
      [163, 163],
      [140, 163],
      [115, 163],
    ] as const)
      for (const name of ['ndmi', 'cloud-removal']) assert.ok('dataset' in cutCell(name, width, height));
  });

  it('divides larger patches into smaller ones if sets of several cells are joined', () => {
    const sets = (
      [
        [400, 420],
        [163, 150],
        [120, 180],
      ] as const
    ).map(([width, height], i) => {
      const model = getModelSpec('ndmi');
      const date = located(width, height, i);
      for (let at = 0; at < date.mask.length; at += 7) date.mask[at] = Mask.cloud;
      // A corner under cloud, whose parts count for nothing.
      for (let y = 0; y < 40; y++) date.mask.fill(Mask.cloud, y * width, y * width + 20);
      const made = cut(model, labelImages(model, [date]));
      assert.ok('dataset' in made, JSON.stringify(made));
      return made.dataset.train;
    });
    assert.ok(new Set(sets.map(({ size }) => size)).size > 1);
    const counted = ({ inputs, targets, targetMask }: Patches) =>
      Array.from(targetMask!, (is, i) =>
        is === 1 ? `${inputs[3 * i]} ${inputs[3 * i + 1]} ${targets[i]}` : '',
      ).filter((pixel) => pixel !== '');
    const before = sets.flatMap(counted).sort();
    const joined = concatPatches(sets);
    assert.equal(joined.size, Math.min(...sets.map(({ size }) => size)));
    assert.deepEqual(counted(joined).sort(), before);
    assert.equal(
      joined.count,
      sets.reduce((sum, { count }) => sum + count, 0),
    );
    // Pixels keep their neighbours: each patch is a square of its cell.
    const side = joined.size;
    for (let n = 0; n < joined.count; n++) {
      const at = (x: number, y: number) => (n * side * side + y * side + x) * 3;
      const width = { 0: 400, 1: 163, 2: 120 }[joined.inputs[at(0, 0) + 1]!]!;
      const isCounted = (x: number, y: number) => joined.targetMask![n * side * side + y * side + x] === 1;
      const first = [...Array(side * side).keys()].find((i) => isCounted(i % side, Math.floor(i / side)))!;
      const corner =
        joined.inputs[3 * (n * side * side + first)]! - Math.floor(first / side) * width - (first % side);
      for (let i = 0; i < side * side; i++)
        if (isCounted(i % side, Math.floor(i / side)))
          assert.equal(
            joined.inputs[3 * (n * side * side + i)],
            corner + Math.floor(i / side) * width + (i % side),
          );
    }
  });

  it('cuts the inputs and the mean NDVI of clear land', () => {
    const date = field(128, 128);
    const { validation, counts, train, selection } = datasetOf([date]);
    // Eight patches a row: one at the eastern edge is left out, two for validation, a gap of one, four for training. The validation
    // side leaves out the first and the last row of patches; the last row of the training side is for selection.
    assert.deepEqual(counts, { train: 32, validation: 12 });
    assert.equal(validation.count, 12);
    assert.equal(train.count, 7 * 13);
    assert.equal(selection!.count, 4);
    // The first validation patch, by a plain loop.
    let sum = 0;
    for (let y = 0; y < 16; y++) {
      for (let x = 0; x < 16; x++) {
        const at = (16 + y) * 128 + 80 + x;
        sum += (date.bands.nir[at]! - date.bands.red[at]!) / (date.bands.nir[at]! + date.bands.red[at]!);
        assert.equal(validation.inputs[(y * 16 + x) * 3], date.bands.red[at]);
        assert.equal(validation.inputs[(y * 16 + x) * 3 + 2], date.bands.blue[at]);
      }
    }
    assert.ok(Math.abs(validation.targets[0]! - sum / 256) < 1e-6);
  });

  it('never trains near a validation pixel, nor on a held-out date', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 128, max: 190 }),
        fc.integer({ min: 128, max: 190 }),
        fc.integer({ min: 1, max: 5 }),
        (width, height, count) => {
          const dates = Array.from({ length: count }, (_, n) => located(width, height, n));
          const from = count === 1 ? undefined : Math.ceil(count / 2) * STEP_MS;
          const { train, selection, validation, holdOut } = datasetOf(dates, from);
          const trained = positionsAndDates(train.inputs, width);
          const held = positionsAndDates(validation.inputs, width);
          const columnsOf = (set: { column: number }[]) => set.map(({ column }) => column);
          const end = Math.max(
            ...columnsOf(trained),
            ...columnsOf(positionsAndDates(selection!.inputs, width)),
          );
          const start = Math.min(...columnsOf(held));
          assert.ok(start - end > PATCH_SIZE, `training ends at ${end}, validation starts at ${start}`);
          for (const { column, row } of held) {
            const edge = Math.min(column, row, width - 1 - column, height - 1 - row);
            assert.ok(edge >= PATCH_SIZE, `${edge} pixels from the edge of the cell`);
          }
          const last = Math.max(...trained.map(({ date }) => date));
          const first = Math.min(...held.map(({ date }) => date));
          assert.ok(
            count === 1 ? first === last : last < from! / STEP_MS && first >= from! / STEP_MS,
            `trained to ${last}, validated from ${first}`,
          );
          assert.equal(holdOut.from, from && new Date(from).toISOString());
          const rows = (set: Patches) => positionsAndDates(set.inputs, width).map(({ row }) => row);
          assert.ok(Math.max(...rows(train)) < Math.min(...rows(selection!)));
        },
      ),
      { seed: 42, numRuns: 12 },
    );
  });

  it('uses all dates on both sides if one side has none, or too few patches', () => {
    const dates = [0, 1, 2, 3].map((n) => located(128, 128, n));
    const datesOf = ({ train, validation }: TrainValidationPatches) =>
      [train, validation].map(({ inputs }) => [
        ...new Set(positionsAndDates(inputs, 128).map(({ date }) => date)),
      ]);
    const all = [0, 1, 2, 3];
    const later = 3 * STEP_MS;
    assert.deepEqual(datesOf(datasetOf(dates, later)), [[0, 1, 2], [3]]);
    for (const from of [0, 4 * STEP_MS]) {
      const dataset = datasetOf(dates, from);
      assert.deepEqual(datesOf(dataset), [all, all]);
      assert.match(dataset.split, /same dates$/);
      assert.equal(dataset.holdOut.from, undefined);
    }
    dates[3]!.mask.fill(Mask.cloud);
    assert.deepEqual(datesOf(datasetOf(dates, later)), [
      [0, 1, 2],
      [0, 1, 2],
    ]);
  });

  it('fills masked pixels with the mean of the usable ones', () => {
    const date = field(128, 128);
    for (const code of [Mask.cloud, Mask.shadow, Mask.snow, Mask.nodata]) {
      const clouded = structuredClone(date);
      // A corner of the first validation patch: 8x8 of its 256 pixels, bright and without vegetation.
      for (let y = 0; y < 8; y++) {
        for (let x = 0; x < 8; x++) {
          const at = (16 + y) * 128 + 80 + x;
          clouded.mask[at] = code;
          clouded.bands.red[at] = 0.9;
          clouded.bands.nir[at] = 0.9;
        }
      }
      const { validation } = datasetOf([clouded]);
      let red = 0;
      let ndvi = 0;
      for (let i = 0; i < 256; i++) {
        const at = (16 + Math.floor(i / 16)) * 128 + 80 + (i % 16);
        if (clouded.mask[at] !== Mask.clear) continue;
        red += date.bands.red[at]! / 192;
        ndvi +=
          (date.bands.nir[at]! - date.bands.red[at]!) / (date.bands.nir[at]! + date.bands.red[at]!) / 192;
      }
      assert.ok(Math.abs(validation.inputs[0]! - red) < 1e-6);
      assert.ok(Math.abs(validation.targets[0]! - ndvi) < 1e-6);
    }
  });

  it('counts pixels that were not assessed as clear', () => {
    const date = field(128, 128);
    const clear = datasetOf([date]);
    date.mask.fill(Mask.notAssessed);
    assert.deepEqual(datasetOf([date]), clear);
  });

  it('excludes a patch with less than three quarters of usable pixels', () => {
    const date = field(128, 128);
    const hide = (rows: number) => {
      for (let y = 16; y < 16 + rows; y++) date.mask.fill(Mask.cloud, y * 128 + 80, y * 128 + 96);
    };
    hide(4);
    assert.equal(datasetOf([date]).counts.validation, 12);
    hide(5);
    assert.equal(datasetOf([date]).counts.validation, 11);
  });

  it('excludes missing values and sums of zero', () => {
    const date = field(128, 128);
    const at = 16 * 128 + 80;
    date.bands.red[at] = Number.NaN;
    date.bands.red[at + 1] = -date.bands.nir[at + 1]!;
    const { validation } = datasetOf([date]);
    assert.ok(validation.inputs.every(Number.isFinite));
    assert.ok(validation.targets.every((ndvi) => ndvi >= -1 && ndvi <= 1));
  });

  it('holds out another side if the eastern one is cloudy', () => {
    const date = field(160, 128);
    for (let y = 0; y < 128; y++) date.mask.fill(Mask.cloud, y * 160 + 96, y * 160 + 144);
    assert.equal(datasetOf([date]).holdOut.side, 'western');
  });

  it('returns the reason why a cell is skipped', () => {
    assert.match(reasonOf([]), /^no dates/);
    assert.match(reasonOf([field(40, 40)]), /^40x40 px with data are too few/);
    const date = field(96, 96);
    assert.match(
      reasonOf([date]),
      /^20 usable patches of 16x16 px, at least 32 are needed \(coverage 100 %, cloud 0 %\)$/,
    );
    date.mask.fill(Mask.nodata, 0, 96 * 48);
    date.mask.fill(Mask.cloud, 96 * 72);
    assert.match(
      reasonOf([date]),
      /^4 usable patches of 16x16 px, at least 32 are needed \(coverage 50 %, cloud 50 %\)$/,
    );
    date.mask.fill(Mask.notAssessed);
    assert.match(reasonOf([date]), /cloud not assessed/);
    // The tile has enough patches for training, but every edge that could be held out is under cloud.
    const ringed = field(256, 256);
    for (let at = 0; at < ringed.mask.length; at++) {
      const x = at % 256;
      const y = Math.floor(at / 256);
      if (Math.min(x, y, 255 - x, 255 - y) < 80) ringed.mask[at] = Mask.cloud;
    }
    assert.match(reasonOf([ringed]), /usable/);
  });

  it('requires enough patches of both kinds, of full size', () => {
    const { train, validation, counts } = datasetOf([field(140, 163)]);
    assert.ok(counts.train + counts.validation >= MIN_PATCHES && counts.validation >= MIN_VALIDATION_PATCHES);
    assert.equal(train.inputs.length, train.count * PATCH_VALUES);
    assert.equal(validation.inputs.length, validation.count * PATCH_VALUES);
  });
});
