/** The commands on ingested scenes, as separate processes, and on two real dates if these are available. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DerivePool, fillProcess } from '../../src/derive/index.js';
import { localQueries } from '../../src/dht/index.js';
import { LocalJobService } from '../../src/jobs/index.js';
import { TileFinder } from '../../src/query/index.js';
import { Mask } from '../../src/raster/index.js';
import { Storage } from '../../src/storage/index.js';
import { finished, start, tilewright } from '../support/command.js';
import { hasGdal } from '../support/gdal.js';
import { realData } from '../support/rasters.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { derivedTiles, storeScene } from './tiles.js';

interface Item {
  id: string;
  properties: Record<string, number | string>;
  assets: Record<string, { href: string }>;
  links: { rel: string; href: string }[];
}

test('fill, split, coalesce and tensor run from the command line', async (t) => {
  const folder = await tempFolder(t);
  const target = ['--data', join(folder, 'data'), '--format', 'json'];
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await tilewright(...args, ...target);
    return { code, stderr, json: stdout ? JSON.parse(stdout) : null };
  };
  for (const [i, cloud] of [40, 10].entries()) {
    const scene = await writeTestScene(join(folder, `s${i}.tif`), { seed: i + 1, cloud, edge: 200 * i });
    const when = ['--id', `s${i}`, '--datetime', `2024-06-0${i + 1}T10:00:00Z`];
    assert.equal((await run('ingest', scene, ...when, ...SCENE_FLAGS)).code, 0);
  }
  const filled = await run('fill', '--collection', 'test');
  assert.equal(filled.code, 0, filled.stderr);
  assert.match(filled.stderr, /"search --source filled" finds only them/);
  assert.ok(filled.json.tiles > 0 && filled.json.failures === 0);
  const again = await run('fill', '--collection', 'test');
  assert.deepEqual([again.json.tiles, again.json.unchanged], [0, filled.json.tiles]);
  const { features } = (await run('search', '--source', 'filled', '--limit', '1000')).json;
  assert.equal(features.length, filled.json.tiles);
  for (const item of features as Item[]) {
    assert.equal(item.properties['source'], 'filled');
    assert.ok(item.links.filter(({ rel }) => rel === 'derived_from').length >= 2);
    assert.ok(item.assets['provenance']);
  }
  const [cell] = features as Item[];
  const geocode = String(cell!.properties['geocode']);
  const output = join(folder, 'stack');
  const tensor = await run('tensor', '--bands', 'red,nir,mask', '--output', output, '--as', 'tif');
  assert.equal(tensor.code, 0, tensor.stderr);
  assert.equal((await readdir(output)).length, tensor.json.files.length);
  const one = await run('tensor', '--bands', 'red', '--output', join(folder, 'one.npy'));
  assert.deepEqual([one.code, /TW_CLI_ONE_FILE/.test(one.stderr)], [1, true]);
  assert.equal((await run('tensor', '--bands', 'absent', '--output', output)).code, 1);
  const before = await readdir(folder);
  for (const name of ['x.zarr', 'x.nc', 'x.NPZ', 'x.npyf', 'deep/x.h5', 'x.tar.gz', 'x.png']) {
    const refused = await run('tensor', '--bands', 'red', '--output', join(folder, name));
    assert.equal(refused.code, 2, name);
    assert.match(refused.stderr, /Files of the type \.\w+ are not written\. End it in \.npy or \.tif/);
  }
  const contrary = await run('tensor', '--bands', 'red', '--output', join(folder, 'x.npy'), '--as', 'tif');
  assert.deepEqual([contrary.code, /--as tif contradicts/.test(contrary.stderr)], [2, true]);
  assert.deepEqual(await readdir(folder), before, 'nothing was written');
  const where = ['--geocode', geocode, '--bands', 'red'];
  for (const [name, starts] of [
    ['a.NPY', '\x93NUMPY'],
    ['a.tiff', 'II'],
    ['a.TIF', 'II'],
  ] as const) {
    const path = join(folder, name);
    assert.equal((await run('tensor', ...where, '--output', path)).code, 0, name);
    assert.ok((await readFile(path, 'latin1')).startsWith(starts), name);
  }
  for (const name of ['v1.zarr/', '2024.06', 'stack']) {
    const { code, json, stderr } = await run('tensor', ...where, '--output', join(folder, name));
    assert.equal(code, 0, stderr);
    assert.ok((await readdir(join(folder, name))).includes(json.files[0].name), name);
  }

  const split = await run('split', '--geocode', geocode, '--precision', '7', '--source', 'filled');
  assert.ok(split.json.tiles > 0, split.stderr);
  const other = await writeTestScene(join(folder, 'other.tif'), {
    seed: 5,
    width: 120,
    height: 100,
    pixel: 25,
  });
  const flags = [...SCENE_FLAGS, '--precision', '5'].map((flag) => (flag === 'test' ? 'coarse' : flag));
  assert.equal(
    (await run('ingest', other, '--id', 'o', '--datetime', '2024-06-03T10:00:00Z', ...flags)).code,
    0,
  );
  const up = await run('coalesce', '--collection', 'test', '--to', 'coarse');
  assert.ok(up.json.tiles > 0, up.stderr);
  const down = await run('coalesce', '--collection', 'coarse', '--to', 'test', '--geocode', geocode);
  assert.equal(down.json.tiles, 1, JSON.stringify(down));
  assert.equal((await run('split', '--precision', '9')).code, 1);
  assert.equal((await run('split', '--precision', '0')).code, 2);
  assert.equal((await run('fill', '--max-cloud', '200')).code, 2);
  const nothing = await run('fill', '--collection', 'absent');
  assert.deepEqual([nothing.code, nothing.json.tiles], [0, 0]);
  assert.match(nothing.stderr, /nothing to do: no tile matches the filter/);
  const { code, stderr } = await tilewright('verify', ...target);
  assert.equal(code, 0, stderr);
  if (hasGdal)
    for (const { href } of Object.values(cell!.assets))
      execFileSync('gdalinfo', ['-checksum', href], { stdio: 'ignore' });
});

const SERIES = join(realData, 'landsat8-ny-2018-series');

test('two real dates complete each other', {
  skip: !existsSync(SERIES) && 'needs the real scenes',
}, async (t) => {
  const target = ['--data', join(await tempFolder(t), 'data'), '--format', 'json'];
  const scenes = (await readdir(SERIES)).filter((name) => /_013032_20180(405|421)/.test(name));
  const paths = scenes.map((name) => join(SERIES, name));
  assert.equal((await tilewright('ingest', ...paths, '--precision', '4', ...target)).code, 0);
  const { stdout } = await tilewright('fill', ...target);
  assert.ok(JSON.parse(stdout).tiles > 10, stdout);
  const search = async (source: string) =>
    JSON.parse((await tilewright('search', '--source', source, '--limit', '1000', ...target)).stdout)
      .features as Item[];
  const raw = new Map((await search('raw')).map((item) => [item.id, item]));
  for (const { id, properties } of await search('filled')) {
    const base = raw.get(id.slice(0, id.lastIndexOf('_filled')))!;
    // A pixel that was cloud may lack a band on the date that replaces it, so complete pixels alone may become fewer.
    const clear = ({ properties: of }: Pick<Item, 'properties'>) =>
      Number(of['pixel_coverage']) * (100 - Number(of['eo:cloud_cover'] ?? 100));
    assert.ok(clear({ properties }) >= clear(base), `${id}: ${clear({ properties })} ${clear(base)}`);
    assert.equal(properties['attribution'], base.properties['attribution']);
  }
  assert.equal((await tilewright('verify', ...target)).code, 0);
});

test('a stopped fill keeps its tiles, and the next one makes the rest', async (t) => {
  const dir = join(await tempFolder(t), 'data');
  const storage = await Storage.open(dir, { reserve: 0 });
  const cells = [...'0123456789bcdefghjkmnpqr'].map((digit) => `9q8y${digit}`);
  const side = 256;
  const red = Uint16Array.from({ length: side * side }, (_, i) => 1 + (i % 9999));
  const tileOf = (geocode: string, third: number) => ({
    geocode,
    mask: Uint8Array.from(red, (_, i) => (i % 3 === third ? Mask.cloud : Mask.clear)),
    groups: [{ width: side, height: side, bands: [{ name: 'red', pixels: red }] }],
  });
  for (const day of [0, 1])
    await storeScene(storage, { id: `s${day}`, day, tiles: cells.map((cell) => tileOf(cell, day)) });
  const workers = new DerivePool(1);
  const fill = fillProcess({
    storage,
    finder: new TileFinder(storage, localQueries(storage.index)),
    workers,
  });
  const jobs = await LocalJobService.open(storage, [fill]);
  // Every pixel is close to cloud.
  const { id } = await jobs.start(fill, { dilate: 0 });
  while ((await jobs.get(id)).status !== 'successful' && (await filesMade(dir)) < 5) await sleep(3);
  const stopped = await jobs.cancel(id);
  const kept = await derivedTiles(storage, 'filled');
  assert.equal(stopped.status, 'dismissed');
  assert.ok(kept.length > 0 && kept.length < cells.length, `${kept.length} of ${cells.length}`);
  await workers.close();
  await storage.close();
  const { code, stdout, stderr } = await finished(
    start(['fill', '--dilate', '0', '--data', dir, '--format', 'json']),
  );
  assert.equal(code, 0, stderr);
  const { tiles, unchanged } = JSON.parse(stdout);
  assert.deepEqual([tiles, unchanged], [cells.length - kept.length, kept.length]);
});

async function filesMade(dir: string): Promise<number> {
  const names = await readdir(join(dir, 'tiles'), { recursive: true });
  return names.filter((name) => /_filled-.*\.tif$/.test(name)).length;
}
