/** Bad input results in one clear line that names the file, and the store does not change. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { finished, MAIN, start, tilewright } from '../support/command.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { smallDisk } from '../support/small-disk.js';
import { tempFolder } from '../support/temp.js';

const AT = ['--datetime', '2024-06-01T10:00:00Z'];

async function listing(data: string): Promise<unknown> {
  const { stdout } = await tilewright('search', '--data', data, '--format', 'json', '--limit', '1000');
  const { features } = JSON.parse(stdout) as { features: { id: string; properties: { version: string } }[] };
  return features.map(({ id, properties }) => `${id} ${properties.version}`);
}

test('each kind of bad input is refused by name, and the store does not change', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const good = await writeTestScene(join(folder, 'good.tif'));
  const bytes = await readFile(good);
  const file = async (name: string, content: Uint8Array | string) => {
    await writeFile(join(folder, name), content);
    return join(folder, name);
  };
  assert.equal((await tilewright('ingest', good, ...AT, '--data', data, ...SCENE_FLAGS)).code, 0);
  const before = await listing(data);

  const landsat = join(folder, 'LC08_incomplete');
  await mkdir(landsat);
  await writeFile(
    join(landsat, 'LC08_MTL.txt'),
    [
      'GROUP = LANDSAT_METADATA_FILE',
      '  GROUP = PRODUCT_CONTENTS',
      '    PROCESSING_LEVEL = "L1TP"',
      '    COLLECTION_NUMBER = 02',
      '    FILE_NAME_BAND_4 = "LC08_B4.TIF"',
      '    FILE_NAME_BAND_5 = "LC08_B5.TIF"',
      '  END_GROUP = PRODUCT_CONTENTS',
      '  GROUP = IMAGE_ATTRIBUTES',
      '    SPACECRAFT_ID = "LANDSAT_8"',
      '    SENSOR_ID = "OLI_TIRS"',
      '    WRS_PATH = 20',
      '    WRS_ROW = 39',
      '    DATE_ACQUIRED = 2015-08-04',
      '    SCENE_CENTER_TIME = "16:19:21.7917421Z"',
      '  END_GROUP = IMAGE_ATTRIBUTES',
      'END_GROUP = LANDSAT_METADATA_FILE',
      'END',
    ].join('\n'),
  );

  const empty = await writeTestScene(join(folder, 'empty.tif'), { edge: 300 });
  const cases: [name: string, code: RegExp, args: string[]][] = [
    ['not a TIFF', /TW_RASTER_NOT_TIFF/, [await file('text.tif', 'this is no TIFF')]],
    ['an empty file', /TW_RASTER_NOT_TIFF/, [await file('zero.tif', '')]],
    ['a truncated TIFF', /TW_RASTER_TRUNCATED/, [await file('cut.tif', bytes.subarray(0, bytes.length / 2))]],
    ['no CRS', /TW_RASTER_NO_CRS/, [await file('nowhere.tif', withoutGeoKeys(bytes))]],
    ['no valid pixels', /TW_INGEST_NO_VALID_PIXELS/, [empty]],
    ['a missing band', /TW_INGEST_MISSING_BAND/, [good, '--bands', 'red=9']],
    ['a product without band files', /TW_INGEST_MISSING_BAND/, [landsat, '--collection', 'other']],
    ['a precision out of range', /TW_GEOCODE_PRECISION/, [good, '--precision', '12', '--collection', 'fine']],
    [
      'too many tiles',
      /TW_INGEST_TOO_MANY_TILES|TW_GEOCODE_TOO_MANY/,
      [good, '--precision', '9', '--collection', 'many'],
    ],
    ['another precision', /TW_STORAGE_COLLECTION_FIXED/, [good, '--precision', '5']],
    ['no such file', /TW_INGEST_NOT_RECOGNISED/, [join(folder, 'absent.tif')]],
    [
      'pixels of nanometres',
      /TW_INGEST_PIXEL_SIZE/,
      [await writeTestScene(join(folder, 'fine.tif'), { pixel: 1e-9 })],
    ],
    [
      'pixels of gigametres',
      /TW_INGEST_PIXEL_SIZE/,
      [await writeTestScene(join(folder, 'wide.tif'), { pixel: 1e9 })],
    ],
    [
      'endless pixels',
      /TW_INGEST_PIXEL_SIZE/,
      [await writeTestScene(join(folder, 'huge.tif'), { pixel: 1e300 })],
    ],
    ['no time', /TW_INGEST_NO_DATETIME/, [good, '--no-time']],
  ];
  for (const [name, code, [path, ...more]] of cases) {
    const at = more[0] === '--no-time' ? [] : AT;
    const flags = more[0] === '--no-time' ? [] : more;
    const { code: exit, stderr } = await tilewright(
      'ingest',
      path,
      ...at,
      '--data',
      data,
      ...SCENE_FLAGS,
      ...flags,
    );
    assert.equal(exit, 1, `${name}: ${stderr}`);
    const lines = stderr.split('\n').filter((line) => line.startsWith('error: '));
    assert.equal(lines.length, 1, `${name}: ${stderr}`);
    assert.match(lines[0], code, name);
    if (name !== 'a precision out of range' && name !== 'another precision')
      assert.ok(lines[0].includes(path), `${name}: ${lines[0]}`);
  }
  assert.deepEqual(await listing(data), before);
  const { stdout, code } = await tilewright('verify', '--data', data);
  assert.equal(code, 0, stdout);
  const info = await tilewright('info', '--data', data, '--format', 'json');
  assert.deepEqual(
    JSON.parse(info.stdout).collections.map((c: { id: string }) => c.id),
    ['test'],
  );
});

test('good inputs beside a bad one are ingested, and the exit code says so', async (t) => {
  const folder = await tempFolder(t);
  const good = await writeTestScene(join(folder, 'good.tif'));
  const bad = join(folder, 'bad.tif');
  await writeFile(bad, 'no');
  const args = [
    'ingest',
    bad,
    good,
    ...AT,
    '--data',
    join(folder, 'data'),
    '--format',
    'json',
    ...SCENE_FLAGS,
  ];
  const { code, stdout, stderr } = await tilewright(...args);
  assert.equal(code, 3);
  const results = JSON.parse(stdout);
  assert.equal(results.scenes.length, 1);
  assert.equal(results.failed[0].path, bad);
  assert.match(stderr, /bad\.tif.*\[TW_RASTER_NOT_TIFF\]/);
});

test('a full disk fails the ingest and the store stays as it was', async (t) => {
  const disk = await smallDisk(t, 3);
  if (!disk) return;
  const folder = await tempFolder(t);
  const data = join(disk, 'data');
  const small = await writeTestScene(join(folder, 'small.tif'), { width: 120, height: 120 });
  assert.equal((await tilewright('ingest', small, ...AT, '--data', data, ...SCENE_FLAGS)).code, 0);
  const before = await listing(data);
  const large = await writeTestScene(join(folder, 'large.tif'), { width: 1500, height: 1500, seed: 3 });
  const { code, stderr } = await tilewright(
    'ingest',
    large,
    ...AT,
    '--data',
    data,
    '--reserve',
    '0',
    ...SCENE_FLAGS,
  );
  assert.equal(code, 1);
  assert.match(stderr, /\[TW_STORAGE_FULL\]/);
  assert.deepEqual(await listing(data), before);
  assert.equal((await tilewright('verify', '--data', data)).code, 0);
});

test('a folder without write permission is named', async (t) => {
  const folder = await tempFolder(t);
  const good = await writeTestScene(join(folder, 'good.tif'));
  const locked = join(folder, 'locked');
  await mkdir(locked);
  await chmod(locked, 0o555);
  await chmod(folder, 0o755);
  const args = ['ingest', good, ...AT, '--data', join(locked, 'data'), ...SCENE_FLAGS];
  // Permissions do not bind root, so that the command runs as somebody else there.
  const asNobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  const reads = spawnSync(process.execPath, ['-e', `fs.accessSync(${JSON.stringify(MAIN)})`], asNobody);
  if (reads.status !== 0) return t.skip('no other user can read this checkout');
  const { code, stderr } = await finished(start(args, {}, asNobody));
  assert.equal(code, 1);
  assert.match(stderr, /locked.*\[TW_STORAGE_READ_ONLY\]/);
});

/** The same file with its GeoKeyDirectory (tag 34735) renamed to a private tag. */
function withoutGeoKeys(tiff: Buffer): Buffer {
  const copy = Buffer.from(tiff);
  const directory = copy.readUInt32LE(4);
  for (let i = 0; i < copy.readUInt16LE(directory); i++) {
    const at = directory + 2 + 12 * i;
    if (copy.readUInt16LE(at) === 34735) copy.writeUInt16LE(65000, at);
  }
  assert.notDeepEqual(copy, tiff);
  return copy;
}
