/** Predicted tiles, including predictions that are not finite. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { MadeTile } from '../../../src/derive/index.js';
import { loadEngine } from '../../../src/engines/load.js';
import { Mask, type PixelArray, readImage } from '../../../src/raster/index.js';
import { getModelSpec } from '../../../src/training/index.js';
import { buildModel } from '../../../src/training/models/network.js';
import type { ModelSpec } from '../../../src/training/models/spec.js';
import { predictTile } from '../../../src/training/predict-tile.js';
import { tempFolder } from '../../support/temp.js';
import { writeDate } from '../acquisition-files.js';
import { clouded, field } from '../synthetic-land.js';

/** The model below predicts infinity above this reflectance, otherwise 0. */
const LIMIT = 0.1;

/** The bands of the images of a tile of one pixel size, the mask last. */
async function imagesOf({ files, groups }: MadeTile, folder: string): Promise<PixelArray[][]> {
  const path = join(folder, 'made.tif');
  await writeFile(path, files[0]!.bytes!);
  let start = 0;
  const images: PixelArray[][] = [];
  for (const { bytes } of groups) {
    images.push((await readImage({ path, start, bytes })).bands);
    start += bytes;
  }
  return images;
}

test('a value that is not finite becomes nodata, and a tile without finite values fails', async (t) => {
  const folder = await tempFolder(t);
  const { tf } = await loadEngine('wasm');
  const land = field(40, 40);
  land.mask.fill(Mask.cloud, 0, 40);
  const { bands, mask, time } = writeDate(folder, 'date', land);
  const files = {
    tile: { grid: 'geohash', geocode: 'u0', metadata: {} },
    groups: { '40x40': '10m' },
  } as const;
  const spec = {
    ...getModelSpec('ndvi'),
    inputs: ['red'] as const,
    target: { kind: 'map', index: ['nir', 'red'] } as const,
  };
  const predicted = (limit: number) => {
    const input = tf.input({ shape: [null, null, 1] });
    let output = tf.layers.reLU().apply(layer(limit, 1).apply(input));
    for (let i = 0; i < 2; i++) output = layer(0, 1e30).apply(output);
    function layer(threshold: number, factor: number) {
      return tf.layers.conv2d({
        filters: 1,
        kernelSize: 1,
        weights: [tf.tensor4d([factor], [1, 1, 1, 1]), tf.tensor1d([-threshold])],
      });
    }
    const model = tf.model({ inputs: input, outputs: output as typeof input });
    const task = { ...files, date: { time, bands: { red: bands.red }, mask } };
    return predictTile(tf, spec, { ...task, model: undefined as never }, async () => model);
  };

  const made = (await predicted(LIMIT))!;
  const [[ndvi], [codes]] = (await imagesOf(made, folder)) as [PixelArray[], PixelArray[]];
  let holes = 40;
  land.bands.red.forEach((red, at) => {
    if (at < 40 || Math.abs(red - LIMIT) < 1e-4) return;
    const [value, code] = red > LIMIT ? [-32768, Mask.nodata] : [0, Mask.clear];
    assert.deepEqual([ndvi![at], codes![at]], [value, code], `pixel ${at}: ${red}`);
  });
  for (let at = 40; at < 1600; at++) if (ndvi![at] === -32768) holes++;
  assert.ok(holes > 200 && holes < 1400, String(holes));
  assert.ok(codes!.slice(0, 40).every((code) => code === Mask.cloud));
  assert.equal(made.coverage, (100 * (1600 - holes)) / 1600);

  await assert.rejects(predicted(-1), { code: 'TW_TRAIN_PREDICT', message: /not finite/ });
});

test('pixels that were not assessed remain so', async (t) => {
  const folder = await tempFolder(t);
  const { tf } = await loadEngine('wasm');
  const land = field(40, 40);
  land.mask.fill(Mask.notAssessed);
  const { bands, mask, time } = writeDate(folder, 'date', land);
  const files = {
    tile: { grid: 'geohash', geocode: 'u0', metadata: {} },
    groups: { '40x40': '10m' },
  } as const;
  const codesOf = async (spec: ModelSpec) => {
    const task = { ...files, date: { time, bands, mask }, model: undefined as never };
    const made = await predictTile(tf, spec, task, async () => buildModel(tf, spec, 1));
    if (!made) return null;
    const [codes] = (await imagesOf(made, folder)).at(-1)!;
    return { codes: [...new Set(codes!)], cloudCover: made.cloudCover };
  };
  const ndmi = getModelSpec('ndmi');
  assert.deepEqual(await codesOf({ ...ndmi, layers: ndmi.layers.slice(0, 1) }), {
    codes: [Mask.notAssessed],
    cloudCover: null,
  });
  assert.equal(await codesOf(getModelSpec('cloud-removal')), null, 'no cloud is known of');
});

test('a cloud-free tile keeps the stored values of all pixels except cloudy ones', async (t) => {
  const folder = await tempFolder(t);
  const { tf } = await loadEngine('wasm');
  const [size, clear] = [96, field(96, 96, { seed: 1 })];
  const land = clouded(clear);
  land.mask[0] = Mask.nodata;
  land.mask[1] = Mask.snow;
  land.mask[2] = Mask.notAssessed;
  // Other bands of the date have data there; the bands of the model have none at two pixels, and one lacks data at the third.
  const empty = [3, 4];
  for (const at of empty) for (const band of ['red', 'green', 'blue'] as const) land.bands[band][at] = NaN;
  land.mask[4] = Mask.notAssessed;
  land.bands.green[5] = NaN;
  for (let at = 200; at < 260; at++) land.mask[at] = Mask.shadow;
  const later = field(96, 96, { seed: 1, time: clear.time + 9 * 86_400_000 });
  const [date, other] = [writeDate(folder, 'date', land), writeDate(folder, 'later', later)];
  const spec = getModelSpec('cloud-removal');
  const tile = { grid: 'geohash', geocode: 'u0', metadata: {} } as const;
  const groups = { [`${size}x${size}`]: '10m' };
  // An untrained model whose linear part uses the medians of the other dates instead of the adjusted values.
  const weights = [0, 1, 2].map((band) =>
    Array.from({ length: 13 }, (_, plane) => (plane === 6 + band ? 1 : plane === 9 + band ? -1 : 0)),
  );
  const model = buildModel(tf, spec, 1, { weights, bias: [0, 0, 0] });
  const task = { tile, groups, date, others: [other], model: undefined as never };
  const made = (await predictTile(tf, spec, task, async () => model))!;
  const [bands, codes] = await imagesOf(made, folder);
  const stored = (await readImage(date.bands.red)).bands;
  const own = [2, 1, 0].map((band) => stored[band]!);
  const isCloudy = (code: number) => code === Mask.cloud || code === Mask.shadow;
  let filled = 0;
  land.mask.forEach((code, at) => {
    const expected = empty.includes(at) ? Mask.nodata : isCloudy(code) ? Mask.estimated : code;
    assert.equal(codes![0]![at], expected, `pixel ${at}`);
    if (isCloudy(code)) {
      filled++;
      // The other date shows the same land.
      const truth = later.bands.red[at]!;
      assert.ok(Math.abs(bands![0]![at]! * 0.0001 - 0.1 - truth) < 0.05, `pixel ${at}`);
    }
    if (!isCloudy(code)) for (const b of [0, 1, 2]) assert.equal(bands![b]![at], own[b]![at], `pixel ${at}`);
  });
  assert.ok(filled > 500 && filled < 9000, `${filled}`);
  assert.deepEqual(
    made.groups[0]!.bands.map(({ scale, offset }) => [scale, offset]),
    [
      [0.0001, -0.1],
      [0.0001, -0.1],
      [0.0001, -0.1],
    ],
  );
  assert.equal(made.cloudCover, 0);
  assert.deepEqual(made.used, [0]);
});
