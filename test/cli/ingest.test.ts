/** `tilewright ingest` with --dry-run and --watch. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { finished, MAIN, start, tilewright } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const FLAGS = [...SCENE_FLAGS, '--datetime', '2024-06-01'];

test('--dry-run lists the tiles that an ingest then makes, and writes none', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeTestScene(join(folder, 'a.tif'));
  const data = ['--data', join(folder, 'data'), '--format', 'json'];
  const dry = JSON.parse((await tilewright('ingest', path, '--dry-run', ...FLAGS, ...data)).stdout);
  assert.deepEqual(await readdir(join(folder, 'data', 'tiles')), []);
  const text = await tilewright('ingest', path, '--dry-run', ...FLAGS, '--data', join(folder, 'data'));
  assert.match(text.stdout, /tiles at most\n {2}u/);

  await tilewright('ingest', path, ...FLAGS, ...data);
  const { features } = JSON.parse((await tilewright('search', '--limit', '1000', ...data)).stdout);
  const made = features.map((item: { properties: { geocode: string } }) => item.properties.geocode);
  assert.ok(made.length > 4);
  assert.deepEqual(dry.scenes[0].geocodes.toSorted(), made.toSorted());
});

test('--nodata nan is valid for floats and not for integers', async (t) => {
  const folder = await tempFolder(t);
  const values = Float32Array.from({ length: 64 * 64 }, (_, i) => (i % 2 === 0 ? 0 : NaN));
  const float = await writeRaster(join(folder, 'float.tif'), {
    dataType: 'float32',
    bands: [values],
    nodata: 0,
  });
  const integer = await writeRaster(join(folder, 'integer.tif'));
  const flags = ['--collection', 'c', '--datetime', '2024-06-01', '--nodata', 'NaN', '--format', 'json'];
  const data = join(folder, 'data');
  const { stdout } = await tilewright('ingest', float, integer, ...flags, '--data', data);
  const { scenes, failed } = JSON.parse(stdout);
  assert.deepEqual([scenes.length, failed.length], [1, 1]);
  assert.match(failed[0].message, /--nodata NaN .*uint16/);
  const node = await openNode({ data, memory: 256e6, cores: 1 });
  atEnd(t, () => node.close());
  const [tile] = await tilesOf(node);
  assert.equal(tile!.groups[0]!.nodata, null, 'not the 0 of the file; records have no NaN');
});

test('--watch retries a batch that failed completely', { timeout: 120_000 }, async (t) => {
  const folder = await tempFolder(t);
  const inbox = join(folder, 'inbox');
  await mkdir(inbox);
  await writeTestScene(join(inbox, 'a.tif'));
  const config = { data: join(folder, 'data'), memory: 256e6, cores: 1, allowFolders: [inbox] };
  // A free port on which no server listens yet.
  const before = await openNode(config);
  const url = await before.listen('127.0.0.1', 0);
  await before.close();
  const child = start(['ingest', inbox, '--watch', '--server', url, '--format', 'json', ...FLAGS]);
  atEnd(t, () => child.kill('SIGKILL'));
  const batch = new Promise<string>((resolve) => child.stdout?.once('data', resolve));
  const refused = new Promise<string>((resolve) => {
    child.stderr?.setEncoding('utf8').on('data', (text) => /error/.test(text) && resolve(text));
  });
  assert.match(await refused, /does not answer.*trying again/);

  const node = await openNode(config);
  atEnd(t, () => node.close());
  await node.listen('127.0.0.1', Number(new URL(url).port));
  const { scenes, failed } = JSON.parse(await batch);
  assert.deepEqual([scenes.length, failed], [1, []]);
  const end = finished(child);
  child.kill('SIGINT');
  assert.equal((await end).signal, 'SIGINT');
});

test('--watch does not ingest files again if the check that follows fails', {
  timeout: 120_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const inbox = join(folder, 'inbox');
  await mkdir(inbox);
  const data = join(folder, 'data');
  const node = await openNode({ data, memory: 256e6, cores: 1, allowFolders: [inbox] });
  atEnd(t, () => node.close());
  const isCheck = (url = '') => url.includes('/processes/check/');
  const proxy = await FaultProxy.start(t, await node.listen('127.0.0.1', 0), {
    answer: ({ url }) => (isCheck(url) ? 400 : undefined),
  });
  const flags = ['--watch', '--check', 'ndvi', '--server', proxy.endpoint, '--format', 'json', ...FLAGS];
  const child = start(['ingest', inbox, ...flags]);
  atEnd(t, () => child.kill('SIGKILL'));
  const batch = () =>
    new Promise<{ scenes: { id: string }[] }>((resolve) =>
      child.stdout?.once('data', (line) => resolve(JSON.parse(line))),
    );

  let next = batch();
  await writeTestScene(join(inbox, 'a.tif'));
  assert.match((await next).scenes[0]!.id, /^a_/);
  next = batch();
  await writeTestScene(join(inbox, 'b.tif'));
  assert.deepEqual(
    (await next).scenes.map(({ id }) => id[0]),
    ['b'],
  );
  assert.ok(proxy.requests.some((request) => isCheck(request)));
});

test('--watch ingests new files, ingests corrected files again, and stops cleanly', {
  timeout: 120_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const inbox = join(folder, 'inbox');
  await mkdir(inbox);
  await writeFile(join(inbox, 'notes.txt'), 'not a scene');
  const flags = ['--watch', ...FLAGS, '--data', join(folder, 'data'), '--format', 'json'];
  const child = start(['ingest', inbox, ...flags]);
  const end = finished(child);
  atEnd(t, () => child.kill('SIGKILL'));
  const batch = () =>
    new Promise<{ scenes: { id: string; tiles: number; replaced: boolean }[]; failed: object[] }>((resolve) =>
      child.stdout?.once('data', (line) => resolve(JSON.parse(line))),
    );

  let next = batch();
  await writeTestScene(join(inbox, 'a.tif'));
  const [first] = (await next).scenes;
  assert.match(first.id, /^a_/);
  assert.equal(first.replaced, false);

  next = batch();
  const corrected = await writeTestScene(join(folder, 'corrected.tif'), { seed: 2 });
  await copyFile(corrected, join(inbox, 'a.tif'));
  const [second] = (await next).scenes;
  assert.deepEqual([second.id, second.replaced], [first.id, true]);

  next = batch();
  await writeFile(join(inbox, 'broken.tif'), 'II*\0 cut off');
  assert.equal((await next).failed.length, 1);

  child.kill('SIGINT');
  const { signal, stderr } = await end;
  assert.deepEqual([signal, stderr.includes('stopped')], ['SIGINT', false], stderr);
  const file = await tilewright('ingest', corrected, '--watch', ...FLAGS, '--data', join(folder, 'data'));
  assert.match(file.stderr, /TW_CLI_NOT_FOLDER/);
});

test('many files that lack the same are one message, and the proposed command works', async (t) => {
  const folder = await tempFolder(t);
  const inbox = join(folder, 'my files');
  await mkdir(inbox);
  for (const [i, day] of ['2013-09-14', '2013-10-16', '2013-11-17', '2013-12-19', '2014-01-17'].entries())
    await writeRaster(join(inbox, `TERRA_MODIS_012010_NDVI_${day}.tif`), { x: 500_000 + i });
  const args = ['ingest', inbox, '--data', join(folder, 'data'), '--precision', '6'];
  const refused = await tilewright(...args);
  assert.equal(refused.code, 1);
  const errors = refused.stderr.split('\n').filter((line) => line.startsWith('error:'));
  assert.equal(errors.length, 1, refused.stderr);
  assert.match(
    errors[0]!,
    /^error: 5 inputs: not a known product.*--collection.*also lacks a time \(the date in its name.*scale \(--scale/,
  );
  assert.match(errors[0]!, /2013-09-14\.tif, .*2013-10-16\.tif, .*2013-11-17\.tif and 2 more$/);

  const command = /^try: tilewright (.*)$/m.exec(refused.stderr)?.[1];
  assert.match(command!, /--name-pattern '\{platform\}_MODIS_012010_\{band\}_\{time:%Y-%m-%d\}\.tif'$/);
  const run = spawnSync('sh', ['-c', `"$NODE" "$MAIN" ${command}`], {
    env: { ...process.env, NODE: process.execPath, MAIN },
    encoding: 'utf8',
  });
  assert.equal(run.status, 0, run.stderr);
  assert.match(run.stdout, /of 5 scenes in /);
});

test('no name pattern is proposed for files that state their time: names would replace it', async (t) => {
  const folder = await tempFolder(t);
  for (const day of ['2013-09-14', '2013-10-16'])
    await writeRaster(join(folder, `x_${day}.tif`), {
      metadata: { ACQUISITION_DATETIME: `${day}T10:11:12Z` },
    });
  const { stderr } = await tilewright('ingest', folder, '--data', join(folder, 'data'));
  assert.match(stderr, /^try: tilewright ingest .* --collection x$/m);
});

test('a file without a time, a collection, names of bands and a scale lacks all of them in one message', async (t) => {
  const folder = await tempFolder(t);
  const pixels = Uint16Array.from({ length: 64 * 64 }, (_, i) => i);
  const path = await writeRaster(join(folder, 'plain.tif'), { bands: [pixels, pixels] });
  const { stderr, code } = await tilewright('ingest', path, '--data', join(folder, 'data'));
  assert.equal(code, 1);
  for (const flag of ['--collection', '--datetime', '--bands', '--scale'])
    assert.ok(stderr.includes(flag), flag);
  assert.doesNotMatch(stderr, /^try:/m, 'nothing states the time');
});
