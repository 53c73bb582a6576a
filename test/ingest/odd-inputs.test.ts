/** Inputs that are neither sound nor plainly broken. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeCog } from '../../src/raster/index.js';
import { zip } from '../support/archives.js';
import { finished, start } from '../support/command.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { bytesOf, writeRaster } from '../support/rasters.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const noPipes = spawnSync('mkfifo', ['--version']).error ? 'mkfifo is not there' : false;

test('a pipe is refused without waiting for it', {
  skip: noPipes,
  timeout: 60_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const pipe = join(folder, 'pipe.tif');
  spawnSync('mkfifo', [pipe]);
  const product = join(folder, 'product');
  await mkdir(product);
  spawnSync('mkfifo', [join(product, 'x_MTL.txt')]);
  const { failed } = await ingest(node, {
    href: [pipe, product],
    collection: 'pipes',
    datetime: '2024-01-01',
  });
  assert.deepEqual(
    failed.map(({ path }) => path),
    [pipe, product],
  );
  assert.match(failed[0].message, /pipe or a device/);
});

test('a coarse map of the world has tiles up to the poles of its projection', async (t) => {
  const folder = await tempFolder(t);
  const half = 20_037_508.342789244;
  const path = join(folder, 'world.tif');
  await writeFile(
    path,
    encodeCog({
      width: 200,
      height: 200,
      dataType: 'uint8',
      bands: [new Uint8Array(200 * 200).fill(7)],
      transform: { originX: -half, originY: half, pixelWidth: half / 100, pixelHeight: half / 100 },
      epsg: 3857,
      overviews: 'nearest',
    }),
  );
  const node = await testNode(t, join(folder, 'data'));
  const options = { collection: 'world', datetime: '2024-01-01', precision: 1 };
  const { tiles, failed } = await ingest(node, { href: path, ...options });
  assert.deepEqual(failed, []);
  assert.equal(tiles, 32);
});

test('a damaged delivery does not block the id of its scene for a valid one', async (t) => {
  const folder = await tempFolder(t);
  const sound = await writeTestScene(join(folder, 'sound.tif'));
  const broken = join(folder, 'broken.tif');
  const bytes = await readFile(sound);
  bytes.fill(0xff, bytes.length - 40_000);
  await writeFile(broken, bytes);
  const node = await testNode(t, join(folder, 'data'));
  const flags = { collection: 'test', datetime: '2024-01-01', id: 'scene' };
  const { failed, scenes } = await ingest(node, { href: [broken, sound, sound], ...flags });
  assert.deepEqual(
    failed.map(({ path, code }) => [path, code]),
    [
      [broken, 'TW_RASTER_CORRUPT'],
      [sound, 'TW_INGEST_SCENE_TWICE'],
    ],
  );
  assert.equal(scenes.length, 1);
});

test('one bad file does not affect the others of its archive', async (t) => {
  const folder = await tempFolder(t);
  const sound = await readFile(await writeTestScene(join(folder, 'sound.tif')));
  const archive = join(folder, 'two.zip');
  await writeFile(
    archive,
    zip([
      { name: 'a.tif', content: sound },
      { name: 'b.tif', content: sound.subarray(0, 300) },
    ]),
  );
  const node = await testNode(t, join(folder, 'data'));
  const { failed, scenes } = await ingest(node, { href: archive, collection: 'zip', datetime: '2024-01-01' });
  assert.equal(scenes.length, 1);
  assert.deepEqual(
    failed.map(({ path }) => path),
    [join(archive, 'b.tif')],
  );
});

test('the cloud detector warns that it needs reflectance', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'six.tif'), {
    dataType: 'uint8',
    bands: bytesOf(6, 64 * 64, (i) => (i % 200) + 1),
  });
  const node = await testNode(t, join(folder, 'data'));
  const bands = { blue: 1, green: 2, red: 3, nir: 4, swir16: 5, swir22: 6 };
  const flags = { collection: 'six', datetime: '2024-01-01', bands, cloudTest: true };
  const { scenes } = await ingest(node, { href: path, ...flags });
  assert.match(scenes[0].warnings.join(), /reflectance.*--scale/);
  assert.ok((await tilesOf(node)).every(({ cloudCover }) => cloudCover === null));
  await ingest(node, { href: path, ...flags, scale: 0.004 });
  assert.ok((await tilesOf(node)).every(({ cloudCover }) => cloudCover !== null));
});

test('circular links do not prevent a watch from ending', { timeout: 60_000 }, async (t) => {
  const folder = await tempFolder(t);
  const inbox = join(folder, 'inbox');
  await mkdir(join(inbox, 'below'), { recursive: true });
  for (let i = 0; i < 14; i++) await symlink('.', join(inbox, 'below', `round${i}`));
  const child = start(['ingest', '--watch', inbox, '--data', join(folder, 'data')]);
  const end = finished(child);
  await new Promise<void>((resolve) => {
    child.stderr?.on('data', (text) => /watching/.test(String(text)) && resolve());
  });
  // Long enough for the first look to be under way.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  child.kill('SIGTERM');
  const { signal, stderr } = await end;
  assert.equal(signal, 'SIGTERM', stderr);
});
