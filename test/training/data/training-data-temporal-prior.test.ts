import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Mask } from '../../../src/raster/index.js';
import { clearMask } from '../../../src/training/acquisitions.js';
import { priorDates, temporalPrior } from '../../../src/training/prior.js';
import { type Field, field } from '../synthetic-land.js';

const BANDS = ['red', 'green', 'blue'] as const;
const DAY = 86_400_000;
const tile = (day: number, cloudCover: number | null) => ({ start: day * DAY, cloudCover });

describe('priorDates', () => {
  it('returns the nearest dates with little cloud, the nearest first', () => {
    const tiles = [10, 12, 20, 4, 11, 30, 40, 9].map((day) => tile(day, 10));
    assert.deepEqual(priorDates(tiles, 0), [7, 4, 1, 3, 2, 5]);
    const cloudy = [tile(10, 50), tile(11, 70), tile(12, null), tile(13, 60), tile(14, 0)];
    assert.deepEqual(priorDates(cloudy, 0), [3, 4]);
  });

  it('excludes the overpasses of the cloudy date and of the target date', () => {
    const tiles = [tile(10, 30), tile(10.1, 0), tile(15, 0), tile(15.2, 0), tile(20, 0)];
    assert.deepEqual(priorDates(tiles, 0, 2), [4]);
    assert.deepEqual(priorDates(tiles, 0), [2, 3, 4]);
  });
});

describe('temporalPrior', () => {
  const dateOf = (seed: number, codes: number[]): Field => {
    const date = field(4, 2, { seed, time: seed * DAY });
    date.mask = Uint8Array.from(codes);
    return date;
  };
  const codes = fc.array(fc.constantFrom(Mask.clear, Mask.cloud, Mask.nodata, Mask.notAssessed), {
    ...{ minLength: 8, maxLength: 8 },
  });

  it('has the nearest clear value and the median, like a plain loop', () => {
    fc.assert(
      fc.property(fc.array(codes, { minLength: 1, maxLength: 6 }), (all) => {
        const [date, ...others] = all.map((one, i) => dateOf(i + 1, one)) as [Field, ...Field[]];
        const prior = temporalPrior(date, others, BANDS);
        const clear = [date, ...others].map((one) => clearMask(one, BANDS));
        BANDS.forEach((band, b) => {
          const known = [date, ...others].flatMap((one, i) =>
            [...one.bands[band]].filter((_, at) => clear[i]![at]),
          );
          const mean = known.length === 0 ? 0 : known.reduce((sum, one) => sum + one, 0) / known.length;
          for (let at = 0; at < 8; at++) {
            const values = others.filter((_, i) => clear[i + 1]![at]).map((one) => one.bands[band][at]!);
            const sorted = values.toSorted((a, b) => a - b);
            const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
            assert.ok(Math.abs(prior.nearest[b]![at]! - (values[0] ?? mean)) < 1e-6);
            const median = low === undefined ? mean : (low + high!) / 2;
            assert.ok(Math.abs(prior.median[b]![at]! - median) < 1e-6);
          }
        });
      }),
      { seed: 5, numRuns: 60 },
    );
  });

  it('is adjusted to the date by its own clear pixels', () => {
    const land = field(48, 48, { seed: 2, time: 20 * DAY });
    // In another season the colours of the land change, and a third of it is under cloud.
    const date = structuredClone(land);
    date.time = 10 * DAY;
    for (let at = 0; at < 48 * 48; at++) {
      const [red, green, blue] = BANDS.map((band) => land.bands[band][at]!) as [number, number, number];
      date.bands.red[at] = 0.02 + 0.7 * red + 0.2 * green;
      date.bands.green[at] = 0.01 + 0.9 * green - 0.1 * blue;
      date.bands.blue[at] = 1.2 * blue;
      if (at % 48 < 16) date.mask[at] = Mask.cloud;
    }
    const { nearest, adjusted } = temporalPrior(date, [land], BANDS);
    BANDS.forEach((band, b) => {
      const error = (planes: Float32Array[]) =>
        date.bands[band].reduce((most, value, at) => Math.max(most, Math.abs(value - planes[b]![at]!)), 0);
      assert.ok(error(adjusted) < 2e-3 && error(nearest) > 5e-3, `${error(adjusted)} ${error(nearest)}`);
    });
  });
});
