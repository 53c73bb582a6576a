/** Sentinel-2: made-up SAFE products of both levels and baselines, old and loose layouts, hostile metadata, real cut-outs. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import proj4 from 'proj4';
import { SAFE_EPSG, SAFE_ORIGIN, type SafeProductFiles, writeSafe } from '../../data-samples/index.js';
import { geohash } from '../../src/geocode/index.js';
import { describeScenes, findInputs } from '../../src/ingest/formats/index.js';
import type { DescribeOptions, Scene } from '../../src/ingest/scene.js';
import { encodeCog, Mask, readRaster } from '../../src/raster/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const SMALL = { size: { width: 60, height: 60 } };
const real = fileURLToPath(new URL('../../../../shared/data/', import.meta.url));

async function describe(path: string, options: DescribeOptions = {}): Promise<Scene> {
  const scenes = await describeScenes(path, options);
  assert.equal(scenes.length, 1);
  return scenes[0];
}

const bandsOf = (scene: Scene) =>
  Object.fromEntries(
    scene.groups.map((group) => [group.name, group.bands.map((band) => band.name).join(' ')]),
  );

const CASES = [
  { level: 'L1C', baseline: '02.09', mask: undefined },
  { level: 'L1C', baseline: '05.09', mask: 'CLASSI_OPAQUE CLASSI_CIRRUS CLASSI_SNOW' },
  { level: 'L2A', baseline: '02.14', mask: 'SCL' },
  { level: 'L2A', baseline: '04.00', mask: 'SCL' },
] as const;

for (const { level, baseline, mask } of CASES) {
  test(`${level} of baseline ${baseline}: id, bands, offsets, mask`, async (t) => {
    const product = await writeSafe(await tempFolder(t), { level, baseline, ...SMALL });
    const scene = await describe(product.path);
    assert.equal(scene.id, `S2A_MSI${level}_20230707T100621_R022_T33UVP`);
    assert.equal(scene.collection.id, `sentinel-2-${level.toLowerCase()}`);
    assert.match(scene.collection.attribution ?? '', /Contains modified Copernicus Sentinel data/);
    assert.match(scene.collection.providers?.[1].name ?? '', /Copernicus/);
    assert.equal(scene.platform, 'sentinel-2a');
    assert.equal(new Date(scene.start).toISOString(), '2023-07-07T10:10:38.758Z');
    assert.deepEqual(scene.warnings, []);
    const l2a = level === 'L2A';
    assert.deepEqual(bandsOf(scene), {
      '10m': 'B02 B03 B04 B08',
      '20m': 'B05 B06 B07 B8A B11 B12',
      '60m': l2a ? 'B01 B09' : 'B01 B09 B10',
      ...(mask && { [l2a ? '20m-qa' : '60m-qa']: mask }),
    });
    const shifted = Number(baseline) >= 4;
    for (const group of scene.groups.filter(({ role }) => role === 'data')) {
      assert.equal(group.nodata, 0);
      for (const band of group.bands)
        assert.deepEqual([band.scale, band.offset], [0.0001, shifted ? -0.1 : 0]);
    }
    assert.equal(scene.reflectanceTest, mask === undefined);
    assert.equal(scene.quality.length, mask?.split(' ').length ?? 0);
    assert.deepEqual({ ...(await describe(product.metadataPath)), path: '' }, { ...scene, path: '' });
  });
}

test('flags that change nothing are named, and a lone band says where its product is', async (t) => {
  const product = await writeSafe(await tempFolder(t), { level: 'L2A', baseline: '04.00', ...SMALL });
  const flags = { id: 'mine', platform: 'p', collection: 'c', bands: { red: 1 }, scale: 2, maskBand: 1 };
  const { id, warnings } = await describe(product.path, flags);
  assert.equal(id, 'mine');
  assert.deepEqual(warnings, [
    '--bands, --scale, --mask-band changed nothing: Sentinel-2 SAFE says it by itself',
  ]);

  await assert.rejects(
    describeScenes(product.bandPaths.B04, { datetime: '2023-07-07' }),
    (error: Error & { code: string }) => {
      assert.equal(error.code, 'TW_INGEST_PART_OF_PRODUCT', error.message);
      assert.match(error.message, /Sentinel-2 SAFE/);
      assert.ok(error.message.includes(`its folder ${product.path},`), error.message);
      return true;
    },
  );
});

test('masks: classes of SCL, bits of QA60, bands of MSK_CLASSI', async (t) => {
  const folder = await tempFolder(t);
  const l2a = await describe((await writeSafe(join(folder, 'a'), { level: 'L2A', ...SMALL })).path);
  const { clear, cloud, shadow, snow, notAssessed } = Mask;
  const classes = [
    notAssessed,
    notAssessed,
    clear,
    shadow,
    clear,
    clear,
    clear,
    clear,
    cloud,
    cloud,
    cloud,
    snow,
  ];
  assert.deepEqual([...l2a.quality[0].codes.subarray(0, 12)], classes);

  const l1c = await describe((await writeSafe(join(folder, 'b'), { level: 'L1C', ...SMALL })).path);
  const [opaque, cirrus, ice] = l1c.quality.map(({ codes }) => [codes[0], codes[1]]);
  assert.deepEqual(
    [opaque, cirrus, ice],
    [
      [notAssessed, cloud],
      [notAssessed, cloud],
      [clear, snow],
    ],
  );

  assert.deepEqual(
    l1c.groups.find(({ role }) => role === 'qa')?.bands.map(({ index }) => index),
    [0, 1, 2],
  );

  const old = await writeSafe(join(folder, 'c'), { level: 'L1C', baseline: '02.09', ...SMALL });
  await writeConstant(join(dirname(old.bandPaths.B01), 'T33UVP_20230707T100621_QA60.jp2'), 60, 0);
  const { quality } = await describe(old.path);
  assert.deepEqual(
    [0, 1024, 2048, 3072, 1].map((v) => quality[0].codes[v]),
    [clear, cloud, cloud, cloud, clear],
  );
});

/** A band of 600 m x 600 m at the place of the samples with one value. */
async function writeConstant(
  path: string,
  pixel: number,
  value: number,
  { side = 600, epsg = SAFE_EPSG } = {},
) {
  const width = side / pixel;
  const bytes = encodeCog({
    width,
    height: width,
    dataType: 'uint16',
    bands: [new Uint16Array(width * width).fill(value)],
    transform: { originX: SAFE_ORIGIN.x, originY: SAFE_ORIGIN.y, pixelWidth: pixel, pixelHeight: pixel },
    epsg,
    overviews: 'nearest',
  });
  await writeFile(path, bytes);
}

for (const { level, baseline, mask } of [CASES[0], CASES[1], CASES[3]]) {
  test(`ingest of ${level} ${baseline}: physical values and cloud cover`, async (t) => {
    const folder = await tempFolder(t);
    const size = { width: 600, height: 600 };
    const product = await writeSafe(folder, { level, baseline, size, cloudShare: 0.3 });
    await writeConstant(product.bandPaths.B04, 10, 2345, { side: 6000 });
    const node = await testNode(t, join(folder, 'data'));
    const results = await ingest(node, { href: product.path });
    assert.deepEqual(results.failed, []);
    assert.deepEqual(
      results.scenes.map(({ id }) => id),
      [product.sceneId],
    );
    const tiles = await tilesOf(node);
    assert.ok(tiles.length >= 2);

    let assessed = 0;
    for (const tile of tiles) {
      const { bands } = await readRaster(node.storage.tilePath(tile, '10m'));
      const record = tile.groups.find(({ name }) => name === '10m');
      const b04 = record?.bands.findIndex(({ name }) => name === 'B04') ?? -1;
      const { scale, offset } = record?.bands[b04] ?? { scale: NaN, offset: NaN };
      const stored = new Set(bands[b04]);
      stored.delete(0);
      assert.deepEqual([...stored], [2345], 'the numbers are kept as delivered');
      assert.ok(Math.abs(2345 * scale + offset - (2345 + product.addOffset) / 10_000) < 1e-12);

      if (mask === undefined) continue;
      const expected = await bruteForceCloud(product, tile, size.width);
      if (expected === null) assert.equal(tile.cloudCover, null);
      else assert.ok(Math.abs((tile.cloudCover ?? NaN) - expected) < 0.05, `${tile.cloudCover} ${expected}`);
      assessed++;
    }
    assert.equal(assessed, mask === undefined ? 0 : tiles.length);
  });
}

/** Percent of cloud among assessed pixels whose four 10 m bands hold data; every pixel projected by itself. */
async function bruteForceCloud(product: SafeProductFiles, tile: TileRecord, width: number) {
  const { SCL, CLASSI } = product.bandPaths;
  const masks = (await readRaster(SCL ?? CLASSI)).bands;
  const step = SCL ? 2 : 6;
  const data = await Promise.all(
    ['B02', 'B03', 'B04', 'B08'].map(async (b) => (await readRaster(product.bandPaths[b])).bands[0]),
  );
  const bounds = geohash.bounds(tile.geocode);
  const mask = tile.groups.find(({ name }) => name === '10m') as TileRecord['groups'][number];
  const utm = proj4('EPSG:4326', '+proj=utm +zone=33 +datum=WGS84');
  let all = 0;
  let cloudy = 0;
  for (let row = 0; row < mask.height; row++) {
    const lat = bounds.north - ((bounds.north - bounds.south) * (row + 0.5)) / mask.height;
    for (let column = 0; column < mask.width; column++) {
      const lon = bounds.west + ((bounds.east - bounds.west) * (column + 0.5)) / mask.width;
      const [x, y] = utm.forward([lon, lat]);
      const i = Math.floor((x - SAFE_ORIGIN.x) / 10);
      const j = Math.floor((SAFE_ORIGIN.y - y) / 10);
      if (i < 0 || j < 0 || i >= width || j >= width || data.some((band) => band[j * width + i] === 0))
        continue;
      const values = masks.map((band) => band[Math.floor(j / step) * (width / step) + Math.floor(i / step)]);
      if (SCL && values[0] <= 1) continue;
      all++;
      const cloud = SCL ? values[0] >= 8 && values[0] <= 10 : values[0] > 0 || values[1] > 0;
      if (cloud) cloudy++;
    }
  }
  return all === 0 ? null : (100 * cloudy) / all;
}

test('a partial product is described with warnings; one without bands is refused', async (t) => {
  const product = await writeSafe(await tempFolder(t), { level: 'L2A', ...SMALL });
  const { bandPaths, path, tileMetadataPath } = product;
  await rm(bandPaths.B02);
  await rm(bandPaths.B05);
  await rm(tileMetadataPath);
  const scene = await describe(path);
  assert.deepEqual(bandsOf(scene)['20m'], 'B02 B06 B07 B8A B11 B12');
  assert.match(scene.warnings.join('\n'), /B02 is a copy at 20 m/);
  assert.match(scene.warnings.join('\n'), /names files which are not there: B05/);
  assert.match(scene.warnings.join('\n'), /no MTD_TL/);
  assert.equal(scene.start, Date.parse('2023-07-07T10:06:21.024Z'));
  for (const folder of ['R10m', 'R20m', 'R60m'])
    await rm(join(dirname(dirname(bandPaths.B03)), folder), { recursive: true });
  await assert.rejects(describeScenes(path, {}), { code: 'TW_INGEST_MISSING_BAND' });
});

test('a band in another projection is refused', async (t) => {
  const product = await writeSafe(await tempFolder(t), { level: 'L1C', ...SMALL });
  await writeConstant(product.bandPaths.B03, 10, 1000, { epsg: 32_632 });
  await assert.rejects(describeScenes(product.path, {}), { code: 'TW_INGEST_BANDS_DIFFER' });
});

test('names in the metadata never lead out of the product', async (t) => {
  const product = await writeSafe(await tempFolder(t), { level: 'L1C', ...SMALL });
  const xml = await readFile(product.metadataPath, 'utf8');
  const outside = xml
    .replace(/<IMAGE_FILE>[^<]*_B02</, '<IMAGE_FILE>../../../../etc/passwd<')
    .replace(/<IMAGE_FILE>[^<]*_B03</, '<IMAGE_FILE>/etc/T33UVP_20230707T100621_B03<');
  await writeFile(product.metadataPath, outside);
  const scene = await describe(product.path);
  assert.match(scene.warnings.join('\n'), /outside of the product, which are not read: \.\.\/\.\./);
  for (const band of scene.groups.flatMap((group) => group.bands))
    assert.ok(band.header.path.startsWith(product.path));
});

test('hostile and broken metadata is refused by name', async (t) => {
  const product = await writeSafe(await tempFolder(t), { level: 'L2A', ...SMALL });
  const good = await readFile(product.metadataPath, 'utf8');
  const [head, body] = [good.slice(0, good.indexOf('\n')), good.slice(good.indexOf('\n') + 1)];
  const bomb = `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">${'bcdefghi'
    .split('')
    .map((name, i) => `<!ENTITY ${name} "${`&${'abcdefgh'[i]};`.repeat(10)}">`)
    .join('')}]>`;
  const cases: Record<string, string | Buffer> = {
    'an entity bomb': `${head}${bomb}${body.replace('Level-2A<', '&i;<')}`,
    'an external entity': `${head}<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>${body}`,
    'an entity that nobody defines': good.replace('Sentinel-2A', '&bomb;'),
    truncated: good.slice(0, 3000),
    empty: '',
    'no XML': '{"not": "xml"}',
    deep: `${'<a>'.repeat(100_000)}${'</a>'.repeat(100_000)}`,
    'many elements': `<a>${'<b/>'.repeat(500_000)}</a>`,
    'another root': good.replaceAll('Level-2A_User_Product', 'Level-1B_User_Product'),
    'no quantification': good.replace(/<BOA_QUANTIFICATION_VALUE.*/, ''),
    'zero quantification': good.replace('>10000<', '>0<'),
    'an offset of an unknown band': good.replace('band_id="12"', 'band_id="99"'),
    'an offset that is no number': good.replace('band_id="3">-1000', 'band_id="3">minus'),
    'an orbit that is none': good.replace('ORBIT_NUMBER>22<', 'ORBIT_NUMBER>-1<'),
    'a time that is none': good.replace(/(SENSING_START>)[^<]*/, '$1yesterday'),
    'UTF-16 without its mark': Buffer.from(good, 'utf16le'),
  };
  for (const [name, content] of Object.entries(cases)) {
    await writeFile(product.metadataPath, content);
    await assert.rejects(describeScenes(product.path, {}), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'TW_INGEST_BAD_METADATA', `${name}: ${error.stack}`);
      assert.ok(error.message.includes(product.metadataPath) && error.message.length < 1000, name);
      return true;
    });
  }
  await truncate(product.metadataPath, 100e6);
  await assert.rejects(describeScenes(product.path, {}), {
    code: 'TW_INGEST_BAD_METADATA',
    message: /larger than/,
  });

  const harmless = {
    'UTF-16 with its mark': Buffer.from(`\ufeff${good}`, 'utf16le'),
    'Latin-1 in a comment': Buffer.from(good.replace('?>', '?><!-- W/m\u00b2/\u00b5m -->'), 'latin1'),
    'NUL at the end': `${good}\0\0\0`,
  };
  for (const [name, content] of Object.entries(harmless)) {
    await writeFile(product.metadataPath, content);
    assert.equal((await describe(product.path)).id, product.sceneId, name);
  }
});

test('a product of before December 2016: one scene a granule, known by its metadata', async (t) => {
  const folder = await tempFolder(t);
  const product = await writeSafe(folder, { level: 'L1C', baseline: '02.02', ...SMALL });
  const old = join(folder, 'S2A_OPER_PRD_MSIL1C_PDMC_20160606T232310_R022_V20230707T100621');
  const xml = await readFile(product.metadataPath, 'utf8');
  const tile = await readFile(product.tileMetadataPath, 'utf8');
  const listed: string[] = [];
  for (const mgrs of ['33UVP', '33UWP']) {
    const stem = `S2A_OPER_MSI_L1C_TL_EPA__20160605T113933_A000734_T${mgrs}`;
    const granule = join(old, 'GRANULE', `${stem}_N02.02`);
    await mkdir(join(granule, 'IMG_DATA'), { recursive: true });
    await mkdir(join(granule, 'QI_DATA'));
    for (const [band, path] of Object.entries(product.bandPaths)) {
      await cp(path, join(granule, 'IMG_DATA', `${stem}_${band}.jp2`));
      listed.push(`<IMAGE_ID>${stem}_${band}</IMAGE_ID>`);
    }
    const vector = `S2A_OPER_MSK_CLOUDS_EPA__20160605T113933_A000734_T${mgrs}_B00_MSIL1C.gml`;
    await writeFile(join(granule, 'QI_DATA', vector), '<eop:Mask/>');
    const name = `${stem.replace('MSI_L1C_TL', 'MTD_L1C_TL')}.xml`;
    await writeFile(join(granule, name), tile.replaceAll('33UVP', mgrs));
  }
  const empty = 'S2A_OPER_MSI_L1C_TL_EPA__20160605T113933_A000734_T33UXP_N02.02';
  await mkdir(join(old, 'GRANULE', empty));
  const metadata = xml.replace(/<IMAGE_FILE>[\s\S]*<\/IMAGE_FILE>/, listed.join('\n'));
  await writeFile(join(old, 'S2A_OPER_MTD_SAFL1C_PDMC_20160606T232310_R022_V20230707T100621.xml'), metadata);

  assert.deepEqual(await findInputs(old), { inputs: [old], passedOver: [] });
  const scenes = await describeScenes(old, {});
  assert.deepEqual(
    scenes.map(({ id }) => id),
    ['S2A_MSIL1C_20230707T100621_R022_T33UVP', 'S2A_MSIL1C_20230707T100621_R022_T33UWP'],
  );
  for (const scene of scenes) {
    assert.equal(scene.groups.flatMap(({ bands }) => bands).length, 13);
    assert.equal(scene.reflectanceTest, true);
    assert.match(scene.warnings.join(), /vector mask S2A_OPER_MSK_CLOUDS.*\.gml is not read/);
    assert.doesNotMatch(scene.warnings.join(), /not there/);
  }
  assert.match(scenes[0].warnings.join(), /granules without bands.*T33UXP/);
});

test('loose bands: names, documents and flags say what is missing', async (t) => {
  const folder = await tempFolder(t);
  const product = await writeSafe(folder, { level: 'L1C', baseline: '05.09', ...SMALL });
  const images = dirname(product.bandPaths.B01);
  await rename(dirname(dirname(dirname(images))), join(folder, 'moved'));
  const loose = join(
    folder,
    'moved',
    'GRANULE',
    (await readdir(join(folder, 'moved', 'GRANULE')))[0],
    'IMG_DATA',
  );
  const scene = await describe(loose);
  assert.equal(scene.id, 'S2_MSIL1C_20230707T100621_T33UVP');
  assert.match(scene.warnings.join(), /without their SAFE metadata.*offset -0.1 is assumed/);
  assert.equal(scene.groups[0].bands[0].offset, -0.1);
  const told = await describe(loose, { offset: 0, platform: 'sentinel-2a', collection: 'sentinel-2-l2a' });
  assert.equal(told.id, 'S2A_MSIL2A_20230707T100621_T33UVP');
  assert.equal(told.groups[0].bands[0].offset, 0);

  const archive = join(folder, 'archive');
  await mkdir(archive);
  for (const name of await readdir(loose)) await rename(join(loose, name), join(archive, name.slice(-7)));
  await assert.rejects(describeScenes(archive, {}), { code: 'TW_INGEST_NO_DATETIME' });
  const tileInfo = { timestamp: '2023-07-07T10:10:38.758Z', productName: basename(product.path, '.SAFE') };
  await writeFile(join(archive, 'tileInfo.json'), JSON.stringify(tileInfo));
  const known = await describe(archive);
  assert.equal(known.id, product.sceneId);
  assert.equal(known.start, Date.parse(tileInfo.timestamp));
  assert.deepEqual(known.warnings, ['bands without their SAFE metadata']);

  await rm(join(archive, 'tileInfo.json'));
  const properties = {
    datetime: '2023-07-07T10:10:38Z',
    's2:product_uri': `${basename(product.path)}`,
    'earthsearch:boa_offset_applied': true,
  };
  await writeFile(join(archive, 'item.json'), JSON.stringify({ type: 'Feature', id: 'any', properties }));
  await writeFile(join(archive, 'notes.json'), 'nothing');
  const item = await describe(archive);
  assert.deepEqual([item.id, item.start], [product.sceneId, Date.parse(properties.datetime)]);
  assert.equal(item.groups[0].bands[0].offset, 0);
  assert.match(item.warnings.join(), /notes.json is no JSON/);
});

test('loose bands: time as span, without a zone, of a day that is none; nodata as declared', async (t) => {
  const folder = await tempFolder(t);
  const pixels = { width: 60, height: 60, pixel: 10, nodata: 9 };
  const folderOf = async (name: string) => {
    await mkdir(join(folder, name));
    return join(folder, name);
  };
  const one = await folderOf('S2A_one');
  await writeRaster(join(one, 'B04.tif'), pixels);
  await assert.rejects(describe(one, { datetime: '2023-02-31' }), { code: 'TW_INGEST_BAD_OPTION' });
  const spans = await describe(one, { datetime: '2023-07-07/2023-07-08' });
  assert.deepEqual([spans.start, spans.end], [Date.parse('2023-07-07'), Date.parse('2023-07-08')]);
  assert.equal(spans.id, 'S2A_one_20230707T000000Z');
  assert.equal(spans.groups[0].nodata, 9);
  assert.equal((await describe(one, { datetime: '2023-07-07', nodata: 5 })).groups[0].nodata, 5);
  await writeFile(join(one, 'tileInfo.json'), '{"timestamp": "2023-07-07T10:10:38.758"}');
  assert.equal((await describe(one)).start, Date.parse('2023-07-07T10:10:38.758Z'));

  const several = await folderOf('several');
  const stems = ['T33UVP_20230707T100621', 'T33UVP_20230712T100621'];
  for (const stem of stems) await writeRaster(join(several, `${stem}_B04.tif`), pixels);
  await cp(join(one, 'tileInfo.json'), join(several, 'tileInfo.json'));
  const scenes = await describeScenes(several, {});
  assert.deepEqual(
    scenes.map(({ start }) => new Date(start).toISOString()),
    ['2023-07-07T10:06:21.000Z', '2023-07-12T10:06:21.000Z'],
    'a document that does not say which scene it is about speaks for none',
  );
  await assert.rejects(describeScenes(several, { id: 'mine' }), {
    code: 'TW_INGEST_BAD_OPTION',
    message: /--id mine .* has 2/,
  });
});

test('flags win over the metadata of a product', async (t) => {
  const { path } = await writeSafe(await tempFolder(t), { level: 'L1C', ...SMALL });
  const scene = await describe(path, {
    id: 'mine',
    platform: 'sentinel-2',
    datetime: '2020-01-01/2020-01-02',
  });
  assert.deepEqual(
    [scene.id, scene.platform, scene.start, scene.end],
    ['mine', 'sentinel-2', Date.parse('2020-01-01'), Date.parse('2020-01-02')],
  );
  assert.match(scene.collection.licenseUrl ?? '', /^https:.*Legal_Notice$/);
});

const noGdal = !hasGdal && 'no GDAL on PATH';

test('JPEG 2000 and GeoTIFF under .jp2 names make the same tiles', { skip: noGdal }, async (t) => {
  const folder = await tempFolder(t);
  const options = { level: 'L1C', size: { width: 300, height: 300 }, cloudShare: 0.3 } as const;
  const make = async (jpeg2000: boolean) => {
    const { path, bandPaths } = await writeSafe(join(folder, `${jpeg2000}`), { ...options, jpeg2000 });
    for (const band of ['B03', 'B04', 'B06', 'B07', 'B8A', 'B09', 'B10', 'B11', 'B12'])
      await rm(bandPaths[band]);
    const node = await testNode(t, join(folder, `data-${jpeg2000}`));
    assert.deepEqual((await ingest(node, { href: path })).failed, []);
    const tiles = await tilesOf(node);
    const pixels = tiles.map(async (tile) => {
      const groups = tile.groups.map(({ name }) => readRaster(node.storage.tilePath(tile, name)));
      return (await Promise.all(groups)).map(({ bands }) => bands);
    });
    return { cloud: tiles.map(({ cloudCover }) => cloudCover), pixels: await Promise.all(pixels) };
  };
  assert.deepEqual(await make(true), await make(false));
});

test('real bands without metadata', {
  skip: !existsSync(real) && 'no real scenes beside the repository',
}, async () => {
  const clear = join(real, 'sentinel2-l1c-clear');
  assert.deepEqual((await findInputs(clear)).inputs, [clear]);
  const scene = await describe(clear, { datetime: '2016-01-12T16:00:00Z' });
  assert.equal(scene.collection.id, 'sentinel-2-l1c');
  assert.deepEqual(bandsOf(scene), { '20m': 'B05 B06 B07 B8A B11 B12', '60m': 'B01 B09 B10' });
  assert.equal(scene.groups[0].bands[0].offset, 0);

  if (!hasGdal) return;
  const band = await describe(join(real, 'sentinel2-l2a-60m-jp2'), { datetime: '2022-06-18T10:36:29Z' });
  assert.equal(band.id, 'S2B_MSIL2A_20220618T103629_R108_T32TLS');
  assert.deepEqual(band.warnings, ['bands without their SAFE metadata']);
  assert.equal(band.groups[0].bands[0].offset, -0.1);
});
