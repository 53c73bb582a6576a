import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type CloudBands,
  detectCloudByReflectance,
  isPotentialCloud,
  passesBrightnessTest,
} from '../../src/ingest/cloud/reflectance.js';
import { Mask } from '../../src/raster/index.js';
import {
  CLOUD_MASK_SETS,
  hasCloudMasks,
  readClearSpectra,
  readCloudMasks,
  readCloudyScene,
  scoreCloud,
} from '../support/cloud-masks.js';
import { LAND, plantClouds } from '../support/planted-clouds.js';

const NAMES = ['blue', 'green', 'red', 'nir', 'swir16', 'swir22'] as const;

/** Bands of one pixel a row of six reflectances. */
function bandsOf(pixels: number[][]): CloudBands {
  const [blue, green, red, nir, swir16, swir22] = NAMES.map((_, band) =>
    Float32Array.from(pixels, (pixel) => pixel[band]),
  );
  return { blue, green, red, nir, swir16, swir22 };
}

/** Codes of squares of 6 x 6 pixels in a row, one for each row of six reflectances, with wide gaps of land between them. */
function codesOf(squares: number[][]): number[] {
  const step = 40;
  const width = step * squares.length;
  const pixels = Array.from({ length: width * step }, (_, at) => {
    const x = at % width;
    const inside = x % step < 6 && Math.floor(at / width) < 6;
    return inside ? squares[Math.floor(x / step)] : LAND;
  });
  const codes = detectCloudByReflectance(bandsOf(pixels), new Uint8Array(pixels.length).fill(1), width);
  return squares.map((_, i) => codes[2 * width + i * step + 2]);
}

test('typical surfaces are clear and clouds are cloud', () => {
  const surfaces = {
    forest: [0.08, 0.07, 0.04, 0.3, 0.15, 0.07],
    field: [0.1, 0.1, 0.08, 0.45, 0.25, 0.12],
    water: [0.1, 0.07, 0.04, 0.02, 0.01, 0.01],
    sand: [0.22, 0.3, 0.4, 0.46, 0.52, 0.48],
    soil: [0.13, 0.14, 0.18, 0.25, 0.33, 0.28],
    snow: [0.8, 0.8, 0.78, 0.7, 0.08, 0.06],
  };
  assert.deepEqual(codesOf(Object.values(surfaces)), Array(6).fill(Mask.clear));
  const clouds = [
    [0.5, 0.48, 0.5, 0.55, 0.4, 0.3],
    [0.25, 0.23, 0.22, 0.32, 0.25, 0.15],
  ];
  assert.deepEqual(codesOf(clouds), [Mask.cloud, Mask.cloud]);
});

test('each condition alone rejects a cloud', () => {
  const cloud = [0.3, 0.3, 0.3, 0.4, 0.3, 0.2];
  const changes = {
    'SWIR2 > 0.03': [0.3, 0.3, 0.3, 0.4, 0.3, 0.03],
    'NDSI < 0.8': [1, 1.2, 1, 0.4, 0.13, 0.2],
    'NDVI < 0.8': [0.16, 0.13, 0.1, 0.95, 0.15, 0.1],
    'whiteness < 0.7': [0.3, 0.14, 0.1, 0.4, 0.3, 0.2],
    'HOT > 0': [0.22, 0.3, 0.3, 0.4, 0.3, 0.2],
    'NIR / SWIR1 > 0.75': [0.3, 0.3, 0.3, 0.22, 0.3, 0.2],
    'bright in blue or red': [0.14, 0.13, 0.11, 0.3, 0.13, 0.1],
    'bright in SWIR1': [0.3, 0.3, 0.3, 0.4, 0.11, 0.1],
    'visible about as bright as SWIR1': [0.3, 0.3, 0.3, 0.4, 0.46, 0.2],
  };
  const isCloud = ([blue, green, red, nir, swir16, swir22]: number[]) =>
    isPotentialCloud(blue, green, red, nir, swir16, swir22) && passesBrightnessTest(blue, red, swir16);
  assert.equal(isCloud(cloud), true);
  for (const [name, pixel] of Object.entries(changes)) assert.equal(isCloud(pixel), false, name);
});

test('any numbers: nodata if invalid, not assessed if a band is not finite, else a mask code', () => {
  const value = fc.oneof(
    fc.double({ min: -0.1, max: 1.5, noNaN: true }),
    fc.constantFrom(0, -0, NaN, Infinity, -Infinity, 0.15),
  );
  const pixel = fc.tuple(fc.array(value, { minLength: 6, maxLength: 6 }), fc.boolean());
  const codes: number[] = [Mask.clear, Mask.cloud, Mask.shadow, Mask.notAssessed];
  fc.assert(
    fc.property(fc.array(pixel, { minLength: 1, maxLength: 100 }), fc.nat(), (pixels, seed) => {
      const width = 1 + (seed % pixels.length);
      const whole = pixels.slice(0, pixels.length - (pixels.length % width));
      const valid = Uint8Array.from(whole, ([, flag]) => Number(flag));
      const mask = detectCloudByReflectance(bandsOf(whole.map(([values]) => values)), valid, width);
      for (const [i, [values, flag]] of whole.entries()) {
        if (!flag) assert.equal(mask[i], Mask.nodata);
        else if (!values.every(Number.isFinite)) assert.equal(mask[i], Mask.notAssessed);
        else assert.ok(codes.includes(mask[i]));
      }
    }),
    { seed: 42 },
  );
});

test('bands of another size are refused by name', () => {
  const bands = { ...bandsOf([[0, 0, 0, 0, 0, 0]]), nir: new Float32Array(2) };
  assert.throws(() => detectCloudByReflectance(bands, new Uint8Array(1).fill(1), 1), {
    code: 'TW_INGEST_BAD_CLOUD_BANDS',
    message: 'the cloud detection received 2 pixels of nir instead of 1',
  });
});

// Directions all around, short and long, also such that many shadows lie below other clouds.
const MOVES = [
  [-8, -17],
  [12, -5],
  [0, 30],
  [-45, 20],
  [60, 60],
  [-110, -60],
  [7, 0],
];
for (const [dx, dy] of MOVES) {
  test(`planted shadows ${dx}, ${dy} pixels from their clouds are found, lakes are not`, () => {
    const { bands, valid, width, height, cloud, shadow, lake } = plantClouds({ dx, dy, seed: 7 });
    // The clouds of the other shadows lie beyond the image.
    const isCast = shadow.map((_, at) => {
      const [x, y] = [(at % width) - dx, Math.floor(at / width) - dy];
      return Number(x >= 0 && y >= 0 && x < width && y < height);
    });
    const azimuth = (Math.atan2(-dx, dy) * 180) / Math.PI;
    for (const sun of [undefined, azimuth + 370]) {
      const codes = detectCloudByReflectance(bands, valid, width, sun);
      const f1 = (code: number, truth: Uint8Array) =>
        scoreCloud(
          codes.map((of, at) => Number(of === code && isCast[at] === 1)),
          truth.map((is, at) => is & isCast[at]),
        ).f1;
      assert.ok(f1(Mask.cloud, cloud) > 0.99);
      assert.ok(f1(Mask.shadow, shadow) > 0.9, `F1 of shadow ${f1(Mask.shadow, shadow)}`);
      assert.ok(shareOf(codes, shadow, Mask.clear) < 0.02, `${shareOf(codes, shadow, Mask.clear)} is clear`);
      // The longer the moves, the more lakes lie where clouds cast shadows.
      if (Math.hypot(dx, dy) < 25) assert.ok(shareOf(codes, lake, Mask.shadow) < 0.3);
    }
    // A sun on the other side cannot have cast them.
    const doubtful = detectCloudByReflectance(bands, valid, width, azimuth + 180);
    const cast = shadow.map((is, at) => is & isCast[at]);
    assert.ok(shareOf(doubtful, cast, Mask.clear) < 0.02, `${shareOf(doubtful, cast, Mask.clear)} is clear`);
  });
}

function shareOf(codes: Uint8Array, flags: Uint8Array, code: number): number {
  const flagged = codes.filter((_, at) => flags[at] !== 0);
  return flagged.filter((of) => of === code).length / flagged.length;
}

test('dark ground beside clouds is not assessed if nothing shows where their shadows are', () => {
  // The shadows are planted for other clouds: no move of these clouds matches them.
  const { bands, valid, width, shadow } = plantClouds({ dx: -8, dy: -17, seed: 3, casts: false });
  const codes = detectCloudByReflectance(bands, valid, width);
  assert.ok(!codes.includes(Mask.shadow));
  assert.ok(shareOf(codes, shadow, Mask.notAssessed) > 0.98);
});

test('without cloud, dark ground is clear', () => {
  const { bands, valid, width } = plantClouds({ dx: -8, dy: -17, seed: 3, clouds: 0 });
  const codes = detectCloudByReflectance(bands, valid, width);
  assert.ok(codes.every((code) => code === Mask.clear));
});

test('thin cirrus is cloud by its band, and casts no shadow', () => {
  const { bands, valid, width, lake } = plantClouds({ dx: -8, dy: -17, seed: 3, clouds: 0 });
  const cirrus = new Float32Array(valid.length).map((_, at) => (at % width < width / 2 ? 0.03 : 0.01));
  const codes = detectCloudByReflectance({ ...bands, cirrus }, valid, width);
  for (const [at, code] of codes.entries())
    assert.equal(code, at % width < width / 2 ? Mask.cloud : Mask.clear, `pixel ${at}, lake ${lake[at]}`);
});

const skip = hasCloudMasks ? false : 'the hand-made cloud masks are not there';

test('the scores on hand-drawn masks are those of docs/reference/benchmarks.md', { skip }, async () => {
  const floors: Record<string, { cloud: number; shadow: number }> = {
    sentinel2: { cloud: 0.9, shadow: 0.86 },
    landsat5: { cloud: 0.89, shadow: 0.77 },
  };
  for (const name of CLOUD_MASK_SETS) {
    const set = await readCloudMasks(name);
    const codes = detectCloudByReflectance(set.bands, set.valid, set.width);
    for (const what of ['cloud', 'shadow'] as const) {
      const { f1 } = scoreCloud(
        codes.map((code) => Number(code === Mask[what])),
        set[what],
      );
      assert.ok(f1 > floors[name][what], `${name}: F1 of ${what} ${f1}`);
    }
  }
});

test('at most 2 % of clear ground is cloud or shadow, and at least 90 % is assessed', { skip }, async () => {
  const grounds = {
    ...Object.fromEntries(
      await Promise.all(CLOUD_MASK_SETS.map(async (name) => [name, await readCloudMasks(name)] as const)),
    ),
    spectra: await readClearSpectra(),
    cloudy: await readCloudyScene(),
  };
  for (const [name, { bands, valid, width, clear }] of Object.entries(grounds)) {
    const codes = detectCloudByReflectance(bands, valid, width);
    const wrong = shareOf(codes, clear, Mask.cloud) + shareOf(codes, clear, Mask.shadow);
    assert.ok(wrong < 0.02, `${name}: ${wrong}`);
    const unknown = shareOf(codes, clear, Mask.notAssessed);
    assert.ok(unknown < 0.1, `${name}: ${unknown}`);
  }
});
