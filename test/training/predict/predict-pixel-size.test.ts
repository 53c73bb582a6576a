/** Models read and write tiles at the pixel size of their training. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { TilewrightNode } from '../../../src/node.js';
import { type PixelArray, readImage } from '../../../src/raster/index.js';
import {
  type ModelFileLocation,
  newVersion,
  readModelFile,
  type TileRecord,
} from '../../../src/storage/index.js';
import type { CardSummary, PredictResults, TrainResults } from '../../../src/training/index.js';
import { modelPixels } from '../../../src/training/predict-plan.js';
import { randomStream } from '../../../src/utils/random.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { writeRaster } from '../../support/rasters.js';
import { tempFolder } from '../../support/temp.js';

/** Side of the scene in pixels of 20 m. */
const SIDE = 400;

/**
 * Sentinel-2 bands of land on which moisture shows only in rows of plants 40 m apart: the wetter, the more contrast. A model that sees
 * larger or smaller pixels than in its training finds other rows.
 */
async function writeRows(folder: string, day: number): Promise<string> {
  const scene = join(folder, `S2A_rows_${day}`);
  await mkdir(scene);
  const { next } = randomStream(9);
  const wet = (x: number, y: number) => 0.5 + 0.5 * Math.sin(x / 20) * Math.sin(y / 17);
  const visible = (base: number) =>
    stored(2 * SIDE, (x, y) => {
      const row = Math.floor(x / 4) % 2 === 0 ? 1 : -1;
      return base + 0.05 * wet(x / 2, y / 2) * row + 0.004 * (next() - 0.5);
    });
  const write = (name: string, pixel: number, values: PixelArray) => {
    const side = Math.sqrt(values.length);
    const path = join(scene, `T33UVP_2023070${day}T100621_${name}.tif`);
    return writeRaster(path, { width: side, height: side, bands: [values], pixel });
  };
  for (const [name, base] of [
    ['B02', 0.1],
    ['B03', 0.12],
    ['B04', 0.14],
  ] as const)
    await write(name, 10, visible(base));
  // The broad infrared band does not show the moisture.
  await write(
    'B08',
    10,
    stored(2 * SIDE, () => 0.2 + 0.1 * next()),
  );
  await write(
    'B8A',
    20,
    stored(SIDE, () => 0.3),
  );
  await write(
    'B11',
    20,
    stored(SIDE, (x, y) => 0.3 - 0.2 * wet(x, y)),
  );
  return scene;
}

/** Reflectance as Sentinel-2 stores it. */
function stored(side: number, valueAt: (x: number, y: number) => number): Uint16Array {
  return Uint16Array.from({ length: side * side }, (_, i) =>
    Math.round((valueAt(i % side, Math.floor(i / side)) + 0.1) / 1e-4),
  );
}

async function bandOf(node: TilewrightNode, tile: TileRecord, name: string) {
  const group = tile.groups.find(({ bands }) => bands.some((band) => band.name === name))!;
  const index = group.bands.findIndex((band) => band.name === name);
  const { bands } = await readImage(node.storage.tileImage(tile, group.name), [index]);
  const { scale, offset } = group.bands[index]!;
  return { group, values: Float64Array.from(bands[0]!, (value) => value * scale + offset) };
}

test('the map of a model for coarser bands is as good as its card says', { timeout: 600_000 }, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  // A single date yields too few patches in a cell of 256 pixels.
  const days = [1, 4, 7];
  for (const day of days) {
    const href = await writeRows(folder, day);
    const { failed } = await ingest(node, {
      href,
      collection: 's2',
      grid: 'quadtile',
      precision: 13,
      offset: -0.1,
    });
    assert.deepEqual(failed, []);
  }
  const [tile] = (await tilesOf(node)).filter(({ coverage }) => coverage === 100);
  const filter = { collections: ['s2'], geocode: tile!.geocode };
  const trained = await runProcess<TrainResults>(node, 'train', {
    model: 'ndmi',
    mode: 'partitioned',
    filter,
    epochs: 60,
  });
  const [model] = trained.models;
  assert.ok(model, JSON.stringify(trained));
  const record = (await node.storage.models.get(model.id))!;
  const card = record.card as CardSummary;
  const { width, height } = tile!.groups.find(({ name }) => name === '20m')!;
  assert.deepEqual(card.pixelSize, { group: '20m', width, height });
  assert.equal(card.values, 'reflectance');
  assert.match(card.split, /eastern side/);

  const [nir, swir] = [await bandOf(node, tile!, 'B8A'), await bandOf(node, tile!, 'B11')];
  const truth = nir.values.map((a, at) => (a - swir.values[at]!) / (a + swir.values[at]!));
  /** Error of the stored map in the eastern quarter, where each pixel is compared with the true one. */
  const mapError = async () => {
    const made = await runProcess<PredictResults>(node, 'predict', { model: model.id });
    assert.equal(made.tiles, days.length, JSON.stringify(made));
    const map = (await tilesOf(node)).find(({ source }) => source === 'predicted')!;
    const { group, values } = await bandOf(node, map, 'ndmi');
    const factor = group.width / width;
    let sum = 0;
    let count = 0;
    values.forEach((value, at) => {
      const x = Math.floor((at % group.width) / factor);
      const y = Math.floor(at / group.width / factor);
      if (x < 0.75 * width) return;
      sum += (value - truth[y * width + x]!) ** 2;
      count++;
    });
    return { group: group.name, mse: sum / count };
  };
  const { mse } = card.metrics.validation;
  /** Error of the training mean. The errors of the card and the map are compared relative to it. */
  const mean = card.baseline.mean.mse;
  assert.ok(mse < 0.1 * mean, `${mse} of ${mean}`);
  const map = await mapError();
  assert.equal(map.group, '20m');
  // The windows of a map overlap, so it is a little better than single patches.
  assert.ok(Math.abs(map.mse - mse) < 0.02 * mean, `map ${map.mse}, card ${mse}, mean ${mean}`);

  // A model without a pixel size, as trained by older versions of the program, reads its inputs unchanged.
  const { pixelSize: _, values: __, ...older } = card;
  const fileOf = async (name: string) =>
    readModelFile((await node.storage.models.ensureFile(record, name)) as ModelFileLocation);
  const files = {
    'model.json': await fileOf('model.json'),
    'weights.bin': await fileOf('weights.bin'),
    'card.json': Buffer.from(JSON.stringify(older)),
  };
  const { collection, grid, geocode } = record;
  const cell = { model: 'ndmi', collection, grid, geocode, version: newVersion() };
  await node.storage.models.put({ ...cell, card: older, score: { error: mse, data: 'the same' } }, files);
  const former = await mapError();
  assert.equal(former.group, '10m');
  assert.ok(former.mse > 4 * map.mse, `${former.mse} beside ${map.mse}`);
});

test('the size is that of the named group, otherwise that of the cell, and never finer than the bands', () => {
  const side = fc.integer({ min: 1, max: 50 });
  const size = fc.record({ width: side, height: side });
  fc.assert(
    fc.property(size, size, fc.option(size), fc.boolean(), (own, trained, named, isOwnCell) => {
      const groups = [
        { name: '10m', role: 'data', ...own },
        { name: '20m', role: 'qa', width: 1, height: 1 },
        ...(named ? [{ name: '20m', role: 'data', ...named }] : []),
      ];
      const found = modelPixels({ group: '20m', ...trained }, { groups } as TileRecord, own, isOwnCell);
      const wanted = named ?? (isOwnCell ? trained : undefined);
      if (!wanted) assert.match((found as { skipped: string }).skipped, /no bands of 20m/);
      else if (wanted.width > own.width || wanted.height > own.height)
        assert.match((found as { skipped: string }).skipped, /larger/);
      else assert.deepEqual(found, { width: wanted.width, height: wanted.height });
    }),
    { seed: 42 },
  );
  const cells = { groups: [] } as unknown as TileRecord;
  assert.ok('skipped' in modelPixels({ group: '20m' }, cells, { width: 5, height: 5 }, true));
});
