/** The commands in errors about files that are not read: each is run on a file of its kind, and the output is read. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { TilewrightError } from '../../src/errors.js';
import { openRaster, openTimeAxis, readRaster, readWindow } from '../../src/raster/index.js';
import { fixtures, gdal, gdalPixels, needsGdal, temporaryFolder } from './gdal.js';

const COMMAND =
  /\b((?:gdal_translate|ncpdq|ncap2|ncatted|nccopy|cdo) .*?(?:(?:OUT\.nc|OUT\.tif|STEP_N\.tif|BAND_N\.tif|FILE\.nc)(?=[ .,;]|$)))/;

/** Runs the command of the error with these names in place of the words in capitals. */
async function follow(read: () => Promise<unknown>, words: Record<string, string>): Promise<void> {
  const error = await read().then(
    () => assert.fail('it is read'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof TilewrightError, String(error));
  const command = COMMAND.exec(error.message)?.[1];
  assert.ok(command, error.message);
  const names = Object.keys(words).toSorted((a, b) => b.length - a.length);
  const complete = command.replace(
    new RegExp(`(?<![\\w.])(${names.join('|').replaceAll('.', '\\.')})(?!\\w)`, 'g'),
    (name) => words[name]!,
  );
  execFileSync('sh', ['-c', complete], { stdio: ['ignore', 'pipe', 'pipe'] });
}

const SOURCE = join(fixtures, 'none.tif');
/** Values that fit are needed: GDAL fails if it must clip one. */
const bits = (type: string, count: number) => [
  ...['-ot', type, '-co', `NBITS=${count}`],
  ...['-scale', '0', '65535', '0', String(2 ** Math.min(count, 16) - 1)],
];
const oneBand = [...Array(3)].flatMap(() => ['-b', '1']);

for (const [name, options, type] of [
  ...[1, 2, 4, 7].map((count) => [`${count} bits`, bits('Byte', count), 'uint8'] as const),
  ...[9, 11, 12, 15].map((count) => [`${count} bits`, bits('UInt16', count), 'uint16'] as const),
  ...[17, 24, 31].map((count) => [`${count} bits`, bits('UInt32', count), 'uint32'] as const),
  ['16-bit floats', bits('Float32', 16), 'float32'],
  ['CCITT', [...bits('Byte', 1), '-co', 'COMPRESS=CCITTFAX4', '-b', '1'], 'uint8'],
  ['WebP', ['-ot', 'Byte', ...oneBand, '-co', 'COMPRESS=WEBP', '-co', 'WEBP_LOSSLESS=YES'], 'uint8'],
  ['LZMA', ['-co', 'COMPRESS=LZMA'], 'uint16'],
  ['big-endian LERC', ['-co', 'COMPRESS=LERC', '-co', 'ENDIANNESS=BIG'], 'uint16'],
  ['CMYK', ['-ot', 'Byte', ...oneBand, '-b', '1', '-co', 'PHOTOMETRIC=CMYK'], 'uint8'],
  ['CIELab', ['-ot', 'Byte', ...oneBand, '-co', 'PHOTOMETRIC=CIELAB'], 'uint8'],
  ['ICCLab', ['-ot', 'Byte', ...oneBand, '-co', 'PHOTOMETRIC=ICCLAB'], 'uint8'],
] as const)
  test(`a TIFF of ${name}`, needsGdal, async (t) => {
    const folder = temporaryFolder(t);
    const [IN, OUT] = [join(folder, 'in.tif'), join(folder, 'out.tif')];
    gdal('gdal_translate', '-q', ...options, SOURCE, IN);
    await follow(() => readRaster(IN), { IN, 'OUT.tif': OUT });
    const { header, bands } = await readRaster(OUT);
    assert.equal(header.dataType, type);
    assert.deepEqual(bands, gdalPixels(IN, type));
  });

for (const [name, format, type, expected] of [
  ...['Int64', 'UInt64'].map((kind) => [kind, 'GTiff', kind, 'float64'] as const),
  ...['CInt16', 'CInt32', 'CFloat32'].map((kind) => [kind, 'GTiff', kind, 'float32'] as const),
  ['CFloat64', 'GTiff', 'CFloat64', 'float64'],
  ['complex ENVI', 'ENVI', 'CFloat32', 'float32'],
  ['complex ENVI of 128 bits', 'ENVI', 'CFloat64', 'float64'],
  ['complex Erdas', 'HFA', 'CFloat32', 'float32'],
] as const)
  test(`numbers that are not read: ${name}`, needsGdal, async (t) => {
    const folder = temporaryFolder(t);
    const [IN, OUT] = [join(folder, 'in.img'), join(folder, 'out.tif')];
    gdal('gdal_translate', '-q', '-of', format, '-ot', type, SOURCE, IN);
    await follow(() => readRaster(IN), { IN, IMAGE: IN, 'OUT.tif': OUT });
    const { header, bands } = await readRaster(OUT);
    assert.equal(header.dataType, expected);
    const { bands: source } = await readRaster(SOURCE);
    const least = type === 'UInt64' ? 0 : -Infinity;
    for (const [i, band] of bands.entries())
      assert.deepEqual(
        [...band],
        [...source[i]!].map((value) => Math.max(least, value)),
      );
  });

const skipWithout = (program: string) => ({
  skip: spawnSync(program, ['--version']).error ? `${program} is not installed` : false,
});
const hdf5 = (name: string) => join(fixtures, 'hdf5', name);

async function assertGrid(path: string, layer: string, time: number | undefined) {
  const header = await openRaster(path, layer);
  const { originX, originY, xx, yy } = header.transform;
  assert.deepEqual([header.bands, originX, originY, xx, yy], [time === undefined ? 1 : 3, 9.5, 50.5, 1, -1]);
  const [pixels] = await readWindow(header, [time ?? 0], { column: 0, row: 0, width: 6, height: 5 });
  const value = (i: number) => 100 * (time ?? 0) + 10 * Math.floor(i / 6) + (i % 6);
  assert.deepEqual(
    [...pixels!],
    Array.from({ length: 30 }, (_, i) => value(i)),
  );
}

for (const [layer, time] of [
  ['turned', undefined],
  ['last', 2],
  ['middle', 1],
] as const)
  test(`a netCDF variable in another order: ${layer}`, skipWithout('ncpdq'), async (t) => {
    const OUT = join(temporaryFolder(t), 'out.nc');
    const IN = hdf5('orders.nc');
    await follow(() => openRaster(IN, `/${layer}`), { 'IN.nc': IN, 'OUT.nc': OUT });
    await assertGrid(OUT, `/${layer}`, time);
  });

test(
  'a netCDF variable of 64-bit integers, and one whose scale is a word',
  skipWithout('ncap2'),
  async (t) => {
    const folder = temporaryFolder(t);
    const IN = hdf5('orders.nc');
    const [OUT, FILE] = [join(folder, 'out.nc'), join(folder, 'file.nc')];
    await follow(() => openRaster(IN, '/long'), { 'IN.nc': IN, 'OUT.nc': OUT, VARIABLE: 'long' });
    await assertGrid(OUT, '/long', undefined);
    execFileSync('cp', [IN, FILE]);
    await follow(() => openRaster(FILE, '/scaled'), { 'FILE.nc': FILE, VARIABLE: 'scaled' });
    assert.equal((await openRaster(FILE, '/scaled')).bandTags[0]!.scale, 0.01);
  },
);

test('a netCDF grid of uneven rows', skipWithout('cdo'), async (t) => {
  const OUT = join(temporaryFolder(t), 'out.nc');
  const IN = hdf5('uneven.nc');
  await follow(() => openRaster(IN, '/v'), { 'IN.nc': IN, 'OUT.nc': OUT });
  const { width, height, transform } = await openRaster(OUT, '/v');
  assert.deepEqual([width, height, transform.xx, transform.yy], [720, 360, 0.5, -0.5]);
  const curved = hdf5('curved.nc');
  await follow(() => openRaster(curved, '/v'), { 'IN.nc': curved, 'OUT.nc': OUT });
  const header = await openRaster(OUT, '/v');
  const [pixels] = await readWindow(header, [0], { column: 0, row: 0, width: 720, height: 360 });
  const found = [...pixels!].flatMap((value, i) =>
    Math.abs(value) < 90 ? [[value, Math.floor(i / 720)]] : [],
  );
  assert.ok(found.length > 10);
  for (const [value, row] of found) {
    const latitude = header.transform.originY - (row! + 0.5) / 2;
    assert.ok(Math.abs(value! - latitude) < 0.01, `${value} at ${latitude}`);
  }
});

test('a time in months, and coordinates in another unit', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const OUT = join(folder, 'out.tif');
  const months = { 'FILE.nc': hdf5('orders.nc'), VARIABLE: 'months', N: '2', 'STEP_N.tif': OUT };
  await follow(() => openTimeAxis(months['FILE.nc'], '/months'), months);
  const { header, bands } = await readRaster(OUT);
  assert.deepEqual([header.transform.originX, header.transform.originY, bands.length], [9.5, 50.5, 1]);
  assert.deepEqual([...bands[0]!.slice(0, 7)], [100, 101, 102, 103, 104, 105, 110]);
  const path = join(folder, 'axes.nc');
  await writeFile(path, gunzipSync(await readFile(hdf5('axes.nc.gz'))));
  const place = { CODE: '4326', WEST: '14.5', NORTH: '48.5', EAST: '21.5', SOUTH: '43.5' };
  for (const group of ['arc_seconds', 'missing_first', 'outside', 'same']) {
    await follow(() => openRaster(path, `/${group}/v`), {
      ...place,
      'FILE.nc': path,
      VARIABLE: `/${group}/v`,
      'OUT.tif': OUT,
    });
    const { transform } = await openRaster(OUT);
    assert.deepEqual([transform.originX, transform.originY, transform.xx, transform.yy], [14.5, 48.5, 1, -1]);
  }
});

test('bands of an Erdas image with different nodata values', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const [vrt, IN] = [join(folder, 'a.vrt'), join(folder, 'a.img')];
  const bands = [5, 7].map(
    (nodata, i) =>
      `<VRTRasterBand dataType="UInt16" band="${i + 1}"><NoDataValue>${nodata}</NoDataValue><SimpleSource><SourceFilename>${SOURCE}</SourceFilename><SourceBand>${i + 1}</SourceBand></SimpleSource></VRTRasterBand>`,
  );
  const {
    width,
    height,
    bands: source,
  } = await readRaster(SOURCE).then(({ header, bands: pixels }) => ({ ...header, bands: pixels }));
  const place = '<SRS>EPSG:32633</SRS><GeoTransform>500010, 30, 0, 5000020, 0, -30</GeoTransform>';
  await writeFile(
    vrt,
    `<VRTDataset rasterXSize="${width}" rasterYSize="${height}">${place}${bands.join('')}</VRTDataset>`,
  );
  gdal('gdal_translate', '-q', '-of', 'HFA', vrt, IN);
  for (const [i, nodata] of [5, 7].entries()) {
    const OUT = join(folder, `${i}.tif`);
    await follow(() => openRaster(IN), { IN, N: String(i + 1), 'BAND_N.tif': OUT });
    const { header, bands: found } = await readRaster(OUT);
    assert.equal(header.nodata, nodata);
    assert.deepEqual(found, [source[i]!]);
  }
});

test('packing that GDAL does not apply to classic netCDF', needsGdal, async (t) => {
  const IN = hdf5('classic.nc');
  for (const [layer, scale] of [
    ['plain', undefined],
    ['neutral', undefined],
    ['number', 0.01],
  ] as const) {
    const { transform, bandTags } = await openRaster(IN, layer);
    assert.deepEqual([transform.originX, transform.originY, transform.xx, transform.yy], [9.5, 50.5, 1, -1]);
    assert.equal(bandTags[0]!.scale, scale);
  }
  const layers = ['packed_lat2', 'packed_lat3', 'packed_lon2', 'packed_lon3', 'text', 'word'];
  for (const layer of layers)
    await assert.rejects(
      openRaster(IN, layer),
      { code: 'TW_RASTER_UNSUPPORTED', message: /GDAL does not apply/ },
      layer,
    );
  if (skipWithout('nccopy').skip) return;
  const OUT = join(temporaryFolder(t), 'out.nc');
  await follow(() => openRaster(IN, layers[0]), { 'IN.nc': IN, 'OUT.nc': OUT });
  for (const layer of layers.slice(0, 5)) {
    const { transform, bandTags } = await openRaster(OUT, `/${layer}`);
    for (const [i, value] of [transform.originX, transform.originY, transform.xx, transform.yy].entries())
      assert.ok(Math.abs(value - [9.5, 50.5, 1, -1][i]!) < 1e-6, layer);
    assert.equal(bandTags[0]!.scale, layer === 'text' ? 0.01 : undefined);
  }
  await assert.rejects(openRaster(OUT, '/word'), { message: /add_offset of \/word is "none"/ });
});

test('an ENVI image that is compressed by gzip', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const [IMAGE, OUT] = [join(folder, 'in.img'), join(folder, 'out.tif')];
  gdal('gdal_translate', '-q', '-of', 'ENVI', SOURCE, IMAGE);
  const { bands } = await readRaster(IMAGE);
  await writeFile(IMAGE, gzipSync(await readFile(IMAGE)));
  const header = join(folder, 'in.hdr');
  await writeFile(header, `${await readFile(header, 'utf8')}file compression = 1\n`);
  await follow(() => readRaster(IMAGE), { IMAGE, 'OUT.tif': OUT });
  assert.deepEqual((await readRaster(OUT)).bands, bands);
});
