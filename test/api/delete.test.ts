/** Deletion of tiles, scenes and collections over HTTP, and ingest of the same data afterwards. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { storageProblems } from '../support/storage-problems.js';
import { tempFolder } from '../support/temp.js';

const DESCRIPTION = { collection: 'test', scale: 0.0001, maskBand: 5, precision: 6 };

const remove = (node: TilewrightNode, url: string) => node.server.inject({ method: 'DELETE', url });
const get = async (node: TilewrightNode, url: string) => (await node.server.inject(url)).json();

test('a tile, a scene and a collection are deleted, and the same scene brings all tiles back', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const href = await writeTestScene(join(folder, 'a.tif'));
  const inputs = { href, datetime: '2024-06-01T10:00:00Z', ...DESCRIPTION };
  const { tiles } = await ingest(node, inputs);
  await ingest(node, { ...inputs, href: await writeTestScene(join(folder, 'b.tif'), { seed: 2 }) });
  const all = await tilesOf(node);

  const { scenes } = await get(node, '/collections/test/scenes');
  assert.deepEqual(
    scenes.map((scene: { id: string; tiles: number; datetime: string }) => [
      scene.id,
      scene.tiles,
      scene.datetime,
    ]),
    ['a', 'b'].map((name) => [`${name}_20240601T100000Z`, tiles, '2024-06-01T10:00:00.000Z']),
  );
  const [scene] = scenes;
  const cells = (await get(node, `/collections/test/scenes/${scene.id}`)).geocodes;
  assert.deepEqual(
    cells,
    all
      .filter((tile) => tile.scene === scene.id)
      .map((tile) => tile.geocode)
      .sort(),
  );

  const [tile] = all;
  const one = await remove(node, `/collections/test/items/${tile.id}`);
  assert.deepEqual([one.statusCode, one.body, one.headers['tilewright-deleted-tiles']], [204, '', '1']);
  assert.equal((await node.server.inject(`/collections/test/items/${tile.id}`)).statusCode, 404);
  assert.equal((await get(node, `/collections/test/scenes/${scene.id}`)).tiles, tiles - 1);
  const again = await ingest(node, inputs);
  assert.deepEqual([again.tiles, again.scenes[0].unchanged], [tiles, false]);

  const whole = await remove(node, `/collections/test/scenes/${scene.id}`);
  assert.deepEqual([whole.statusCode, Number(whole.headers['tilewright-deleted-tiles'])], [204, tiles]);
  assert.equal((await tilesOf(node)).length, tiles);
  await ingest(node, inputs);
  assert.equal((await tilesOf(node)).length, 2 * tiles);

  const collection = await remove(node, '/collections/test');
  assert.deepEqual(
    [collection.statusCode, Number(collection.headers['tilewright-deleted-tiles'])],
    [204, 2 * tiles],
  );
  assert.equal((await get(node, '/search')).numberMatched, 0);
  assert.deepEqual(await storageProblems(node.storage), []);
  assert.equal((await ingest(node, inputs)).tiles, tiles);
});

test('missing items, items that are being written, and requests without permission are refused', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const href = await writeTestScene(join(folder, 'a.tif'));
  await ingest(node, { href, datetime: '2024-06-01T10:00:00Z', ...DESCRIPTION });
  const [tile] = await tilesOf(node);
  const problem = async (url: string, status: number, code: string) => {
    const answer = await remove(node, url);
    assert.equal(answer.statusCode, status, `${url} ${answer.body}`);
    assert.match(String(answer.headers['content-type']), /application\/problem\+json/);
    assert.equal(answer.json().code, code);
  };
  await problem('/collections/none', 404, 'TW_STORAGE_NO_COLLECTION');
  await problem('/collections/none/scenes/x', 404, 'TW_STORAGE_NO_COLLECTION');
  await problem('/collections/test/scenes/x', 404, 'TW_STORAGE_NO_SCENE');
  await problem('/collections/test/items/x', 404, 'TW_API_NOT_FOUND');
  await problem(`/collections/other/items/${tile.id}`, 404, 'TW_API_NOT_FOUND');
  assert.equal((await node.server.inject('/collections/none/scenes')).statusCode, 404);
  assert.equal((await node.server.inject('/collections/test/scenes/x')).statusCode, 404);

  const collection = await node.storage.catalogue.collections.get('test');
  assert.ok(collection);
  const write = await node.storage.beginScene(collection, tile.scene, [tile.geocode]);
  for (const url of [`items/${tile.id}`, `scenes/${tile.scene}`, ''])
    await problem(`/collections/test/${url}`.replace(/\/$/, ''), 409, 'TW_STORAGE_SCENE_BUSY');
  await write.abort();

  const guarded = await openNode({ data: join(folder, 'guarded'), memory: 256e6, cores: 1, token: 'right' });
  atEnd(t, () => guarded.close());
  for (const url of ['items/x', 'scenes/x', '']) {
    const answer = await remove(guarded, `/collections/test/${url}`.replace(/\/$/, ''));
    assert.equal(answer.json().code, 'TW_API_UNAUTHORIZED');
  }
});
