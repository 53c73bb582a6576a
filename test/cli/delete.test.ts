/** `tilewright delete` and the list of scenes that tells it what to delete. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { tilewright } from '../support/command.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

test('info lists the scenes of a collection; delete removes tiles and reports their number', async (t) => {
  const folder = await tempFolder(t);
  const data = ['--data', join(folder, 'data')];
  const json = ['--format', 'json', ...data];
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  const ingest = ['ingest', scene, '--datetime', '2024-06-01T10:00:00Z', ...SCENE_FLAGS];
  const { tiles } = JSON.parse((await tilewright(...ingest, ...json)).stdout);

  const text = (await tilewright('info', 'test', ...data)).stdout;
  assert.match(text, new RegExp(`scene_20240601T100000Z +2024-06-01T10:00:00.000Z +${tiles}`));
  const info = JSON.parse((await tilewright('info', 'test', ...json)).stdout);
  assert.equal(info.type, 'Collection');
  const id = `test/${info.scenes[0].id}`;
  const search = JSON.parse((await tilewright('search', ...json)).stdout);
  const tile = search.features[0].id;

  assert.equal((await tilewright('delete', 'tile', tile, ...data)).stdout, `deleted tile ${tile}: 1 tile\n`);
  const removed = await tilewright('delete', 'scene', id, ...json);
  assert.deepEqual(JSON.parse(removed.stdout), { deleted: 'scene', id, tiles: tiles - 1 });
  const gone = await tilewright('delete', 'scene', id, ...data);
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /\[TW_STORAGE_NO_SCENE\]/);
  assert.equal((await tilewright('delete', 'collection', 'test', ...data)).code, 0);
  const absent = await tilewright('delete', 'tile', tile, ...data);
  assert.equal(absent.stderr, `error: there is no item ${tile} [TW_API_NOT_FOUND]\n`);
  assert.match((await tilewright('delete', 'collection', 'test', ...data)).stderr, /NO_COLLECTION/);
});
