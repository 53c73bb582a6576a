/** MODIS: made-up layers as GeoTIFFs always, real HDF4 and JPEG 2000 if they and GDAL are available. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { geohash } from '../../src/grid/index.js';
import { describeLayer, modisBandName, qualityLayerOf } from '../../src/ingest/formats/modis.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { openRaster, readRaster } from '../../src/raster/index.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { bytesOf, realData, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const noReal = !existsSync(realData) && 'no real scenes beside the repository';
const skip = noReal || (!hasGdal && 'GDAL is not installed');
const GRANULE = 'MOD10A2.A2022033.h09v05.061.2022042050729';

const metadata = {
  SHORTNAME: 'MOD10A2',
  LONGNAME: 'Snow Cover 8-Day',
  LOCALGRANULEID: `${GRANULE}.hdf`,
  RANGEBEGINNINGDATE: '2022-02-02',
  RANGEBEGINNINGTIME: '00:00:00',
  RANGEENDINGDATE: '2022-02-09',
  RANGEENDINGTIME: '23:59:59.500000',
  HORIZONTALTILENUMBER: '9',
  VERTICALTILENUMBER: '5',
};

test('a layer with its original metadata: id, period, classes and their cloud', async (t) => {
  const folder = await tempFolder(t);
  // Half cloud, a quarter snow, a quarter night, which says nothing, and a row of fill.
  const value = (i: number) => (i < 400 ? 255 : i % 4 < 2 ? 50 : i % 4 === 2 ? 200 : 11);
  const path = await writeRaster(join(folder, `${GRANULE}_Maximum_Snow_Extent.tif`), {
    metadata,
    width: 400,
    height: 400,
    dataType: 'uint8',
    bands: bytesOf(1, 400 * 400, value),
    pixel: 463.3127,
    nodata: 255,
  });
  const [scene] = await describeScenes(path, {});
  assert.equal(scene.id, 'MOD10A2.A2022033.h09v05_Maximum_Snow_Extent');
  assert.deepEqual([scene.collection.id, scene.collection.title], ['modis-mod10a2', 'Snow Cover 8-Day']);
  assert.equal(scene.collection.license, 'CC0-1.0');
  assert.match(scene.collection.providers?.[1].name ?? '', /Snow and Ice/);
  assert.equal(scene.platform, 'terra');
  assert.equal(new Date(scene.start).toISOString(), '2022-02-02T00:00:00.000Z');
  assert.equal(new Date(scene.end).toISOString(), '2022-02-09T23:59:59.500Z');
  const [group] = scene.groups;
  assert.deepEqual([group.name, group.resampling, group.nodata], ['463m', 'nearest', 255]);
  assert.deepEqual(group.resolution, { x: 463.3127, y: 463.3127 });

  const node = await testNode(t, join(folder, 'data'));
  const { failed } = await ingest(node, { href: path });
  assert.deepEqual(failed, []);
  for (const tile of await tilesOf(node)) {
    assert.ok(tile.cloudCover !== null && Math.abs(tile.cloudCover - 200 / 3) < 5, `${tile.cloudCover}`);
  }
  // Snow and cloud are what the layer says, and hide nothing of it.
  const [{ properties }] = (await node.server.inject('/search?limit=1&sortby=-pixel_coverage')).json()
    .features;
  const corners: number[][] = properties['proj:geometry'].coordinates[0].slice(1);
  const [lon, lat] = [0, 1].map((axis) => corners.reduce((sum, at) => sum + at[axis], 0) / corners.length);
  const half = { west: lon - 0.05, east: lon + 0.05, south: lat - 0.05, north: lat + 0.05 };
  const ring = [
    [half.west, half.south],
    [half.east, half.south],
    [half.east, half.north],
    [half.west, half.north],
    [half.west, half.south],
  ];
  const payload = {
    geometry: { type: 'Polygon', coordinates: [ring] },
    expression: 'Maximum_Snow_Extent',
  };
  const answer = await node.server.inject({ method: 'POST', url: '/timeseries', payload });
  const [date] = answer.json().series;
  assert.deepEqual([date.min, date.max, date.valid], [11, 200, date.pixels], answer.body);
});

test('a single layer is named by its long_name', async (t) => {
  const folder = await tempFolder(t);
  const granule = (product: string) => `${product}.A2022033.h09v05.061.2022042050729`;
  const describe = async (product: string, file: string, long_name: string) => {
    const path = await writeRaster(join(folder, `${granule(product)}_${file}.TIF`), {
      metadata: { ...metadata, SHORTNAME: product, LOCALGRANULEID: `${granule(product)}.hdf`, long_name },
      dataType: 'int16',
      bands: [new Int16Array(64 * 64).fill(1234)],
      pixel: 463.3127,
    });
    const [scene] = await describeScenes(path, {});
    const [{ role, resampling, bands }] = scene.groups as [(typeof scene.groups)[0]];
    const [{ name, scale, commonName }] = bands as [(typeof bands)[0]];
    return { path, id: scene.id, facts: [role, resampling, name, scale, commonName] };
  };
  for (const [product, file, longName, name, scale, commonName] of [
    ['MCD43A4', 'B01_cropped', 'Nadir_Reflectance_Band1', 'Nadir_Reflectance_Band1', 1e-4, 'red'],
    ['MOD09A1', 'B01', 'Surface_reflectance_for_band_1', 'sur_refl_b01', 1e-4, 'red'],
    ['MOD09GA', 'x', '500m Surface Reflectance Band 4 - first layer', 'sur_refl_b04', 1e-4, 'green'],
    ['MOD11A2', 'B01', '8-day daytime 1km grid Land-surface Temperature', 'LST_Day_1km', 0.02, undefined],
    ['MOD11A2', 'B05', '8-day nighttime 1km grid Land-surface Temperature', 'LST_Night_1km', 0.02, undefined],
    ['MOD13A1', 'BR_B06', '500m 16 days blue reflectance', 'blue_reflectance', 1e-4, 'blue'],
    ['MOD13A1', 'NDVI', 'anything', 'NDVI', 1e-4, undefined],
  ] as const) {
    const { id, facts } = await describe(product, file, longName);
    assert.deepEqual(facts, ['data', 'bilinear', name, scale, commonName], `${product} ${file}`);
    assert.equal(id, `${product}.A2022033.h09v05_${name}`);
  }
  const node = await testNode(t, join(folder, 'data'));
  for (const [product, file, longName, name] of [
    ['MOD11A1', 'CDC_B11', 'day clear-sky coverage', 'day_clear-sky_coverage'],
    ['MCD43A4', 'QA', 'BRDF_Albedo_Band_Mandatory_Quality_Band1', 'QA'],
    ['MOD13A1', 'VI_Quality', '500m 16 days VI Quality', 'VI_Quality'],
  ] as const) {
    const { path, facts } = await describe(product, file, longName);
    assert.deepEqual(facts.slice(0, 3), ['data', 'nearest', name], 'the codes are the data of the scene');
    const { failed, scenes } = await ingest(node, { href: path });
    assert.deepEqual(failed, []);
    assert.ok(scenes[0]!.tiles > 0);
  }
});

test('a MODIS file without its date is damaged; other metadata is not MODIS', async (t) => {
  const folder = await tempFolder(t);
  const flags = { collection: 'plain', datetime: '2020-01-01' };
  const { RANGEBEGINNINGDATE, ...undated } = metadata;
  const path = await writeRaster(join(folder, 'a.tif'), { metadata: undated });
  await assert.rejects(describeScenes(path, { collection: 'plain' }), { code: 'TW_INGEST_NO_DATETIME' });
  const [told] = await describeScenes(path, { datetime: '2020-02-01/2020-02-08' });
  assert.deepEqual(
    [told.id, told.start, told.end],
    ['MOD10A2.A2020032.h09v05_a', Date.parse('2020-02-01'), Date.parse('2020-02-09') - 1],
  );
  for (const SHORTNAME of ['VNP10A1', 'mod10a2', 'MODE', '']) {
    const other = await writeRaster(join(folder, 'b.tif'), { metadata: { ...metadata, SHORTNAME } });
    assert.equal((await describeScenes(other, flags))[0].collection.id, 'plain');
  }
});

test('the content of layers, by product and from the file', async (t) => {
  const folder = await tempFolder(t);
  const header = async (dataType: 'int16' | 'uint8', scale?: number, offset?: number, nodata?: number) => {
    const bands = dataType === 'int16' ? [new Int16Array(4096)] : [new Uint8Array(4096)];
    const path = join(folder, `${dataType}-${scale}-${nodata}.tif`);
    return openRaster(await writeRaster(path, { dataType, bands, bandTags: [{ scale, offset }], nodata }));
  };
  const plain = await header('int16');
  const declared = await header('int16', undefined, undefined, 7);
  const times = await header('int16', 10000);
  const cases: [product: string, layer: string, name: string, expected: object][] = [
    [
      'MOD09GA',
      'sur_refl_b01_1',
      'sur_refl_b01',
      { role: 'data', scale: 1e-4, nodata: -28672, commonName: 'red' },
    ],
    ['MYD09A1', 'sur_refl_b06', 'sur_refl_b06', { role: 'data', commonName: 'swir16' }],
    ['MOD09GA', 'state_1km_1', 'state_1km', { role: 'qa', nodata: null }],
    ['MOD13Q1', '250m 16 days NDVI', 'NDVI', { role: 'data', scale: 1e-4, nodata: -3000 }],
    ['MOD13A3', '1 km monthly blue reflectance', 'blue_reflectance', { nodata: -1000, commonName: 'blue' }],
    ['MOD11A2', 'LST_Day_1km', 'LST_Day_1km', { scale: 0.02, nodata: 0, resampling: 'bilinear' }],
    ['MCD12Q1', 'LC_Type1', 'LC_Type1', { resampling: 'nearest', nodata: 255 }],
    ['MCD43A4', 'Nadir_Reflectance_Band2', 'Nadir_Reflectance_Band2', { nodata: 32767, commonName: 'nir08' }],
    ['MCD64A1', 'Burn Date', 'Burn_Date', { role: 'data', resampling: 'nearest', nodata: null }],
    ['MCD64A1', 'QA', 'QA', { role: 'qa' }],
  ];
  for (const [product, layer, name, expected] of cases) {
    assert.equal(modisBandName(layer, product), name);
    const meaning = describeLayer(product, name, plain);
    for (const [key, value] of Object.entries(expected))
      assert.equal(meaning[key as keyof typeof meaning], value, `${product} ${layer} ${key}`);
  }
  assert.deepEqual(
    ['MOD09GA', 'MCD64A1'].map((product) => describeLayer(product, 'sur_refl_b01', declared).nodata),
    [7, 7],
    'what the file declares counts before the table',
  );
  assert.equal(describeLayer('MOD09GA', 'state_1km', declared).nodata, null);
  // An unlisted product: factors of the file, and a factor that is meant as a divisor.
  const fraction = await header('uint8', 0.5, 3);
  assert.deepEqual(
    [describeLayer('MOD15A2H', 'Fpar', fraction), describeLayer('MOD13C1', 'NDVI', times)].map((m) => [
      m.scale,
      m.offset,
      m.resampling,
    ]),
    [
      [0.5, 3, 'bilinear'],
      [1e-4, 0, 'bilinear'],
    ],
  );
});

test('quality bits', () => {
  const cases: [product: string, value: number, code: number][] = [
    ['MOD09GA', 0, 1],
    ['MOD09GA', 1, 2],
    ['MOD09A1', 2, 2],
    ['MOD09A1', 3, 1],
    ['MYD09Q1', 4, 3],
    ['MOD09GA', 4 + 4096, 3],
    ['MOD09GA', 4096, 4],
    ['MOD09GA', 1 + 4 + 4096, 2],
    ['MOD09GA', 65535, 255],
    ['MOD13Q1', 0, 1],
    ['MOD13Q1', 2, 2],
    ['MOD13Q1', 3, 255],
    ['MOD13Q1', 1 << 14, 4],
    ['MOD13Q1', 1 << 15, 3],
    ['MOD10A1', 39, 1],
    ['MOD10A1', 40, 4],
    ['MOD10A1', 250, 2],
    ['MOD10A1', 211, 255],
    ...[0, 1, 11, 254, 255].map((value): [string, number, number] => ['MOD10A2', value, 255]),
    ...[25, 37, 39].map((value): [string, number, number] => ['MOD10A2', value, 1]),
  ];
  for (const [product, value, code] of cases)
    assert.equal(qualityLayerOf(product)?.code(value), code, `${product} ${value}`);
  assert.equal(qualityLayerOf('MOD11A1'), undefined);
});

test('a real HDF4 granule: its cloud agrees with the same granule as GeoTIFF, pixel by pixel', {
  skip,
}, async (t) => {
  const path = join(realData, 'modis-mod10a2-hdf4', `${GRANULE}.hdf`);
  const [scene] = await describeScenes(path, {});
  assert.equal(scene.id, 'MOD10A2.A2022033.h09v05');
  assert.equal(scene.collection.id, 'modis-mod10a2');
  assert.deepEqual(scene.warnings, []);
  assert.deepEqual(
    scene.groups.map(({ name, resampling, bands }) => [name, resampling, bands.map((band) => band.name)]),
    [
      ['463m', 'nearest', ['Maximum_Snow_Extent']],
      ['463m-qa', 'nearest', ['Eight_Day_Snow_Cover']],
    ],
  );
  const node = await testNode(t, await tempFolder(t));
  const { failed } = await ingest(node, { href: path });
  assert.deepEqual(failed, []);
  const twin = await readRaster(path.replace('.hdf', '_Maximum_Snow_Extent.tif'));
  const { width, height, transform } = twin.header;
  const tiles = await tilesOf(node);
  assert.ok(tiles.length > 20);
  for (const tile of tiles) {
    const { west, south, east, north } = geohash.bounds(tile.geocode);
    const [group] = tile.groups;
    let cloud = 0;
    let assessed = 0;
    for (let row = 0; row < group.height; row++) {
      const lat = (Math.PI / 180) * (north - ((row + 0.5) * (north - south)) / group.height);
      for (let column = 0; column < group.width; column++) {
        const lon = (Math.PI / 180) * (west + ((column + 0.5) * (east - west)) / group.width);
        const x = 6_371_007.181 * lon * Math.cos(lat);
        const y = 6_371_007.181 * lat;
        const c = Math.floor((x - transform.originX) / transform.xx);
        const r = Math.floor((y - transform.originY) / transform.yy);
        if (c < 0 || r < 0 || c >= width || r >= height) continue;
        const code = twin.bands[0][r * width + c];
        if (code === 50) cloud++;
        if ([25, 37, 39, 50, 100, 200].includes(code)) assessed++;
      }
    }
    const expected = assessed === 0 ? null : (100 * cloud) / assessed;
    if (expected === null || tile.cloudCover === null) assert.equal(tile.cloudCover, expected, tile.geocode);
    else
      assert.ok(
        Math.abs(tile.cloudCover - expected) < 0.05,
        `${tile.geocode}: ${tile.cloudCover}, not ${expected}`,
      );
  }
});

test('a real series of loose layers is twelve scenes, dated by their names', { skip }, async (t) => {
  const folder = join(realData, 'modis-mod13q1-series-jp2');
  const node = await testNode(t, await tempFolder(t));
  const flags = {
    collection: 'mod13q1-ndvi',
    bands: { NDVI: 1 },
    scale: 0.0001,
    nodata: -3000,
    platform: 'terra',
  };
  const { scenes, failed } = await ingest(node, { href: folder, ...flags });
  assert.deepEqual(failed, []);
  const dates = (await readdir(folder)).map((name) => /_(\d{4})-(\d\d)-(\d\d)/.exec(name)?.slice(1).join(''));
  assert.equal(dates.length, 12);
  assert.deepEqual(scenes.map(({ id }) => /_(\d{8})T000000Z$/.exec(id)?.[1]).sort(), dates.sort());
  for (const { warnings } of scenes) assert.match(warnings.join(), /is the date in its name/);
  const places = new Set((await tilesOf(node)).map(({ geocode }) => geocode));
  assert.equal((await tilesOf(node)).length, 12 * places.size, 'all dates of a place stack');
});
