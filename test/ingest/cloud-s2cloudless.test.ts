import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type BandPixels, dilate, meanOverDisk } from '../../src/ingest/cloud/filters.js';
import { parseLightgbm } from '../../src/ingest/cloud/lightgbm.js';
import { detectCloudByModel, MODEL_BANDS } from '../../src/ingest/cloud/s2cloudless.js';
import { Mask } from '../../src/raster/index.js';

/** A model of one split: probability 0.95 if the feature is above 0.5, else 0.05. */
function modelOf(feature: number, features = 10) {
  const leaf = Math.log(0.95 / 0.05);
  const lines = `tree
num_class=1
num_tree_per_iteration=1
max_feature_idx=${features - 1}
objective=binary sigmoid:1
Tree=0
num_leaves=2
split_feature=${feature}
threshold=0.5
decision_type=2
left_child=-1
right_child=-2
leaf_value=${-leaf} ${leaf}
end of trees`;
  return parseLightgbm(Buffer.from(lines), 'model');
}

const band = (
  width: number,
  height: number,
  at: (x: number, y: number) => number = () => 0.1,
): BandPixels => ({
  width,
  height,
  pixels: Float32Array.from({ length: width * height }, (_, i) => at(i % width, Math.floor(i / width))),
});

/** Ten bands of 10, 20 and 60 m over 1200 x 900 m. */
function bandsOf(changes: Record<string, BandPixels> = {}): Record<string, BandPixels> {
  const size = (name: string) =>
    /B0[248]/.test(name) ? band(120, 90) : /B01|B09|B10/.test(name) ? band(20, 15) : band(60, 45);
  return { ...Object.fromEntries(MODEL_BANDS.map((name) => [name, size(name)])), ...changes };
}

const [WIDTH, HEIGHT] = [120, 90];

function maskOf(bands: Record<string, BandPixels>, valid = new Uint8Array(WIDTH * HEIGHT).fill(1), at = 7) {
  const out = new Uint8Array(WIDTH * HEIGHT).fill(77);
  detectCloudByModel(modelOf(at), bands, valid, out, WIDTH, HEIGHT, 10);
  return out;
}

test('each band is the right input of the model', () => {
  for (const [feature, name] of MODEL_BANDS.entries()) {
    const { width, height } = bandsOf()[name];
    const bright = band(width, height, () => 0.9);
    assert.ok(maskOf(bandsOf({ [name]: bright }), undefined, feature).every((code) => code === Mask.cloud));
    const other = MODEL_BANDS[(feature + 1) % 10];
    const { width: w, height: h } = bandsOf()[other];
    const mask = maskOf(bandsOf({ [other]: band(w, h, () => 0.9) }), undefined, feature);
    assert.ok(mask.every((code) => code === Mask.clear));
  }
});

test('a cloud is smoothed over 4 cells, then grown by 2', () => {
  // Cells from column 10 on are cloud. In a disk of 49 cells, 20 lie to the right of the centre: 0.417 on average.
  const mask = maskOf(bandsOf({ B10: band(20, 15, (x) => (x < 10 ? 0 : 1)) }));
  const row = mask.subarray(45 * WIDTH, 46 * WIDTH);
  // The cell before the edge passes 0.4, and two more by dilation.
  assert.deepEqual(
    [...row],
    Array.from({ length: WIDTH }, (_, x) => (x < 7 * 6 ? Mask.clear : Mask.cloud)),
  );
});

test('values of invalid pixels have no effect', () => {
  const valid = Uint8Array.from({ length: WIDTH * HEIGHT }, (_, i) => Number(i % WIDTH < 60));
  for (const value of [0, 9, NaN, Infinity]) {
    const bands = bandsOf();
    for (const { pixels, width } of Object.values(bands)) {
      for (let i = 0; i < pixels.length; i++) if (i % width >= width / 2) pixels[i] = value;
    }
    const mask = maskOf(bands, valid);
    assert.ok(mask.every((code, i) => code === (valid[i] ? Mask.clear : Mask.nodata)));
  }
});

test('pixels without a value in a band are not assessed, and not clear', () => {
  const mask = maskOf(bandsOf({ B09: band(20, 15, (x) => (x < 10 ? NaN : 0.1)) }));
  const row = mask.subarray(45 * WIDTH, 46 * WIDTH);
  // The four cells next to the valid ones have neighbours with values.
  assert.deepEqual(
    [...row],
    Array.from({ length: WIDTH }, (_, x) => (x < 6 * 6 ? Mask.notAssessed : Mask.clear)),
  );
});

test('an image smaller than a cell is one cell', () => {
  const bands = Object.fromEntries(MODEL_BANDS.map((name) => [name, band(2, 3, () => 0.9)]));
  const out = new Uint8Array(6);
  detectCloudByModel(modelOf(0), bands, new Uint8Array(6).fill(1), out, 2, 3, 10);
  assert.deepEqual([...out], Array(6).fill(Mask.cloud));
});

test('inputs of other sizes are refused', () => {
  const { B10: _, ...rest } = bandsOf();
  assert.throws(() => maskOf(rest), { code: 'TW_INGEST_BAD_CLOUD_BANDS', message: /of B10/ });
  assert.throws(
    () => maskOf(bandsOf({ B11: { ...band(60, 45), height: 44 } })),
    /2700 pixels of B11 instead of 2640/,
  );
  assert.throws(() => maskOf(bandsOf(), new Uint8Array(5)), /5 pixels of valid/);
  assert.throws(
    () => detectCloudByModel(modelOf(0, 9), bandsOf(), new Uint8Array(1), new Uint8Array(1), 1, 1, 10),
    {
      code: 'TW_INGEST_BAD_CLOUD_MODEL',
      message: /9 features/,
    },
  );
});

const side = fc.integer({ min: 1, max: 12 });
const value = fc.oneof(
  { weight: 4, arbitrary: fc.double({ min: 0, max: 1, noNaN: true }) },
  fc.constant(NaN),
);
const image = fc
  .tuple(side, side)
  .chain(([width, height]) =>
    fc
      .array(value, { minLength: width * height, maxLength: width * height })
      .map((pixels) => ({ width, height, pixels: Float32Array.from(pixels) })),
  );

function assertNear(actual: Float32Array, wanted: number[]): void {
  assert.equal(actual.length, wanted.length);
  for (const [i, number] of wanted.entries()) {
    assert.ok(Object.is(actual[i], number) || Math.abs(actual[i] - number) < 1e-6, `${actual[i]} ${number}`);
  }
}

test('mean and dilation over a disk use every cell whose centre is close enough', () => {
  fc.assert(
    fc.property(image, fc.integer({ min: 0, max: 4 }), ({ pixels, width, height }, radius) => {
      const near = (i: number) =>
        [...pixels.keys()].filter((k) => {
          const dx = (k % width) - (i % width);
          const dy = Math.floor(k / width) - Math.floor(i / width);
          return dx * dx + dy * dy <= radius * radius;
        });
      const means = [...pixels.keys()].map((i) => {
        const values = near(i)
          .map((k) => pixels[k])
          .filter((number) => !Number.isNaN(number));
        return values.reduce((sum, number) => sum + number, 0) / values.length;
      });
      assertNear(meanOverDisk(pixels, width, height, radius), means);
      const flags = Uint8Array.from(pixels, (number) => Number(number > 0.7));
      const grown = [...pixels.keys()].map((i) => Number(near(i).some((k) => flags[k] !== 0)));
      assert.deepEqual([...dilate(flags, width, height, radius)], grown);
    }),
    { seed: 42 },
  );
});
