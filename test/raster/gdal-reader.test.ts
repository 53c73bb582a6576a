import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { gdalCrs } from '../../src/raster/formats/gdal.js';
import {
  allocatePixels,
  createTransform,
  crsFromEpsg,
  type DataType,
  encodeCog,
  listSubdatasets,
  openRaster,
  readRaster,
  readRowsOfRasters,
  readWindow,
} from '../../src/raster/index.js';
import { gdal, gdalPixels, needsGdal, repository, temporaryFolder } from './gdal.js';
import { assertSamePixels, image } from './images.js';

const data = join(repository, '../shared/data');

/** The first file with some ending in a folder of real scenes; undefined if there is none. */
function real(folder: string, ending: string): string | undefined {
  if (!existsSync(join(data, folder))) return undefined;
  const name = readdirSync(join(data, folder)).find((entry) => entry.endsWith(ending));
  return name && join(data, folder, name);
}

const SNOW = real('modis-mod10a2-hdf4', '.hdf');
const SENTINEL = real('sentinel2-l2a-60m-jp2', '.jp2');
const MODIS = real('modis-mod13q1-series-jp2', '.jp2');
const NLCD = real('nlcd-albers', '.img');
const needs = (path: string | undefined) => ({
  skip: needsGdal.skip || (path === undefined && 'the folder of real scenes is not there'),
});

/** The JPEG 2000 driver writes a bare code stream if the name has another ending. */
const ENDING: Record<string, string> = { JP2OpenJPEG: 'jp2', HFA: 'img', netCDF: 'nc' };

/** Writes a seeded image in another format, losslessly if possible. */
function converted(folder: string, driver: string, dataType: DataType, bands: number, ...options: string[]) {
  const tif = join(folder, 'a.tif');
  writeFileSync(tif, encodeCog(image(dataType, 300, 200, bands)));
  const path = join(folder, `a.${ENDING[driver]}`);
  const wanted = options.flatMap((option) => ['-co', option]);
  gdal('gdal_translate', '-q', '-of', driver, ...wanted, tif, path);
  return path;
}

const LOSSLESS = ['REVERSIBLE=YES', 'QUALITY=100', 'YCC=NO', 'BLOCKXSIZE=128', 'BLOCKYSIZE=100'];

for (const [driver, dataType, bands, options] of [
  ['JP2OpenJPEG', 'uint8', 3, LOSSLESS],
  ['JP2OpenJPEG', 'uint16', 1, LOSSLESS],
  ['JP2OpenJPEG', 'int16', 2, LOSSLESS],
  ['HFA', 'uint8', 4, []],
  ['HFA', 'uint32', 2, ['COMPRESSED=YES']],
  ['HFA', 'float32', 2, []],
  ['HFA', 'float64', 1, ['BLOCKSIZE=32']],
  ['netCDF', 'int16', 1, ['FORMAT=NC']],
  ['netCDF', 'float32', 1, ['FORMAT=NC2']],
] as const) {
  test(
    `${driver} of ${bands} x ${dataType} holds the pixels and the position of its original`,
    needsGdal,
    async (t) => {
      const path = converted(temporaryFolder(t), driver, dataType, bands, ...options);
      const { header, bands: found } = await readRaster(path);
      const original = image(dataType, 300, 200, bands);
      for (const [i, wanted] of original.bands.entries()) assertSamePixels(found[i]!, wanted);
      assert.deepEqual(header.transform, {
        originX: 500_000,
        originY: 5_000_000,
        xx: 10,
        xy: 0,
        yx: 0,
        yy: -20,
      });
      assert.equal(header.crs.epsg, 32633);
      assert.deepEqual([header.width, header.height, header.bands], [300, 200, bands]);
    },
  );
}

test('any window of any bands equals that part of the image', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const headers = await Promise.all([
    openRaster(converted(folder, 'JP2OpenJPEG', 'uint16', 3, ...LOSSLESS)),
    openRaster(converted(folder, 'HFA', 'int16', 3)),
  ]);
  const span = (size: number) =>
    fc.tuple(fc.nat(size), fc.nat(size)).map((ends) => ends.sort((a, b) => a - b));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...headers),
      fc.shuffledSubarray([0, 1, 2], { minLength: 1 }),
      span(300),
      span(200),
      async (header, wanted, [left = 0, right = 0], [top = 0, bottom = 0]) => {
        const window = { column: left, row: top, width: right - left, height: bottom - top };
        const found = await readWindow(header, wanted, window);
        const whole = image(header.dataType, 300, 200, 3).bands;
        for (const [i, band] of wanted.entries()) {
          const part = allocatePixels(header.dataType, window.width * window.height);
          for (let y = 0; y < window.height; y++) {
            const from = (top + y) * 300 + left;
            part.set(whole[band]!.subarray(from, from + window.width), y * window.width);
          }
          assertSamePixels(found[i]!, part);
        }
      },
    ),
    { seed: 42, numRuns: 16 },
  );
});

test('rows are written to their place in a rolling window of shared memory', needsGdal, async (t) => {
  const header = await openRaster(converted(temporaryFolder(t), 'JP2OpenJPEG', 'uint16', 1, ...LOSSLESS));
  const into = new Uint16Array(new SharedArrayBuffer(130 * 300 * 2));
  await readRowsOfRasters([{ header, bands: [0], rowStart: 100, rowEnd: 200, into: [into], firstRow: 90 }]);
  const [whole] = image('uint16', 300, 200).bands;
  assertSamePixels(into.slice(10 * 300, 110 * 300), whole!.subarray(100 * 300) as Uint16Array);
  assert.ok(into.subarray(0, 3000).every((value) => value === 0));
  assert.ok(into.subarray(110 * 300).every((value) => value === 0));
});

test('rows of several rasters in one call are those of separate calls', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const headers = await Promise.all([
    openRaster(converted(folder, 'JP2OpenJPEG', 'uint16', 3, ...LOSSLESS)),
    openRaster(converted(folder, 'HFA', 'float32', 2)),
    openRaster(join(folder, 'a.tif')),
  ]);
  const reads = [
    { at: 0, bands: [2], rowStart: 100, rowEnd: 200 },
    { at: 1, bands: [1, 0], rowStart: 0, rowEnd: 7 },
    { at: 2, bands: [0], rowStart: 3, rowEnd: 190 },
    { at: 0, bands: [0, 1], rowStart: 50, rowEnd: 50 },
    { at: 0, bands: [1, 0], rowStart: 199, rowEnd: 200 },
  ].map(({ at, bands, rowStart, rowEnd }) => {
    const header = headers[at]!;
    const into = bands.map(() => allocatePixels(header.dataType, (rowEnd - rowStart + 1) * 300));
    return { header, bands, rowStart, rowEnd, into, firstRow: rowStart - 1 };
  });
  await readRowsOfRasters(reads);
  for (const { header, bands, rowStart, rowEnd, into } of reads) {
    const whole = image(header.dataType, 300, 200, header.bands).bands;
    for (const [i, band] of bands.entries())
      assertSamePixels(into[i]!.subarray(300), whole[band]!.subarray(rowStart * 300, rowEnd * 300));
  }
});

test('a wide image of small blocks is copied by complete rows', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const tif = join(folder, 'wide.tif');
  const original = image('float64', 20_000, 70);
  writeFileSync(tif, encodeCog(original));
  const path = join(folder, 'wide.img');
  gdal('gdal_translate', '-q', '-of', 'HFA', tif, path);
  assertSamePixels((await readRaster(path)).bands[0]!, original.bands[0]!);
  const header = await openRaster(path);
  const [part] = await readWindow(header, [0], { column: 1, row: 3, width: 19_999, height: 66 });
  assert.equal(part![0], original.bands[0]![3 * 20_000 + 1]);
  assert.equal(part!.at(-1), original.bands[0]![69 * 20_000 - 1]);
});

test('pixels of fewer bits, signed bytes and palettes keep the stored numbers', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const vrt = join(folder, 'a.vrt');
  const tif = join(folder, 'a.tif');
  const codes = image('uint8', 70, 50);
  codes.bands[0]!.forEach((value, i, all) => {
    all[i] = value % 4;
  });
  writeFileSync(tif, encodeCog(codes));
  gdal('gdal_translate', '-q', '-of', 'HFA', '-co', 'NBITS=2', tif, join(folder, 'bits.img'));
  assertSamePixels((await readRaster(join(folder, 'bits.img'))).bands[0]!, codes.bands[0]!);
  gdal('gdal_translate', '-q', '-of', 'HFA', '-co', 'PIXELTYPE=SIGNEDBYTE', tif, join(folder, 'signed.img'));
  assert.equal((await openRaster(join(folder, 'signed.img'))).dataType, 'int8');
  gdal('gdal_translate', '-q', '-of', 'VRT', '-colorinterp', 'palette', tif, vrt);
  gdal('gdal_translate', '-q', '-of', 'HFA', vrt, join(folder, 'palette.img'));
  assertSamePixels((await readRaster(join(folder, 'palette.img'))).bands[0]!, codes.bands[0]!);
});

test('nodata, names, scale and metadata are read, with any characters', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const tif = join(folder, 'a.tif');
  writeFileSync(tif, encodeCog(image('int16', 40, 30, 1, { bandTags: [{ scale: 0.5, offset: -3 }] })));
  const path = join(folder, 'a.nc');
  gdal(
    'gdal_translate',
    '-q',
    '-of',
    'netCDF',
    '-co',
    'FORMAT=NC',
    '-a_nodata',
    '-7',
    '-mo',
    'place=Z_rich',
    tif,
    path,
  );
  const latin1 = readFileSync(path);
  latin1[latin1.indexOf('Z_rich') + 1] = 0xfc;
  writeFileSync(path, latin1);
  const header = await openRaster(path);
  assert.equal(header.nodata, -7);
  assert.deepEqual(header.bandTags, [{ scale: 0.5, offset: -3 }]);
  assert.match(header.metadata['NC_GLOBAL#GDAL_place'] ?? '', /^Z.+rich$/);
});

test('a file without georeferencing or with an unsupported type is refused', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const tif = join(folder, 'a.tif');
  writeFileSync(tif, encodeCog(image('uint8', 40, 30)));
  const write = (name: string, ...options: string[]) => {
    gdal('gdal_translate', '-q', ...options, tif, join(folder, name));
    return join(folder, name);
  };
  const lost = write('lost.jp2', '-of', 'JP2OpenJPEG', '-co', 'GMLJP2=NO', '-co', 'GeoJP2=NO');
  await assert.rejects(openRaster(lost), { code: 'TW_RASTER_NO_CRS' });
  const classic = join(folder, 'classic.nc');
  gdal(
    'gdal_translate',
    '-q',
    '-of',
    'netCDF',
    '-co',
    'FORMAT=NC',
    write('bare.tif', '-co', 'PROFILE=BASELINE'),
    classic,
  );
  await assert.rejects(openRaster(classic), { code: 'TW_RASTER_NO_CRS', message: /nccopy -k nc4/ });
  const complex = write('complex.img', '-of', 'HFA', '-ot', 'CFloat32');
  await assert.rejects(openRaster(complex), { code: 'TW_RASTER_UNSUPPORTED', message: /CFloat32/ });
  // One shift stands for its grid files.
  const america = write('old.img', '-of', 'HFA', '-a_srs', 'EPSG:26710');
  assert.ok((await openRaster(america)).crs.datumErrorMetres! >= 5);
});

test('only the driver of the content opens a file, and a layer must exist', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const path = converted(folder, 'HFA', 'uint8', 1);
  await assert.rejects(openRaster(path, 'B1'), { code: 'TW_RASTER_NO_LAYER' });
  await assert.rejects(openRaster(join(folder, 'a.tif'), 'B1'), { code: 'TW_RASTER_NO_LAYER' });
  await assert.rejects(listSubdatasets(path), { code: 'TW_RASTER_UNSUPPORTED' });
  const vrt = join(folder, 'b.img');
  gdal('gdal_translate', '-q', '-of', 'VRT', path, vrt);
  await assert.rejects(openRaster(vrt), { code: 'TW_RASTER_NOT_TIFF', message: /XML/ });
});

test('the variables of a netCDF file are its layers', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const tif = join(folder, 'a.tif');
  const original = image('int16', 40, 30, 2);
  writeFileSync(tif, encodeCog(original));
  mkdirSync(join(folder, "it's a: folder"));
  const path = join(folder, "it's a: folder", 'two.nc');
  gdal('gdal_translate', '-q', '-of', 'netCDF', '-co', 'FORMAT=NC', tif, path);
  const { kind, subdatasets } = await listSubdatasets(path);
  assert.equal(kind, 'netcdf');
  assert.deepEqual(
    subdatasets.map(({ name, shape }) => [name, shape]),
    [
      ['Band1', [30, 40]],
      ['Band2', [30, 40]],
    ],
  );
  await assert.rejects(openRaster(path), { code: 'TW_RASTER_SEVERAL_LAYERS', message: /Band1, Band2/ });
  const header = await openRaster(path, 'Band2');
  const [pixels] = await readWindow(header, [0], { column: 0, row: 0, width: 40, height: 30 });
  assertSamePixels(pixels!, original.bands[1]!);
});

test(
  'a real HDF4 file lists its layers, and one equals the same layer as GeoTIFF',
  needs(SNOW),
  async (t) => {
    const { subdatasets, metadata, kind } = await listSubdatasets(SNOW!);
    assert.equal(kind, 'hdf4');
    assert.deepEqual(
      subdatasets.map(({ name, shape }) => [name, shape]),
      [
        ['Maximum_Snow_Extent', [2400, 2400]],
        ['Eight_Day_Snow_Cover', [2400, 2400]],
      ],
    );
    assert.equal(metadata.RANGEBEGINNINGDATE, '2022-02-02');
    await assert.rejects(openRaster(SNOW!), { code: 'TW_RASTER_SEVERAL_LAYERS' });
    await assert.rejects(openRaster(SNOW!, 'Snow'), { code: 'TW_RASTER_NO_LAYER', message: /Eight_Day/ });
    const twin = await readRaster(real('modis-mod10a2-hdf4', '.tif')!);
    const header = await openRaster(SNOW!, 'Maximum_Snow_Extent');
    assert.equal(header.nodata, 255);
    for (const name of ['originX', 'originY', 'xx', 'yy'] as const)
      assert.ok(Math.abs(header.transform[name] - twin.header.transform[name]) < 1e-6);
    const all = { column: 0, row: 0, width: 2400, height: 2400 };
    assertSamePixels((await readWindow(header, [0], all))[0]!, twin.bands[0]!);

    const folder = temporaryFolder(t);
    copyFileSync(SNOW!, join(folder, 'a "quoted" name.hdf'));
    await assert.rejects(openRaster(join(folder, 'a "quoted" name.hdf'), 'Maximum_Snow_Extent'), {
      code: 'TW_RASTER_UNSUPPORTED',
      message: /double quote/,
    });
  },
);

test('real JPEG 2000 and Erdas files agree with GDAL', needs(SENTINEL && MODIS && NLCD), async () => {
  for (const path of [SENTINEL!, MODIS!, NLCD!]) {
    const { header, bands } = await readRaster(path);
    assertSamePixels(bands[0]!, gdalPixels(path, header.dataType)[0]!);
  }
  const codes = await readRaster(join(NLCD!, '../nlcd_lc.tif'));
  assertSamePixels((await readRaster(NLCD!)).bands[0]!, codes.bands[0]!);
});

test('systems without a known code are projected as by PROJ', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const tif = join(folder, 'a.tif');
  writeFileSync(tif, encodeCog(image('uint8', 40, 30)));
  for (const [system, x, y] of [
    ['ESRI:54030', 500_000, 5e6],
    ['EPSG:31468', 4_468_000, 5_334_000], // Bavaria, on a datum of its own
    ['EPSG:2263', 980_000, 200_000], // New York, in feet of the US survey
    ['+proj=sinu +R=6371007.181', -8e6, 4e6],
    ['+proj=laea +lat_0=10 +lon_0=-81 +datum=WGS84', 5e5, 1e6],
    ['+proj=longlat +R=6371007.181', 12, 50],
  ] as const) {
    const path = join(folder, 'a.img');
    const box = [x, y, x + 0.4, y - 0.3].map(String);
    gdal('gdal_translate', '-q', '-of', 'HFA', '-a_srs', system, '-a_ullr', ...box, tif, path);
    const { crs, transform } = await openRaster(path);
    assert.equal(crs.epsg, undefined);
    const corner = JSON.parse(gdal('gdalinfo', '-json', path)).wgs84Extent.coordinates[0][0];
    const [lon, lat] = createTransform(crs, 'EPSG:4326')(transform.originX, transform.originY);
    assert.ok(Math.hypot(lon - corner[0], lat - corner[1]) < 1e-5, `${system}: ${lon} ${lat}, ${corner}`);
  }
});

test('a system whose projection differs from that of PROJ is refused', () => {
  const info = {
    width: 300,
    height: 200,
    wkt: 'PROJCRS["a datum with its shift left out"]',
    proj4: '+proj=tmerc +lat_0=0 +lon_0=12 +k=1 +x_0=4500000 +y_0=0 +ellps=bessel +units=m',
    geoTransform: [4_468_000, 10 / 3, 0, 5_334_000, 0, -5],
    corners: undefined as number[][] | undefined,
    metadata: {},
    subdatasets: {},
    bands: [],
  };
  assert.equal(
    gdalCrs(info, 'a.jp2').proj4,
    `${info.proj4.replace(' +ellps=bessel', '')} +ellps=bessel +no_defs`,
  );
  assert.equal(gdalCrs(info, 'a.jp2').datumErrorMetres, Infinity);
  const [lon = 0, lat = 0] = createTransform(gdalCrs(info, 'a.jp2'), 'EPSG:4326')(4_468_000, 5_334_000);
  assert.ok(Math.hypot(lon - 11.5685595, lat - 48.1432244) > 1e-4);
  info.corners = [
    [11.5685595, 48.1432244],
    [11.5686348, 48.1342313],
    [11.5820751, 48.1342807],
    [11.5820021, 48.1432739],
  ];
  assert.throws(() => gdalCrs(info, 'a.jp2'), { code: 'TW_RASTER_UNKNOWN_CRS', message: /left out.*a\.jp2/ });
});

test('positions agree with gdaltransform', needs(SENTINEL && MODIS && NLCD), async () => {
  for (const path of [SENTINEL!, MODIS!, NLCD!]) {
    const { crs, transform, width, height } = await openRaster(path);
    const info = JSON.parse(gdal('gdalinfo', '-json', path));
    const [wantedLon, wantedLat] = info.wgs84Extent.coordinates[0][2];
    const { originX, originY, xx, yy } = transform;
    const [lon, lat] = createTransform(crs, 'EPSG:4326')(originX + xx * width, originY + yy * height);
    assert.ok(Math.hypot(lon - wantedLon, lat - wantedLat) < 1e-6, `${path}: ${lon} ${lat}`);
  }
  assert.deepEqual((await openRaster(SENTINEL!)).crs, crsFromEpsg(32632));
});
