import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { fromArrayBuffer } from 'geotiff';
import {
  type CogImage,
  DATA_TYPES,
  type DataType,
  encodeCog,
  type PixelArray,
} from '../../src/raster/index.js';
import { gdal, gdalPixels, gdalPython, needsGdal, needsPythonGdal, temporaryFolder } from './gdal.js';
import { image } from './images.js';

async function readBack(bytes: Buffer) {
  const copy = new Uint8Array(bytes);
  return await fromArrayBuffer(copy.buffer);
}

test('geotiff.js reads back every data type and shape unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...DATA_TYPES),
      fc.integer({ min: 1, max: 700 }),
      fc.integer({ min: 1, max: 300 }),
      fc.integer({ min: 1, max: 3 }),
      async (dataType, width, height, bands) => {
        const original = image(dataType, width, height, bands, { nodata: 0 });
        const tiff = await readBack(encodeCog(original));
        const first = await tiff.getImage();
        assert.equal(first.getWidth(), width);
        assert.equal(first.getGDALNoData(), 0);
        assert.deepEqual(await first.readRasters(), Object.assign([...original.bands], { width, height }));
        const longer = Math.max(width, height);
        assert.equal(await tiff.getImageCount(), 1 + Number(longer > 64) + Number(longer > 512));
      },
    ),
    { seed: 42, numRuns: 40 },
  );
});

test('georeferencing and tags are stored', async () => {
  const tags = [{ description: 'B04 "red" <1>', scale: 2.75e-5, offset: -0.2 }, { description: 'é & Ω' }];
  const tiff = await readBack(
    encodeCog(image('uint16', 40, 30, 2, { bandTags: tags, metadata: { source: 'a<b' }, nodata: 0 })),
  );
  const first = await tiff.getImage();
  assert.deepEqual(first.getOrigin().slice(0, 2), [500_000, 5_000_000]);
  assert.deepEqual(first.getResolution().slice(0, 2), [10, -20]);
  assert.equal(first.getGeoKeys()?.ProjectedCSTypeGeoKey, 32633);
  const geographic = await (await readBack(encodeCog(image('uint8', 16, 16, 1, { epsg: 4326 })))).getImage();
  assert.equal(geographic.getGeoKeys()?.GeographicTypeGeoKey, 4326);
});

test('overviews average valid pixels of measurements, and select codes', async () => {
  const width = 1026;
  const band = new Uint16Array(width * 4).fill(10);
  band[0] = 0; // nodata
  band[1] = 20;
  band[2] = 0;
  band[3] = 0;
  band[width + 2] = 0;
  band[width + 3] = 0;
  const base: CogImage = { ...image('uint16', width, 4), bands: [band], nodata: 0 };
  const mean = await (await readBack(encodeCog(base))).getImage(1);
  const nearest = await (await readBack(encodeCog({ ...base, overviews: 'nearest' }))).getImage(1);
  assert.equal(mean.getWidth(), 513);
  assert.deepEqual([...((await mean.readRasters())[0] as PixelArray).slice(0, 3)], [13, 0, 10]);
  assert.deepEqual([...((await nearest.readRasters())[0] as PixelArray).slice(0, 3)], [0, 0, 10]);
  const last = await (await readBack(encodeCog(base))).getImage(2);
  assert.equal(last.getWidth(), 257);
});

test('a mean that equals nodata stays data', async () => {
  const width = 1026;
  const signed = Int16Array.from({ length: width * 4 }, (_, i) => (i % 2 === 0 ? -3 : 3));
  const cases: [PixelArray, DataType, number, number][] = [
    [signed, 'int16', 0, -1],
    [Uint8Array.from(signed, (value) => value + 3), 'uint8', 3, 2],
    [Float32Array.from(signed, (value) => value / 2), 'float32', 0, -1],
    [Int8Array.from(signed, (value) => value - 125), 'int8', -125, -126],
  ];
  for (const [band, dataType, nodata, mean] of cases) {
    const scene: CogImage = { ...image(dataType, width, 4), bands: [band], nodata };
    const overview = await (await readBack(encodeCog({ ...scene, overviews: 'mean' }))).getImage(1);
    const [pixels] = (await overview.readRasters()) as PixelArray[];
    assert.ok(
      pixels!.every((value) => value === mean),
      `${dataType}: ${pixels!.slice(0, 4)}`,
    );
  }
});

test('an image with contradictory sizes is refused', () => {
  const good = image('uint8', 8, 8);
  for (const bad of [
    { ...good, bands: [] },
    { ...good, width: 9 },
    { ...good, dataType: 'int8' as const },
    { ...good, transform: { ...good.transform, pixelHeight: -1 } },
  ]) {
    assert.throws(() => encodeCog(bad), { code: 'TW_RASTER_INVALID_IMAGE' });
  }
});

test('GDAL reads the same pixels, position and tags', needsGdal, (t) => {
  const folder = temporaryFolder(t);
  for (const dataType of DATA_TYPES) {
    if (dataType === 'int8') continue; // GDAL before 3.7 shows it as Byte
    const path = join(folder, `${dataType}.tif`);
    const original = image(dataType, 600, 333, 2, {
      nodata: dataType.startsWith('float') ? Number.NaN : 0,
      bandTags: [{ description: 'B04 "é" <&>', scale: 2.75e-5, offset: -0.2 }, {}],
      metadata: { note: 'x > y & z' },
    });
    writeFileSync(path, encodeCog(original));
    for (const [band, found] of gdalPixels(path, dataType).entries())
      assert.deepEqual(found, original.bands[band]);
    const info = JSON.parse(gdal('gdalinfo', '-json', path));
    assert.deepEqual(info.geoTransform, [500_000, 10, 0, 5_000_000, 0, -20]);
    assert.equal(info.metadata[''].note, 'x > y & z');
    assert.equal(info.metadata[''].AREA_OR_POINT, 'Area');
    assert.match(info.coordinateSystem.wkt, /ID\["EPSG",32633\]\]$/);
    assert.equal(info.bands[0].description, 'B04 "é" <&>');
    assert.equal(info.bands[0].scale, 2.75e-5);
    assert.equal(info.bands[0].offset, -0.2);
    assert.ok('noDataValue' in info.bands[0]);
    assert.deepEqual(info.bands[1].overviews, [{ size: [300, 167] }, { size: [38, 21] }]);
  }
});

/** 1 in a circle around the middle. */
function disc(width: number, height: number): Uint8Array {
  return Uint8Array.from({ length: width * height }, (_, i) => {
    const [x, y] = [(i % width) - width / 2, Math.floor(i / width) - height / 2];
    return x * x + y * y < height * height * 0.2 ? 1 : 0;
  });
}

test(
  'GDAL sees the mask of the image and of its overviews, and makes the rest transparent',
  needsGdal,
  (t) => {
    const folder = temporaryFolder(t);
    const [width, height] = [1301, 699];
    const mask = disc(width, height);
    const path = join(folder, 'masked.tif');
    const bands = [1, 2, 3].map((band) => mask.map((inside) => inside * 60 * band));
    const transform = { originX: 500_000, originY: 5_000_000, pixelWidth: 10, pixelHeight: 10 };
    writeFileSync(path, encodeCog({ ...image('uint8', width, height), bands, masks: [mask], transform }));
    const info = JSON.parse(gdal('gdalinfo', '-json', path));
    for (const band of info.bands) {
      assert.deepEqual(band.mask.flags, ['PER_DATASET']);
      assert.deepEqual(band.mask.overviews, band.overviews);
      assert.equal(band.overviews.length, 3);
    }
    const alphaOf = (program: string, ...args: string[]) => {
      const out = join(folder, 'out.tif');
      rmSync(out, { force: true });
      gdal(program, '-q', ...args, path, out);
      return gdalPixels(out, 'uint8').at(-1);
    };
    const opaque = mask.map((inside) => inside * 255);
    assert.deepEqual(alphaOf('gdalwarp', '-dstalpha'), opaque);
    assert.deepEqual(alphaOf('gdal_translate', '-b', 'mask'), opaque);
    // Each pixel of an overview is of the four below it that hold data: none is darker.
    for (const level of [0, 1, 2]) {
      const small = alphaOf('gdal_translate', '-b', '1', '-mask', 'none', '-oo', `OVERVIEW_LEVEL=${level}`);
      assert.deepEqual([...new Set(small)].sort(), [0, 60]);
    }
  },
);

test("GDAL's validator finds no fault", needsPythonGdal, (t) => {
  const folder = temporaryFolder(t);
  for (const [name, original] of Object.entries({
    small: image('uint8', 100, 37),
    large: image('uint16', 2100, 1300, 3, { nodata: 0 }),
    float: image('float32', 800, 513, 1, { epsg: 3857 }),
    masked: { ...image('uint8', 1300, 700, 4), mask: disc(1300, 700) },
  })) {
    const path = join(folder, `${name}.tif`);
    writeFileSync(path, encodeCog(original));
    const answer = gdalPython(
      '-m',
      'osgeo_utils.samples.validate_cloud_optimized_geotiff',
      '--full-check=yes',
      path,
    );
    assert.match(answer, /is a valid cloud optimized GeoTIFF/);
    assert.doesNotMatch(answer, /warning/i);
  }
});
