/** Complete products through the ingest process: archives, concurrent scenes, cloud without a mask, large scenes. */
import assert from 'node:assert/strict';
import { mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { writeLandsatLikeScene, writeSafe } from '../../data-samples/index.js';
import { isPotentialCloud, passesBrightnessTest } from '../../src/ingest/cloud/reflectance.js';
import { type ImageFile, Mask, readImage } from '../../src/raster/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { tar, zip } from '../support/archives.js';
import { finished, start } from '../support/command.js';
import { onlyNightly } from '../support/nightly.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

async function contents(folder: string): Promise<{ name: string; content: Buffer }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(
    files.sort().map(async (path) => ({
      name: relative(dirname(folder), path).replaceAll('\\', '/'),
      content: await readFile(path),
    })),
  );
}

test('an archive is the same scene as its folder, and leaves no files', async (t) => {
  const folder = await tempFolder(t);
  const landsat = join(folder, 'LC08');
  await writeLandsatLikeScene(landsat);
  const safe = await writeSafe(folder, {
    level: 'L2A',
    baseline: '04.00',
    size: { width: 300, height: 300 },
  });
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const direct = await ingest(node, { href: [landsat, safe.path] });
  assert.deepEqual(direct.failed, []);

  const tgz = join(folder, 'landsat.bin');
  const files = await contents(landsat);
  await writeFile(tgz, gzipSync(tar(files.map(({ name, content }) => ({ name: name.slice(5), content })))));
  const zipped = join(folder, 'safe.zip');
  await writeFile(zipped, zip(await contents(safe.path)));
  const unpacked = await ingest(node, { href: [tgz, zipped] });
  assert.deepEqual(unpacked.failed, []);
  assert.deepEqual(
    unpacked.scenes.map(({ id, tiles, unchanged }) => ({ id, tiles, unchanged })),
    direct.scenes.map(({ id, tiles }) => ({ id, tiles, unchanged: true })),
  );

  const broken = join(folder, 'broken.zip');
  await writeFile(broken, (await readFile(zipped)).subarray(0, 5000));
  const slip = join(folder, 'slip.zip');
  await writeFile(slip, zip([{ name: '../../outside.tif', content: 'x' }]));
  const empty = join(folder, 'empty.zip');
  await writeFile(empty, zip([{ name: 'notes.txt', content: 'nothing here' }]));
  const { failed, scenes } = await ingest(node, { href: [broken, slip, empty, tgz] });
  assert.deepEqual(
    failed.map(({ path, code }) => [path, code]),
    [
      [broken, 'TW_INGEST_ARCHIVE_BROKEN'],
      [slip, 'TW_INGEST_ARCHIVE_NAME'],
      [empty, 'TW_INGEST_NOT_RECOGNISED'],
    ],
  );
  assert.equal(scenes.length, 1);
  const scratch = await readdir(join(folder, 'data', 'scratch')).catch(() => []);
  assert.deepEqual(scratch, []);
});

test('concurrent scenes of a new collection: the first fixes the cells, results keep their order', async (t) => {
  const folder = await tempFolder(t);
  const inbox = join(folder, 'inbox');
  await mkdir(inbox);
  const names = Array.from({ length: 10 }, (_, i) => `s${i}`);
  // The later ones would choose a coarser precision for themselves.
  for (const [i, name] of names.entries())
    await writeTestScene(join(inbox, `${name}.tif`), { pixel: i === 0 ? 10 : 60, seed: i + 1 });
  const node = await testNode(t, join(folder, 'data'), { cores: 3 });
  const { scenes, failed } = await ingest(node, { href: inbox, collection: 'many', datetime: '2024-05-01' });
  assert.deepEqual(failed, []);
  assert.deepEqual(
    scenes.map(({ id }) => id.slice(0, 2)),
    names,
  );
  const lengths = new Set((await tilesOf(node)).map(({ geocode }) => geocode.length));
  assert.equal(lengths.size, 1);

  const twice = await ingest(node, {
    href: [join(inbox, 's1.tif'), join(inbox, 's2.tif')],
    collection: 'many',
    datetime: '2024-05-01',
    id: 'same',
  });
  assert.deepEqual([twice.scenes.length, twice.failed[0]?.code], [1, 'TW_INGEST_SCENE_TWICE']);
});

/** The six bands of a tile as reflectance, upsampled to the pixels of the mask. */
async function sixBands(
  imageOf: (group: string) => ImageFile,
  tile: TileRecord,
  width: number,
  height: number,
) {
  const names = { blue: 'B02', green: 'B03', red: 'B04', nir: 'B8A', swir16: 'B11', swir22: 'B12' };
  const read = async (name: string) => {
    const group = tile.groups.find(({ bands }) => bands.some((band) => band.name === name));
    assert.ok(group);
    const index = group.bands.findIndex((band) => band.name === name);
    const { scale, offset } = group.bands[index];
    const { bands } = await readImage(imageOf(group.name), [index]);
    return Float32Array.from({ length: width * height }, (_, i) => {
      const row = Math.floor((Math.floor(i / width) * group.height) / height);
      const column = Math.floor(((i % width) * group.width) / width);
      const stored = bands[0][row * group.width + column];
      return stored === group.nodata ? NaN : stored * scale + offset;
    });
  };
  const [blue, green, red, nir, swir16, swir22] = await Promise.all(Object.values(names).map(read));
  return { blue, green, red, nir, swir16, swir22 };
}

test('cloud in Sentinel-2 L1C without a mask is detected by reflectance', async (t) => {
  const folder = await tempFolder(t);
  const { path } = await writeSafe(folder, {
    level: 'L1C',
    baseline: '02.04',
    size: { width: 420, height: 420 },
    cloudShare: 0.4,
    orbitEdge: true,
  });
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const { failed } = await ingest(node, { href: path });
  assert.deepEqual(failed, []);
  const tiles = await tilesOf(node);
  assert.ok(tiles.some(({ cloudCover }) => (cloudCover ?? 0) > 20));
  for (const tile of tiles) {
    const imageOf = (group: string) => node.storage.tileImage(tile, group);
    const { header, bands } = await readImage(imageOf('mask'));
    const codes = bands[0] as Uint8Array;
    const { blue, green, red, nir, swir16, swir22 } = await sixBands(
      imageOf,
      tile,
      header.width,
      header.height,
    );
    const assessed = codes.filter((code) => code !== Mask.nodata && code !== Mask.notAssessed).length;
    const agreeing = codes.filter((code, i) => {
      const isCloud =
        passesBrightnessTest(blue[i], red[i], swir16[i]) &&
        isPotentialCloud(blue[i], green[i], red[i], nir[i], swir16[i], swir22[i]);
      return code !== Mask.nodata && code !== Mask.notAssessed && isCloud === (code === Mask.cloud);
    });
    assert.ok(agreeing.length > 0.95 * assessed, `${tile.id}: ${agreeing.length} of ${assessed}`);
    const cloud = codes.filter((code) => code === Mask.cloud).length;
    assert.ok(Math.abs((tile.cloudCover ?? -1) - (100 * cloud) / assessed) < 1e-9);
  }
});

/** Cloud if B02 is above 0.2. */
const MODEL = `tree
num_class=1
num_tree_per_iteration=1
max_feature_idx=9
objective=binary sigmoid:1
Tree=0
num_leaves=2
split_feature=1
threshold=0.2
decision_type=2
left_child=-1
right_child=-2
leaf_value=-3 3
end of trees
`;

test("an operator's model tells the cloud of Sentinel-2 L1C, and of nothing else", async (t) => {
  const folder = await tempFolder(t);
  const cloudModel = join(folder, 'model.txt');
  await writeFile(cloudModel, MODEL);
  const size = { width: 300, height: 300 };
  const one = await writeSafe(join(folder, 'a'), { level: 'L1C', baseline: '04.00', size, cloudShare: 0.5 });
  const two = await writeSafe(join(folder, 'b'), { level: 'L2A', baseline: '04.00', size, cloudShare: 0.5 });
  const coverOf = async (name: string, model?: string) => {
    const node = await testNode(t, join(folder, name), { cloudModel: model, cores: 1 });
    const { failed } = await ingest(node, { href: [one.path, two.path] });
    if (failed.length > 0) return failed;
    const tiles = (await tilesOf(node)).toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return tiles.map(({ id, cloudCover }) => ({ id, cloudCover }));
  };
  const plain = await coverOf('plain');
  const modelled = await coverOf('modelled', cloudModel);
  const of = (level: string, tiles: object[]) =>
    tiles.filter((tile) => 'id' in tile && String(tile.id).includes(level));
  assert.deepEqual(of('MSIL2A', modelled), of('MSIL2A', plain));
  assert.notDeepEqual(of('MSIL1C', modelled), of('MSIL1C', plain));
  assert.ok(of('MSIL1C', modelled).length > 0);

  const absent = await coverOf('absent', join(folder, 'no-such-model.txt'));
  assert.equal((absent as { code: string }[])[0].code, 'TW_INGEST_CLOUD_MODEL_UNREADABLE');
});

test('a scene of 1 GB is streamed through 256 MB', { skip: onlyNightly, timeout: 600_000 }, async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'large.tif');
  await writeStrips(path, 32_768, 16_384);
  const data = ['--data', join(folder, 'data'), '--memory', '256MB', '--cores', '2', '--format', 'json'];
  const flags = ['--collection', 'large', '--datetime', '2024-01-01', '--nodata', '0', '--precision', '5'];
  const child = start(['ingest', path, ...flags, ...data]);
  let peak = 0;
  const sampling = setInterval(async () => {
    // Memory of the process and its threads. If the system does not report it, the test only shows that the scene is cut.
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
    peak = Math.max(peak, Number(/VmHWM:\s*(\d+) kB/.exec(status)?.[1] ?? 0) * 1024);
  }, 100);
  const { code, stdout, stderr } = await finished(child);
  clearInterval(sampling);
  assert.equal(code, 0, stderr);
  assert.ok(JSON.parse(stdout).tiles > 100);
  assert.ok(peak < 500e6, `${Math.round(peak / 1e6)} MB at the peak`);
});

/**
 * Writes an uncompressed TIFF of uint16 in UTM 33 in strips of 128 rows: 1 GB, of which every sixteenth strip holds data. The file has
 * holes in place of the others.
 */
async function writeStrips(path: string, width: number, height: number): Promise<void> {
  const rows = 128;
  const count = height / rows;
  const entries: [tag: number, type: number, count: number, value: number][] = [];
  const head = 8 + 2 + 15 * 12 + 4;
  const after = head + 8 * count + 24 + 48 + 64;
  const stripBytes = width * rows * 2;
  const lists = { offsets: head, counts: head + 4 * count, scale: head + 8 * count };
  entries.push([256, 4, 1, width], [257, 4, 1, height], [258, 3, 1, 16], [259, 3, 1, 1], [262, 3, 1, 1]);
  entries.push(
    [273, 4, count, lists.offsets],
    [277, 3, 1, 1],
    [278, 4, 1, rows],
    [279, 4, count, lists.counts],
  );
  entries.push([284, 3, 1, 1], [339, 3, 1, 1], [33550, 12, 3, lists.scale], [33922, 12, 6, lists.scale + 24]);
  entries.push([34735, 3, 16, lists.scale + 72], [42113, 2, 2, 0x30]);
  const file = Buffer.alloc(after);
  file.write('II*\0', 0, 'latin1');
  file.writeUInt32LE(8, 4);
  file.writeUInt16LE(entries.length, 8);
  for (const [i, [tag, type, n, value]] of entries.entries()) {
    const at = 10 + i * 12;
    file.writeUInt16LE(tag, at);
    file.writeUInt16LE(type, at + 2);
    file.writeUInt32LE(n, at + 4);
    if (type === 3 && n === 1) file.writeUInt16LE(value, at + 8);
    else file.writeUInt32LE(value, at + 8);
  }
  for (let i = 0; i < count; i++) {
    file.writeUInt32LE(after + i * stripBytes, lists.offsets + 4 * i);
    file.writeUInt32LE(stripBytes, lists.counts + 4 * i);
  }
  for (const [i, value] of [10, 10, 0].entries()) file.writeDoubleLE(value, lists.scale + 8 * i);
  for (const [i, value] of [0, 0, 0, 350_000, 5_400_000, 0].entries())
    file.writeDoubleLE(value, lists.scale + 24 + 8 * i);
  const keys = [1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633];
  for (const [i, key] of keys.entries()) file.writeUInt16LE(key, lists.scale + 72 + 2 * i);
  const pixels = Uint16Array.from({ length: width * rows }, (_, p) => 1000 + ((p * 7919) % 3001));
  const handle = await open(path, 'w');
  try {
    await handle.write(file, 0, file.length, 0);
    for (let i = 0; i < count; i += 16)
      await handle.write(new Uint8Array(pixels.buffer), 0, stripBytes, after + i * stripBytes);
    await handle.truncate(after + stripBytes * count);
  } finally {
    await handle.close();
  }
}
