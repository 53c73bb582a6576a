/** Training and prediction read 8-bit imagery without a scale as counts divided by 255. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TilewrightNode } from '../../../src/node.js';
import { readImage } from '../../../src/raster/index.js';
import type { CardSummary, PredictResults, TrainResults } from '../../../src/training/index.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { writeRaster } from '../../support/rasters.js';
import { tempFolder } from '../../support/temp.js';
import { field } from '../synthetic-land.js';

const NAMES = ['red', 'green', 'blue', 'nir'] as const;
const SIDE = 420;

/** Returns numbers from 0 to 255 as a camera stretches them: bright land is near the top of the range. */
async function writePhoto(path: string, dataType: 'uint8' | 'uint16', seed: number): Promise<string> {
  const { bands } = field(SIDE, SIDE, { seed });
  const numbers = NAMES.map((name) => Array.from(bands[name], (value) => Math.round(500 * value) + 1));
  const stored = numbers.map((values) => (dataType === 'uint8' ? Uint8Array : Uint16Array).from(values));
  return writeRaster(path, { width: SIDE, height: SIDE, dataType, bands: stored });
}

const weightsOf = async (node: TilewrightNode, id: string) => {
  const record = (await node.storage.models.get(id))!;
  return readFile((await node.storage.models.ensureFile(record, 'weights.bin')).path);
};

test('8-bit values can be trained on and predicted without a flag, and the card records their kind', {
  timeout: 300_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const photo = await writePhoto(join(folder, 'photo.tif'), 'uint8', 1);
  const common = { grid: 'quadtile', precision: 14, bands: { red: 1, green: 2, blue: 3, nir: 4 } };
  const add = async (href: string, collection: string, datetime: string, more: object = {}) => {
    const { failed } = await ingest(node, { href, collection, datetime, ...common, ...more });
    assert.deepEqual(failed, []);
  };
  await add(photo, 'counts', '2022-07-01');
  await add(photo, 'scaled', '2022-07-01', { scale: 1 / 255 });
  await add(await writePhoto(join(folder, 'deep.tif'), 'uint16', 1), 'deep', '2022-07-01');
  const whole = (await tilesOf(node)).filter(({ coverage }) => coverage === 100);
  const { geocode } = whole[0]!;
  const train = (collection: string) =>
    runProcess<TrainResults>(node, 'train', {
      ...{ model: 'ndvi', epochs: 10 },
      filter: { collections: [collection], geocode },
    });

  const [counts, scaled, deep] = [await train('counts'), await train('scaled'), await train('deep')];
  const [model] = counts.models;
  assert.ok(model, JSON.stringify(counts));
  const cardOf = async (id: string) => (await node.storage.models.get(id))!.card as CardSummary;
  assert.equal((await cardOf(model.id)).values, 'scaled counts');
  assert.equal((await cardOf(scaled.models[0]!.id)).values, 'reflectance');
  assert.ok(model.metrics.validation.mse < model.baseline.mean.mse);
  // The flag gives the same numbers.
  assert.deepEqual(model.metrics, scaled.models[0]!.metrics);
  assert.deepEqual(await weightsOf(node, model.id), await weightsOf(node, scaled.models[0]!.id));
  // The range of 16 bits contains no information about the image.
  assert.equal(deep.models.length, 0);
  assert.match(deep.skipped[0]!.reason, /mean red is .*uint16 with scale 1.*--scale 0\.0001/);

  const item = (await node.server.inject(`/models/${model.id}/item`)).json();
  assert.match(item.properties['mlm:input'][0].description, /divided by 255; they are not reflectance/);

  // The levels of a texture are not those of counts either.
  const texture = await runProcess(node, 'texture', { filter: { collections: ['counts'] } });
  assert.equal(texture.failed, 'TW_TRAIN_NO_TEXTURE');

  // The values of another date of the same cell have another meaning, because it was ingested with a scale.
  await add(await writePhoto(join(folder, 'later.tif'), 'uint8', 2), 'counts', '2022-08-01', {
    scale: 0.002,
  });
  const made = await runProcess<PredictResults>(node, 'predict', { model: model.id });
  assert.equal(made.tiles, 1, JSON.stringify(made));
  assert.deepEqual(made.skipped, {
    'their values are reflectance, but the model was trained on scaled counts': 1,
  });
  const both = await train('counts');
  assert.match(both.skipped[0]!.reason, /8-bit numbers without a scale/);

  // The map is near the index of the numbers.
  const tiles = await tilesOf(node);
  const map = tiles.find(({ source, collection }) => source === 'predicted' && collection === 'counts')!;
  const base = tiles.find(({ id }) => id === map.derivedFrom[0])!;
  const [file, ndvi] = await Promise.all(
    [base, map].map((tile) => readImage(node.storage.tileImage(tile, tile.groups[0]!.name))),
  );
  const names = base.groups[0]!.bands.map(({ name }) => name);
  const [red, nir] = ['red', 'nir'].map((name) => file!.bands[names.indexOf(name)]!);
  let error = 0;
  let spread = 0;
  const truth = Array.from(nir!, (value, at) => (value - red![at]!) / (value + red![at]!));
  const mean = truth.reduce((sum, value) => sum + value, 0) / truth.length;
  truth.forEach((value, at) => {
    error += (1e-4 * ndvi!.bands[0]![at]! - value) ** 2;
    spread += (mean - value) ** 2;
  });
  assert.ok(error < 0.3 * spread, `${error} of ${spread}`);
});
