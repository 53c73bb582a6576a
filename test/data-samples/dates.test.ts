/** Dates of one place differ by haze, gain and season as `DATE_EFFECTS` declares, about as much as those of real series. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  atmosphereOf,
  DATE_EFFECTS,
  MIXED,
  REGIONS,
  type SeriesImage,
  seriesImage,
  seriesLandscape,
  WAVELENGTHS,
} from '../../data-samples/index.js';
import { medianOfSorted } from '../../src/utils/sorted.js';

const COLOURS = ['blue', 'green', 'red', 'nir', 'swir16'] as const;
const WATER = 0;
const size = { width: 90, height: 80 };
const at = (day: string) => ({ datetime: `${day}T10:06:20Z`, cloudShare: 0 });
const DAYS = Array.from({ length: 40 }, (_, i) =>
  new Date(Date.UTC(2021, 2, 1) + i * 23 * 86_400_000).toISOString().slice(0, 10),
);

describe('the atmosphere of a date', () => {
  const view = { x: 0, y: 0, width: 300, height: 300, pixelSize: 10 };
  const atmospheres = DAYS.map((day) => atmosphereOf(view, at(day).datetime, 5));

  it('stays within the declared bounds and reaches most of them', () => {
    const { haze, gain, offset } = DATE_EFFECTS;
    const gains = atmospheres.flatMap((one) => one.gain.map((value) => Math.abs(value - 1)));
    const offsets = atmospheres.flatMap((one) => one.offset.map(Math.abs));
    const hazes = atmospheres.flatMap((one) => [...one.haze]);
    for (const [values, most] of [
      [gains, gain],
      [offsets, offset],
      [hazes, haze],
    ] as const) {
      const largest = values.reduce((a, b) => Math.max(a, b), 0);
      assert.ok(largest <= most && largest > 0.8 * most, `${largest} of ${most}`);
    }
    assert.ok(hazes.every((value) => value >= 0));
    assert.ok(atmospheres.every((one) => new Set(one.gain).size === WAVELENGTHS.length));
  });

  it('has a smooth haze', () => {
    for (const { haze } of atmospheres)
      for (let i = 1; i < haze.length; i++)
        if (i % view.width !== 0) assert.ok(Math.abs(haze[i]! - haze[i - 1]!) < DATE_EFFECTS.haze / 500);
  });

  it('has the gains of its date everywhere, and the haze of the place', () => {
    for (const [i, day] of DAYS.entries()) {
      assert.deepEqual(atmosphereOf(view, at(day).datetime, 5), atmospheres[i]);
      const elsewhere = atmosphereOf(view, at(day).datetime, 6);
      assert.deepEqual(elsewhere.gain, atmospheres[i]!.gain);
      assert.notDeepEqual(elsewhere.haze, atmospheres[i]!.haze);
      assert.notDeepEqual(atmospheres[(i + 1) % DAYS.length]!.gain, atmospheres[i]!.gain);
    }
  });
});

describe('the images of dates', () => {
  const landscape = seriesLandscape({ size, seed: 6000, region: { ...MIXED, sea: 1 } });
  const water = [...landscape.kind.keys()];
  const options = { seed: 6000, swir16: true };
  const plain = DAYS.map((day) => seriesImage(landscape, at(day), { ...options, dateEffects: false }));
  const images = DAYS.map((day) => seriesImage(landscape, at(day), options));

  it('are the same again, and differ in another year', () => {
    const land = seriesLandscape({ size, seed: 6000 });
    const imageOf = (day: string) => seriesImage(land, at(day), options);
    for (const day of DAYS.slice(0, 5)) assert.deepEqual(imageOf(day), imageOf(day));
    const years = ['2021', '2022', '2023'].map((year) => imageOf(`${year}-05-10`));
    for (const [a, b] of [
      [0, 1],
      [1, 2],
    ] as const)
      assert.notDeepEqual(years[a], years[b]);
  });

  it('show water, which has no season, through the haze and the gain of the date', () => {
    assert.ok(landscape.kind.every((kind) => kind === WATER));
    for (const [i, day] of DAYS.entries()) {
      const { haze, gain, offset } = atmosphereOf(landscape.view, at(day).datetime, options.seed);
      for (const [c, colour] of COLOURS.entries()) {
        const band = c + 1;
        const seen = mean(water.map((p) => images[i]![colour]![p]! / 1e4));
        const expected = mean(
          water.map(
            (p) =>
              gain[band]! * (plain[i]![colour]![p]! / 1e4 + (haze[p]! * 0.561) / WAVELENGTHS[band]!) +
              offset[band]!,
          ),
        );
        // Numbers below 1 are stored as 1.
        if (expected > 0.003)
          assert.ok(Math.abs(seen - expected) < 2e-4, `${day} ${colour}: ${seen - expected}`);
      }
    }
  });

  it('are brighter in haze the shorter the wavelength', () => {
    const excess = COLOURS.map((colour) =>
      mean(images.map((image, i) => mean(water.map((p) => image[colour]![p]! - plain[i]![colour]![p]!)))),
    );
    assert.ok(excess.at(-1)! > 0, `${excess}`);
    for (let c = 1; c < excess.length; c++) assert.ok(excess[c]! < excess[c - 1]!, `${excess}`);
  });

  it('differ between fields of one crop only with the effects of dates', () => {
    const fields = seriesLandscape({ size: { width: 330, height: 330 }, seed: 2000, region: REGIONS.fields });
    const WHEAT = 7;
    const spread = (dateEffects: boolean) => {
      const image = seriesImage(fields, at('2023-07-05'), { seed: 2000, dateEffects });
      const byField = new Map<number, number[]>();
      for (const [i, kind] of fields.kind.entries())
        if (kind === WHEAT)
          byField.set(fields.field[i]!, [...(byField.get(fields.field[i]!) ?? []), ndvi(image, i)]);
      return Math.sqrt(variance([...byField.values()].filter(({ length }) => length > 200).map(mean)));
    };
    assert.ok(spread(true) > 1.5 * spread(false), `${spread(true)}, ${spread(false)}`);
  });
});

/**
 * Clear pixels of the Landsat 8 scenes of New York, April to October 2018 (five, four and three dates of three path/rows, pixels of 3 km;
 * reflectance = (DN * 2e-5 - 0.1) / sin(sun elevation)), each with all its ground and with land only (NDVI of 0.2 on some date): the lowest
 * and highest of the six medians over pairs of dates of the correlation of NDVI, and of the parts of the variance between the means of
 * dates. Pixels of 3 km do not match from date to date, which lowers the correlations; those of blocks of 3 x 3 pixels are up to 0.62 on
 * land. Seven dates of NAIP (8-bit counts) have 0.52. The same samples without effects of dates: correlation 0.85, parts below 0.03.
 */
const LANDSAT = {
  correlation: [0.21, 0.92],
  ndvi: [0.024, 0.457],
  blue: [0.104, 0.289],
  green: [0.063, 0.302],
  red: [0.055, 0.436],
  nir: [0.028, 0.425],
} as const;

it('dates differ about as much as those of a real series', () => {
  const days = ['04-05', '04-21', '04-28', '05-30', '06-15', '07-10', '08-27', '09-03', '10-05', '10-30'];
  const figures = (dateEffects: boolean) => {
    const places = [MIXED, ...Object.values(REGIONS)].map((region, i) => {
      const seed = 1000 * (i + 1);
      const landscape = seriesLandscape({ size: { width: 165, height: 245 }, seed, region });
      const land = [...landscape.kind.keys()].filter((p) => landscape.kind[p] !== WATER);
      const images = days.map((day) => seriesImage(landscape, at(`2018-${day}`), { seed, dateEffects }));
      const ndvis = images.map((image) => land.map((p) => ndvi(image, p)));
      const pairs = ndvis.flatMap((a, n) => ndvis.slice(0, n).map((b) => correlation(a, b)));
      const partOf = (of: number[][]) => variance(of.map(mean)) / variance(of.flat());
      const bands = (['blue', 'green', 'red', 'nir'] as const).map(
        (band) => [band, partOf(images.map((image) => land.map((p) => image[band][p]!)))] as const,
      );
      return { correlation: median(pairs), ndvi: partOf(ndvis), ...Object.fromEntries(bands) } as Record<
        keyof typeof LANDSAT,
        number
      >;
    });
    return Object.fromEntries(
      (Object.keys(LANDSAT) as (keyof typeof LANDSAT)[]).map((name) => [
        name,
        median(places.map((place) => place[name])),
      ]),
    );
  };
  const [withEffects, without] = [figures(true), figures(false)];
  for (const [name, [low, high]] of Object.entries(LANDSAT)) {
    const value = withEffects[name]!;
    assert.ok(value > low && value < high, `${name}: ${value}`);
  }
  assert.ok(withEffects.correlation! < without.correlation! - 0.05, `${without.correlation}`);
});

const ndvi = (image: SeriesImage, i: number) =>
  (image.nir[i]! - image.red[i]!) / (image.nir[i]! + image.red[i]!);

const median = (values: number[]) => medianOfSorted(Float64Array.from(values).sort());

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

const variance = (values: number[]) => {
  const centre = mean(values);
  return mean(values.map((value) => (value - centre) ** 2));
};

function correlation(a: number[], b: number[]): number {
  const [ma, mb] = [mean(a), mean(b)];
  return mean(a.map((value, i) => (value - ma) * (b[i]! - mb))) / Math.sqrt(variance(a) * variance(b));
}
