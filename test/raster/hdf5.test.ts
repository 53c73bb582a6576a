/** HDF5 and netCDF-4: files written by h5py and netCDF4, pixels by their formula and, if it is installed, by GDAL. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { TilewrightError } from '../../src/errors.js';
import { openTimeAxis } from '../../src/raster/formats/cf.js';
import {
  type Hdf5Header,
  listHdf5Subdatasets,
  openHdf5,
  packedDmsToDegrees,
  readHdf5,
} from '../../src/raster/formats/hdf5.js';
import {
  allocatePixels,
  odlNodes,
  type PixelArray,
  parseOdl,
  type RasterHeader,
  readRaster,
  type Window,
} from '../../src/raster/index.js';
import { odlList } from '../../src/raster/metadata.js';
import { hasGdal } from '../support/gdal.js';
import { tempFolder } from '../support/temp.js';

const folder = fileURLToPath(new URL('../../../test/fixtures/raster/hdf5/', import.meta.url));
const GRID_500 = '/HDFEOS/GRIDS/VIIRS_Grid_500m_2D/Data Fields';

/** The stored value of the fixtures' pixels, by make.py. */
const pattern = (band: number, row: number, column: number, modulus = 9973) =>
  (band * 101 + row * 31 + column * 7) % modulus;

async function readBand(header: RasterHeader, band: number, window?: Window): Promise<PixelArray> {
  const all = window ?? { column: 0, row: 0, width: header.width, height: header.height };
  const pixels = allocatePixels(header.dataType, all.width * all.height);
  await readHdf5(header as Hdf5Header, [band], all, { arrays: [pixels], offset: 0, stride: all.width });
  return pixels;
}

test('gridMET: packed numbers, chunks over several days, position of the cells', async () => {
  const path = join(folder, 'gridmet.nc');
  const { subdatasets, metadata } = await listHdf5Subdatasets(path);
  assert.deepEqual(subdatasets, [{ name: '/precipitation_amount', description: 'pr', shape: [3, 40, 50] }]);
  assert.match(metadata.note2, /joc\.3413/);
  const header = await openHdf5(path, '/precipitation_amount');
  assert.deepEqual(
    [header.width, header.height, header.bands, header.dataType, header.nodata],
    [50, 40, 3, 'uint16', 32767],
  );
  assert.deepEqual(header.bandTags[2], { description: 'pr', scale: 0.1, offset: 0 });
  assert.equal(header.crs.epsg, 4326);
  const { originX, originY, xx, yy } = header.transform;
  assert.ok(
    Math.abs(originX - (-124.76666663 - 1 / 48)) < 1e-9 && Math.abs(originY - (49.4 + 1 / 48)) < 1e-9,
  );
  assert.ok(Math.abs(xx - 1 / 24) < 1e-12 && Math.abs(yy + 1 / 24) < 1e-12);
  for (const band of [0, 1, 2]) {
    const expected = Uint16Array.from({ length: 2000 }, (_, i) => {
      const [row, column] = [Math.floor(i / 50), i % 50];
      return row < 4 && column < 6 ? 32767 : pattern(band, row, column);
    });
    assert.deepEqual(await readBand(header, band), expected);
  }
  const time = await openTimeAxis(path, '/precipitation_amount');
  const day = Date.parse('2018-12-31');
  assert.deepEqual(
    time?.steps.map(({ start }) => (start - day) / 86_400_000),
    [0, 1, 2],
  );
});

test('rows that are stored from south to north are reversed in any window', async () => {
  const path = join(folder, 'south-first.nc');
  const header = await openHdf5(path, '/temperature');
  const { originX, originY, xx, yy } = header.transform;
  assert.deepEqual([originX, originY, xx, yy], [349.875, -4.625, 0.25, -0.25]);
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        column: fc.nat(29),
        row: fc.nat(21),
        width: fc.nat(29),
        height: fc.nat(21),
        band: fc.nat(2),
      }),
      async ({ column, row, band, ...size }) => {
        const width = 1 + Math.min(size.width, 29 - column);
        const height = 1 + Math.min(size.height, 21 - row);
        const pixels = await readBand(header, band, { column, row, width, height });
        for (let i = 0; i < pixels.length; i++) {
          const stored = 21 - row - Math.floor(i / width);
          const x = column + (i % width);
          const empty = band === 1 && stored === 0 && x < 5;
          assert.equal(pixels[i], empty ? -9999 : pattern(band, stored, x) / 4);
        }
      },
    ),
    { seed: 42, numRuns: 60 },
  );
  const time = await openTimeAxis(path, '/temperature');
  assert.deepEqual(
    time?.steps.map(({ start }) => new Date(start).toISOString()),
    ['2020-02-28T00:00:00.000Z', '2020-02-28T06:00:00.000Z', '2020-02-29T06:00:00.000Z'],
  );
});

test('a window is written at its offset', async () => {
  const header = (await openHdf5(join(folder, 'south-first.nc'), '/temperature')) as Hdf5Header;
  const out = new Float32Array(40).fill(-1);
  await readHdf5(
    header,
    [2],
    { column: 3, row: 0, width: 2, height: 3 },
    { arrays: [out], offset: 11, stride: 10 },
  );
  const expected = new Float32Array(40).fill(-1);
  for (const y of [0, 1, 2])
    for (const x of [0, 1]) expected[11 + y * 10 + x] = pattern(2, 21 - y, 3 + x) / 4;
  assert.deepEqual(out, expected);
});

test('a projection is read from the parameters of its grid mapping', async () => {
  const header = await openHdf5(join(folder, 'albers.nc'), '/cover');
  assert.match(header.crs.proj4, /\+proj=aea .*\+lat_1=29.5 \+lat_2=45.5/);
  assert.deepEqual([header.transform.originX, header.transform.originY], [-2_000_000, 3_000_000]);
  assert.deepEqual([header.dataType, header.nodata, header.bands], ['int8', -1, 1]);
  assert.equal(await openTimeAxis(header.path, '/cover'), undefined);
});

test('HDF-EOS grids: sinusoidal tiles, and degrees packed as DDDMMMSSS', async () => {
  const path = join(folder, 'vnp09ga.h5');
  const { subdatasets, metadata } = await listHdf5Subdatasets(path);
  assert.equal(subdatasets.length, 8);
  assert.deepEqual([metadata.ShortName, metadata.RANGEBEGINNINGDATE], ['VNP09GA', '2021-08-09']);
  assert.match(metadata.StructMetadata, /HE5_GCTP_SNSOID/);
  const header = await openHdf5(path, `${GRID_500}/SurfReflect_I2_1`);
  assert.match(header.crs.proj4, /^\+proj=sinu \+lon_0=0 .*\+a=6371007.181 \+b=6371007.181/);
  assert.ok(Math.abs(header.transform.originX + 7783653.637669) < 1e-6);
  assert.ok(Math.abs(header.transform.xx - 463.312716525) < 1e-6);
  assert.deepEqual(header.bandTags, [{ scale: 0.0001, offset: 0 }]);
  const pixels = await readBand(header, 0);
  assert.deepEqual(
    [pixels[0], pixels[60 * 59 + 59], header.nodata],
    [-28672, 10 * pattern(1, 59, 59), -28672],
  );

  const cmg = await openHdf5(join(folder, 'cmg.h5'), '/HDFEOS/GRIDS/CMG/Data Fields/a');
  const { originX, originY, xx, yy } = cmg.transform;
  assert.ok(Math.abs(originX + 10.5) < 1e-12 && Math.abs(xx - 1.5 / 8) < 1e-12);
  assert.ok(Math.abs(originY - 50) < 1e-12 && Math.abs(yy + 0.99 / 8) < 1e-12);
  // Its first pixel is the lower left one.
  assert.equal((await readBand(cmg, 0))[0], pattern(0, 7, 0));
});

test('packed degrees', () => {
  fc.assert(
    fc.property(fc.nat(179), fc.nat(59), fc.nat(59), fc.constantFrom(1, -1), (d, m, s, sign) => {
      const packed = sign * (d * 1e6 + m * 1e3 + s);
      assert.ok(Math.abs(packedDmsToDegrees(packed) - sign * (d + m / 60 + s / 3600)) < 1e-12);
    }),
    { seed: 42 },
  );
});

test('ODL: nested groups, lists, and text that is not ODL', () => {
  const root = parseOdl(
    'GROUP=A\n\tOBJECT=B\n  X = ("a", 2)\n\tEND_OBJECT=B\nY="c d"\nEND_GROUP=A\nEND\nZ=1\n',
  );
  const [, a, b] = odlNodes(root);
  assert.deepEqual([a.name, a.values, b.name, odlList(b.values.X)], ['A', { Y: 'c d' }, 'B', ['a', '2']]);
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'GROUP=END_ \n"(),a'), maxLength: 200 }), (text) => {
      parseOdl(text);
    }),
    { seed: 42 },
  );
  assert.doesNotThrow(() => [...odlNodes(parseOdl('GROUP=A\n'.repeat(100_000)))]);
});

for (const [file, layer, name] of [
  ['gridmet.nc', '/precipitation_amount', 'precipitation_amount'],
  ['south-first.nc', '/temperature', 'temperature'],
]) {
  test(`GDAL reads the same pixels and georeferencing: ${file}`, {
    skip: !hasGdal && 'GDAL is not installed',
  }, async (t) => {
    const out = join(await tempFolder(t), 'out.tif');
    execFileSync('gdal_translate', [
      '-q',
      '-a_srs',
      'EPSG:4326',
      `NETCDF:${join(folder, file)}:${name}`,
      out,
    ]);
    const theirs = await readRaster(out);
    const header = await openHdf5(join(folder, file), layer);
    for (const band of [0, 1, 2]) assert.deepEqual(await readBand(header, band), theirs.bands[band]);
    for (const key of ['originX', 'originY', 'xx', 'yy'] as const) {
      // GDAL removes full turns from longitudes.
      const difference = (header.transform[key] - theirs.header.transform[key]) % 360;
      assert.ok(Math.abs(difference) < 1e-9, key);
    }
    assert.equal(header.nodata, theirs.header.nodata);
  });
}

const REFUSED: [layer: string, code: string, message: RegExp][] = [
  ['/lzf', 'TW_RASTER_UNSUPPORTED', /compressed with LZF/],
  ['/half', 'TW_RASTER_UNSUPPORTED', /numbers of 2 bytes/],
  ['/long', 'TW_RASTER_UNSUPPORTED', /numbers of 8 bytes/],
  ['/with_nan', 'TW_RASTER_CORRUPT', /not all numbers/],
  ['/with_uneven', 'TW_RASTER_UNSUPPORTED', /not evenly spaced/],
  ['/short_axis', 'TW_RASTER_CORRUPT', /5 coordinates \/lat for 6 pixels/],
  ['/tall', 'TW_RASTER_NO_CRS', /all the same/],
  ['/transposed', 'TW_RASTER_UNSUPPORTED', /in the order lon,lat.*ncpdq -a lat,lon/],
  ['/nowhere', 'TW_RASTER_NO_CRS', /no coordinate variables/],
  ['/line', 'TW_RASTER_UNSUPPORTED', /fewer than two dimensions/],
  ['/absent', 'TW_RASTER_NO_LAYER', /It has: .*\/good/],
  ['/huge', 'TW_RASTER_UNSUPPORTED', /2147483648/],
  ['/chunky', 'TW_RASTER_UNSUPPORTED', /16384 x 16384/],
  ['/virtual', 'TW_RASTER_UNSUPPORTED', /other files/],
  ['/outside', 'TW_RASTER_CORRUPT', /external/],
  ['/elsewhere', 'TW_RASTER_NO_LAYER', /has no layer/],
];

test('unsupported datasets are refused by name, and other files are never opened', async () => {
  const path = join(folder, 'hostile.h5');
  for (const [layer, code, message] of REFUSED) {
    await assert.rejects(
      async () => readBand(await openHdf5(path, layer), 0, { column: 0, row: 0, width: 5, height: 5 }),
      (error: unknown) => {
        assert.ok(error instanceof TilewrightError, `${layer}: ${error}`);
        assert.equal(error.code, code, layer);
        assert.match(error.message, message);
        return true;
      },
    );
  }
  const { subdatasets } = await listHdf5Subdatasets(path);
  assert.ok(!subdatasets.some(({ name }) => /elsewhere|round/.test(name)));
  const good = await openHdf5(path, '/good');
  assert.equal(good.bandTags[0].description, 'café');
  assert.equal((await readBand(good, 0))[24], pattern(0, 4, 4));
});

test('a file that is not HDF5, truncated or changed results in an error code, no crash and no output', async (t) => {
  const temp = await tempFolder(t);
  const path = join(temp, 'broken');
  const whole = await readFile(join(folder, 'gridmet.nc'));
  const tryRead = async (bytes: Uint8Array) => {
    await writeFile(path, bytes);
    await listHdf5Subdatasets(path);
    const header = await openHdf5(path, '/precipitation_amount');
    await openTimeAxis(path, '/precipitation_amount');
    await readBand(header, header.bands - 1);
  };
  await tryRead(whole);
  for (const bytes of [Buffer.alloc(0), Buffer.from('CDF\x01 is the old netCDF'), whole.subarray(0, 600)]) {
    await assert.rejects(tryRead(bytes), { code: 'TW_RASTER_CORRUPT' });
  }
  await assert.rejects(openHdf5(join(temp, 'absent'), '/a'), { code: 'TW_RASTER_UNREADABLE' });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 }),
      async (changes) => {
        const bytes = Buffer.from(whole);
        for (const [at, value] of changes) bytes[at] = value;
        await tryRead(bytes).catch((error) =>
          assert.ok(error instanceof TilewrightError, String(error.stack)),
        );
      },
    ),
    { seed: 42, numRuns: 200 },
  );
  // The library is as good as new after all that.
  await tryRead(whole);
});

test('a worker thread reads the same as the main thread', async () => {
  const module = new URL('../../src/raster/formats/hdf5.js', import.meta.url).href;
  const code = `import { parentPort } from 'node:worker_threads';
    const { openHdf5 } = await import(${JSON.stringify(module)});
    parentPort.postMessage(await openHdf5(${JSON.stringify(join(folder, 'gridmet.nc'))}, '/precipitation_amount'));`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  const header = await new Promise((resolve, reject) =>
    worker.once('message', resolve).once('error', reject),
  );
  assert.deepEqual(header, await openHdf5(join(folder, 'gridmet.nc'), '/precipitation_amount'));
});
