/** NLCD and other rasters of codes: no value may come out that did not go in. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import type { TilewrightNode } from '../../src/node.js';
import { gdalName, type PixelArray, readImage, readRaster } from '../../src/raster/index.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { bytesOf, realData, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const skip = !existsSync(realData) && 'no real scenes beside the repository';
const CLASSES = [11, 21, 22, 24, 41, 42, 71, 82, 90, 95];

/** A speckle of classes in Albers, 30 m, as no real map is: any mixing of neighbours shows. */
const map = {
  width: 600,
  height: 600,
  dataType: 'uint8',
  bands: bytesOf(1, 600 * 600, (i) => (i < 600 ? 0 : CLASSES[(i * 7 + (i >> 5)) % CLASSES.length])),
  epsg: 5070,
  pixel: 30,
  x: -96_000,
  y: 1_500_000,
  palette: true,
} as const;

/** Every value of a band in the stored tiles, overviews left out. */
async function storedValues(node: TilewrightNode): Promise<Set<number>> {
  const values = new Set<number>();
  for (const tile of await tilesOf(node)) {
    const group = tile.groups.find(({ role }) => role === 'data');
    const { bands } = await readImage(node.storage.tileImage(tile, group?.name ?? ''));
    for (const value of new Set<number>(bands[0] as PixelArray as Uint8Array)) values.add(value);
  }
  return values;
}

test('a land cover map: year, id, codes that stay codes', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'nlcd_2019_land_cover_l48_20210604.tif'), map);
  const [scene] = await describeScenes(path, {});
  assert.equal(scene.id, 'nlcd_2019_land_cover_l48');
  assert.equal(scene.collection.id, 'nlcd');
  assert.equal(new Date(scene.start).toISOString(), '2019-01-01T00:00:00.000Z');
  assert.equal(new Date(scene.end).toISOString(), '2019-12-31T23:59:59.000Z');
  const [group] = scene.groups;
  assert.deepEqual([group.name, group.resampling, group.nodata], ['30m', 'nearest', 0]);
  assert.equal(group.bands[0].name, 'land_cover');

  const node = await testNode(t, join(folder, 'data'));
  // Cells so large that their files have overviews.
  const { failed } = await ingest(node, { href: path, precision: 4 });
  assert.deepEqual(failed, []);
  const { providers } = (await node.server.inject('/collections/nlcd')).json();
  assert.deepEqual(
    providers.map((one: { name: string; roles: string[]; url: string }) => [one.roles.length > 0, one.url]),
    [
      [true, 'https://www.usgs.gov'],
      [true, 'https://www.mrlc.gov'],
    ],
  );
  const allowed = new Set([0, ...CLASSES]);
  for (const value of await storedValues(node)) assert.ok(allowed.has(value), `class ${value}`);
  if (!hasGdal) return;
  const [tile] = await tilesOf(node);
  const small = join(folder, 'overview.tif');
  execFileSync('gdal_translate', [
    '-q',
    '-outsize',
    '50%',
    '50%',
    gdalName(node.storage.tileImage(tile, '30m')),
    small,
  ]);
  for (const value of new Set((await readRaster(small)).bands[0]))
    assert.ok(allowed.has(value), `overview ${value}`);
});

test('the layer is in the name; a map without a year needs one', async (t) => {
  const folder = await tempFolder(t);
  const layers = {
    Annual_NLCD_LndCov_2021_CU_C1V0: ['land_cover', 0],
    nlcd_2021_impervious_l48_20230630: ['impervious', 127],
    Annual_NLCD_ImpDsc_2021_CU_C1V0: ['impervious_descriptor', 127],
    'nlcd_tcc_conus_2021_v2021-4': ['canopy', 255],
  };
  for (const [name, [band, nodata]] of Object.entries(layers)) {
    const [scene] = await describeScenes(await writeRaster(join(folder, `${name}.tif`), map), {});
    const [group] = scene.groups;
    assert.deepEqual([group.bands[0].name, group.nodata, group.resampling], [band, nodata, 'nearest'], name);
    assert.equal(new Date(scene.start).getUTCFullYear(), 2021);
  }
  const path = await writeRaster(join(folder, 'nlcd_lc.tif'), { ...map, nodata: 250 });
  await assert.rejects(describeScenes(path, {}), { code: 'TW_INGEST_NO_DATETIME' });
  const [scene] = await describeScenes(path, { datetime: '2011-01-01/2011-12-31' });
  assert.equal(scene.id, 'nlcd_lc_2011');
  assert.equal(scene.groups[0].nodata, 250, 'what the file declares wins');
});

test('a file whose content is not NLCD is a plain raster, and a colour table protects its codes', async (t) => {
  const folder = await tempFolder(t);
  const flags = { collection: 'plain', datetime: '2019-01-01' };
  const cases: [string, object, string][] = [
    ['nlcd_2019_land_cover.tif', { epsg: 32614, x: 500_000, y: 4_000_000 }, 'nearest'],
    ['nlcd_2019_land_cover.tif', { palette: false }, 'bilinear'],
    ['crops_2019.tif', {}, 'nearest'],
  ];
  for (const [name, change, resampling] of cases) {
    const [scene] = await describeScenes(await writeRaster(join(folder, name), { ...map, ...change }), flags);
    assert.equal(scene.collection.id, 'plain', name);
    assert.equal(scene.groups[0].resampling, resampling, name);
  }
});

/** GDAL's own virtual format can give a raster a colour table. */
const vrt = (source: string) => `<VRTDataset rasterXSize="600" rasterYSize="600"><SRS>EPSG:5070</SRS>
<GeoTransform>-96000,30,0,1500000,0,-30</GeoTransform><VRTRasterBand dataType="Byte" band="1">
<ColorInterp>Palette</ColorInterp><ColorTable>${'<Entry c1="9" c2="99" c3="9" c4="255"/>'.repeat(96)}</ColorTable>
<SimpleSource><SourceFilename>${source}</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>`;

test('an Erdas .img file', { skip: !hasGdal && 'GDAL is not installed' }, async (t) => {
  const folder = await tempFolder(t);
  const tiff = await writeRaster(join(folder, 'source.tif'), { ...map, palette: false });
  await writeFile(join(folder, 'source.vrt'), vrt(tiff));
  for (const [name, id] of [
    ['nlcd_2019_land_cover_l48_20210604.img', 'nlcd'],
    ['crops_2019.img', 'plain'],
  ]) {
    const path = join(folder, name);
    execFileSync('gdal_translate', ['-q', '-of', 'HFA', join(folder, 'source.vrt'), path]);
    const flags = id === 'plain' ? { collection: id, datetime: '2019-01-01' } : {};
    const [scene] = await describeScenes(path, flags);
    assert.equal(scene.collection.id, id);
    assert.equal(scene.groups[0].resampling, 'nearest');
    assert.deepEqual((await readRaster(path)).bands[0], map.bands[0]);
  }
});

test('tiles of classes and their overviews have the colours of their source', {
  skip: !hasGdal && 'GDAL is not installed',
}, async (t) => {
  const folder = await tempFolder(t);
  const colour = (code: number) => [code, 255 - code, (7 * code) % 256];
  const colours = [0, 1, 2].flatMap((part) => Array.from({ length: 256 }, (_, i) => 257 * colour(i)[part]));
  const path = await writeRaster(join(folder, 'nlcd_2019_land_cover.tif'), {
    ...map,
    palette: false,
    colours,
  });
  const img = join(folder, 'nlcd_2020_land_cover.img');
  execFileSync('gdal_translate', ['-q', '-of', 'HFA', path, img]);
  const node = await testNode(t, join(folder, 'data'));
  // Cells so large that their files have overviews.
  const { failed } = await ingest(node, { href: [path, img], precision: 4 });
  assert.deepEqual(failed, []);
  const tiles = await tilesOf(node);
  assert.deepEqual([...new Set(tiles.map(({ scene }) => scene))].length, 2);
  for (const tile of tiles) {
    const file = gdalName(node.storage.tileImage(tile, '30m'));
    const info = JSON.parse(execFileSync('gdalinfo', ['-json', file], { encoding: 'utf8' }));
    const [band] = info.bands;
    assert.equal(band.colorInterpretation, 'Palette');
    for (const code of CLASSES)
      assert.deepEqual(band.colorTable.entries[code].slice(0, 3), colour(code), `${tile.scene} ${code}`);
  }
  const large = tiles.map((tile) => gdalName(node.storage.tileImage(tile, '30m')));
  const overviews = large.map((file) =>
    execFileSync('gdalinfo', ['-oo', 'OVERVIEW_LEVEL=0', file], { encoding: 'utf8' }),
  );
  assert.ok(overviews.some((text) => /ColorInterp=Palette/.test(text)));
});

test('the real map of Puerto Rico is the same as .img and as GeoTIFF', {
  skip: skip || (!hasGdal && 'GDAL is not installed'),
}, async (t) => {
  const flags = { datetime: '2001-01-01/2001-12-31' };
  const stored = async (name: string) => {
    const node = await testNode(t, await tempFolder(t));
    const { failed } = await ingest(node, { href: join(realData, 'nlcd-albers', name), ...flags });
    assert.deepEqual(failed, []);
    const tiles = await tilesOf(node);
    return tiles.map(({ geocode, coverage }) => `${geocode} ${coverage}`).sort();
  };
  assert.deepEqual(await stored('nlcd_lc.img'), await stored('nlcd_lc.tif'));
});

test('the real map of Puerto Rico', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const path = join(realData, 'nlcd-albers/nlcd_lc.tif');
  const node = await testNode(t, join(folder, 'data'));
  const { failed } = await ingest(node, { href: path, datetime: '2001-01-01/2001-12-31' });
  assert.deepEqual(failed, []);
  const source = new Set<number>((await readRaster(path)).bands[0] as Uint8Array);
  const stored = await storedValues(node);
  for (const value of stored) assert.ok(source.has(value), `class ${value}`);
  assert.ok(stored.size > 8);
});
