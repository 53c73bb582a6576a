/** `tilewright models` and `delete model`: versions shown, exported and deleted. */
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { toArray } from '../../src/async/index.js';
import { Storage } from '../../src/storage/index.js';
import { exportOnnx } from '../../src/training/index.js';
import { tilewright } from '../support/command.js';
import { damageRecords } from '../support/damage.js';
import { putModel } from '../support/models.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

async function folderWithScene(t: Parameters<typeof tempFolder>[0]) {
  const folder = await tempFolder(t);
  const data = ['--data', join(folder, 'data')];
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  await tilewright('ingest', scene, '--datetime', '2024-06-01T10:00:00Z', ...SCENE_FLAGS, ...data);
  const storage = await Storage.open(join(folder, 'data'));
  return { folder, data, storage };
}

test('models shows how images are scored, and marks scores of older versions with their range', async (t) => {
  const { data, storage } = await folderWithScene(t);
  const [tile] = await toArray(storage.catalogue.tiles.values());
  const scores = { psnr: 31.25, ssim: 0.9125, msSsim: { value: 0.75, scales: 3 } };
  const older = await putModel(storage, [tile!], { model: 'ndmi', images: { validation: scores } });
  const images = { psnr: 2, ssim: 2, msSsim: 2 };
  const whole = { msSsim: { value: 0.8, scales: 5 }, images, dates: ['2024-06-01T10:00:00.000Z'] };
  await putModel(storage, [tile!], {
    model: 'ndmi',
    images: { validation: { ...scores, images }, tile: whole, displayRange: [-0.125, 0.5] },
  });
  await storage.close();
  const { id, version } = older;

  const shown = (await tilewright('models', id, ...data)).stdout;
  assert.match(shown, /^images +scored with 8 bits, -0\.1250 as 0 and 0\.5000 as 255$/m);
  assert.match(shown, /^model +1\.00e-2 +0\.990 +0\.750 \(3 scales\) +31\.3 +0\.91\d$/m);
  assert.match(
    shown,
    /^model, on the entire tile \(1 date, training ground included\) +0\.800 \(5 scales\)$/m,
  );
  const before = (await tilewright('models', id, '--version', version, ...data)).stdout;
  assert.match(
    before,
    /^model .* 0\.750 \(3 scales, range 2\.0\) +31\.3 \(range 1\.0\) +0\.91\d \(range 1\.0\)$/m,
  );
  assert.doesNotMatch(before, /^images|entire tile/m);
});

test('models shows, exports and deletes versions', async (t) => {
  const { folder, data, storage } = await folderWithScene(t);
  const [tile] = await toArray(storage.catalogue.tiles.values());
  const best = await putModel(storage, [tile!], { seed: 1, mse: 0.0123 });
  const latest = await putModel(storage, [tile!], { seed: 2, mse: 0.0456, parent: 'ndvi_test_g9' });
  await storage.close();
  const { id } = latest;

  assert.match((await tilewright('models', ...data)).stdout, new RegExp(`^${id} .* 2$`, 'm'));
  const shown = (await tilewright('models', id, ...data)).stdout;
  assert.match(shown, new RegExp(`^version +${latest.version}$`, 'm'));
  assert.match(shown, /^start +with the weights of ndvi_test_g9$/m);
  assert.match(
    shown,
    new RegExp(`^${latest.version} +own +20\\S+ +4\\.56e-2 +0\\.954 +ndvi_test_g9 +latest$`, 'm'),
  );
  assert.match(shown, new RegExp(`^${best.version} +own +20\\S+ +1\\.23e-2 +0\\.988 +- +best$`, 'm'));
  const json = JSON.parse(
    (await tilewright('models', id, '--version', 'best', '--format', 'json', ...data)).stdout,
  );
  const { losses, ...card } = json.card;
  assert.deepEqual([json.version, losses.length, card], [best.version, 1, best.card]);

  assert.deepEqual(json.links, [], 'no server answers them');
  const file = join(folder, 'new', 'model.onnx');
  const wrote = await tilewright('models', id, '--export', file, ...data);
  assert.equal(wrote.stdout, `wrote version ${latest.version} of ${id}: ${file}\n`);
  const out = join(folder, 'made', 'model');
  const all = await tilewright(
    'models',
    id,
    '--version',
    'best',
    '--export',
    out,
    '--format',
    'json',
    ...data,
  );
  assert.equal(JSON.parse(all.stdout).version, best.version);
  assert.deepEqual((await readdir(out)).sort(), ['card.json', 'model.json', 'model.onnx', 'weights.bin']);
  const read = (name: string) => readFile(join(out, name));
  const about = (version: string) => `${id}, version ${version}`;
  const onnx = exportOnnx(await read('model.json'), await read('weights.bin'), about(best.version));
  assert.deepEqual(await read('model.onnx'), onnx);
  assert.notDeepEqual(await readFile(file), onnx);
  assert.deepEqual(JSON.parse(String(await read('card.json'))), json.card);

  const weights = storage.models.path(latest, 'weights.bin');
  const sound = await readFile(weights);
  await writeFile(weights, Buffer.alloc(sound.length, 1));
  for (const to of [join(folder, 'damaged.onnx'), join(folder, 'damaged')]) {
    const refused = await tilewright('models', id, '--export', to, ...data);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, new RegExp(`weights.bin of model ${id}, .*\\[TW_STORAGE_MODEL_DAMAGED\\]`));
  }
  assert.ok(!(await readdir(folder)).includes('damaged.onnx'));
  assert.ok(!(await readdir(join(folder, 'damaged'))).includes('weights.bin'));
  await writeFile(weights, sound);
  const inFile = await tilewright('models', id, '--export', join(file, 'x.onnx'), ...data);
  assert.deepEqual([inFile.code, /cannot be written .*\[TW_CLI_WRITE\]/.test(inFile.stderr)], [1, true]);
  for (const name of ['best', 'latest']) {
    const named = await tilewright('delete', 'model', id, '--version', name, ...data);
    assert.deepEqual([named.code, /name the version/.test(named.stderr)], [2, true], named.stderr);
  }

  const unnamed = await tilewright('models', '--export', file, ...data);
  assert.deepEqual([unnamed.code, /need the id of a model/.test(unnamed.stderr)], [2, true]);
  const ofTile = await tilewright('delete', 'tile', tile!.id, '--version', best.version, ...data);
  assert.deepEqual([ofTile.code, /not with a tile/.test(ofTile.stderr)], [2, true]);
  const removed = await tilewright('delete', 'model', id, '--version', latest.version, ...data);
  assert.equal(removed.stdout, `deleted model ${id}: 1 version\n`);
  const again = await tilewright('delete', 'model', id, '--version', latest.version, ...data);
  assert.equal(again.code, 1);
  assert.match(again.stderr, new RegExp(`"tilewright models ${id}".*\\[TW_STORAGE_NO_MODEL_VERSION\\]`));
  const rest = await tilewright('delete', 'model', id, '--format', 'json', ...data);
  assert.deepEqual(JSON.parse(rest.stdout), { deleted: 'model', id, versions: 1 });
  assert.match((await tilewright('models', id, ...data)).stderr, /\[TW_STORAGE_NO_MODEL\]/);
  assert.equal((await tilewright('verify', ...data)).code, 0);
  assert.match((await tilewright('--version')).stdout, /^\d+\.\d+\.\d+\n$/);
});

test('a model with a damaged record is listed, and can be deleted completely', async (t) => {
  const { folder, data, storage } = await folderWithScene(t);
  const tiles = await toArray(storage.catalogue.tiles.values());
  const sound = await putModel(storage, tiles);
  const { id } = await putModel(storage, tiles, { geocode: 'u0' });
  await storage.close();
  await damageRecords(join(folder, 'data'), `!models!${id}`);

  const listed = await tilewright('models', ...data);
  assert.match(listed.stdout, new RegExp(`^${sound.id} [^]*\n1 model\n$`, 'm'));
  assert.match(
    listed.stderr,
    new RegExp(`record of ${id} is damaged: train it again, or "tilewright delete model ${id}"`),
  );
  const { models, damaged } = JSON.parse((await tilewright('models', '--format', 'json', ...data)).stdout);
  assert.deepEqual([models.map((model: { id: string }) => model.id), damaged], [[sound.id], [id]]);
  const one = await tilewright('delete', 'model', id, '--version', sound.version, ...data);
  assert.match(one.stderr, /TW_STORAGE_CORRUPT/);
  const deleted = await tilewright('delete', 'model', id, ...data);
  assert.match(deleted.stdout, /its record was damaged/);
  const left = JSON.parse((await tilewright('models', '--format', 'json', ...data)).stdout);
  assert.deepEqual([left.models.length, left.damaged], [1, undefined]);
  const verified = await tilewright('verify', ...data);
  assert.equal(verified.code, 0, verified.stdout + verified.stderr);

  const again = await Storage.open(join(folder, 'data'));
  await putModel(again, tiles, { geocode: 'u0' });
  assert.equal((await again.models.get(id))?.id, id);
  await again.close();
});
