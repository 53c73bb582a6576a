import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type CloudBands, detectCloudByReflectance } from '../../src/ingest/cloud/reflectance.js';
import { Mask } from '../../src/raster/index.js';
import { CLOUD_MASK_SETS, hasCloudMasks, readCloudMasks, scoreCloud } from '../support/cloud-masks.js';

const NAMES = ['blue', 'green', 'red', 'nir', 'swir16', 'swir22'] as const;

/** Bands of one pixel a row of six reflectances. */
function bandsOf(pixels: number[][]): CloudBands {
  const [blue, green, red, nir, swir16, swir22] = NAMES.map((_, band) =>
    Float32Array.from(pixels, (pixel) => pixel[band]),
  );
  return { blue, green, red, nir, swir16, swir22 };
}

function maskOf(pixels: number[][], valid = new Uint8Array(pixels.length).fill(1)): number[] {
  const out = new Uint8Array(pixels.length).fill(77);
  detectCloudByReflectance(bandsOf(pixels), valid, out);
  return [...out];
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
  assert.deepEqual(maskOf(Object.values(surfaces)), Array(6).fill(Mask.clear));
  const clouds = [
    [0.5, 0.48, 0.5, 0.55, 0.4, 0.3],
    [0.25, 0.23, 0.22, 0.32, 0.25, 0.15],
  ];
  assert.deepEqual(maskOf(clouds), [Mask.cloud, Mask.cloud]);
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
  assert.deepEqual(maskOf([cloud]), [Mask.cloud]);
  for (const [name, pixel] of Object.entries(changes)) assert.deepEqual(maskOf([pixel]), [Mask.clear], name);
});

test('any numbers: nodata if invalid, not assessed if a band is not finite, else cloud or clear', () => {
  const value = fc.oneof(
    fc.double({ min: -0.1, max: 1.5, noNaN: true }),
    fc.constantFrom(0, -0, NaN, Infinity, -Infinity, 0.15),
  );
  const pixel = fc.tuple(fc.array(value, { minLength: 6, maxLength: 6 }), fc.boolean());
  fc.assert(
    fc.property(fc.array(pixel, { maxLength: 50 }), (pixels) => {
      const valid = Uint8Array.from(pixels, ([, flag]) => Number(flag));
      const mask = maskOf(
        pixels.map(([values]) => values),
        valid,
      );
      for (const [i, [values, flag]] of pixels.entries()) {
        if (!flag) assert.equal(mask[i], Mask.nodata);
        else if (!values.every(Number.isFinite)) assert.equal(mask[i], Mask.notAssessed);
        else assert.ok(mask[i] === Mask.cloud || mask[i] === Mask.clear);
      }
    }),
    { seed: 42 },
  );
});

test('bands of another size are refused by name', () => {
  const bands = { ...bandsOf([[0, 0, 0, 0, 0, 0]]), nir: new Float32Array(2) };
  assert.throws(() => detectCloudByReflectance(bands, new Uint8Array(1), new Uint8Array(1)), {
    code: 'TW_INGEST_BAD_CLOUD_BANDS',
    message: 'the cloud detection received 2 pixels of nir instead of 1',
  });
});

const skip = hasCloudMasks ? false : 'the hand-made cloud masks are not there';

test('the scores on hand-drawn masks are those of docs/reference/benchmarks.md', { skip }, async () => {
  const floors: Record<string, number> = { sentinel2: 0.88, landsat5: 0.83 };
  for (const name of CLOUD_MASK_SETS) {
    const { bands, cloud } = await readCloudMasks(name);
    const out = new Uint8Array(cloud.length);
    detectCloudByReflectance(bands, new Uint8Array(cloud.length).fill(1), out);
    const { f1 } = scoreCloud(
      out.map((code) => Number(code === Mask.cloud)),
      cloud,
    );
    assert.ok(f1 > floors[name], `${name}: F1 ${f1}`);
  }
});
