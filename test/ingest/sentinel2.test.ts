/** Sentinel-2 products: both levels and all baselines, their masks, partial and old ones. */
import assert from 'node:assert/strict';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { writeSafe } from '../../data-samples/index.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { findInputs } from '../../src/ingest/inputs.js';
import { Mask } from '../../src/raster/index.js';
import { tempFolder } from '../support/temp.js';
import { bandsOf, CASES, describeOne, SMALL, writeConstant } from './sentinel2-products.js';

for (const { level, baseline, mask } of CASES) {
  test(`${level} of baseline ${baseline}: id, bands, offsets, mask`, async (t) => {
    const product = await writeSafe(await tempFolder(t), { level, baseline, ...SMALL });
    const scene = await describeOne(product.path);
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
    assert.equal(scene.sunAzimuth, 151.4452);
    assert.equal(scene.quality.length, mask?.split(' ').length ?? 0);
    assert.deepEqual({ ...(await describeOne(product.metadataPath)), path: '' }, { ...scene, path: '' });
  });
}

test('unused options are named, and the error of a single band names its product', async (t) => {
  const product = await writeSafe(await tempFolder(t), { level: 'L2A', baseline: '04.00', ...SMALL });
  const flags = { id: 'mine', platform: 'p', collection: 'c', bands: { red: 1 }, scale: 2, maskBand: 1 };
  const { id, warnings } = await describeOne(product.path, flags);
  assert.equal(id, 'mine');
  assert.deepEqual(warnings, [
    '--bands, --scale, --mask-band had no effect: Sentinel-2 SAFE defines these values itself',
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

test('options take precedence over the metadata of a product', async (t) => {
  const { path } = await writeSafe(await tempFolder(t), { level: 'L1C', ...SMALL });
  const scene = await describeOne(path, {
    id: 'mine',
    platform: 'sentinel-2',
    datetime: '2020-01-01/2020-01-02',
  });
  assert.deepEqual(
    [scene.id, scene.platform, scene.start, scene.end],
    ['mine', 'sentinel-2', Date.parse('2020-01-01'), Date.parse('2020-01-03') - 1],
  );
  assert.match(scene.collection.licenseUrl ?? '', /^https:.*Legal_Notice$/);
});

test('masks: classes of SCL, bits of QA60, bands of MSK_CLASSI', async (t) => {
  const folder = await tempFolder(t);
  const l2a = await describeOne((await writeSafe(join(folder, 'a'), { level: 'L2A', ...SMALL })).path);
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

  const l1c = await describeOne((await writeSafe(join(folder, 'b'), { level: 'L1C', ...SMALL })).path);
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
  const { quality } = await describeOne(old.path);
  assert.deepEqual(
    [0, 1024, 2048, 3072, 1].map((v) => quality[0].codes[v]),
    [clear, cloud, cloud, cloud, clear],
  );
});

test('a partial product is described with warnings; one without bands is refused', async (t) => {
  const product = await writeSafe(await tempFolder(t), { level: 'L2A', ...SMALL });
  const { bandPaths, path, tileMetadataPath } = product;
  await rm(bandPaths.B02);
  await rm(bandPaths.B05);
  await rm(tileMetadataPath);
  const scene = await describeOne(path);
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

test('a product from before December 2016: one scene per granule, identified by its metadata', async (t) => {
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
