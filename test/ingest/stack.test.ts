/** Tiles of a place stack: scenes of one collection share cells, pixel grids and names. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeSafe } from '../../data-samples/index.js';
import { toArray } from '../../src/async/index.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { IngestPool, ingestProcess } from '../../src/ingest/index.js';
import { planSceneTiles } from '../../src/ingest/plan.js';
import { LocalJobService } from '../../src/jobs/index.js';
import { Storage } from '../../src/storage/index.js';
import { tilewright } from '../support/command.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { type RasterOptions, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const day = (n: number) => `2024-06-0${n}T10:00:00Z`;

/** A scene of a day with pixels of a size. */
const scene = (folder: string, name: string, pixel: number, options: RasterOptions = {}) =>
  writeRaster(join(folder, `${name}.tif`), { pixel, ...options });

test('scenes of nearly equal pixels have one name and one pixel grid in any order', async (t) => {
  for (const order of [
    [30.2, 29.7, 30.9],
    [30.9, 30.2, 29.7],
  ]) {
    const folder = await tempFolder(t);
    const node = await testNode(t, join(folder, 'data'));
    for (const [i, pixel] of order.entries()) {
      const href = await scene(folder, `s${i}`, pixel);
      const { failed } = await ingest(node, { href, collection: 'near', datetime: day(i + 1), precision: 6 });
      assert.deepEqual(failed, []);
    }
    const tiles = await tilesOf(node);
    const names = new Set(tiles.flatMap(({ groups }) => groups.map(({ name }) => name)));
    assert.equal(names.size, 2, [...names].join());
    for (const geocode of new Set(tiles.map((tile) => tile.geocode))) {
      const shapes = tiles
        .filter((tile) => tile.geocode === geocode)
        .map(({ groups }) => groups.map(({ width, height }) => `${width} x ${height}`).join());
      assert.equal(new Set(shapes).size, 1, shapes.join('; '));
    }
  }
});

test('concurrent jobs create a collection with one grid, one precision and one name', async (t) => {
  const folder = await tempFolder(t);
  const storage = await Storage.open(join(folder, 'data'));
  const workers = new IngestPool(2, 512e6);
  const process = ingestProcess({ storage, workers, memory: 512e6 });
  const jobs = await LocalJobService.open(storage, [process], { concurrency: 4 });
  try {
    // By itself each would have another precision or another size.
    const runs = [3190, 3020, 3030, 1500].map(async (pixel, i) => {
      const path = await scene(folder, `s${i}`, pixel, { x: 400_000, width: 90 - i, height: 90 });
      const { id } = await jobs.start(process, { paths: [path], collection: 'coarse', datetime: day(i + 1) });
      return jobs.wait(id);
    });
    for (const { status, error } of await Promise.all(runs))
      assert.equal(status, 'successful', error?.message);
    const [{ pixelSizes, precision }] = await toArray(storage.catalogue.collections.values());
    const sizes = pixelSizes?.flat().map(({ x }) => x) ?? [];
    for (const [i, size] of sizes.entries())
      for (const other of sizes.slice(i + 1))
        assert.ok(Math.abs(Math.log(size / other)) > 0.05, sizes.join());
    const tiles = await toArray(storage.catalogue.tiles.values());
    assert.deepEqual([...new Set(tiles.map(({ geocode }) => geocode.length))], [precision]);
    const names = new Set(tiles.map(({ groups }) => groups[0].name));
    assert.deepEqual([...names].sort(), sizes.map((size) => `${Math.round(size)}m`).sort());
  } finally {
    await jobs.close();
    await workers.close();
    await storage.close();
  }
});

test('a dry run plans each scene in the collection that earlier scenes would create', async (t) => {
  const folder = await tempFolder(t);
  await scene(folder, 'a', 10, { width: 200, height: 200 });
  await scene(folder, 'b', 60, { width: 200, height: 200 });
  const node = await testNode(t, join(folder, 'data'));
  const inputs = { href: folder, collection: 'two', datetime: day(1) };
  const dry = await ingest(node, { ...inputs, dryRun: true });
  assert.equal(await node.storage.catalogue.collections.get('two'), undefined);
  const real = await ingest(node, inputs);
  const [fine, coarse] = real.scenes.map(({ tiles }) => tiles);
  assert.ok(coarse > 4 * fine, `${fine} and ${coarse}`);
  assert.deepEqual(
    dry.scenes.map(({ tiles }) => tiles),
    [fine, coarse],
  );
});

test('some bands of a known product stack with the complete product that follows', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  for (const [name, date] of [
    ['part', '2023-07-07'],
    ['whole', '2023-07-12'],
  ]) {
    const product = await writeSafe(join(folder, name), { level: 'L1C', size: { width: 300, height: 300 } });
    const others = Object.entries(product.bandPaths).filter(([band]) => !/^B0[2348]$/.test(band));
    if (name === 'part') for (const [, path] of others) await rm(path);
    const { failed } = await ingest(node, { href: product.path, id: name, datetime: date });
    assert.deepEqual(failed, []);
  }
  const shapes = new Map<string, Set<string>>();
  for (const { geocode, groups } of await tilesOf(node)) {
    const { width, height } = groups.find(({ name }) => name === '10m')!;
    shapes.set(geocode, (shapes.get(geocode) ?? new Set()).add(`${width} x ${height}`));
  }
  for (const [geocode, sizes] of shapes) assert.equal(sizes.size, 1, `${geocode}: ${[...sizes].join()}`);
  assert.deepEqual(
    (await node.storage.catalogue.collections.get('sentinel-2-l1c'))?.pixelSizes?.[0]?.length,
    3,
  );
});

test('info lists the pixel sizes of the tiles, not all of the product', async (t) => {
  const folder = await tempFolder(t);
  const product = await writeSafe(join(folder, 'part'), { level: 'L1C', size: { width: 300, height: 300 } });
  for (const [band, path] of Object.entries(product.bandPaths)) if (!/^B0[2348]$/.test(band)) await rm(path);
  const data = ['--data', join(folder, 'data')];
  const { code, stderr } = await tilewright('ingest', product.path, ...data);
  assert.equal(code, 0, stderr);
  for (const id of [[], ['sentinel-2-l1c']])
    assert.match((await tilewright('info', ...id, ...data)).stdout, /, pixels of 10 m(,|$)/m);
});

test('a collection of an older version keeps the sizes of its tiles', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const { storage } = node;
  const at = { collection: 'old', datetime: day(1), precision: 6 };
  const path = await scene(folder, 's', 10.1);
  await ingest(node, { href: path, ...at });
  // The record of a version that knew no pixel sizes: its tiles have the measured ones.
  await storage.collections.update('old', ({ pixelSizes: _, ...record }) => record);
  const [given] = await describeScenes(path, at);
  const { scene: planned, collection } = await planSceneTiles(storage, given, at);
  assert.deepEqual(planned.groups, given.groups);
  assert.deepEqual(collection.pixelSizes, [[given.groups[0].resolution]]);
  assert.deepEqual((await storage.catalogue.collections.get('old'))?.pixelSizes, collection.pixelSizes);
});

test('a later scene adds the notices of its product to a collection of an older version', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const { storage } = node;
  const path = await scene(folder, 's', 10);
  const [given] = await describeScenes(path, { collection: 'kelvin', datetime: day(1) });
  await ingest(node, { href: path, collection: 'kelvin', datetime: day(1), precision: 6 });
  const notices = {
    attribution: 'Kelvin [year]',
    providers: [{ name: 'Kelvin' }],
    licenseUrl: 'https://k.example',
  };
  const product = { ...given, collection: { ...given.collection, ...notices } };
  const dry = await planSceneTiles(storage, product, { dryRun: true });
  assert.equal(dry.collection.attribution, 'Kelvin [year]');
  assert.equal((await storage.catalogue.collections.get('kelvin'))?.attribution, undefined);
  // A scene of another product in this collection adds no notices.
  await planSceneTiles(
    storage,
    { ...product, collection: { ...product.collection, id: 'other' } },
    { collection: 'kelvin' },
  );
  assert.equal((await storage.catalogue.collections.get('kelvin'))?.attribution, undefined);
  await planSceneTiles(storage, product, {});
  const { attribution, providers, licenseUrl } = (await storage.catalogue.collections.get('kelvin'))!;
  assert.deepEqual({ attribution, providers, licenseUrl }, notices);
  // Existing notices do not change.
  await planSceneTiles(
    storage,
    { ...product, collection: { ...product.collection, attribution: 'New' } },
    {},
  );
  assert.equal((await storage.catalogue.collections.get('kelvin'))?.attribution, 'Kelvin [year]');
});

test('the command prints the cells of a new collection, refuses others, and warns of coarse pixels once', async (t) => {
  const folder = await tempFolder(t);
  const data = ['--data', join(folder, 'data')];
  const fine = await scene(folder, 'fine_20240601', 10);
  const first = await tilewright('ingest', fine, '--collection', 'c', ...data);
  assert.equal(first.code, 0, first.stderr);
  assert.match(
    first.stderr,
    /^collection c is new: this scene fixes its cells, geohash of precision 5 \(about/m,
  );
  const large = await tilewright(
    'ingest',
    fine,
    '--collection',
    'l',
    '--precision',
    '2',
    '--dry-run',
    ...data,
  );
  assert.match(large.stderr, /\(about \d+ km x \d+ km\)$/m);
  const again = await tilewright('ingest', fine, '--collection', 'c', ...data);
  assert.doesNotMatch(again.stderr, /is new/);
  const info = await tilewright('info', ...data);
  assert.match(info.stdout, /^collection c: geohash precision 5, pixels of 10 m$/m);

  for (const flags of [
    ['--grid', 'quadtile'],
    ['--precision', '6'],
  ]) {
    const refused = await tilewright('ingest', fine, '--collection', 'c', ...flags, ...data);
    assert.equal(refused.code, 1);
    const wanted = flags[1] === '6' ? 'geohash cells of precision 6' : 'quadtile cells of precision 14';
    assert.match(refused.stderr, /TW_STORAGE_COLLECTION_FIXED/);
    assert.ok(refused.stderr.includes(`fixed to geohash cells of precision 5, so ${wanted}`), refused.stderr);
  }

  const coarse = await Promise.all(
    [2, 3].map((n) => scene(folder, `coarse_2024060${n}`, 150, { width: 20 + n })),
  );
  const many = await tilewright('ingest', ...coarse, '--collection', 'c', ...data);
  assert.equal(many.code, 0, many.stderr);
  assert.equal(
    many.stderr.match(/warning: pixels of 150 m are coarse for the cells of collection c/g)?.length,
    1,
  );
});
