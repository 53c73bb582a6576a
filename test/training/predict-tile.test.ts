/** Tiles of what a model says, where it says no number. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Mask, readRaster } from '../../src/raster/index.js';
import { loadEngine } from '../../src/training/engine/load-engine.js';
import { modelNamed } from '../../src/training/index.js';
import { buildModel } from '../../src/training/models/build.js';
import type { ModelSpec } from '../../src/training/models/spec.js';
import { predictTile } from '../../src/training/predict/predict-tile.js';
import { tempFolder } from '../support/temp.js';
import { field } from './fields.js';
import { writeDate } from './places.js';

/** Reflectance above which the model below says infinity; up to it, 0. */
const LIMIT = 0.1;

test('a value that is not finite becomes nodata, and a tile of nothing else fails', async (t) => {
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
    ...modelNamed('ndvi'),
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
    return predictTile(tf, model, spec, { ...task, model: undefined as never });
  };

  const made = (await predicted(LIMIT))!;
  const [ndvi, codes] = await Promise.all(
    made.files.map(async ({ bytes }, i) => {
      const path = join(folder, `${i}.tif`);
      await writeFile(path, bytes!);
      return (await readRaster(path)).bands[0]!;
    }),
  );
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

  await assert.rejects(predicted(-1), { code: 'TW_TRAIN_PREDICT', message: /no finite number/ });
});

test('pixels of which nobody knows whether they are clear stay so, unless the model removes cloud', async (t) => {
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
    const made = (await predictTile(tf, buildModel(tf, spec, 1), spec, task))!;
    const path = join(folder, 'mask.tif');
    await writeFile(path, made.files.at(-1)!.bytes!);
    const [codes] = (await readRaster(path)).bands;
    return { codes: [...new Set(codes!)], cloudCover: made.cloudCover };
  };
  const ndmi = modelNamed('ndmi');
  assert.deepEqual(await codesOf({ ...ndmi, layers: ndmi.layers.slice(0, 1) }), {
    codes: [Mask.notAssessed],
    cloudCover: null,
  });
  const removal = await codesOf(modelNamed('cloud-removal'));
  assert.deepEqual(removal, { codes: [Mask.clear], cloudCover: 0 });
});
