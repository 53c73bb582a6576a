/** The history of a place, against a plain computation of each pixel, and what must never be in it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Mask } from '../../../src/raster/index.js';
import { fillHistory, type HistoryUse, historyPlanes } from '../../../src/training/history.js';
import { copiesOf, type LabelledImage, labelImages } from '../../../src/training/labelled-images.js';
import { getModelSpec } from '../../../src/training/models/builtin.js';
import { historyLayout, withHistory } from '../../../src/training/models/spec.js';
import { type CellHistory, makePatches, type Patches } from '../../../src/training/patches.js';
import { randomStream } from '../../../src/utils/random.js';
import { type Field, field } from '../synthetic-land.js';

const DAY = 86_400_000;
const spec = getModelSpec('ndvi');
const layout = historyLayout(spec);
const bands = spec.inputs.length;
const runs = { seed: 42, numRuns: 100 };
/** NDVI and bands that no synthetic land has. */
const PLANTED = 0.987;

const SIZE = { width: 4, height: 3 };
const PIXELS = SIZE.width * SIZE.height;

/** A date with random NDVI and bands, measured at random pixels. */
const image = fc
  .record({
    day: fc.integer({ min: 0, max: 40 }),
    /** Composites cover several days. */
    covered: fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }),
    values: fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: PIXELS, maxLength: PIXELS }),
    measured: fc.uint8Array({ minLength: PIXELS, maxLength: PIXELS, max: 1 }),
  })
  .map(({ day, covered, values, measured }): LabelledImage => {
    const plane = (shift: number) => Float32Array.from(values, (value) => value / 2 + shift);
    return {
      ...{ time: day * DAY, ...(covered !== undefined && { end: (day + covered) * DAY }) },
      ...{ ...SIZE, inputs: [plane(0), plane(1), plane(2)] },
      ...{ targets: [Float32Array.from(values)], measured: [0, 1, 2, 3].map(plane) },
      ...{ inputMask: measured, targetMask: measured, mask: measured },
    };
  });

/** Days of two dates, and whether all are more than three days apart. */
const daysIn = ({ time, end = time }: LabelledImage) =>
  Array.from({ length: (end - time) / DAY + 1 }, (_, day) => time / DAY + day);
const isApart = (a: LabelledImage, b: LabelledImage) =>
  daysIn(a).every((day) => daysIn(b).every((other) => Math.abs(day - other) > 3));

describe('the history of a date', () => {
  it('is what a plain computation of each pixel gives', () => {
    const part = fc.tuple(fc.nat(SIZE.width - 1), fc.nat(SIZE.height - 1)).map(([column, row]) => ({
      ...{ column, row, width: SIZE.width - column, height: SIZE.height - row },
    }));
    const use = fc.constantFrom<HistoryUse>('all', 'past');
    fc.assert(
      fc.property(image, fc.array(image, { maxLength: 8 }), use, part, (date, others, use, part) => {
        const planes = historyPlanes(spec, date, others, use, part);
        for (let i = 0; i < part.width * part.height; i++) {
          const at = (part.row + Math.floor(i / part.width)) * SIZE.width + part.column + (i % part.width);
          const counted = others
            .filter((other) => isApart(other, date) && (use === 'all' || other.time < date.time))
            .filter(({ targetMask }) => targetMask[at] === 1);
          const values = counted.map(({ targets }) => targets[0]![at]!);
          assert.equal(planes[layout.has]![i], values.length > 0 ? 1 : 0);
          if (values.length === 0) {
            assert.ok(Number.isNaN(planes[layout.mean]![i]!));
            continue;
          }
          const close = (plane: number, expected: number) =>
            assert.ok(Math.abs(planes[plane]![i]! - expected) < 1e-5, `plane ${plane}`);
          const mean = (numbers: number[]) => numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
          close(layout.mean, mean(values));
          close(layout.spread, Math.sqrt(mean(values.map((value) => (value - mean(values)) ** 2))));
          for (const b of [0, 1, 2, 3])
            close(layout.bands + b, mean(counted.map(({ measured }) => measured![b]![at]!)));
          const distance = Math.min(...counted.map(({ time }) => Math.abs(time - date.time)));
          const nearest = counted.filter(({ time }) => Math.abs(time - date.time) === distance);
          assert.ok(
            nearest.some(({ targets }) => Math.abs(targets[0]![at]! - planes[layout.nearest]![i]!) < 1e-6),
          );
        }
      }),
      runs,
    );
  });

  it('is filled in patches by the mean of the pixels that have one, and empty in patches with few of them', () => {
    const planes = [Float32Array.of(1, 1, 0, 0), Float32Array.of(0.2, 0.4, Number.NaN, Number.NaN)];
    fillHistory(planes, true);
    assert.deepEqual(planes[0], Float32Array.of(1, 1, 1, 1));
    for (const value of planes[1]!.slice(2)) assert.ok(Math.abs(value - 0.3) < 1e-6);
    const pixels = [Float32Array.of(1, 1, 0, 0), Float32Array.of(0.2, 0.4, Number.NaN, Number.NaN)];
    fillHistory(pixels, false);
    assert.deepEqual(pixels[0], Float32Array.of(1, 1, 0, 0));
    const few = [Float32Array.of(1, 0, 0, 0, 0), Float32Array.of(0.2, ...new Array(4).fill(Number.NaN))];
    fillHistory(few, true);
    assert.deepEqual(few, [new Float32Array(5), new Float32Array(5)]);
  });
});

describe('patches with a history', () => {
  const START = Date.UTC(2020, 0, 1);
  const dateOf = (day: number, seed = day): Field => field(160, 160, { seed, time: START + day * DAY });
  /** A date whose NDVI is `PLANTED` everywhere. */
  const plantedOn = (day: number): Field => {
    const date = dateOf(day);
    date.bands.nir.fill(1);
    date.bands.red.fill((1 - PLANTED) / (1 + PLANTED));
    return date;
  };
  const land = dateOf(0);
  const days = [0, 20, 40, 60, 80, 100];
  const heldOut = { from: START + 80 * DAY };
  const cut = (dates: Field[], use: HistoryUse = 'all') => {
    const made = makePatches(spec, labelImages(spec, dates), heldOut, { use });
    assert.ok('dataset' in made, 'skipped' in made ? made.skipped : '');
    return made.dataset;
  };
  const historyOf = ({ inputs, inputBands, count, size }: Patches, plane: number) =>
    Float32Array.from(
      { length: count * size * size },
      (_, pixel) => inputs[pixel * inputBands + bands + plane]!,
    );
  const all = (history: CellHistory): Patches[] =>
    history.days.flatMap((_, group) => {
      const { train, scored } = history.leaveOut([group]);
      return [train, ...scored.flat()];
    });
  const base = cut(days.map((day) => dateOf(day)));

  it('have the planes of the specification', () => {
    assert.equal(base.train.inputBands, bands + layout.count);
    assert.equal(withHistory(spec).history, true);
    assert.equal(base.history!.days.length, 4);
  });

  for (const [name, planted] of Object.entries({
    'a twin of a held-out date': 81,
    'a copy of a held-out date': 80,
    'an earlier pass of a held-out date': 78,
    'a composite that contains a held-out date': { first: 50, last: 80 },
    'a composite that ends at an earlier pass of a held-out date': { first: 30, last: 77 },
  }))
    it(`are the same with ${name}`, () => {
      const { first, last } = typeof planted === 'number' ? { first: planted, last: planted } : planted;
      const other = { ...plantedOn(first), end: START + last * DAY };
      const dates = [...days.map((day) => dateOf(day)), other].sort((a, b) => a.time - b.time);
      const { train, history } = cut(dates);
      assert.deepEqual(train.inputs, base.train.inputs);
      assert.deepEqual(train.targets, base.train.targets);
      for (const set of [train, ...all(history!)])
        for (const plane of [layout.mean, layout.nearest])
          assert.ok(!historyOf(set, plane).some((value) => Math.abs(value - PLANTED) < 1e-3));
    });

  it('never have the date itself, a pass close to it, or a group that is left out', () => {
    // Every date has a level of its own, so that a history tells which dates it holds.
    const level = (day: number) => 0.1 + day / 200;
    const levelDate = (day: number): Field => {
      const date = dateOf(day);
      date.bands.nir.fill(0.5 * (1 + level(day)));
      date.bands.red.fill(0.5 * (1 - level(day)));
      return date;
    };
    const trained = [0, 2, 20, 40, 60];
    const { history, train } = cut([...trained, 80, 100].map(levelDate));
    const dayOfLevel = (value: number) => trained.find((day) => Math.abs(level(day) - value) < 2e-3);
    const check = (set: Patches, left: number[]) => {
      const { size, count, targets } = set;
      const nearest = historyOf(set, layout.nearest);
      const has = historyOf(set, layout.has);
      for (let n = 0; n < count; n++) {
        if (has[n * size * size] === 0) continue;
        const own = dayOfLevel(targets[n]!);
        const other = dayOfLevel(nearest[n * size * size]!);
        assert.ok(own !== undefined && other !== undefined);
        assert.ok(Math.abs(own - other) > 3, `day ${own} reads day ${other}`);
        for (const day of left)
          assert.ok(Math.abs(other - day) > 3, `day ${own} reads day ${other}, left out`);
      }
      return new Set(Array.from(targets, (target) => dayOfLevel(target)));
    };
    check(train, []);
    assert.equal(history!.days.length, trained.length - 1, 'days 0 and 2 are one pass');
    for (const [group, first] of history!.days.entries()) {
      const day = (Date.parse(first) - START) / DAY;
      const { train, scored } = history!.leaveOut([group]);
      const daysOfTraining = check(train, [day]);
      for (const own of daysOfTraining)
        assert.ok(Math.abs(own! - day) > 3, `day ${own} trains for day ${day}`);
      // A pass is left out as a whole.
      for (const set of scored.flat())
        for (const scoredDay of check(set, [day])) assert.ok(Math.abs(scoredDay! - day) <= 3);
    }
  });

  it('read no pixel that was not measured', () => {
    const dates = days.map((day) => dateOf(day));
    for (const code of [Mask.estimated, Mask.otherDate, Mask.cloud, Mask.shadow, Mask.snow, Mask.nodata]) {
      const replaced = plantedOn(10);
      replaced.mask.fill(code);
      const { history, train } = cut([...dates, replaced].sort((a, b) => a.time - b.time));
      for (const set of [train, ...all(history!)])
        assert.ok(
          !historyOf(set, layout.mean).some((value) => Math.abs(value - PLANTED) < 1e-3),
          `code ${code}`,
        );
    }
  });

  it('read no value that is not finite', () => {
    const dates = days.map((day) => dateOf(day));
    dates[1]!.bands.nir.fill(Number.NaN, 0, 3000);
    const { history, train, validation } = cut(dates);
    for (const set of [train, validation, ...all(history!)]) assert.ok(set.inputs.every(Number.isFinite));
  });

  it('have no history with one date, with dates of one pass, or without a clear pixel in common', () => {
    const without = (dates: Field[]) => {
      const made = makePatches(spec, labelImages(spec, dates), undefined, { use: 'all' });
      assert.ok('dataset' in made);
      return made.dataset;
    };
    assert.equal(without([dateOf(0)]).history, undefined);
    assert.equal(without([dateOf(0), dateOf(2)]).history, undefined);
    const halves = [dateOf(0), dateOf(30)];
    for (const [i, { mask, width }] of halves.entries())
      mask.forEach((_, at) => {
        if (at % width < width / 2 === (i === 0)) mask[at] = Mask.cloud;
      });
    const { train, validation } = without(halves);
    assert.ok(train.inputs.every(Number.isFinite) && validation.inputs.every(Number.isFinite));
  });

  it('read only earlier dates if the past is asked for, but in training all that the training has', () => {
    const later = 50;
    const dates = [plantedOn(later), ...[0, 20, 40, 80].map((day) => dateOf(day))].sort(
      (a, b) => a.time - b.time,
    );
    const held = { days: [new Date(START + 40 * DAY).toISOString().slice(0, 10)] };
    const [all, past] = (['all', 'past'] as const).map((use) => {
      const made = makePatches(spec, labelImages(spec, dates), held, { use });
      assert.ok('dataset' in made);
      return made.dataset;
    });
    const reads = (set: Patches) =>
      historyOf(set, layout.nearest).some((value) => Math.abs(value - PLANTED) < 1e-3);
    assert.ok(reads(all!.validation) && !reads(past!.validation));
    assert.deepEqual(past!.train, all!.train);
    assert.ok(reads(past!.train));
  });

  it('of several cells never come from a date that others hold out, nor from a pass near it', () => {
    const time = fc.integer({ min: 0, max: 60 });
    const heldOuts = fc.oneof(
      time.map((day) => ({ from: START + day * DAY })),
      fc
        .array(time, { minLength: 1, maxLength: 3 })
        .map((days) => ({ days: days.map((day) => new Date(START + day * DAY).toISOString().slice(0, 10)) })),
    );
    const near = (held: { from: number } | { days: string[] }, at: number) =>
      'from' in held
        ? at >= held.from - 3 * DAY
        : held.days.some((day) => at >= Date.parse(day) - 3 * DAY && at < Date.parse(day) + 4 * DAY);
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 60 * 24 }), fc.constantFrom(0, 0, 10)), {
          minLength: 1,
          maxLength: 6,
          selector: ([hour]) => hour,
        }),
        heldOuts,
        (dates, held) => {
          const periods = dates
            .map(([hour, covered]) => ({ time: START + hour * (DAY / 24), covered: covered * DAY }))
            .sort((a, b) => a.time - b.time);
          const images = labelImages(
            spec,
            periods.map(({ time, covered }) => ({ ...land, time, end: time + covered })),
          );
          /** A composite of days, none of which may be near. */
          const isNear = ({ time, covered }: (typeof periods)[number]) =>
            Array.from({ length: covered / DAY + 1 }, (_, day) => time + day * DAY).some((at) =>
              near(held, at),
            );
          const made = makePatches(spec, images, held, { use: 'all', isShared: true });
          if ('skipped' in made) return assert.ok(periods.every(isNear), made.skipped);
          const { trainingImages, validationImages, holdOut } = made.dataset;
          assert.ok(trainingImages.length > 0);
          for (const i of trainingImages) assert.ok(!isNear(periods[i]!));
          // The card excludes these dates, even if the cell has no held-out one.
          assert.ok('from' in held ? holdOut.from !== undefined : holdOut.days !== undefined);
          const { otherDates, both } = made.dataset.history!;
          const isHeld = validationImages.some((i) => !trainingImages.includes(i));
          assert.equal(both.length > 0, isHeld);
          assert.equal(otherDates.length > 0, isHeld);
          // A model of this cell alone may use all of its dates.
          const alone = makePatches(spec, images, held, { use: 'all' });
          assert.ok('dataset' in alone);
        },
      ),
      { ...runs, numRuns: 40 },
    );
  });
});

describe('copies of an image under another date', () => {
  const DATE = Date.UTC(2020, 0, 1);
  const landOf = (seed: number) => field(96, 96, { seed, time: DATE });
  const copiesWith = (change: (copy: Field) => void, days = 40) => {
    const date = landOf(1);
    const copy = landOf(1);
    copy.time += days * DAY;
    change(copy);
    const [image, ...others] = labelImages(spec, [date, copy]);
    return copiesOf(image!, others);
  };
  const found = [['2020-01-01', '2020-02-10']];
  const { next } = randomStream(3);

  it('are found if the images are equal, cropped, encoded again or scaled a little', () => {
    assert.deepEqual(
      copiesWith(() => {}),
      found,
    );
    assert.deepEqual(
      copiesWith(({ mask }) => mask.fill(Mask.nodata, 0, 2000)),
      found,
    );
    const changed = (change: (value: number) => number) =>
      copiesWith(({ bands }) => {
        for (const band of Object.values(bands))
          for (const [at, value] of band.entries()) band[at] = change(value);
      });
    assert.deepEqual(
      changed((value) => Math.round(value * 1000) / 1000),
      found,
    );
    assert.deepEqual(
      changed((value) => value * 1.002),
      found,
    );
  });

  it('are not: the same pass, other land, the same land with noise or haze, and bands of one value', () => {
    assert.deepEqual(
      copiesWith(() => {}, 3),
      [],
    );
    assert.deepEqual(
      copiesWith((copy) => Object.assign(copy.bands, landOf(2).bands)),
      [],
    );
    const blurred = (copy: Field) => {
      for (const band of Object.values(copy.bands))
        for (const [at, value] of band.entries()) band[at] = value + 0.05 * next();
    };
    assert.deepEqual(copiesWith(blurred), []);
    const constant = labelImages(
      spec,
      [0, 40].map((days) => {
        const date = landOf(1);
        for (const band of Object.values(date.bands)) band.fill(0.4);
        return { ...date, time: DATE + days * DAY };
      }),
    );
    assert.deepEqual(copiesOf(constant[0]!, [constant[1]!]), []);
  });
});
