import assert from 'node:assert/strict';
import { existsSync, mkdirSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { createTransform, openRaster, readRaster, readWindow } from '../../src/raster/index.js';
import {
  asRead,
  ENVI_TYPES,
  type EnviCube,
  type EnviType,
  headerOf,
  INTERLEAVES,
  MAP_INFO,
  writeEnvi,
} from './envi.js';
import { gdal, gdalPixels, needsGdal, repository, temporaryFolder } from './gdal.js';
import { assertSamePixels, random } from './images.js';

const REAL = join(repository, '../shared/data/hyperspectral-enmap-potsdam');
const needsReal = { skip: existsSync(REAL) ? false : 'the folder of real scenes is not there' };

function cubeOf(type: EnviType, seed: number, shape: { width: number; height: number; count: number }) {
  const next = random(seed);
  const signed = !type.startsWith('u');
  const most = { uint8: 256, int16: 2 ** 15, uint16: 2 ** 16 }[type as string] ?? 2 ** 31;
  const value = () =>
    type.startsWith('float')
      ? Math.fround(next() * 2e4 - 1e4)
      : Math.floor(next() * most * (signed && next() < 0.5 ? -1 : 1));
  const { width, height, count } = shape;
  return Array.from({ length: count }, () => Array.from({ length: width * height }, value));
}

test('every type, interleave and byte order gives the pixels that were written, in any window', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'cube.dat');
  const shape = fc.record({
    width: fc.integer({ min: 1, max: 9 }),
    height: fc.integer({ min: 1, max: 7 }),
    count: fc.integer({ min: 1, max: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(
      shape,
      fc.constantFrom(...(Object.keys(ENVI_TYPES) as EnviType[])),
      fc.constantFrom(...INTERLEAVES),
      fc.boolean(),
      fc.nat(40),
      fc.nat(),
      async (shape, type, interleave, bigEndian, offset, seed) => {
        const next = random(seed);
        const { width, height } = shape;
        const bands = cubeOf(type, seed, shape);
        writeEnvi(path, { width, height, bands, type, interleave, bigEndian, offset });
        const { header, bands: found } = await readRaster(path);
        for (const [i, band] of found.entries()) assertSamePixels(band, asRead(bands[i]!, band));

        const [column, row] = [Math.floor(next() * width), Math.floor(next() * height)];
        const window = {
          column,
          row,
          width: 1 + Math.floor(next() * (width - column)),
          height: 1 + Math.floor(next() * (height - row)),
        };
        const wanted = [...bands.keys()].filter(() => next() < 0.6).toReversed();
        const parts = await readWindow(header, wanted, window);
        for (const [i, part] of parts.entries()) {
          const all = bands[wanted[i]!]!;
          const inside = Array.from(
            { length: window.width * window.height },
            (_, at) => all[(row + Math.floor(at / window.width)) * width + column + (at % window.width)]!,
          );
          assertSamePixels(part, asRead(inside, part));
        }
      },
    ),
    { seed: 27, numRuns: 150 },
  );
});

for (const interleave of INTERLEAVES)
  test(`GDAL reads the same from our ${interleave}, and we the same from GDAL's`, needsGdal, async (t) => {
    const folder = temporaryFolder(t);
    const shape = { width: 13, height: 11, count: 5 };
    const path = join(folder, 'cube.dat');
    writeEnvi(path, {
      ...shape,
      bands: cubeOf('int16', 3, shape),
      type: 'int16',
      interleave,
      bigEndian: true,
    });
    const { header, bands } = await readRaster(path);
    for (const [i, band] of gdalPixels(path, 'int16').entries()) assertSamePixels(bands[i]!, band);
    const { geoTransform } = JSON.parse(gdal('gdalinfo', '-json', path));
    assert.deepEqual(affineOf(geoTransform), header.transform);

    const copy = join(folder, 'copy.img');
    gdal('gdal_translate', '-q', '-of', 'ENVI', '-co', `INTERLEAVE=${interleave}`, path, copy);
    const again = await readRaster(copy);
    for (const [i, band] of bands.entries()) assertSamePixels(again.bands[i]!, band);
    assert.deepEqual(again.header.transform, header.transform);
    assert.equal(again.header.crs.epsg, 32633);
  });

/** GDAL says -0 where there is no turn. */
const affineOf = (values: number[]) => {
  const [originX, xx, xy, originY, yx, yy] = values.map((value) => value + 0);
  return { originX, originY, xx, xy, yx, yy };
};

const TINY: EnviCube = {
  width: 4,
  height: 3,
  type: 'int16',
  interleave: 'bil',
  bands: [new Array(12).fill(1), new Array(12).fill(2)],
};
const LCC =
  'coordinate system string = {PROJCS["x",GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]],PROJECTION["Lambert_Conformal_Conic"],PARAMETER["False_Easting",500000.0],PARAMETER["False_Northing",100000.0],PARAMETER["Central_Meridian",10.0],PARAMETER["Standard_Parallel_1",40.0],PARAMETER["Standard_Parallel_2",55.0],PARAMETER["Latitude_Of_Origin",48.0],UNIT["Meter",1.0]]}';

for (const [name, lines] of [
  [
    'a rotated flight line',
    ['map info = {UTM, 1, 1, 364095, 5809965, 30, 20, 33, South, WGS-84, units=Meters, rotation=27.5}'],
  ],
  [
    'longitudes and latitudes',
    ['map info = {Geographic Lat/Lon, 1, 1, 13.5, 52.25, 0.001, 0.002, WGS-84, units=Degrees}'],
  ],
  [
    'a system by its text',
    ['map info = {Lambert Conformal Conic, 1, 1, 600000, 300000, 30, 30, WGS-84, units=Meters}', LCC],
  ],
] as const)
  test(`${name} lies where GDAL puts it`, needsGdal, async (t) => {
    const folder = temporaryFolder(t);
    const path = join(folder, 'cube.dat');
    writeEnvi(path, { ...TINY, lines: [...lines] });
    const { transform, crs } = await openRaster(path);
    const info = JSON.parse(gdal('gdalinfo', '-json', path));
    for (const [i, value] of Object.values(affineOf(info.geoTransform)).entries())
      assert.ok(
        Math.abs(Object.values(transform)[i]! - value) < 1e-6,
        `${JSON.stringify(transform)} ${info.geoTransform}`,
      );
    const [lon, lat] = createTransform(crs, 'EPSG:4326')(transform.originX, transform.originY);
    const [wantedLon, wantedLat] = info.wgs84Extent.coordinates[0][0];
    assert.ok(
      Math.hypot(lon - wantedLon, lat - wantedLat) < 1e-6,
      `${lon} ${lat}, not ${wantedLon} ${wantedLat}`,
    );
  });

test('wavelengths in any unit, lists over many lines, comments and capitals', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'cube.dat');
  const open = async (lines: string[]) => {
    writeEnvi(path, { ...TINY, lines: [MAP_INFO, ...lines] });
    return openRaster(path);
  };
  const wavelengthsOf = async (values: string, unit?: string) => {
    const header = await open([
      `wavelength = ${values}`,
      ...(unit === undefined ? [] : [`wavelength units = ${unit}`]),
    ]);
    return [header.bandTags.map(({ wavelength }) => wavelength), header.warnings?.length ?? 0];
  };
  const nm = [418.24, 2445.53];
  assert.deepEqual(await wavelengthsOf('{418.24, 2445.53}', 'Nanometers'), [nm, 0]);
  assert.deepEqual(await wavelengthsOf('{0.41824, 2.44553}', 'Micrometers'), [nm, 0]);
  assert.deepEqual(await wavelengthsOf('{0.41824, 2.44553}', 'μm'), [nm, 0]);
  assert.deepEqual(await wavelengthsOf('{4182.4, 24455.3}', 'Angstroms'), [nm, 0]);
  // Guessed, with a note: no unit, a misspelled one, a wrong one.
  assert.deepEqual(await wavelengthsOf('{0.41824, 2.44553}'), [nm, 1]);
  assert.deepEqual(await wavelengthsOf('{418.24, 2445.53}', 'Nanometter'), [nm, 1]);
  assert.deepEqual(await wavelengthsOf('{0.41824, 2.44553}', 'Nanometers'), [nm, 1]);
  assert.deepEqual(await wavelengthsOf('{418.24, 2445.53}', 'Micrometers'), [nm, 1]);
  assert.deepEqual(await wavelengthsOf('{[418.24 2445.53]}', 'nm'), [nm, 0]);
  assert.deepEqual(await wavelengthsOf('{1, 2}', 'Index'), [[undefined, undefined], 1]);
  const ofNames = async (names: string) => {
    const header = await open([`band names = {${names}}`]);
    return header.bandTags.map(({ wavelength }) => wavelength);
  };
  assert.deepEqual(await ofNames('418.24 Nanometers, 2445.53 Nanometers'), nm);
  assert.deepEqual(await ofNames('0.41824 um, 2.44553 um'), nm);
  for (const names of ['B2, B3', '418.24 Nanometers, blue', '10 m, 20 m', '418.24 nm, 2.44553 um'])
    assert.deepEqual(await ofNames(names), [undefined, undefined]);

  const header = await open([
    '; wavelength = {1, 2}',
    'WAVELENGTH = {',
    ' 418.24,',
    ' 2445.53 }',
    'Wavelength  Units = Nanometers',
    'fwhm = {6.5, 7.25}',
    'bbl = {1, 0}',
    'reflectance scale factor = 10000',
    'data ignore value = -9999',
    'band names = {first, second}',
  ]);
  assert.deepEqual(header.bandTags, [
    { description: 'first', scale: 0.0001, wavelength: 418.24, fwhm: 6.5 },
    { description: 'second', scale: 0.0001, wavelength: 2445.53, fwhm: 7.25, good: false },
  ]);
  assert.equal(header.nodata, -9999);
});

test('a header that contradicts its image says how many bytes it expects and how many there are', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'cube.dat');
  writeEnvi(path, TINY);
  truncateSync(path, 40);
  await assert.rejects(openRaster(path), {
    code: 'TW_RASTER_SIZE_DIFFERS',
    message: /are 48 bytes, it has 40 bytes, 8 less/,
  });
  await assert.rejects(openRaster(join(folder, 'cube.hdr')), {
    code: 'TW_RASTER_SIZE_DIFFERS',
    message: /48 bytes, cube\.dat has 40/,
  });
  truncateSync(path, 60);
  await assert.rejects(openRaster(path), {
    code: 'TW_RASTER_SIZE_DIFFERS',
    message: /12 more \(is "header offset" right\?\)/,
  });
  renameSync(path, join(folder, 'other.dat'));
  await assert.rejects(openRaster(join(folder, 'cube.hdr')), { message: /no file cube\.\* is beside it/ });
});

test('a header finds its image, and an image its header, by their names', async (t) => {
  const folder = temporaryFolder(t);
  for (const [image, header] of [
    ['cube', 'cube.hdr'],
    ['cube.bil', 'cube.bil.hdr'],
    ['CUBE.IMG', 'CUBE.HDR'],
  ] as const) {
    const place = join(folder, header);
    mkdirSync(place);
    writeEnvi(join(place, 'a.dat'), TINY);
    renameSync(join(place, 'a.dat'), join(place, image));
    renameSync(join(place, 'a.hdr'), join(place, header));
    for (const name of [image, header])
      assert.equal((await openRaster(join(place, name))).path, join(place, image));
  }
  // Two images of one size, and a header that is a link.
  writeEnvi(join(folder, 'a.dat'), TINY);
  writeEnvi(join(folder, 'a.img'), TINY);
  await assert.rejects(openRaster(join(folder, 'a.hdr')), {
    code: 'TW_RASTER_UNSUPPORTED',
    message: /name the image/,
  });
  assert.equal((await openRaster(join(folder, 'a.img'))).path, join(folder, 'a.img'));
  writeEnvi(join(folder, 'b.dat'), TINY);
  renameSync(join(folder, 'b.hdr'), join(folder, 'elsewhere'));
  symlinkSync(join(folder, 'elsewhere'), join(folder, 'b.hdr'));
  await assert.rejects(openRaster(join(folder, 'b.dat')), { code: 'TW_RASTER_NOT_TIFF' });
  renameSync(join(folder, 'b.dat'), join(folder, 'b.bil'));
  await assert.rejects(openRaster(join(folder, 'b.bil')), { message: /needs its header/ });
});

test('broken headers are refused with what is wrong', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'cube.dat');
  writeEnvi(path, TINY);
  const whole = headerOf(TINY);
  const refused = async (text: string, code: string, message: RegExp) => {
    writeFileSync(join(folder, 'cube.hdr'), text);
    await assert.rejects(openRaster(join(folder, 'cube.hdr')), { code, message });
  };
  await refused(whole.replace('samples = 4\n', ''), 'TW_RASTER_CORRUPT', /has no "samples"/);
  await refused(whole.replace('lines = 3', 'lines = three'), 'TW_RASTER_CORRUPT', /lines = three/);
  await refused(whole.replace('data type = 2', 'data type = 6'), 'TW_RASTER_UNSUPPORTED', /complex/);
  await refused(whole.replace('data type = 2', 'data type = 99'), 'TW_RASTER_CORRUPT', /99 is not known/);
  await refused(whole.replace('= bil', '= bib'), 'TW_RASTER_CORRUPT', /not bsq, bil or bip/);
  await refused(whole.replace(MAP_INFO, ''), 'TW_RASTER_NO_CRS', /no "map info"/);
  await refused(whole.replace('UTM, 1', 'Arbitrary, 1'), 'TW_RASTER_NO_CRS', /Arbitrary/);
  await refused(whole.replace('WGS-84', 'European 1950'), 'TW_RASTER_UNKNOWN_CRS', /European 1950/);
  await refused(whole.replace('364095', 'east'), 'TW_RASTER_CORRUPT', /no six numbers/);
  await refused(`${whole}wavelength = {1,`, 'TW_RASTER_CORRUPT', /braces of "wavelength"/);
  await refused(
    `${whole}wavelength = {400, 500, 600}`,
    'TW_RASTER_CORRUPT',
    /lists 3 values, and there are 2 bands/,
  );
  await refused(`${whole}wavelength = {400, red}`, 'TW_RASTER_CORRUPT', /"red", which is not a number/);
  await refused(
    whole.replace('ENVI Standard', 'ENVI Spectral Library'),
    'TW_RASTER_NOT_TIFF',
    /spectral library/,
  );
  await refused(whole.replace('samples = 4', 'samples = 99999999'), 'TW_RASTER_UNSUPPORTED', /its size is/);
  await refused(
    whole.replace('order = 0', 'order = 7'),
    'TW_RASTER_CORRUPT',
    /byte order is 7 and not 0 or 1/,
  );
  for (const factor of ['0', '-1', 'NaN', 'inf', 'Infinity', '1e-320', 'ten'])
    await refused(
      `${whole}reflectance scale factor = ${factor}`,
      'TW_RASTER_CORRUPT',
      /reflectance scale factor is ".*" and not a finite number above 0/,
    );
});

test('widths that bands cannot have are left out with a warning, and equal wavelengths are named', async (t) => {
  const path = join(temporaryFolder(t), 'cube.dat');
  const open = async (wavelengths: string, fwhm: string) => {
    const lines = [`wavelength = {${wavelengths}}`, 'wavelength units = um', `fwhm = {${fwhm}}`];
    writeEnvi(path, { ...TINY, lines: [MAP_INFO, ...lines, 'reflectance scale factor ='] });
    const { bandTags, warnings } = await openRaster(path);
    return [bandTags.map(({ fwhm: width }) => width), warnings];
  };
  assert.deepEqual(await open('0.4, 2.4', '0.79, nan'), [[790, undefined], []]);
  for (const wrong of ['-0.01', '0', '1e300', 'Infinity', '0.8']) {
    const warning = `the FWHM of 1 of 2 bands is left out, because it cannot be ${Number(wrong)}`;
    assert.deepEqual(await open('0.4, 2.4', `${wrong}, 0.01`), [[undefined, 10], [warning]]);
  }
  assert.deepEqual(await open('0.5, 0.5', '0.01, 0.01'), [[10, 10], ['all 2 wavelengths are 500 nm']]);
});

test('the EnMAP cube reads alike from ENVI and from GeoTIFF, wavelengths included', needsReal, async () => {
  const envi = await readRaster(join(REAL, 'enmap-potsdam.hdr'));
  const tiff = await readRaster(join(REAL, 'enmap-potsdam.tif'));
  for (const [i, band] of envi.bands.entries()) assertSamePixels(tiff.bands[i]!, band);
  const spectrum = ({ wavelength, fwhm, good }: (typeof tiff.header.bandTags)[number]) => ({
    wavelength,
    fwhm,
    good,
  });
  assert.deepEqual(tiff.header.bandTags.map(spectrum), envi.header.bandTags.map(spectrum));
  assert.equal(envi.header.bandTags.filter(({ good }) => good === false).length, 6);
  assert.deepEqual(tiff.header.warnings, []);
});
