/** A prediction job applies the models of cells to the tiles of these cells and stores the results as tiles. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { PAIR_DATES, SERIES_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import type { TilewrightNode } from '../../../src/node.js';
import { readImage } from '../../../src/raster/index.js';
import { bestVersion, type TileRecord, versionsOf } from '../../../src/storage/index.js';
import type { PredictResults, TrainResults } from '../../../src/training/index.js';
import { assertDataParts } from '../../derive/tiles.js';
import { suiteContext } from '../../support/at-end.js';
import { damageRecords } from '../../support/damage.js';
import { hasGdal } from '../../support/gdal.js';
import { putModel } from '../../support/models.js';
import { onlyNightly } from '../../support/nightly.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';

const SIZE = { width: 800, height: 700 };

type Context = Parameters<typeof testNode>[0] & Parameters<typeof tempFolder>[0];

async function nodeWithSeries(t: Context, dates: typeof PAIR_DATES) {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const files = await writeSentinelLikeSeries(join(folder, 'scenes'), { size: SIZE, dates });
  for (const { path } of files) {
    const { failed } = await ingest(node, { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
    assert.deepEqual(failed, []);
  }
  return node;
}

/** A data folder with one date. Tests use copies of it. */
let oneDate: string;
const file = suiteContext();
before(async () => {
  const node = await nodeWithSeries(file, PAIR_DATES.slice(0, 1));
  oneDate = node.storage.dir;
  await node.close();
});

async function nodeWithDate(t: Context) {
  const data = join(await tempFolder(t), 'data');
  await cp(oneDate, data, { recursive: true });
  return testNode(t, data, { cores: 1 });
}

const train = (node: TilewrightNode, inputs: object) => runProcess<TrainResults>(node, 'train', inputs);
const predict = (node: TilewrightNode, inputs: object) => runProcess<PredictResults>(node, 'predict', inputs);

const execute = (node: TilewrightNode, inputs: object) =>
  node.server.inject({
    method: 'POST',
    url: '/processes/predict/execution',
    headers: { authorization: `Bearer ${node.ownerSecret}` },
    payload: { inputs },
  });

/** Returns the stored numbers of a band as physical values, NaN for no data. */
async function valuesOf(node: TilewrightNode, tile: TileRecord, name: string): Promise<Float64Array> {
  const group = tile.groups.find(({ bands }) => bands.some((band) => band.name === name))!;
  const index = group.bands.findIndex((band) => band.name === name);
  const { bands } = await readImage(node.storage.tileImage(tile, group.name), [index]);
  const { scale, offset } = group.bands[index]!;
  return Float64Array.from(bands[0]!, (value) => (value === group.nodata ? NaN : value * scale + offset));
}

describe('predict', { timeout: 580_000 }, () => {
  it('maps NDVI of clear land with the model of each cell, and again if the model is newer', async (t) => {
    const node = await nodeWithSeries(t, SERIES_DATES.slice(1, 3));
    const filter = { collections: ['s'], maxCloud: 30, minCoverage: 60 };
    const trained = await train(node, { model: 'ndvi', mode: 'partitioned', filter, epochs: 15 });
    assert.ok(trained.models.length > 0);
    const cells = new Set(trained.models.map(({ geocode }) => geocode));
    const raw = (await tilesOf(node)).filter(({ geocode }) => cells.has(geocode));

    const made = await predict(node, { model: 'ndvi', filter: { collections: ['s'] } });
    assert.equal(made.tiles, raw.length);
    const others = (await tilesOf(node)).filter(({ source }) => source === 'raw').length - raw.length;
    assert.deepEqual(made.skipped, others > 0 ? { 'their places have no model ndvi': others } : {});
    const tiles = (await tilesOf(node)).filter(({ source }) => source === 'predicted');
    assert.equal(tiles.length, raw.length);
    await assertDataParts(node.storage);

    for (const tile of tiles) {
      const base = raw.find(({ id }) => id === tile.derivedFrom[0])!;
      const [ndvi, red, nir] = await Promise.all([
        valuesOf(node, tile, 'ndvi'),
        valuesOf(node, base, 'red'),
        valuesOf(node, base, 'nir'),
      ]);
      const mask = (await readImage(node.storage.tileImage(base, 'mask'))).bands[0]!;
      let error = 0;
      let spread = 0;
      let count = 0;
      const mean = 0.5;
      ndvi.forEach((value, at) => {
        assert.equal(Number.isNaN(value), mask[at] !== 1, `pixel ${at} of ${tile.id}`);
        if (mask[at] !== 1) return;
        const truth = (nir[at]! - red[at]!) / (nir[at]! + red[at]!);
        error += (value - truth) ** 2;
        spread += (mean - truth) ** 2;
        count++;
      });
      if (base.cloudCover! <= 30 && count > 1000)
        assert.ok(error < spread, `${tile.id}: ${error} of ${spread}`);
      assert.ok(Math.abs(tile.coverage - (100 * count) / ndvi.length) < 0.01);
    }
    const [tile] = tiles;
    const item = (await node.server.inject(`/collections/s/items/${tile!.id}`)).json();
    assert.equal(item.properties.source, 'predicted');
    const from = item.links.filter((link: { rel: string }) => link.rel === 'derived_from');
    const by = trained.models.find((model) => model.geocode === tile!.geocode)!;
    assert.deepEqual([item.properties.model, item.properties.model_version], [by.id, by.version]);
    const found = await Promise.all(
      from.map(async ({ href }: { href: string }) =>
        (await node.server.inject(new URL(href).pathname)).json(),
      ),
    );
    assert.deepEqual(
      found.map(({ id }) => id),
      [tile!.derivedFrom[0], `${by.id}_${by.version}`],
    );

    const again = await predict(node, { model: 'ndvi', filter: { collections: ['s'] } });
    assert.deepEqual([again.tiles, again.unchanged], [0, raw.length]);
    const { id, geocode } = trained.models[0]!;
    // The latest version is not the best one: where one epoch is better than 15, the place is trained with 15 again.
    const trainAgain = (epochs: number) =>
      train(node, { model: 'ndvi', filter: { ...filter, geocode }, epochs });
    const bestOf = async () => bestVersion(versionsOf((await node.storage.models.get(id))!)).version;
    let worse = await trainAgain(1);
    if ((await bestOf()) === worse.models[0]!.version) worse = await trainAgain(15);
    const version = await bestOf();
    assert.notEqual(version, worse.models[0]!.version);
    const newer = await predict(node, { model: id });
    assert.equal(newer.tiles, raw.filter((one) => one.geocode === geocode).length);
    const madeBy = async () =>
      (await tilesOf(node)).flatMap((one) =>
        one.source === 'predicted' && one.geocode === geocode ? [one.model!.version] : [],
      );
    assert.deepEqual(new Set(await madeBy()), new Set([worse.models[0]!.version]));
    for (const [named, makes] of [
      ['best', newer.tiles],
      [version, 0],
      ['best', 0],
    ] as const)
      assert.equal((await predict(node, { model: id, version: named })).tiles, makes);
    assert.deepEqual(new Set(await madeBy()), new Set([version]));
    const absent = await predict(node, { model: id, version: 'never' });
    assert.equal(absent.failed, 'TW_STORAGE_NO_MODEL_VERSION');
    const inOne = await predict(node, { model: 'ndvi', version });
    const elsewhere = { 'their places have no such version of their model ndvi': raw.length - newer.tiles };
    assert.deepEqual([inOne.unchanged, inOne.skipped], [newer.tiles, { ...made.skipped, ...elsewhere }]);
    assert.equal((await tilesOf(node)).filter(({ source }) => source === 'predicted').length, raw.length);
  });

  it('warns about models that are worse than the mean of their training values', async (t) => {
    const node = await nodeWithDate(t);
    const tiles = await tilesOf(node);
    const [first, second] = tiles;
    await putModel(node.storage, [first!], { mse: 0.2, mean: 0.1 });
    await putModel(node.storage, [second!], { mse: 0.1, mean: 0.2 });
    const { version, id } = await putModel(node.storage, [first!], { mse: 0.3, mean: 0.1 });
    const made = await predict(node, { model: 'ndvi' });
    assert.deepEqual(
      [made.tiles, made.worse],
      [2, [{ id, version, geocode: first!.geocode, mse: 0.3, mean: 0.1 }]],
    );
    const again = await predict(node, { model: 'ndvi' });
    assert.deepEqual([again.tiles, again.worse], [0, made.worse]);
    const { jobs } = (await node.server.inject('/jobs')).json();
    const logs = (await node.server.inject(`/jobs/${jobs[0].jobID}/logs`)).json();
    assert.match(JSON.stringify(logs), new RegExp(`"warning".{0,50}${id}, version ${version}, is worse`));
  });

  it('applies a model that is surely worse than the mean of its training only with evenIfWorse', async (t) => {
    const node = await nodeWithDate(t);
    const [first, second] = await tilesOf(node);
    const worse = { mse: 0.2, mean: 0.1 };
    // Chance may explain the first one, but not the second.
    await putModel(node.storage, [first!], { ...worse, skill: [-2, 0.1] });
    const { id } = await putModel(node.storage, [second!], { ...worse, skill: [-2, -0.1] });
    const made = await predict(node, { model: 'ndvi' });
    const reasons = Object.keys(made.skipped);
    assert.equal(made.tiles, 1);
    assert.ok(
      reasons.some((reason) => /is worse than the mean of its training.*--even-if-worse/.test(reason)),
    );
    // Neither does a model that is named.
    const named = await predict(node, { model: id });
    assert.equal(named.tiles, 0);
    assert.ok(Object.keys(named.skipped).some((reason) => reason.includes('--even-if-worse')));
    const all = await predict(node, { model: 'ndvi', evenIfWorse: true });
    assert.deepEqual([all.tiles + all.unchanged, all.worse.length], [2, 2]);
    // A model of the region that is better than the mean maps the place.
    const base = { mode: 'distributed', geocode: second!.geocode.slice(0, 4), mse: 0.1, mean: 0.2 } as const;
    const region = await putModel(node.storage, [first!, second!], base);
    const { uses, fallbacks } = await predict(node, { model: 'ndvi' });
    assert.equal(uses!.own, 1);
    const mapped = fallbacks!.find(({ geocode }) => geocode === second!.geocode)!;
    assert.deepEqual(
      [mapped.model, mapped.reason],
      [region.id, 'its model ndvi is worse than the mean of its training'],
    );
  });

  it('removes cloud from the dates of a cell, and the model opens elsewhere', {
    skip: onlyNightly || (!hasGdal && 'GDAL is missing'),
  }, async (t) => {
    const node = await nodeWithSeries(t, PAIR_DATES);
    const raw = await tilesOf(node);
    const { geocode } = raw.reduce((a, b) => (b.coverage > a.coverage ? b : a));
    const filter = { collections: ['s'], geocode };
    const trained = await train(node, { model: 'cloud-removal', filter, epochs: 1 });
    assert.ok(trained.models.length > 0, JSON.stringify(trained));
    const [{ metrics, baseline }] = trained.models as [TrainResults['models'][number]];
    assert.ok(metrics.validation.mse < baseline.unchanged!.mse, 'no better than the cloudy date');
    const made = await predict(node, {
      model: 'cloud-removal',
      filter: { collections: ['s'], geocode, minCloud: 5 },
    });
    const cloudy = raw.filter((tile) => tile.geocode === geocode && tile.cloudCover! >= 5);
    assert.equal(made.tiles, cloudy.length);
    await assertDataParts(node.storage);
    for (const tile of (await tilesOf(node)).filter(({ source }) => source === 'cloud-free')) {
      assert.equal(tile.cloudCover, 0);
      const path = node.storage.tileImage(tile, tile.groups[0]!.name).path;
      const info = JSON.parse(execFileSync('gdalinfo', ['-json', path], { encoding: 'utf8' }));
      assert.deepEqual(
        info.bands.map(({ description, type }: { description: string; type: string }) => [description, type]),
        ['red', 'green', 'blue'].map((band) => [band, 'UInt16']),
      );
      assert.match(info.metadata[''].MODEL, /^cloud-removal_s_g/);
    }
  });

  it('replaces a cloud-free tile if its cell gets another date', async (t) => {
    const folder = await tempFolder(t);
    const node = await testNode(t, join(folder, 'data'), { cores: 1 });
    const series = await writeSentinelLikeSeries(join(folder, 'scenes'), { size: SIZE, dates: PAIR_DATES });
    const takeIn = async (dates: typeof series) => {
      for (const { path } of dates)
        await ingest(node, { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
    };
    await takeIn(series.slice(0, 2));
    const [cloudy] = (await tilesOf(node)).filter((tile) => tile.coverage === 100 && tile.cloudCover! > 5);
    await putModel(node.storage, [cloudy!], { model: 'cloud-removal' });
    const geocode = cloudy!.geocode;
    const inputs = {
      model: 'cloud-removal',
      filter: { geocode, datetime: '2023-06-12T00:00:00Z/2023-06-12T23:59:59Z' },
    };
    const cloudFree = async () =>
      (await tilesOf(node))
        .filter((tile) => tile.source === 'cloud-free')
        .map(({ id, version }) => ({ id, version }));
    assert.equal((await predict(node, inputs)).tiles, 1);
    const before = await cloudFree();
    assert.equal((await predict(node, inputs)).unchanged, 1);
    assert.deepEqual(await cloudFree(), before);

    await takeIn(series.slice(2));
    assert.equal((await predict(node, inputs)).tiles, 1);
    const after = await cloudFree();
    assert.deepEqual(
      after.map(({ id }) => id),
      before.map(({ id }) => id),
    );
    assert.notEqual(after[0]!.version, before[0]!.version);
  });

  it('refuses a damaged model, and names the damaged file', async (t) => {
    const node = await nodeWithDate(t);
    const tiles = (await tilesOf(node)).slice(0, 2);
    assert.equal(tiles.length, 2);
    const [model] = [await putModel(node.storage, [tiles[0]!]), await putModel(node.storage, [tiles[1]!])];
    const weights = node.storage.models.path(model, 'weights.bin');
    const whole = await readFile(weights);
    const inputs = { model: 'ndvi' };
    const halos = async () => {
      const { features } = (await node.server.inject('/search?filter=source%3D%27predicted%27')).json();
      return features.map((item: { properties: Record<string, string> }) => item.properties['model_halo']);
    };
    for (const [i, damaged] of [whole.with(5, whole[5]! ^ 1), whole.subarray(4)].entries()) {
      await writeFile(weights, damaged);
      const made = await predict(node, inputs);
      assert.deepEqual([made.tiles, made.unchanged, made.failures], [i ? 0 : 1, i, 1]);
      // The other tile is not blended with the damaged model.
      assert.equal(made.partialHalos, 1);
      assert.deepEqual(await halos(), ['partial']);
      const [{ tile, code, message }] = made.failed as unknown as [PredictResults['failed'][number]];
      assert.equal(tile.includes(tiles[0]!.id), true, tile);
      assert.equal(code, 'TW_STORAGE_MODEL_DAMAGED');
      assert.ok(message.includes(`weights.bin of model ${model.id}, version ${model.version}`), message);
    }
    await writeFile(weights, whole);
    assert.equal((await predict(node, inputs)).tiles, 2, 'its neighbour is blended with it again');
    assert.deepEqual(await halos(), [undefined, undefined]);
  });

  it('continues without a model whose record is damaged, which can be trained again', async (t) => {
    const before = await nodeWithDate(t);
    const tiles = (await tilesOf(before)).filter(({ coverage }) => coverage > 60).slice(0, 2);
    const [lost] = [await putModel(before.storage, [tiles[0]!]), await putModel(before.storage, [tiles[1]!])];
    const { dir } = before.storage;
    await before.close();
    await damageRecords(dir, `!models!${lost.id}`);
    const node = await testNode(t, dir);
    const made = await predict(node, { model: 'ndvi' });
    const reason = 'the records of their models are damaged; "tilewright models" lists these';
    assert.deepEqual([made.tiles, made.skipped[reason]], [1, 1]);
    const filter = { geocode: tiles[0]!.geocode };
    const { models } = await train(node, { model: 'ndvi', mode: 'partitioned', epochs: 1, filter });
    assert.deepEqual(
      models.map(({ id }) => id),
      [lost.id],
    );
    assert.equal(versionsOf((await node.storage.models.get(lost.id))!).length, 1);
  });

  it('refuses invalid requests with a reason', async (t) => {
    const node = await nodeWithDate(t);
    assert.equal((await predict(node, { model: 'ndvi_s_gabsent' })).failed, 'TW_TRAIN_NO_MODEL');
    for (const model of ['ndvx', 'ndvi_', 'ndvi_s', 'xndvi_s_g9', ''])
      assert.equal((await execute(node, { model })).statusCode, 400, model);
    const { outputs } = (await node.server.inject('/processes/predict')).json();
    const none = await predict(node, { model: 'ndmi' });
    const tiles = (await tilesOf(node)).length;
    const { bytesFetched: _, ...told } = none;
    // Absent, because no cloud was filled.
    const { rims: __, ...always } = outputs;
    assert.deepEqual(Object.keys(always).sort(), Object.keys(told).sort());
    assert.deepEqual([none.tiles, none.skipped], [0, { 'their places have no model ndmi': tiles }]);
  });
});
