/** Inputs that once lost data, hung a command, or led out of the allowed folders. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeLandsatLikeScene } from '../../data-samples/index.js';
import { openNode } from '../../src/node.js';
import { parseGdalMetadata } from '../../src/raster/metadata.js';
import { Storage } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const AT = { collection: 'test', datetime: '2024-06-01T10:00:00Z', precision: 6 };

test('a collection cannot have a name whose tiles belong to another', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  await ingest(node, { href: scene, ...AT, collection: 'fields', id: '2024_x' });
  await assert.rejects(
    ingest(node, { href: scene, ...AT, collection: 'fields_2024', id: 'x' }),
    /TW_API_BAD_REQUEST/,
  );
});

test('two files of one name are not one scene', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const paths: string[] = [];
  for (const [n, name] of ['a/s.tif', 'b/s.tif', 'a é.tif', 'a ü.tif', '日本.tif'].entries()) {
    await mkdir(join(folder, name, '..'), { recursive: true });
    paths.push(await writeTestScene(join(folder, name), { x: 500_000 + 20_000 * n }));
  }
  const results = await ingest(node, { href: paths, ...AT });
  assert.deepEqual(
    results.failed.map(({ path, code }) => [path, code]),
    [[paths[1], 'TW_INGEST_SCENE_TWICE']],
  );
  assert.equal(new Set(results.scenes.map(({ id }) => id)).size, 4);
  assert.equal((await tilesOf(node)).length, results.tiles);
});

test('a missing or incomplete catalogue is an error, and nothing is deleted', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await openNode({ data, memory: 512e6, cores: 1 });
  await ingest(node, { href: await writeTestScene(join(folder, 'scene.tif')), ...AT });
  await node.close();
  const files = async () =>
    (await readdir(join(data, 'tiles'), { recursive: true })).filter((f) => f.endsWith('.tif')).length;
  const before = await files();

  const catalogue = join(data, 'catalogue');
  const log = (await readdir(catalogue)).find((name) => name.endsWith('.log')) as string;
  const bytes = await readFile(join(catalogue, log));
  const broken = Buffer.from(bytes);
  broken[Math.floor(0.6 * bytes.length)] ^= 0xff;
  await writeFile(join(catalogue, log), broken);
  const current = await readFile(join(catalogue, 'CURRENT'));
  for (let n = 0; n < 2; n++) await assert.rejects(Storage.open(data), { code: 'TW_STORAGE_DAMAGED' });
  assert.equal(await files(), before);

  await rm(join(data, 'damaged'));
  await rm(join(catalogue, 'CURRENT'));
  await assert.rejects(Storage.open(data), { code: 'TW_STORAGE_CORRUPT' });
  assert.equal(await files(), before);
  assert.ok(current.length > 0);
});

test('metadata of a hostile TIFF is read in linear time', () => {
  parseGdalMetadata('<Item'.repeat(200_000), 1, 'a.tif');
  parseGdalMetadata(`<Item ${'a'.repeat(500_000)}>`, 1, 'a.tif');
});

test('a tile of more pixels than fit is refused', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  for (const precision of [2, 3]) {
    const { failed } = await ingest(node, { href: scene, ...AT, collection: `p${precision}`, precision });
    assert.equal(failed[0]?.code, 'TW_INGEST_TILE_TOO_LARGE');
  }
});

test('links inside an allowed folder are not followed out of it', async (t) => {
  const folder = await tempFolder(t);
  const allowed = join(folder, 'allowed');
  const product = join(allowed, 'product');
  await writeLandsatLikeScene(product);
  const node = await openNode({
    data: join(folder, 'data'),
    memory: 512e6,
    cores: 1,
    allowFolders: [allowed],
  });
  atEnd(t, () => node.close());
  const band = (await readdir(product)).find((name) => name.endsWith('_B4.TIF')) as string;
  await rm(join(product, band));
  await symlink(await writeTestScene(join(folder, 'secret.tif')), join(product, band));
  // Deeper than any product's first levels, and beside a metadata file that speaks for its folder.
  const safe = join(allowed, 'S2.SAFE');
  const deep = join(safe, 'GRANULE', 'L1C', 'IMG_DATA', 'R10m');
  await mkdir(deep, { recursive: true });
  await symlink(join(folder, 'secret.tif'), join(deep, 'B04.jp2'));
  const mtl = (await readdir(product)).find((name) => name.endsWith('_MTL.txt')) as string;
  const names = [product, allowed, safe, join(product, mtl), `file://${product}`];
  for (const href of [...names, 'file://elsewhere/x', 'file://%00']) {
    const answer = await node.server.inject({ method: 'POST', url: '/ingest', payload: { href } });
    assert.equal(answer.statusCode, 403, href);
  }
});
