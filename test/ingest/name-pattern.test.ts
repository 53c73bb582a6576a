/** `--name-pattern`: facts in file names, and scenes of the files that share them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { watchForCompleteInputs } from '../../src/cli/commands/ingest-files.js';
import { Client, httpTransport, type JobError } from '../../src/client/index.js';
import {
  parseNamePattern,
  proposeNamePattern,
  readName,
  sceneKey,
} from '../../src/ingest/formats/name-pattern.js';
import type { IngestResults } from '../../src/ingest/index.js';
import { openNode } from '../../src/node.js';
import type { TileRecord } from '../../src/storage/index.js';
import { zip } from '../support/archives.js';
import { atEnd } from '../support/at-end.js';
import { tilewright } from '../support/command.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { type RasterOptions, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const PATTERN = '{platform}_{tile}_{time:%Y%m%d}_{band}.tif';
const FLAGS = { collection: 'named', precision: 6, namePattern: PATTERN };

const read = (pattern: string, name: string) => readName(parseNamePattern(pattern), name);

/** The facts and the name of the scene, or the reason why the pattern does not fit. */
function factsOf(pattern: string, name: string): object | string {
  const reading = read(pattern, name);
  if (reading.reason !== undefined) return reading.reason;
  const { file: _, ...facts } = reading.facts;
  return { ...facts, scene: reading.sceneName };
}

const two = (number: number) => String(number).padStart(2, '0');

/** Texts of a time by the calendar of JavaScript, and the time that --datetime would be. */
const TIME_TEXTS: Record<string, (date: Date) => [text: string, time: string]> = Object.fromEntries([
  ['day', (d) => [d.toISOString().slice(0, 10), d.toISOString().slice(0, 10)]],
  ['compact day', (d) => [d.toISOString().slice(0, 10).replaceAll('-', ''), d.toISOString().slice(0, 10)]],
  ['day with _', (d) => [d.toISOString().slice(0, 10).replaceAll('-', '_'), d.toISOString().slice(0, 10)]],
  ['day with dots', (d) => [d.toISOString().slice(0, 10).replaceAll('-', '.'), d.toISOString().slice(0, 10)]],
  [
    'day of the year',
    (d) => {
      const day =
        1 +
        (Date.UTC(d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate()) - Date.UTC(d.getUTCFullYear(), 0)) /
          86_400_000;
      return [`${d.getUTCFullYear()}${String(day).padStart(3, '0')}`, d.toISOString().slice(0, 10)];
    },
  ],
  [
    'second',
    (d) => [
      `${d.getUTCFullYear()}${two(d.getUTCMonth() + 1)}${two(d.getUTCDate())}T${two(d.getUTCHours())}${two(d.getUTCMinutes())}${two(d.getUTCSeconds())}`,
      `${d.toISOString().slice(0, 19)}Z`,
    ],
  ],
  ['month', (d) => [d.toISOString().slice(0, 7), d.toISOString().slice(0, 7)]],
  ['year', (d) => [String(d.getUTCFullYear()), String(d.getUTCFullYear())]],
] as [string, (date: Date) => [string, string]][]);

test('the proposed pattern reads the time, and separates the scenes and bands of any series of names', () => {
  const word = fc.constantFrom('MODIS', 'v2', 'x', '012010', 'SR', 'final', 'Level 3');
  const series = fc.record({
    form: fc.constantFrom(...Object.keys(TIME_TEXTS)),
    dates: fc.uniqueArray(fc.integer({ min: 1980, max: 2020 }), { minLength: 1, maxLength: 4 }),
    within: fc.nat(364 * 86_400),
    before: fc.array(word, { maxLength: 3 }),
    after: fc.array(word, { maxLength: 2 }),
    separator: fc.constantFrom('_', '.', '-', '__'),
    prefix: fc.constantFrom('', 'A', 'd'),
    bands: fc.constantFrom([], ['NDVI'], ['B4', 'B8A'], ['red', 'nir', 'swir16']),
    tiles: fc.constantFrom([], ['h12v10', 'h13v10'], ['T33UVP', '32ULE']),
    extension: fc.constantFrom('.tif', '.jp2', '.TIF', '.img'),
  });
  let proposed = 0;
  fc.assert(
    fc.property(
      series,
      ({ form, dates, within, before, after, separator, prefix, bands, tiles, extension }) => {
        const expected = new Map<string, object>();
        for (const year of dates)
          for (const tile of tiles.length > 0 ? tiles : [undefined])
            for (const band of bands.length > 0 ? bands : [undefined]) {
              const [text, time] = TIME_TEXTS[form]!(new Date(Date.UTC(year, 0, 1) + 1000 * within));
              const words = [...before, tile, band, `${prefix}${text}`, ...after];
              const name = words.filter((part) => part !== undefined).join(separator) + extension;
              expected.set(name, { time, tile, band });
            }
        // A day with separators is ambiguous beside words that consist of numbers.
        const names = [...expected.keys()];
        const pattern = proposeNamePattern(names);
        if (pattern === undefined) return;
        proposed++;
        const scenes = new Set<string>();
        for (const name of names) {
          const reading = read(pattern, name);
          assert.equal(reading.reason, undefined, `${pattern} ${name}`);
          if (reading.reason !== undefined) return;
          const { time, tile, band } = expected.get(name) as { time: string; tile?: string; band?: string };
          assert.equal(reading.facts.time, time, `${pattern} ${name}`);
          assert.equal(reading.facts.band, band, `${pattern} ${name}`);
          if (tiles.length > 0 && tile !== undefined) assert.equal(reading.facts.tile, tile);
          scenes.add(sceneKey(reading.facts));
        }
        assert.equal(scenes.size, dates.length * Math.max(1, tiles.length), pattern);
      },
    ),
    { seed: 42, numRuns: 500 },
  );
  assert.ok(proposed > 450, `${proposed} of 500`);
});

test('no pattern is proposed for names that state no time, or several', () => {
  const both = ['a_20180718_20180730.tif', 'a_20180802_20180815.tif'];
  for (const names of [
    [],
    ['field.tif'],
    both,
    ['a_2018-07-18.tif', 'b_c_2018-07-19.tif'],
    ['a_2018-07-18.tif', 'a_20180719.tif'],
    ['a_2018-07-18.tif', 'a_2018-07-19.jp2'],
    ['a_2018-07-18.tif', 'a_2018-07-18.tif'],
    ['a_2018-13-18.tif', 'a_2018-14-19.tif'],
    ['x1_y1_2018-07-18.tif', 'x2_y2_2018-07-18.tif'],
    ['{a}_2018-07-18.tif'],
    ['12345678.tif'],
    ['a_99991231.tif'],
  ])
    assert.equal(proposeNamePattern(names), undefined, names.join());
  assert.equal(
    proposeNamePattern(['TERRA_MODIS_012010_NDVI_2013-09-14.jp2']),
    '{platform}_MODIS_012010_{band}_{time:%Y-%m-%d}.jp2',
  );
  assert.equal(
    proposeNamePattern(['TERRA_MODIS_012010_NDVI_2013-09-14.jp2'], true),
    '{platform}_MODIS_012010_NDVI_{time:%Y-%m-%d}.jp2',
  );
});

/** Names of the bands by group, without the mask. */
const bandNames = ({ groups }: TileRecord) =>
  groups.filter(({ name }) => name !== 'mask').map(({ bands }) => bands.map(({ name }) => name));

const writeBands = (folder: string, names: string[], options: RasterOptions = {}) =>
  Promise.all(names.map((name) => writeRaster(join(folder, name), options)));

test('a pattern reads the facts of a name, and the name of its scene', () => {
  const modis = '{platform}_{*}_{tile}_{band}_{time:%Y-%m-%d}';
  const facts = { platform: 'TERRA', tile: '012010', band: 'NDVI', time: '2014-06-26' };
  const name = 'TERRA_MODIS_012010_NDVI_2014-06-26.jp2';
  assert.deepEqual(factsOf(modis, name), { ...facts, scene: 'TERRA_012010_2014-06-26' });
  assert.deepEqual(factsOf(`${modis}.jp2`, name), { ...facts, scene: 'TERRA_012010_2014-06-26' });
  assert.deepEqual(factsOf(`${modis}.{}`, name), { ...facts, scene: 'TERRA_012010_2014-06-26' });
  for (const [pattern, file, found] of [
    ['S2_{tile}_{time:%Y%m%d}_{band}', 'S2_32UQU_20240601_SR_B4.tif', { band: 'SR_B4', time: '2024-06-01' }],
    [
      'T{tile}_{time:%Y%m%dT%H%M%S}_{band}_{*}',
      'T32UQU_20240601T102031_B04_10m.jp2',
      { time: '2024-06-01T10:20:31Z', band: 'B04' },
    ],
    ['{band}.{time:%Y%j}.tif', 'EVI.2024061.tif', { time: '2024-03-01', band: 'EVI' }],
    ['{band}{time:%Y}', 'mean2019.tif', { time: '2019', band: 'mean' }],
    ['{time:%Y-%m}', '2019-02.img', { time: '2019-02' }],
    ['{time:%d.%m.%Y %H}h_{tile}', '05.11.2019 23h_a.tif', { time: '2019-11-05T23:00:00Z' }],
    ['{*}_{tile}_{*}', 'a_b_c_d.tif', { tile: 'b' }],
    ['{time:%Y}_{tile}_{time:%j}', '2020_x_366.tif', { time: '2020-12-31' }],
  ] as const) {
    const facts = factsOf(pattern, file) as Record<string, string>;
    for (const [key, value] of Object.entries(found)) assert.equal(facts[key], value, `${pattern} ${file}`);
  }
});

test('a name that does not fit has a reason', () => {
  for (const [pattern, name, reason] of [
    [
      'S2_{tile}_{time:%Y%m%d}',
      'S2_32UQU_June.tif',
      'after "S2_32UQU_" the pattern has 4 digits (%Y), the name has "June"',
    ],
    ['S2_{tile}_{band}', 'L8_x_y.tif', 'the pattern begins with "S2_", the name has "L8_x_y"'],
    ['S2_{tile}_{band}', 'S2_x.tif', 'after "S2_" the pattern has {tile} before "_", the name has "x"'],
    ['{band}_{time:%Y}', 'a_20190.tif', 'after "a_2019" the pattern has its end, the name has "0"'],
    ['{band}.jp2', 'a.tif', 'the pattern begins with {band} before ".jp2", the name has "a.tif"'],
    ['{time:%Y%m%d}', '20240231.tif', 'it holds no valid date: 2024 02 31'],
    ['{time:%Y%j}', '2023366.tif', 'it holds no valid date: 2023 366'],
    ['{time:%Y%j}', '2023000.tif', 'it holds no valid date: 2023 000'],
  ] as const)
    assert.equal(factsOf(pattern, name), reason);
});

test('a bad pattern is refused with the valid fields or directives', () => {
  for (const [pattern, message] of [
    [
      '{sensor}_{band}',
      /\{sensor\} is not a field; fields are \{time:%Y-%m-%d\}, \{band\}, \{tile\}, \{platform\}/,
    ],
    ['{constructor}', /\{constructor\} is not a field/],
    ['{time:%y%m}', /%y is not a directive of \{time\}; directives are %Y %m %d %j %H %M %S$/],
    ['{time:%}', /% is not a directive/],
    ['{time}', /\{time\} needs a form/],
    ['{time:%m%d}', /%m of \{time\} needs %Y/],
    ['{time:%Y%m%H}', /%H of \{time\} needs %d or %j/],
    ['{time:%Y%m%j}', /both %j/],
    ['{band}_{band}', /\{band\} occurs twice/],
    ['{time:%Y}_{time:%Y}', /%Y occurs twice/],
    ['{band}{*}', /follow each other/],
    ['{band', /brace/],
    ['band}', /brace/],
    ['a/{band}', /without folders/],
    ['*.tif', /no field/],
    [`{band}${'_'.repeat(300)}`, /longer than 255/],
  ] as const)
    assert.throws(() => parseNamePattern(pattern), { code: 'TW_INGEST_BAD_PATTERN', message });
});

test('no pattern takes long to match', () => {
  const name = 'a'.repeat(255);
  for (const part of ['{*}a', '{*}aa', '{*}'])
    for (const last of ['_{band}', '{time:%Y}', 'a{band}b']) {
      const pattern = parseNamePattern(part === '{*}' ? `{*}${last}` : part.repeat(40).slice(0, 200) + last);
      assert.equal(typeof readName(pattern, name).reason, 'string');
    }
  const pieces = fc.constantFrom('a', '_', '{*}', '{tile}', '{band}', '{time:%Y%m%d}', 'ab', '.tif');
  const names = fc.string({ unit: fc.constantFrom('a', 'b', '_', '2', '0', '1', '.'), maxLength: 60 });
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), names, (texts, file) => {
      let pattern: ReturnType<typeof parseNamePattern>;
      try {
        pattern = parseNamePattern(texts.join(''));
      } catch {
        return; // Most random patterns are invalid.
      }
      const reading = readName(pattern, file);
      if (reading.reason !== undefined) return;
      for (const value of Object.values(reading.facts)) assert.ok(value.length > 0);
    }),
    { seed: 7, numRuns: 5000 },
  );
});

test('the files of a folder that differ in the band are one scene', async (t) => {
  const folder = await tempFolder(t);
  const scenes = join(folder, 'scenes');
  await mkdir(join(scenes, 'more', 'deep'), { recursive: true });
  await writeBands(scenes, [
    'S2_32UQU_20240601_B04.tif',
    'S2_32UQU_20240601_nir.tif',
    'S2_32UQU_20240602_B04.tif',
  ]);
  await writeRaster(join(scenes, 'S2_32UQU_20240601_B11.tif'), { pixel: 20, width: 32, height: 32 });
  await writeBands(scenes, ['S2_32UQU_June_B04.tif', 'S2_32UQU_20240601_nir.tif.ovr']);
  await writeFile(join(scenes, 'README.txt'), 'not a raster');
  await writeBands(join(scenes, 'more'), ['S2_32UQV_20240601_B04.tif']);
  const node = await testNode(t, join(folder, 'data'));
  const inputs = { ...FLAGS, href: scenes };

  const dry = await ingest(node, { ...inputs, dryRun: true });
  assert.deepEqual(
    dry.scenes.map(({ id, names = [] }) => [id, ...names.map(({ file, band }) => `${file} ${band}`)]),
    [
      ['S2_32UQU_20240601', ...['B04', 'B11', 'nir'].map((band) => `S2_32UQU_20240601_${band}.tif ${band}`)],
      ['S2_32UQU_20240602', 'S2_32UQU_20240602_B04.tif B04'],
      ['S2_32UQV_20240601', 'S2_32UQV_20240601_B04.tif B04'],
    ],
  );
  assert.deepEqual(dry.scenes[0]!.names![0], {
    file: 'S2_32UQU_20240601_B04.tif',
    platform: 'S2',
    tile: '32UQU',
    time: '2024-06-01',
    band: 'B04',
  });
  const reason = 'after "S2_32UQU_" the pattern has 4 digits (%Y), the name has "June_B04.tif"';
  assert.deepEqual(dry.skipped, [{ path: join(scenes, 'S2_32UQU_June_B04.tif'), reason }]);
  assert.deepEqual(
    dry.passedOver.map((path) => basename(path)),
    ['deep'],
  );

  const { scenes: made, failed } = await ingest(node, inputs);
  assert.deepEqual([made.length, failed], [3, []]);
  const tiles = await tilesOf(node);
  const tile = tiles.find(({ scene }) => scene === 'S2_32UQU_20240601')!;
  assert.deepEqual(bandNames(tile), [['B04', 'nir'], ['B11']]);
  assert.deepEqual(
    tile.groups[0]!.bands.map(({ commonName }) => commonName),
    [undefined, 'nir'],
  );
  assert.equal(tile.platform, 'S2');
  assert.equal(new Date(tile.start).toISOString(), '2024-06-01T00:00:00.000Z');

  assert.ok((await ingest(node, inputs)).scenes.every(({ unchanged }) => unchanged));
  await writeBands(scenes, ['S2_32UQU_20240601_B02.tif']);
  // A file stands for its scene, however many of its files are named.
  const href = ['S2_32UQU_20240601_nir.tif', 'S2_32UQU_20240601_B02.tif'].map((name) => join(scenes, name));
  const { scenes: again } = await ingest(node, { ...inputs, href });
  assert.deepEqual(
    again.map(({ id, replaced }) => [id, replaced]),
    [['S2_32UQU_20240601', true]],
  );
  const [{ groups }] = (await tilesOf(node)).filter(({ scene }) => scene === 'S2_32UQU_20240601');
  assert.deepEqual(
    groups[0].bands.map(({ name }) => name),
    ['B02', 'B04', 'nir'],
  );
});

test('flags take precedence over names, and bands have one source', async (t) => {
  const folder = await tempFolder(t);
  const [path] = await writeBands(folder, ['S2_32UQU_20240601_B04.tif']);
  const node = await testNode(t, join(folder, 'data'));
  const given = { ...FLAGS, href: path, datetime: '2020-02-03', platform: 'plane', id: 'own' };
  const { scenes } = await ingest(node, given);
  assert.equal(scenes[0]!.id, 'own');
  const [tile] = await tilesOf(node);
  assert.deepEqual([tile!.platform, new Date(tile!.start).getUTCFullYear()], ['plane', 2020]);
  for (const more of [{ bands: { red: 1 } }, { maskBand: 1 }])
    await assert.rejects(
      ingest(node, { ...FLAGS, ...more, href: path }),
      /TW_INGEST_BAD_OPTION.*\{band\} of --name-pattern/,
    );
  const namePattern = '{platform}_{tile}_{time:%Y%m%d}_{*}';
  const named = await ingest(node, { ...FLAGS, href: path, namePattern, bands: { red: 1 } });
  assert.deepEqual(named.failed, []);
  const all = await tilesOf(node);
  assert.equal(all.find(({ scene }) => scene === 'S2_32UQU_20240601')!.groups[0].bands[0].name, 'red');
});

test('names that do not fit, and files of one band, fail with their reasons', async (t) => {
  const folder = await tempFolder(t);
  const [stray] = await writeBands(folder, [
    'stray.tif',
    'S2_32UQU_20240601_B04_v1.tif',
    'S2_32UQU_20240601_B04_v2.tif',
  ]);
  const node = await testNode(t, join(folder, 'data'));
  const alone = await ingest(node, { ...FLAGS, href: stray });
  assert.deepEqual(
    alone.failed.map(({ code }) => code),
    ['TW_INGEST_NAME_MISMATCH'],
  );
  const none = await ingest(node, { ...FLAGS, href: folder, namePattern: 'L8_{tile}' });
  assert.match(none.failed[0]!.message, /the pattern begins with "L8_"/);
  const namePattern = '{platform}_{tile}_{time:%Y%m%d}_{band}_{*}';
  const twice = await ingest(node, { ...FLAGS, href: folder, namePattern });
  assert.equal(twice.failed[0]!.code, 'TW_INGEST_BAND_TWICE');
  assert.match(twice.failed[0]!.message, /B04_v2\.tif and .*B04_v1\.tif .* both hold its band B04/);
  const noName = await ingest(node, { ...FLAGS, href: stray, datetime: '2024', namePattern: '{band}.tif' });
  assert.match(noName.failed[0]!.message, /add --id/);
  await rm(join(folder, 'S2_32UQU_20240601_B04_v1.tif'));
  const bands = [1, 2].map((value) => new Uint16Array(64 * 64).fill(value));
  await writeRaster(join(folder, 'S2_32UQU_20240601_rgb_v1.tif'), { bands });
  const { failed } = await ingest(node, { ...FLAGS, href: folder, namePattern });
  assert.deepEqual(failed, []);
  const [{ groups }] = await tilesOf(node);
  assert.deepEqual(
    groups[0].bands.map(({ name }) => name),
    ['B04', 'rgb_b1', 'rgb_b2'],
  );
});

test('JPEG 2000 files named like those of Sentinel-2 follow the pattern', {
  skip: !hasGdal && 'no GDAL',
}, async (t) => {
  const folder = await tempFolder(t);
  const scenes = join(folder, 'scenes');
  await mkdir(scenes);
  const [tif] = await writeBands(folder, ['a.tif']);
  for (const band of ['B03', 'B04'])
    execFileSync('gdal_translate', [
      '-q',
      '-of',
      'JP2OpenJPEG',
      '-co',
      'REVERSIBLE=YES',
      '-co',
      'QUALITY=100',
      tif!,
      join(scenes, `T32UQU_20240601_${band}.jp2`),
    ]);
  const node = await testNode(t, join(folder, 'data'));
  const namePattern = 'T{tile}_{time:%Y%m%d}_{band}';
  const { failed } = await ingest(node, { ...FLAGS, href: scenes, namePattern });
  assert.deepEqual(failed, []);
  const [tile] = await tilesOf(node);
  assert.equal(tile!.scene, 'T32UQU_20240601');
  assert.deepEqual(
    tile!.groups[0].bands.map(({ name }) => name),
    ['B03', 'B04'],
  );
});

test('uploads and archives follow the pattern, and a server refuses a bad one at once', async (t) => {
  const folder = await tempFolder(t);
  const scenes = join(folder, 'scenes');
  await mkdir(scenes);
  const paths = await writeBands(scenes, ['S2_32UQU_20240601_B04.tif', 'S2_32UQU_20240601_nir.tif']);
  const data = join(folder, 'data');
  const node = await openNode({ data, memory: 256e6, cores: 1 });
  atEnd(t, () => node.close());
  const server = await node.listen('127.0.0.1', 0);
  const flags = ['--collection', 'named', '--precision', '6', '--name-pattern', PATTERN];
  const dry = await tilewright('ingest', scenes, '--dry-run', ...flags, '--data', data);
  const shown =
    /^named {2}S2_32UQU_20240601 {2}\d+ tiles? at most\n {2}S2_32UQU_20240601_B04\.tif: platform S2, tile 32UQU, band B04, time 2024-06-01\n/;
  assert.match(dry.stdout, shown);
  const sent = await tilewright('ingest', paths[1]!, '--upload', ...flags, '--server', server);
  assert.match(sent.stdout, /^named {2}S2_32UQU_20240601 {2}\d+ tiles?\n/, sent.stderr);
  const [tile] = await tilesOf(node);
  assert.deepEqual(bandNames(tile!), [['B04', 'nir']]);

  const archive = join(folder, 'scenes.zip');
  const entries = paths.map(async (path) => ({
    name: `scenes/${basename(path)}`,
    content: await readFile(path),
  }));
  await writeFile(archive, zip(await Promise.all(entries)));
  const client = new Client(httpTransport(server));
  const { results } = await client.upload<IngestResults>(archive, { ...FLAGS });
  assert.deepEqual(
    results.scenes.map(({ id, unchanged }) => [id, unchanged]),
    [['S2_32UQU_20240601', true]],
  );
  const bad = client.upload(archive, { ...FLAGS, namePattern: '{sensor}' });
  await assert.rejects(bad, { code: 'TW_INGEST_BAD_PATTERN', status: 400 });
  const usage = await tilewright(
    'ingest',
    scenes,
    '--name-pattern',
    '{time:%q}',
    '--data',
    join(folder, 'no'),
  );
  assert.match(usage.stderr, /%q is not a directive .*\[TW_INGEST_BAD_PATTERN\]/);
  assert.ok(!existsSync(join(folder, 'no')));
});

test('a link beside a named file is not read by a restricted job', async (t) => {
  const folder = await realpath(await tempFolder(t));
  const allowed = join(folder, 'allowed');
  await mkdir(allowed);
  const [secret] = await writeBands(folder, ['secret.tif']);
  const [path] = await writeBands(allowed, ['S2_32UQU_20240601_B04.tif']);
  await symlink(secret!, join(allowed, 'S2_32UQU_20240601_B05.tif'));
  const node = await openNode({
    data: join(folder, 'data'),
    memory: 256e6,
    cores: 1,
    allowFolders: [allowed],
  });
  atEnd(t, () => node.close());
  const client = new Client(httpTransport(await node.listen('127.0.0.1', 0)));
  await assert.rejects(client.run('ingest', { ...FLAGS, paths: [path] }), (error: JobError) => {
    assert.deepEqual(
      (error.results as IngestResults).failed.map(({ code }) => code),
      ['TW_INGEST_OUTSIDE'],
    );
    return true;
  });
});

test('--watch waits until all files of a scene are complete', { timeout: 60_000 }, async (t) => {
  const folder = await tempFolder(t);
  const [b04, nir] = ['x_B04', 'x_nir'].map((name) => join(folder, name));
  await writeFile(b04!, '1');
  const ended = new AbortController();
  const sceneOf = (path: string) => path.slice(0, -4);
  const settled: string[][] = [];
  let polls = 0;
  for await (const batch of watchForCompleteInputs([folder], sceneOf, ended.signal)) {
    settled.push(batch);
    if (++polls === 2) await writeFile(nir!, '1');
    if (polls === 6) ended.abort();
  }
  // The second file arrives after two polls, and three equal polls follow.
  assert.deepEqual(settled, [[], [], [], [], [b04], []]);
});
