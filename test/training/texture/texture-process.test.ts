/** The job and the command for textures recognise planted textures and find similar cells. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { toArray } from '../../../src/async/index.js';
import { inProcessTransport } from '../../../src/cli/connection.js';
import { Client, type SimilarDocument } from '../../../src/client/index.js';
import type { TilewrightNode } from '../../../src/node.js';
import { readImage } from '../../../src/raster/index.js';
import { Storage } from '../../../src/storage/index.js';
import type { TextureResults } from '../../../src/training/index.js';
import { distanceBetween, standardise } from '../../../src/training/texture/clusters.js';
import { greyLevels, textureOf } from '../../../src/training/texture/glcm.js';
import { TextureIndex } from '../../../src/training/texture/texture-index.js';
import { randomStream } from '../../../src/utils/random.js';
import { tilewright } from '../../support/command.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { PLANTED, PLANTED_PRECISION, plantedIn, writePlantedScene } from '../../support/planted-scene.js';
import { runProcess } from '../../support/process.js';
import { type SceneOptions, writeTestScene } from '../../support/scenes.js';
import { tempFolder } from '../../support/temp.js';
import { putTextures } from '../../support/textures.js';

/** A node in an empty folder, and the flags of commands that use it. */
async function servingNode(t: TestContext) {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const target = ['--server', await node.listen('127.0.0.1', 0)];
  return { folder, node, target };
}

const PLANTED_INPUTS = { collection: 'planted', scale: 0.0001, precision: PLANTED_PRECISION };
const COMPLETE = { filter: { minCoverage: 99 } };

const texture = async (node: TilewrightNode, inputs: object): Promise<TextureResults> => {
  const results = await runProcess<TextureResults>(node, 'texture', inputs);
  assert.ok(Array.isArray(results.failed), `${results.failed}`);
  return results;
};

/** Ingests a scene with at least 30 complete cells. */
async function ingestPlanted(node: TilewrightNode, folder: string): Promise<void> {
  const href = await writePlantedScene(join(folder, 'scene.tif'), { width: 660, height: 400 });
  await ingest(node, { href, datetime: '2024-06-01T10:00:00Z', ...PLANTED_INPUTS });
}

test('planted textures form clusters, are stored with their cells, and are not computed twice', async (t) => {
  const { folder, node, target } = await servingNode(t);
  await ingestPlanted(node, folder);
  const whole = [...target, '--min-coverage', '99'];
  const json = await tilewright('texture', '--format', 'json', ...whole);
  assert.equal(json.code, 0, json.stderr);
  const first: TextureResults = JSON.parse(json.stdout);
  const [found] = first.collections;
  assert.ok(first.textures > 30 && first.unchanged === 0 && first.failures === 0);
  assert.deepEqual([found!.places, found!.clusters.length], [first.textures, PLANTED.length]);
  for (const { places, middle } of found!.clusters) {
    assert.deepEqual([...new Set(places.map(plantedIn))], [plantedIn(middle)]);
    assert.ok(places.includes(middle));
  }
  const best = found!.curve.toSorted((a, b) => b.euclidean + b.cosine - a.euclidean - a.cosine)[0];
  assert.equal(best!.clusters, PLANTED.length);

  const again = await texture(node, COMPLETE);
  assert.deepEqual([again.textures, again.unchanged], [0, first.textures]);
  assert.deepEqual(again.collections, first.collections);
  const two = await texture(node, { ...COMPLETE, clusters: 2 });
  assert.equal(two.collections[0]!.clusters.length, 2);

  const { storage } = node;
  const [record] = await toArray(storage.textures.list('planted'));
  const tile = (await storage.getTiles([record!.tile]))[0]!;
  const group = tile.groups.find(({ role }) => role === 'data')!;
  const { header, bands } = await readImage(storage.tileImage(tile, group.name));
  const [blue, green, red] = bands.map((band) => Float32Array.from(band, (value) => value * 0.0001));
  const usable = Uint8Array.from(bands[0]!, (value) => (value === 0 ? 0 : 1));
  const levels = greyLevels({ red: red!, green: green!, blue: blue! }, usable);
  const { width, height } = header;
  assert.deepEqual(record!.values, [...textureOf({ width, height, levels })!]);
  assert.equal((await storage.textures.getClustering('planted'))!.centres.length, 2);

  const text = await tilewright('texture', ...whole);
  assert.match(text.stdout, /^planted: \d+ places in 3 clusters$/m);
  assert.match(text.stdout, /^A (B C A|C B A)\b.*$/m, 'a map of cells');
  assert.match(text.stdout, /^ +3 +0\.\d+ +#+ /m);

  await node.close();
  const data = join(folder, 'data');
  assert.equal((await tilewright('verify', '--data', data)).code, 0);
  assert.equal((await tilewright('delete', 'collection', 'planted', '--data', data)).code, 0);
  const emptied = await Storage.open(data);
  assert.deepEqual(await toArray(emptied.textures.list('planted')), []);
  assert.equal(await emptied.textures.getClustering('planted'), undefined);
  await emptied.close();
});

test('similar lists the nearest cells in order, like a scan of all', async (t) => {
  const { folder, node, target } = await servingNode(t);
  await ingestPlanted(node, folder);
  const similar = async (...flags: string[]): Promise<SimilarDocument> => {
    const { code, stdout, stderr } = await tilewright('similar', ...flags, '--format', 'json', ...target);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const [first, ...others] = await tilesOf(node);
  const early = await tilewright('similar', first!.id, ...target);
  assert.equal(early.code, 1);
  assert.match(
    early.stderr,
    /compute it with "tilewright texture --collection planted".* \[TW_TRAIN_UNKNOWN_TEXTURE\]/,
  );

  await texture(node, COMPLETE);
  const textures = await toArray(node.storage.textures.list('planted'));
  const { scaling } = (await node.storage.textures.getClustering('planted'))!;
  const own = textures[3]!;
  const nearest = await similar(own.tile, '-k', '5');
  assert.deepEqual(await similar(own.geocode, '--collection', 'planted', '-k', '5'), nearest);
  assert.deepEqual([nearest.place.geocode, nearest.place.distance], [own.geocode, 0]);
  const scanned = textures
    .filter(({ geocode }) => geocode !== own.geocode)
    .map(({ geocode, values }) => {
      const [a, b] = [values, own.values].map((one) => standardise(one, scaling));
      return { geocode, distance: distanceBetween.euclidean(a!, b!) };
    })
    .sort((a, b) => a.distance - b.distance);
  for (const [i, { geocode, distance, cluster }] of nearest.similar.entries()) {
    assert.equal(geocode, scanned[i]!.geocode);
    assert.ok(Math.abs(distance - scanned[i]!.distance) < 1e-4);
    assert.equal(cluster, nearest.place.cluster);
    assert.equal(plantedIn(geocode), plantedIn(own.geocode));
  }
  assert.equal(nearest.similar.length, 5);
  assert.equal((await similar(own.tile, '-k', '1000')).similar.length, textures.length - 1);
  const text = await tilewright('similar', own.tile, ...target);
  assert.match(text.stdout, new RegExp(`^${own.geocode} +0\\.000 +[A-Z] +2024-06-01 +${own.tile}$`, 'm'));

  const unseen = others.find(({ id }) => !textures.some(({ tile }) => tile === id))!;
  assert.deepEqual(await similar(own.tile, '--collection', 'planted', '-k', '5'), nearest);
  for (const [flags, message] of [
    [['no_such_tile'], /no item no_such_tile/],
    [[unseen.id], /the texture of \w+ in collection planted is unknown/],
    [[own.geocode, '--collection', 'nope'], /there is no collection nope/],
  ] as const) {
    const { code, stderr } = await tilewright('similar', ...flags, ...target);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  }
  // Deleting a tile deletes the texture that was computed from it.
  const [gone] = nearest.similar;
  assert.equal((await tilewright('delete', 'tile', gone!.tile, ...target)).code, 0);
  const left = await similar(own.tile, '-k', '1000');
  assert.deepEqual(left.similar.map(({ geocode }) => geocode).includes(gone!.geocode), false);
  assert.equal(left.similar.length, textures.length - 2);
  const unnamed = await tilewright('similar', own.geocode, ...target);
  assert.equal(unnamed.code, 2);
  assert.match(unnamed.stderr, /is not the id of a tile; a geocode needs --collection/);
  assert.equal((await tilewright('similar', own.tile, '-k', '0', ...target)).code, 2);
});

test('a newer image, or one nearer to the requested time, replaces the previous one', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const takeIn = async (name: string, datetime: string, constant?: number) => {
    const href = await writePlantedScene(join(folder, name), { width: 300, height: 200, constant });
    await ingest(node, { href, datetime, ...PLANTED_INPUTS });
  };
  await takeIn('old.tif', '2024-01-01T10:00:00Z');
  const old = await texture(node, COMPLETE);
  await takeIn('new.tif', '2024-06-01T10:00:00Z', 0.1);
  const newest = await texture(node, COMPLETE);
  assert.equal(newest.textures, old.textures);
  const [alike] = newest.collections;
  assert.equal(alike!.clusters.length, 1, 'images of one value look alike');
  const near = await texture(node, { ...COMPLETE, near: '2024-02-01' });
  assert.equal(near.textures, old.textures);
  assert.deepEqual(near.collections, old.collections);
});

test('an older image replaces the previous one if that is cloudy', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const takeIn = async (name: string, datetime: string, options: SceneOptions) => {
    const href = await writeTestScene(join(folder, `${name}.tif`), { width: 400, ...options });
    const inputs = { collection: 'test', scale: 0.0001, maskBand: 5, precision: 6 };
    await ingest(node, { href, id: name, datetime, ...inputs });
  };
  /** Runs the process again. Returns its results, the scene of each cell's texture, and all tiles with their cloud cover. */
  const look = async (inputs: object = {}) => {
    const results = await texture(node, { ...COMPLETE, ...inputs });
    const records = await toArray(node.storage.textures.list('test'));
    const tiles = await tilesOf(node);
    const scenes = new Map(
      records.map((one) => [one.geocode, tiles.find(({ id }) => id === one.tile)!.scene]),
    );
    return { results, scenes, tiles };
  };
  // The eastern half of the scene is cloud.
  await takeIn('cloudy', '2024-06-20T10:00:00Z', { cloud: 50 });
  const before = await look();
  const cloud = (geocode: string) => before.tiles.find((tile) => tile.geocode === geocode)!.cloudCover!;
  const clouded = (geocode: string) => cloud(geocode) > 5;
  const partly = [...before.scenes.keys()].filter(clouded);
  assert.ok(partly.length > 0, 'places that had a texture of some clear pixels');
  assert.ok(before.scenes.size > partly.length);
  assert.match(Object.keys(before.results.skipped).join(), /fewer than 500 clear pixels/);

  await takeIn('clear', '2024-05-01T10:00:00Z', { seed: 2 });
  const after = await look();
  const cells = [...after.scenes.keys()];
  assert.ok(cells.some((geocode) => cloud(geocode) === 100));
  for (const [geocode, scene] of after.scenes)
    assert.equal(scene, clouded(geocode) ? 'clear' : 'cloudy', geocode);
  const changed = cells.filter(clouded).length;
  assert.deepEqual(
    [after.results.textures, after.results.unchanged, after.results.skipped],
    [changed, cells.length - changed, {}],
  );

  // Near the date of the older image, no cell uses the cloudy image.
  const near = await look({ near: '2024-05-20' });
  assert.deepEqual([...new Set(near.scenes.values())], ['clear']);
  assert.equal(near.results.textures, cells.length - changed);
});

test('a job that is cancelled during clustering ends as cancelled and keeps its textures', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const client = new Client(inProcessTransport(node));
  const href = await writePlantedScene(join(folder, 'scene.tif'), { width: 300, height: 200 });
  await client.run('ingest', {
    ...{ href, collection: 'planted', precision: 6, scale: 0.0001, datetime: '2024-06-01T10:00:00Z' },
  });
  // Clustering this number of textures takes minutes.
  const { next } = randomStream(1);
  const about = { collection: 'planted', grid: 'geohash', tile: 'none', version: '1', start: 0 } as const;
  const many = Array.from({ length: 20_000 }, (_, i) => ({
    ...{ ...about, geocode: `s${i}` },
    values: Array.from({ length: 18 }, next),
  }));
  await putTextures(node.storage, many);
  const stop = new AbortController();
  const onProgress = ({ message }: { message?: string }) => {
    if (message === 'finding clusters') stop.abort();
  };
  const hooks = { onProgress, signal: stop.signal };
  await assert.rejects(client.run('texture', { clusters: 1000 }, hooks), { code: 'TW_CLIENT_STOPPED' });
  const [newest] = await client.jobs(1);
  assert.deepEqual([newest!.processID, newest!.status], ['texture', 'dismissed']);
  const log = await toArray(client.jobLog(newest!.jobID));
  assert.ok(log.some(({ text }) => /^skipped \w+ of planted: fewer than 500 clear pixels/.test(text)));
  assert.ok((await toArray(node.storage.textures.list('planted'))).length > many.length);
  assert.equal(await node.storage.textures.getClustering('planted'), undefined);
});

test('too many clusters for one collection leave the others unchanged', async (t) => {
  const { folder, node, target } = await servingNode(t);
  for (const [collection, width] of [
    ['few', 120],
    ['many', 600],
  ] as const) {
    const href = await writePlantedScene(join(folder, `${collection}.tif`), { width, height: 120 });
    await ingest(node, { href, datetime: '2024-06-01', ...PLANTED_INPUTS, collection });
  }
  const { collections } = await texture(node, { clusters: 1 });
  const fit = collections.find(({ collection }) => collection === 'many')!.places;
  assert.ok(fit > collections.find(({ collection }) => collection === 'few')!.places);
  const { code, stderr } = await tilewright('texture', ...target, '--clusters', `${fit}`);
  assert.equal(code, 1);
  assert.match(stderr, /collection few has .* \[TW_TRAIN_FEW_TEXTURES\]/);
  for (const name of ['few', 'many'])
    assert.equal((await node.storage.textures.getClustering(name))!.centres.length, 1);
});

test('a cell whose new image has too few clear pixels keeps its texture; a NaN texture is computed again', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const takeIn = async (name: string, datetime: string, side: number) => {
    const href = await writePlantedScene(join(folder, name), { width: side, height: side });
    await ingest(node, { href, datetime, ...PLANTED_INPUTS });
  };
  await takeIn('old.tif', '2024-01-01T10:00:00Z', 300);
  await texture(node, {});
  await takeIn('small.tif', '2024-06-01T10:00:00Z', 15);
  const recent = { filter: { datetime: '2024-06-01T00:00:00Z/2024-06-01T23:59:59Z' } };
  const after = await texture(node, recent);
  assert.deepEqual([after.textures, after.unchanged], [0, 1], JSON.stringify(after));

  const { storage } = node;
  const [one, ...others] = await toArray(storage.textures.list('planted'));
  const former = [one!, ...others].map((texture) => ({ ...texture, version: 'gone' }));
  await storage.textures.put([{ ...one!, values: one!.values.map(() => Number.NaN) }]);
  const index = new TextureIndex(storage);
  assert.equal(await index.nearest('planted', one!.geocode, 5), undefined);
  assert.equal((await index.cells('planted')).length, others.length);
  assert.equal((await texture(node, {})).textures, 1);

  // The process keeps no texture of an image that no longer exists.
  await putTextures(storage, former);
  const without = await texture(node, recent);
  assert.deepEqual([without.textures, without.unchanged], [0, 0], JSON.stringify(without));
});

test('invalid requests are refused with a reason', async (t) => {
  const { folder, node, target } = await servingNode(t);
  const run = (...flags: string[]) => tilewright('texture', ...target, ...flags);
  const size = { width: 300, height: 200 };
  const href = await writePlantedScene(join(folder, 'scene.tif'), size);
  const grey = await writePlantedScene(join(folder, 'grey.tif'), { ...size, names: ['a', 'b', 'c', 'd'] });
  const about = { ...PLANTED_INPUTS, datetime: '2024-06-01' };
  assert.deepEqual((await ingest(node, { ...about, href: grey, collection: 'grey' })).failed, []);
  const colourless = await run();
  assert.equal(colourless.code, 1);
  assert.match(colourless.stderr, /no image with red, green, blue \[TW_TRAIN_NO_TEXTURE\]/);

  await ingest(node, { ...about, href });
  const nothing = await run('--bbox', '0,0,1,1');
  assert.equal(nothing.code, 1);
  assert.match(nothing.stderr, /no tile matches the filter \[TW_TRAIN_NO_TEXTURE\]/);
  const many = await run('--collection', 'planted', '--clusters', '500');
  assert.equal(many.code, 1);
  assert.match(
    many.stderr,
    /has \d+ places with a texture, too few for 500 clusters.* \[TW_TRAIN_FEW_TEXTURES\]/,
  );
  for (const flags of [
    ['--clusters', '0'],
    ['--clusters', 'some'],
    ['--near', 'yesterday'],
    ['--collection', 'none'],
  ])
    assert.equal((await run(...flags)).code, 2, flags.join(' '));
});
