import assert from 'node:assert/strict';
import { existsSync, mkdirSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { createTransform, openRaster, pixelToMap, readRaster, readWindow } from '../../src/raster/index.js';
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
import { fixtures, gdal, gdalPixels, needsGdal, repository, temporaryFolder } from './gdal.js';
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

test('every type, interleave and byte order is read back, in any window', async (t) => {
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

/** GDAL reports -0 without rotation. */
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
  test(`${name} has the georeferencing of GDAL`, needsGdal, async (t) => {
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

test('a header that contradicts its image is refused with both sizes in bytes', async (t) => {
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

test('header and image are matched by their names', async (t) => {
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
    message: /Name the image/,
  });
  assert.equal((await openRaster(join(folder, 'a.img'))).path, join(folder, 'a.img'));
  writeEnvi(join(folder, 'b.dat'), TINY);
  renameSync(join(folder, 'b.hdr'), join(folder, 'elsewhere'));
  symlinkSync(join(folder, 'elsewhere'), join(folder, 'b.hdr'));
  await assert.rejects(openRaster(join(folder, 'b.dat')), { code: 'TW_RASTER_NOT_TIFF' });
  renameSync(join(folder, 'b.dat'), join(folder, 'b.bil'));
  await assert.rejects(openRaster(join(folder, 'b.bil')), { message: /needs its header/ });
});

test('invalid headers are refused with the reason', async (t) => {
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

test('impossible widths are left out with a warning, and equal wavelengths are reported', async (t) => {
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

test(
  'the EnMAP cube has the same content as ENVI and as GeoTIFF, including wavelengths',
  needsReal,
  async () => {
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
  },
);

const UTM_TEXT = (unit: string, false_easting: number) =>
  `coordinate system string = {PROJCS["WGS_1984_UTM_Zone_33N",GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],PARAMETER["False_Easting",${false_easting}],PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",15.0],PARAMETER["Scale_Factor",0.9996],PARAMETER["Latitude_Of_Origin",0.0],UNIT[${unit}]]}`;
const METRE_TEXT = UTM_TEXT('"Meter",1.0', 500_000);
const FOOT_TEXT = UTM_TEXT('"Foot",0.3048', 500_000 / 0.3048);
const DEGREE_TEXT =
  'coordinate system string = {GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]}';
const mapInfo = (numbers: number[], rest: string, projection = 'UTM') =>
  `map info = {${[projection, '1', '1', ...numbers, rest].join(', ')}}`;
const UTM_PLACE = [364_095, 5_809_965, 30, 20];
const inUnits = (metres: number, numbers = UTM_PLACE) => numbers.map((number) => number / metres);
const LON_LAT = [13.5, 52.25, 0.001, 0.002];
const GEOGRAPHIC = 'Geographic Lat/Lon';

/** Header lines that GDAL and tilewright place alike, and part of a warning. */
const PLACED: [name: string, lines: string[], warning?: RegExp][] = [
  ...Object.entries({
    Meters: 1,
    Km: 1000,
    Feet: 0.3048,
    Yards: 0.9144,
    Miles: 1609.344,
    'Nautical Miles': 1852,
  }).map(([unit, metres]): [string, string[]] => [
    `UTM in ${unit}`,
    [mapInfo(inUnits(metres), `33, North, WGS-84, units=${unit}`)],
  ]),
  ...Object.entries({ Degrees: 1, Minutes: 60, Seconds: 3600, Radians: Math.PI / 180 }).flatMap(
    ([unit, factor]): [string, string[]][] => {
      const line = mapInfo(
        LON_LAT.map((number) => number * factor),
        `WGS-84, units=${unit}`,
        GEOGRAPHIC,
      );
      return [
        [`longitudes in ${unit}`, [line]],
        ...(unit === 'Radians'
          ? []
          : [[`longitudes in ${unit}, and a text`, [line, DEGREE_TEXT]] as [string, string[]]]),
      ];
    },
  ),
  ['a text in metres', [mapInfo(UTM_PLACE, '33, North, WGS-84'), METRE_TEXT]],
  ['a text in feet', [mapInfo(inUnits(0.3048), '33, North, WGS-84'), FOOT_TEXT]],
  ['a text and a unit in feet', [mapInfo(inUnits(0.3048), '33, North, WGS-84, units=Feet'), FOOT_TEXT]],
  [
    'a text of another zone',
    [mapInfo(UTM_PLACE, '32, North, WGS-84'), METRE_TEXT],
    /names another system \(EPSG:32632\)/,
  ],
  [
    'a text that is none',
    [mapInfo(UTM_PLACE, '33, North, WGS-84'), 'coordinate system string = {UTM33}'],
    /cannot be read, so EPSG:32633/,
  ],
  ...[-150, -90, 27.5, 90, 179.9].map((angle): [string, string[]] => [
    `a rotation of ${angle}`,
    [mapInfo(UTM_PLACE, `33, North, WGS-84, units=Meters, rotation=${angle}`)],
  ]),
  ...[180, -180].map((angle): [string, string[], RegExp] => [
    `a rotation of ${angle} is south-up`,
    [mapInfo(UTM_PLACE, `33, North, WGS-84, rotation=${angle}`)],
    /rows from south to north/,
  ]),
  [
    'a subset',
    [mapInfo(UTM_PLACE, '33, North, WGS-84'), 'x start = 101', 'y start = 0'],
    /x start is 101, which does not move it/,
  ],
  ['a reference pixel', [`map info = {UTM, 3.5, 2, ${UTM_PLACE.join(', ')}, 33, North, WGS-84}`]],
  ['rows that run north', [mapInfo([364_095, 5_809_965, 30, -20], '33, North, WGS-84')]],
];

for (const [name, lines, warning] of PLACED)
  test(`the corners of GDAL: ${name}`, needsGdal, async (t) => {
    const path = join(temporaryFolder(t), 'cube.dat');
    writeEnvi(path, { ...TINY, lines });
    const { transform, crs, warnings = [] } = await openRaster(path);
    const { wgs84Extent } = JSON.parse(gdal('gdalinfo', '-json', path));
    const toGlobe = createTransform(crs, 'EPSG:4326');
    for (const [i, [column, row]] of [
      [0, 0],
      [0, 3],
      [4, 3],
      [4, 0],
    ].entries()) {
      const [lon, lat] = toGlobe(...pixelToMap(transform, column!, row!));
      const [wantedLon, wantedLat] = wgs84Extent.coordinates[0][i];
      assert.ok(
        Math.hypot(lon - wantedLon, lat - wantedLat) < 2e-7,
        `${lon} ${lat}, not ${wantedLon} ${wantedLat}`,
      );
    }
    assert.equal(warnings.length, warning ? 1 : 0, warnings.join());
    assert.match(warnings.join(), warning ?? /^$/);
  });

for (const [name, lines, code, message] of [
  [
    'a unit of neither',
    [mapInfo(UTM_PLACE, '33, North, WGS-84, units=Furlongs')],
    'UNSUPPORTED',
    /is Furlongs/,
  ],
  [
    'degrees of UTM',
    [mapInfo(UTM_PLACE, '33, North, WGS-84, units=Degrees')],
    'UNSUPPORTED',
    /is in Degrees/,
  ],
  [
    'metres of longitudes',
    [mapInfo(LON_LAT, 'WGS-84, units=Meters', GEOGRAPHIC)],
    'UNSUPPORTED',
    /is in Meters/,
  ],
  [
    'feet, and a text in metres',
    [mapInfo(UTM_PLACE, '33, North, WGS-84, units=Feet'), METRE_TEXT],
    'UNSUPPORTED',
    /in Feet.*units of 1 m/,
  ],
  [
    'metres, and a text in feet',
    [mapInfo(UTM_PLACE, '33, North, WGS-84, units=Meters'), FOOT_TEXT],
    'UNSUPPORTED',
    /in Meters.*units of 0.3048 m/,
  ],
  [
    'a rotation that is not a number',
    [mapInfo(UTM_PLACE, '33, North, WGS-84, rotation=left')],
    'CORRUPT',
    /rotation .* "left"/,
  ],
  [
    'south-up about another row',
    [`map info = {UTM, 1, 2, ${UTM_PLACE.join(', ')}, 33, North, WGS-84, rotation=180}`],
    'UNSUPPORTED',
    /reference row 2/,
  ],
  [
    'an empty number',
    [`map info = {UTM, , 1, ${UTM_PLACE.join(', ')}, 33, North, WGS-84}`],
    'CORRUPT',
    /no six numbers/,
  ],
  ['a zone with its letter', [mapInfo(UTM_PLACE, '33N, North, WGS-84')], 'UNKNOWN_CRS', /UTM on 33N/],
  ['no hemisphere', [mapInfo(UTM_PLACE, '33, units=Meters, WGS-84')], 'UNKNOWN_CRS', /UTM on 33/],
  ['no datum', [mapInfo(UTM_PLACE, '33, North')], 'UNKNOWN_CRS', /UTM on 33, North/],
  [
    'a projection of its own',
    [
      mapInfo(UTM_PLACE, 'WGS-84', 'Mine'),
      'projection info = {3, 6378137, 6356752.3, 0, 15, 0, 0, 1, WGS-84, Mine}',
    ],
    'UNKNOWN_CRS',
    /Mine on WGS-84/,
  ],
  [
    'points alone',
    ['geo points = {1, 1, 52, 13, 4, 1, 52, 14}', 'pixel size = {30, 30, units=Meters}'],
    'NO_CRS',
    /"geo points" and "pixel size" are not read/,
  ],
] as const)
  test(`a position is refused by name: ${name}`, async (t) => {
    const path = join(temporaryFolder(t), 'cube.dat');
    writeEnvi(path, { ...TINY, lines: [...lines] });
    await assert.rejects(openRaster(path), { code: `TW_RASTER_${code}`, message });
  });

test('rasters that GDAL writes south-up, turned and in feet keep their corners', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  for (const [i, args] of [
    ['-a_srs', 'EPSG:32633', '-a_ullr', '500000', '5290000', '500800', '5290800'],
    ['-a_srs', 'EPSG:2229', '-a_ullr', '6400000', '2000000', '6400800', '1999200'],
    ['-a_srs', 'EPSG:4326', '-a_ullr', '13', '52', '14', '51'],
    ['-a_srs', 'EPSG:3857', '-a_ullr', '1500000', '6800000', '1500800', '6799200'],
  ].entries()) {
    const [source, path] = [join(folder, `${i}.tif`), join(folder, `${i}.img`)];
    gdal('gdal_translate', '-q', ...args, join(fixtures, 'none.tif'), source);
    gdal('gdal_translate', '-q', '-of', 'ENVI', source, path);
    const [ours, theirs] = [await openRaster(path), await openRaster(source)];
    const corner = ({ crs, transform }: typeof ours, column: number, row: number) =>
      createTransform(crs, 'EPSG:4326')(...pixelToMap(transform, column, row));
    for (const [column, row] of [
      [0, 0],
      [ours.width, ours.height],
    ] as const) {
      const [lon, lat] = corner(ours, column, row);
      const [wantedLon, wantedLat] = corner(theirs, column, row);
      assert.ok(
        Math.hypot(lon - wantedLon, lat - wantedLat) < 1e-7,
        `${args}: ${lon} ${lat}, not ${wantedLon} ${wantedLat}`,
      );
    }
  }
});

test('gain values count before a reflectance scale factor, with a warning', async (t) => {
  const path = join(temporaryFolder(t), 'cube.dat');
  const lines = [MAP_INFO, 'reflectance scale factor = 10000', 'data gain values = {0.1, 0.2}'];
  writeEnvi(path, { ...TINY, lines });
  const { bandTags, warnings } = await openRaster(path);
  assert.deepEqual(bandTags, [{ scale: 0.1 }, { scale: 0.2 }]);
  assert.match(warnings!.join(), /reflectance scale factor is not used/);
});

test('an ignore value may be listed for each band; what is not one number is named', async (t) => {
  const path = join(temporaryFolder(t), 'cube.dat');
  for (const [text, nodata, warning] of [
    ['-9999', -9999, /^$/],
    ['{-9999, -9999}', -9999, /^$/],
    ['{ -9.999e3 , -9999.0 }', -9999, /^$/],
    ['{-9999}', -9999, /^$/],
    ['', undefined, /^$/],
    ['{-9999, 0}', undefined, /data ignore value "-9999, 0" is not one number/],
    ['none', undefined, /data ignore value "none"/],
    ['1e9', undefined, /^$/],
  ] as const) {
    writeEnvi(path, { ...TINY, lines: [MAP_INFO, `data ignore value = ${text}`] });
    const header = await openRaster(path);
    assert.equal(header.nodata, nodata, text);
    assert.match(header.warnings!.join(), warning, text);
  }
});

test('keys have any case, and underscores in place of blanks', async (t) => {
  const path = join(temporaryFolder(t), 'cube.dat');
  const lines = [
    MAP_INFO,
    'wavelength units = Micrometers',
    'wavelength = {0.5, 0.6}',
    'data ignore value = 7',
  ];
  const expected = { ...TINY, bigEndian: true, offset: 16, lines };
  writeEnvi(path, expected);
  const wanted = await readRaster(path);
  assert.equal(wanted.header.nodata, 7);
  for (const change of [
    (key: string) => key.replaceAll(' ', '_'),
    (key: string) => key.toUpperCase(),
    (key: string) => key.replaceAll(' ', '  _'),
    (key: string) => ` ${key.replaceAll(' ', '\t')}`,
  ]) {
    const header = headerOf(expected).replace(/^[a-z ]+(?==)/gm, (key) => `${change(key.trimEnd())} `);
    writeFileSync(join(path, '../cube.hdr'), header);
    const { header: found, bands } = await readRaster(path);
    assert.deepEqual(bands, wanted.bands, header);
    assert.deepEqual({ ...found, blocks: null }, { ...wanted.header, blocks: null }, header);
  }
});

test('bytes between the pixels are refused, and scales without a standard are named', async (t) => {
  const path = join(temporaryFolder(t), 'cube.dat');
  for (const line of ['major frame offsets = {8, 0}', 'Minor_Frame_Offsets = {0, 2}']) {
    writeEnvi(path, { ...TINY, lines: [MAP_INFO, line] });
    await assert.rejects(openRaster(path), { code: 'TW_RASTER_UNSUPPORTED', message: /frame offsets/ }, line);
  }
  for (const [line, warning] of [
    ['scale factor = 10000', /"scale factor" is not read \(--scale and --offset/],
    ['Radiance_Scale_Factors = {1, 2}', /"radiance scale factors" is not read/],
    ['data gain = {0.1, 0.2}', /"data gain" is not read/],
    ['major frame offsets = {0, 0}', /^$/],
    ['data offset values = {1, 2}', /^$/],
  ] as const) {
    writeEnvi(path, { ...TINY, lines: [MAP_INFO, line] });
    assert.match((await openRaster(path)).warnings!.join(), warning, line);
  }
});

test('numbers of other quantities are not wavelengths', async (t) => {
  const path = join(temporaryFolder(t), 'cube.dat');
  for (const unit of [
    ...['Index', 'Wavenumber', 'Wavenumbers', 'wave numbers', 'cm-1', 'cm^-1', '1/cm', 'per centimeter'],
    ...['GHz', 'MHz', 'THz', 'hertz', 'eV', 'meV', 'electron volts'],
  ]) {
    writeEnvi(path, {
      ...TINY,
      lines: [MAP_INFO, 'wavelength = {1000, 2000}', `wavelength units = ${unit}`],
    });
    const { bandTags, warnings } = await openRaster(path);
    assert.deepEqual(bandTags, [{}, {}], unit);
    assert.match(warnings!.join(), /"wavelength" are no wavelengths/, unit);
  }
});

test('a rotation around another pixel than the first is named, because GDAL moves it', async (t) => {
  const path = join(temporaryFolder(t), 'cube.dat');
  for (const [place, angle, warning] of [
    ['3, 2', 30, /around the reference pixel 3, 2/],
    ['1.5, 1', -90, /around the reference pixel 1.5, 1/],
    ['1, 1', 30, /^$/],
    ['3, 2', 0, /^$/],
    ['3, 2', 360, /^$/],
  ] as const) {
    const info = `map info = {UTM, ${place}, ${UTM_PLACE.join(', ')}, 33, North, WGS-84, rotation=${angle}}`;
    writeEnvi(path, { ...TINY, lines: [info] });
    assert.match((await openRaster(path)).warnings!.join(), warning, info);
  }
});

test('names may contain braces; a list of another length is not used', async (t) => {
  const path = join(temporaryFolder(t), 'cube.dat');
  for (const [text, names, warning] of [
    ['{a{1}, b}', ['a{1}', 'b'], /^$/],
    ['{a, {b}}', ['a', '{b}'], /^$/],
    ['{\n a{1},\n b{2}\n}', ['a{1}', 'b{2}'], /^$/],
    ['{a{1\n, b}', ['a{1', 'b'], /^$/],
    ['{a}, b}', ['a}', 'b'], /^$/],
    ['{\n a},\n b\n}', ['a}', 'b'], /^$/],
    ['{\n a}\n, b\n}\n', ['a}', 'b'], /^$/],
    ['{ a{,\n b }', ['a{', 'b'], /^$/],
    ['{\n a}}, b}', ['a}}', 'b'], /^$/],
    ['{red, 650 nm, blue}', [undefined, undefined], /"band names" is not used: it lists 3 names for 2/],
  ] as const) {
    writeEnvi(path, { ...TINY, lines: [`band names = ${text}`, MAP_INFO] });
    const header = await openRaster(path);
    assert.deepEqual(
      header.bandTags.map(({ description }) => description),
      names,
      text,
    );
    assert.match(header.warnings!.join(), warning, text);
  }
});
