/** Scenes to tiles, with real files and threads. */
import assert from 'node:assert/strict';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { coordinationUnavailable } from '../../src/coordination/index.js';
import { geohash } from '../../src/grid/index.js';
import { Mask, readImage } from '../../src/raster/index.js';
import { verify } from '../../src/storage/index.js';
import { gdalWarp, hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const AT = { collection: 'test', datetime: '2024-06-01T10:00:00Z', scale: 0.0001, maskBand: 5, precision: 6 };

test('the same scene from another path is unchanged', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  const first = await ingest(node, { href: scene, id: 'a', ...AT });
  assert.equal(first.scenes[0].unchanged, false);
  const before = await tilesOf(node);
  const copy = join(folder, 'copy.tif');
  await copyFile(scene, copy);
  await writeFile(`${copy}.aux.xml`, '<html/>');
  const second = await ingest(node, { href: copy, id: 'a', ...AT });
  assert.equal(second.scenes[0].unchanged, true);
  assert.equal(second.tiles, first.tiles);
  // Each delivery reports its own warnings.
  assert.match(second.scenes[0].warnings.join(), /copy\.tif\.aux\.xml is not used/);
  assert.deepEqual((await ingest(node, { href: scene, id: 'a', ...AT })).scenes[0].warnings, []);
  assert.deepEqual(await tilesOf(node), before);
});

test('`compress` is for cubes: with it, another scene is still unchanged', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  await ingest(node, { href: scene, id: 'a', ...AT });
  const again = await ingest(node, { href: scene, id: 'a', ...AT, compress: 'deflate' });
  assert.equal(again.scenes[0].unchanged, true);
});

test('ingesting the same scene restores a damaged or missing tile', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  await ingest(node, { href: scene, id: 'a', ...AT });
  for (const damage of [(path: string) => rm(path), (path: string) => writeFile(path, 'spoilt')]) {
    const [tile] = await tilesOf(node);
    await damage(node.storage.tileImage(tile, '10m').path);
    assert.equal((await verify(node.storage)).problems.length, 1);
    const again = await ingest(node, { href: scene, id: 'a', ...AT });
    assert.equal(again.scenes[0].unchanged, false);
    assert.deepEqual((await verify(node.storage)).problems, []);
  }
});

test('a reprocessed delivery replaces every tile, even in cells that it does not cover', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const wide = await writeTestScene(join(folder, 'wide.tif'), { width: 500 });
  const narrow = await writeTestScene(join(folder, 'narrow.tif'), { width: 250, seed: 9 });
  const first = await ingest(node, { href: wide, id: 'a', ...AT });
  const second = await ingest(node, { href: narrow, id: 'a', ...AT });
  assert.ok(second.tiles < first.tiles);
  const tiles = await tilesOf(node);
  assert.equal(tiles.length, second.tiles);
  assert.equal(new Set(tiles.map((tile) => tile.version)).size, 1);
  assert.deepEqual((await verify(node.storage)).problems, []);
});

test('tiles do not depend on the memory budget', async (t) => {
  const folder = await tempFolder(t);
  const scene = await writeTestScene(join(folder, 'scene.tif'), {
    width: 300,
    height: 2600,
    edge: 90,
    cloud: 30,
  });
  const listing = async (memory: number) => {
    const node = await testNode(t, join(folder, `data-${memory}`), { memory });
    const { failed } = await ingest(node, { href: scene, id: 'a', ...AT });
    assert.deepEqual(failed, []);
    return (await tilesOf(node)).map(({ geocode, coverage, cloudCover, groups }) => ({
      geocode,
      coverage,
      cloudCover,
      files: groups.map(({ name, crc32 }) => `${name} ${crc32}`),
    }));
  };
  const whole = await listing(512e6);
  assert.ok(whole.length > 30);
  // Two rows of blocks, so that the window rolls down the image.
  assert.deepEqual(await listing(3.3e6), whole);
});

test('all dates of a cell have the same pixel grid, and neighbours abut', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  for (const [n, shift] of [0, 37, 111].entries()) {
    const path = await writeTestScene(join(folder, `${n}.tif`), {
      x: 500_000 + shift,
      y: 5_300_000 - shift,
      seed: n + 1,
    });
    await ingest(node, { href: path, id: `d${n}`, ...AT });
  }
  const tiles = await tilesOf(node);
  for (const dates of groupByCell(tiles).values()) {
    const grids = new Set(
      dates.map(({ groups }) => JSON.stringify(groups.map((g) => [g.name, g.width, g.height]))),
    );
    assert.equal(grids.size, 1);
  }
  const { header } = await readImage(node.storage.tileImage(tiles[0], '10m'));
  const { west, south, east, north } = geohash.bounds(tiles[0].geocode);
  assert.ok(
    Math.abs(header.transform.originX - west) < 1e-12 && Math.abs(header.transform.originY - north) < 1e-12,
  );
  assert.ok(Math.abs(header.transform.xx * header.width - (east - west)) < 1e-9);
  assert.ok(Math.abs(-header.transform.yy * header.height - (north - south)) < 1e-9);
});

function groupByCell<T extends { geocode: string }>(items: T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(item.geocode, [...(groups.get(item.geocode) ?? []), item]);
  return groups;
}

test('mask, coverage and cloud cover agree with the pixels', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const scene = await writeTestScene(join(folder, 'scene.tif'), {
    width: 500,
    height: 400,
    edge: 130,
    cloud: 45,
  });
  await ingest(node, { href: scene, id: 'a', ...AT });
  const tiles = await tilesOf(node);
  assert.ok(tiles.some((tile) => tile.coverage > 0 && tile.coverage < 100));
  assert.ok(tiles.some((tile) => Number(tile.cloudCover) > 0 && Number(tile.cloudCover) < 100));
  for (const tile of tiles) {
    const { bands } = await readImage(node.storage.tileImage(tile, '10m'));
    const [mask] = (await readImage(node.storage.tileImage(tile, 'mask'))).bands;
    const [cloud] = (await readImage(node.storage.tileImage(tile, '10m-qa'))).bands;
    let data = 0;
    let clouds = 0;
    for (let i = 0; i < mask.length; i++) {
      const valid = bands.every((band) => band[i] !== 0);
      assert.equal(mask[i], !valid ? Mask.nodata : cloud[i] === 0 ? Mask.clear : Mask.cloud);
      if (valid) data++;
      if (mask[i] === Mask.cloud) clouds++;
    }
    assert.ok(Math.abs(tile.coverage - (100 * data) / mask.length) < 1e-9);
    assert.ok(Math.abs(Number(tile.cloudCover) - (100 * clouds) / data) < 1e-9);
  }
});

test('a tile agrees with gdalwarp', {
  skip: !hasGdal && 'GDAL is not installed',
}, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const scene = await writeTestScene(join(folder, 'scene.tif'), { width: 600, height: 500 });
  await ingest(node, { href: scene, id: 'a', ...AT });
  const whole = (await tilesOf(node)).filter((tile) => tile.coverage === 100).slice(0, 4);
  assert.equal(whole.length, 4);
  for (const tile of whole) {
    for (const [name, resampling, tolerance] of [
      ['10m', 'bilinear', 1],
      ['10m-qa', 'near', 0],
    ] as const) {
      const ours = await readImage(node.storage.tileImage(tile, name));
      const { width, height } = ours.header;
      const theirs = await gdalWarp(scene, {
        bounds: geohash.bounds(tile.geocode),
        width,
        height,
        resampling,
      });
      let wrong = 0;
      const bands = name === '10m' ? [0, 1, 2, 3] : [4];
      for (const [b, band] of bands.entries()) {
        for (let i = 0; i < width * height; i++) {
          if (Math.abs(ours.bands[b][i] - theirs.bands[band][i]) > tolerance) wrong++;
        }
      }
      assert.ok(
        wrong <= 0.001 * width * height * bands.length,
        `${tile.geocode} ${name}: ${wrong} pixels differ`,
      );
    }
  }
});

test('quadtile cells are ingested in the same way', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  const { precision: _, ...rest } = AT;
  const results = await ingest(node, {
    href: scene,
    id: 'a',
    ...rest,
    collection: 'webmap',
    grid: 'quadtile',
  });
  assert.ok(results.tiles > 0, JSON.stringify(results));
  for (const tile of await tilesOf(node)) {
    assert.match(tile.id, /_q[0-3]+$/);
    const { header } = await readImage(node.storage.tileImage(tile, '10m'));
    assert.equal(header.crs.epsg, 3857);
    assert.equal(Math.log2(header.width) % 1, 0);
  }
});

test('a scene that failed because etcd did not answer is retried, and counted once', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  await writeRaster(join(folder, 'a.tif'));
  const begin = node.storage.beginScene.bind(node.storage);
  let silent = 2;
  t.mock.method(node.storage, 'beginScene', async (...args: Parameters<typeof begin>) => {
    if (silent-- > 0) throw coordinationUnavailable('a read', 'http://etcd', 'no answer');
    return begin(...args);
  });
  const flags = { collection: 'c', datetime: '2024-06-01T10:00:00Z', precision: 6 };
  const { scenes, failed, tiles } = await ingest(node, { href: join(folder, 'a.tif'), ...flags });
  assert.deepEqual([scenes.length, failed], [1, []]);
  const [job] = (await node.server.inject('/jobs')).json().jobs;
  const log = (await node.server.inject(`/jobs/${job.jobID}/logs`)).json().lines;
  const again = log.filter(({ text }: { text: string }) => /a\.tif: etcd does not answer/.test(text));
  assert.equal(again.length, 2);
  assert.deepEqual([job.tiles.total, job.tiles.done], [tiles, tiles]);
});
