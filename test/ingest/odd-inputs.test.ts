/** Inputs that are neither sound nor plainly broken. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { openNode } from '../../src/node.js';
import { encodeCog } from '../../src/raster/index.js';
import { tar, zip } from '../support/archives.js';
import { finished, start, tilewright } from '../support/command.js';
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

/** Layouts of a delivery, and the number of scenes that a folder and an archive of it have; `t` stands for a raster. */
const LAYOUTS: [layout: string, inFolder: number, inArchive: number][] = [
  ['t.tif', 1, 1],
  ['one/t.tif', 1, 1],
  ['one/t.tif one/.DS_Store __MACOSX/one/._t.tif', 1, 1],
  ['readme.txt one/t.tif', 1, 1],
  ['t.tif one/u.tif', 2, 2],
  ['one/t.tif two/u.tif', 2, 2],
  ['one/two/t.tif', 0, 1],
  ['one/two/three/t.tif', 0, 0],
  ['one/readme.txt', 0, 0],
  ['.hidden/t.tif', 0, 0],
];

test('a folder and an archive are searched with their subfolders, and what is not searched is named', async (t) => {
  const folder = await tempFolder(t);
  const raster = await readFile(await writeTestScene(join(folder, 'scene.tif')));
  const node = await testNode(t, join(folder, 'data'));
  const options = { collection: 'test', datetime: '2024-01-01', dryRun: true };
  for (const [i, [layout, inFolder, inArchive]] of LAYOUTS.entries()) {
    const entries = layout
      .split(' ')
      .map((name) => ({ name, content: /\/?[tu]\.tif$/.test(name) ? raster : Buffer.from('text') }));
    const plain = join(folder, `plain-${i}`);
    for (const { name, content } of entries) {
      await mkdir(dirname(join(plain, name)), { recursive: true });
      await writeFile(join(plain, name), content);
    }
    const packed = { zip: zip(entries), tar: tar(entries), tgz: gzipSync(tar(entries)) };
    for (const [extension, bytes] of Object.entries(packed))
      await writeFile(join(folder, `${i}.${extension}`), bytes);
    const inputs: [string, number][] = [
      [plain, inFolder],
      ...Object.keys(packed).map((extension): [string, number] => [
        join(folder, `${i}.${extension}`),
        inArchive,
      ]),
    ];
    for (const [href, expected] of inputs) {
      const { scenes, failed } = await ingest(node, { href, ...options });
      assert.equal(scenes.length, expected, `${layout} in ${href}`);
      assert.deepEqual(
        failed.map(({ path, code }) => [path, code]),
        expected > 0 ? [] : [[href, 'TW_INGEST_NOT_RECOGNISED']],
        layout,
      );
    }
  }
});

test('a SAFE folder without the metadata of its product is named as such', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const raster = await readFile(await writeTestScene(join(folder, 'scene.tif')));
  const product = 'S2A_MSIL2A_20240601T100031_N0510_R122_T33UVP_20240601T154510.SAFE';
  const band = 'GRANULE/L2A_T33UVP_A046702_20240601T100031/IMG_DATA/R10m/T33UVP_20240601T100031_B04_10m.tif';
  for (const [i, names] of [
    [`${product}/${band}`],
    [`renamed/${band}`, 'renamed/manifest.safe'],
    [`renamed/${band}`, 'renamed/DATASTRIP/DS/MTD_DS.xml', 'renamed/INSPIRE.xml'],
  ].entries()) {
    const entries = names.map((name) => ({
      name,
      content: name.endsWith('.tif') ? raster : Buffer.from('<x/>'),
    }));
    await writeFile(join(folder, `${i}.zip`), zip(entries));
    for (const { name, content } of entries) {
      await mkdir(dirname(join(folder, String(i), name)), { recursive: true });
      await writeFile(join(folder, String(i), name), content);
    }
    const whole = join(folder, String(i), names[0]!.split('/')[0]!);
    for (const href of [whole, join(folder, String(i)), join(folder, `${i}.zip`)]) {
      const { scenes, failed } = await ingest(node, { href });
      assert.deepEqual(scenes, []);
      assert.deepEqual(
        failed.map(({ code }) => code),
        ['TW_INGEST_MISSING_METADATA'],
        href,
      );
      assert.match(failed[0]!.message, /no MTD_MSIL1C\.xml or MTD_MSIL2A\.xml/);
    }
  }
});

test('files that are stored under another id or collection are named', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const [one, two] = ['a_2024-01-01.tif', 'b_2024-01-01.tif'].map((name) => join(folder, name));
  const image = (value: number) => ({ dataType: 'uint8', bands: bytesOf(2, 64 * 64, () => value) }) as const;
  await writeRaster(one!, image(7));
  await writeRaster(two!, image(8));
  const copy = join(folder, 'copy.tif');
  await writeFile(copy, await readFile(one!));
  const named = (warnings: string[]) => warnings.filter((text) => text.includes('already stored')).join();
  const runs: [href: string, options: object, expected: string][] = [
    [one!, { collection: 'c', id: 'first' }, ''],
    [one!, { collection: 'c', id: 'first' }, ''],
    [two!, { collection: 'c', id: 'second' }, ''],
    [one!, { collection: 'c', id: 'third', scale: 0.1 }, 'c/first'],
    [one!, { collection: 'd', id: 'first' }, 'c/first'],
    [copy, { collection: 'c', id: 'copy', datetime: '2023-01-01', dryRun: true }, 'c/first'],
    [one!, { collection: 'c', id: 'third', scale: 0.2 }, ''],
    [two!, { collection: 'c', namePattern: '{tile}_{time:%Y-%m-%d}' }, 'c/second'],
  ];
  let command = '';
  // The second half is compared with what an earlier process has stored.
  for (const part of [runs.slice(0, 4), runs.slice(4)]) {
    const node = await openNode({ data, memory: 256e6, cores: 1 });
    for (const [href, options, expected] of part) {
      const { scenes, failed } = await ingest(node, { href, ...options });
      assert.deepEqual(failed, []);
      const warning = named(scenes[0]!.warnings);
      command = /"tilewright (delete scene [^"]+)"/.exec(warning)?.[1] ?? command;
      assert.equal(warning !== '', expected !== '', `${JSON.stringify(options)} ${warning}`);
      assert.ok(warning.includes(`stored as ${expected};`) || expected === '', warning);
    }
    await node.close();
  }
  const { code, stderr } = await tilewright(...command.split(' '), '--data', data);
  assert.equal(code, 0, stderr);
});
