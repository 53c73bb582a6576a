/** Masks and alpha bands of files mark pixels with data, as in gdalwarp. raster/validity.test.ts has their forms in files. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { gridByName } from '../../src/grid/index.js';
import { countValid, validInEvery, validInSome } from '../../src/ingest/cut/validity.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { encodeGroup, findInputs } from '../../src/ingest/index.js';
import type { Scene } from '../../src/ingest/scene.js';
import type { TilewrightNode } from '../../src/node.js';
import {
  allocatePixels,
  buildControlGrid,
  type DataType,
  encodeCog,
  gdalName,
  openRaster,
  type PixelArray,
  readImage,
  readRaster,
  warpMasked,
} from '../../src/raster/index.js';
import { assertDataParts } from '../derive/tiles.js';
import { gdal, needsGdal } from '../raster/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const SIDE = 160;
const OPAQUE = 255;

/**
 * Two bands of data and an alpha band: a gap of some size, a fine pattern, and half-transparent pixels, which count as data.
 */
async function writeSource(path: string, dataType: DataType, nodata?: number): Promise<string> {
  const band = (seed: number) =>
    allocatePixels(dataType, SIDE * SIDE).map((_, i) => ((i * 2654435761 + seed) >>> 0) % 256) as PixelArray;
  const opacity = allocatePixels(dataType, SIDE * SIDE).map((_, i) => {
    const [x, y] = [i % SIDE, Math.floor(i / SIDE)];
    if (x > 100 && y < 70) return 0;
    if (x < 50 && y > 80) return (x * 7 + y * 3) % 5 === 0 ? 0 : OPAQUE;
    return x + y < 40 ? 3 : OPAQUE;
  }) as PixelArray;
  const transform = { originX: 500_000, originY: 5_000_000, pixelWidth: 30, pixelHeight: 30 };
  const image = { width: SIDE, height: SIDE, dataType, transform, epsg: 32633, nodata };
  await writeFile(path, encodeCog({ ...image, bands: [band(1), band(77), opacity], overviews: 'nearest' }));
  return path;
}

const MASK_BESIDE = ['-b', '1', '-b', '2', '-mask', '3', '--config', 'GDAL_TIFF_INTERNAL_MASK', 'NO'];
const MASK = [...MASK_BESIDE.slice(0, -1), 'YES'];
const ALPHA = ['-colorinterp', 'gray,undefined,alpha'];
const TILED = ['-co', 'TILED=YES', '-co', 'BLOCKXSIZE=64', '-co', 'BLOCKYSIZE=48'];
const packed = (codec: string) => ['-co', `COMPRESS=${codec}`];

const files: [name: string, dataType: DataType, args: string[], nodata?: number][] = [
  ['mask, tiles, deflate', 'uint8', [...MASK, ...TILED, ...packed('DEFLATE')]],
  ['mask, COG with overviews', 'uint8', [...MASK, '-of', 'COG', '-co', 'BLOCKSIZE=128']],
  ['mask and nodata', 'int16', MASK, 0],
  ['mask in a file beside it', 'uint8', MASK_BESIDE],
  ['alpha', 'uint8', ALPHA],
  ['alpha, tiles, band by band', 'uint16', [...ALPHA, ...TILED, '-co', 'INTERLEAVE=BAND']],
  ['alpha, floating point', 'float32', [...ALPHA, ...packed('DEFLATE'), '-co', 'PREDICTOR=3']],
  ['alpha of 32 bits', 'int32', ALPHA],
  ['alpha and nodata', 'uint8', ALPHA, 7],
  [
    'alpha by GDAL metadata',
    'uint8',
    ['-b', '3', '-b', '1', '-b', '2', '-colorinterp', 'alpha,gray,undefined'],
  ],
];

async function translated(
  path: string,
  dataType: DataType,
  args: string[],
  nodata?: number,
): Promise<string> {
  gdal('gdal_translate', '-q', ...args, await writeSource(`${path}.source.tif`, dataType, nodata), path);
  return path;
}

/** The data bands and their validity as plain bands, warped into a rectangle by exact gdalwarp. */
function gdalCell(
  path: string,
  bands: string[],
  cell: string[],
  out: string,
): Promise<{ bands: PixelArray[] }> {
  const plain = `${path}.plain.tif`;
  const options = ['-a_nodata', 'none', '-mask', 'none', '-colorinterp', 'gray,undefined,undefined'];
  if (!existsSync(plain))
    gdal('gdal_translate', '-q', ...bands.flatMap((band) => ['-b', band]), ...options, path, plain);
  gdal('gdalwarp', '-q', '-et', '0', '-r', 'near', '-nosrcalpha', ...cell, plain, out);
  return readRaster(out);
}

/** Compares each tile with exact gdalwarp. `bands`: GDAL's names of two data bands and the one of opacity. */
async function compareWithGdal(
  node: TilewrightNode,
  collection: string,
  path: string,
  bands: string[],
): Promise<void> {
  const { failed } = await ingest(node, { href: path, collection, datetime: '2024-06-01', precision: 5 });
  assert.deepEqual(failed, []);
  const tiles = (await tilesOf(node)).filter((tile) => tile.collection === collection);
  assert.ok(tiles.length >= 2);
  let holes = 0;
  for (const tile of tiles) {
    const [group, mask] = tile.groups;
    assert.equal(group!.bands.length, 2);
    const file = await readImage(node.storage.tileImage(tile, group!.name));
    const codes = (await readImage(node.storage.tileImage(tile, mask!.name))).bands[0]!;
    const { width, height, nodata, dataType, mask: inFile } = file.header;
    const { west, south, east, north } = gridByName('geohash').bounds(tile.geocode);
    const place = ['-te', ...[west, south, east, north].map(String), '-ts', String(width), String(height)];
    const cell = ['-t_srs', 'EPSG:4326', ...place];
    const oracle = await gdalCell(path, bands, cell, `${path}.${tile.geocode}.tif`);
    const opacity = oracle.bands[2]!;
    const missing = (value: number) => value === nodata || Number.isNaN(value);
    const expected = [0, 1].map((b) =>
      Uint8Array.from(opacity, (value, i) => Number(value !== 0 && !missing(oracle.bands[b]![i]!))),
    );
    const differing = (a: ArrayLike<number>, b: Uint8Array) =>
      b.reduce((sum, value, i) => sum + Number((a[i] !== 0) !== (value !== 0)), 0);
    const some = opacity.map((_, i) => expected[0]![i]! | expected[1]![i]!) as Uint8Array;
    assert.ok(differing(codes, Uint8Array.from(some)) <= 2, `the mask of ${tile.geocode} differs`);
    for (const [b, band] of expected.entries()) {
      const valid = file.valid[b] ?? new Uint8Array(opacity.length).fill(1);
      assert.ok(differing(valid, band) <= 2, `band ${b} of ${tile.geocode} differs`);
      if (dataType !== 'float32' && !inFile) continue;
      const shown = `${path}.${tile.geocode}.${b}.shown.tif`;
      gdal(
        'gdal_translate',
        '-q',
        '-b',
        `mask,${b + 1}`,
        gdalName(node.storage.tileImage(tile, group!.name)),
        shown,
      );
      const seen = (await readRaster(shown)).bands[0]!;
      assert.equal(differing(seen, valid), 0, `GDAL's mask of band ${b} of ${tile.geocode} differs`);
    }
    const covered = expected[0]!.filter((value, i) => value !== 0 && expected[1]![i] !== 0).length;
    holes += opacity.length - covered;
    assert.ok(Math.abs(tile.coverage - (100 * covered) / opacity.length) < 0.02);
  }
  assert.ok(holes > 1000);
}

test('masks and alpha bands of GeoTIFFs agree with gdalwarp', needsGdal, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  for (const [i, [name, dataType, args, nodata]] of files.entries())
    await t.test(`${name} of ${dataType}`, async () => {
      const path = await translated(join(folder, `${i}.tif`), dataType, args, nodata);
      const bands = name.endsWith('metadata')
        ? ['2', '3', '1']
        : ['1', '2', name.startsWith('alpha') ? '3' : 'mask'];
      await compareWithGdal(node, `c${i}`, path, bands);
    });

  await t.test('alpha of JPEG 2000', async () => {
    const jp2 = ['-of', 'JP2OpenJPEG', '-co', 'QUALITY=100', '-co', 'REVERSIBLE=YES'];
    const path = await translated(join(folder, 'a.jp2'), 'uint8', [...ALPHA, ...jp2]);
    await compareWithGdal(node, 'jp2', path, ['1', '2', '3']);
  });

  await t.test('a tile that was written here', async () => {
    const [tile] = (await tilesOf(node)).filter(({ collection }) => collection === 'c0');
    const path = gdalName(node.storage.tileImage(tile!, tile!.groups[0]!.name));
    const href = join(folder, 'tile.tif');
    await copyFile(path, href);
    await ingest(node, { href, collection: 'again', datetime: '2024-06-01', precision: 5 });
    const [again] = (await tilesOf(node)).filter(({ collection }) => collection === 'again');
    assert.equal(again!.geocode, tile!.geocode);
    assert.equal(again!.coverage, tile!.coverage);
  });

  await t.test('a changed mask file replaces the tiles', async () => {
    const path = await translated(join(folder, 'b.tif'), 'uint8', MASK_BESIDE);
    const inputs = { href: path, collection: 'beside', datetime: '2024-06-01', precision: 5 };
    await ingest(node, inputs);
    const covered = async () => {
      const tiles = (await tilesOf(node)).filter(({ collection }) => collection === 'beside');
      return tiles.reduce((sum, { coverage }) => sum + coverage, 0);
    };
    const before = await covered();
    assert.equal((await ingest(node, inputs)).scenes[0]!.unchanged, true);
    await rm(`${path}.msk`);
    assert.equal((await ingest(node, inputs)).scenes[0]!.unchanged, false);
    assert.ok((await covered()) > before);
    await writeFile(`${path}.msk`, 'no TIFF, but something else of that name');
    assert.match((await openRaster(path)).warnings!.join(), /\.msk is not a TIFF/);
    await writeFile(`${path}.msk`, 'II*\0 and nothing behind it');
    const { failed } = await ingest(node, inputs);
    assert.equal(failed[0]?.code, 'TW_RASTER_TRUNCATED');
  });
});

test('an alpha band that is declared as data marks no pixels', needsGdal, async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'a.tif');
  await translated(path, 'uint8', ALPHA);
  const flags = { collection: 'c', datetime: '2024-06-01' };
  const describe = async (more: object) => (await describeScenes(path, { ...flags, ...more }))[0]!;
  const usesAlpha = ({ groups }: Scene) =>
    groups.some(({ bands }) => bands.some(({ header }) => header.alpha !== undefined));
  const plain = await describe({});
  assert.ok(usesAlpha(plain));
  assert.match(plain.warnings.join(), /pixels that are 0 in band 3 \(alpha\) hold no data/);
  for (const more of [{ bands: { red: 1, nir: 3 } }, { maskBand: 3 }]) {
    const scene = await describe(more);
    assert.equal(usesAlpha(scene), false);
    assert.deepEqual(scene.warnings, []);
    assert.equal(scene.groups.flatMap(({ bands }) => bands).length, 3);
  }
});

test('masks beside the files of a folder are not scenes', needsGdal, async (t) => {
  const folder = await tempFolder(t);
  await translated(join(folder, 'a.tif'), 'uint8', MASK_BESIDE);
  await rm(join(folder, 'a.tif.source.tif'));
  assert.deepEqual((await findInputs(folder)).inputs, [join(folder, 'a.tif')]);
});

for (const dataType of ['uint8', 'int8', 'uint16', 'int16', 'uint32', 'int32', 'float32', 'float64'] as const)
  test(`masked pixels do not contribute to means of ${dataType}`, () => {
    const side = 64;
    const pixels = allocatePixels(dataType, side * side).map((_, i) =>
      i % 3 === 0 ? 100 : 40,
    ) as PixelArray;
    const validity = Uint8Array.from(pixels, (value) => (value === 40 ? 1 : 0));
    const bounds = { west: 1.3, south: -60.2, east: 60.3, north: -1.2 };
    const transform = { originX: 0, originY: 0, xx: 1, xy: 0, yx: 0, yy: -1 };
    const grid = buildControlGrid({ bounds, width: 90, height: 90 }, (x, y) => [x, y], transform);
    const out = allocatePixels(dataType, 90 * 90);
    const valid = new Uint8Array(90 * 90).fill(1);
    const window = { column: 0, row: 0, width: side, height: side };
    const source = { pixels, window, rasterWidth: side, rasterHeight: side, nodata: undefined };
    const count = warpMasked('bilinear', source, validity, grid, out, valid);
    assert.equal(count, valid.filter((one) => one === 1).length);
    assert.ok(count > 4000 && count < 8100);
    for (let i = 0; i < out.length; i++)
      if (valid[i]) assert.ok(Math.abs(out[i]! - 40) < 1e-4);
      else assert.ok(Number.isNaN(out[i]) || out[i] === 0);
  });

test('a mask beside a file that has another size gives a warning', async (t) => {
  const path = await writeRaster(join(await tempFolder(t), 'a.tif'));
  await writeRaster(`${path}.msk`, {
    dataType: 'uint8',
    width: 32,
    height: 64,
    bands: [new Uint8Array(32 * 64)],
  });
  const { mask, warnings } = await openRaster(path);
  assert.equal(mask, undefined);
  assert.match(
    warnings!.join(),
    /a\.tif\.msk is not used as a mask: it has 32 x 64 pixels, and the image has 64 x 64/,
  );
});

test('a mask beside a file that is a link is not followed', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'a.tif'));
  const other = await writeRaster(join(folder, 'b.tif'));
  for (const target of [other, join(folder, 'nothing')]) {
    await rm(`${path}.msk`, { force: true });
    await symlink(target, `${path}.msk`);
    const { mask, warnings } = await openRaster(path);
    assert.equal(mask, undefined);
    assert.match(warnings!.join(), /a\.tif\.msk is a link, so it is not used as a mask/);
  }
});

test('an unreadable second image results in a warning, and an unreadable mask in an error', async (t) => {
  const path = join(await tempFolder(t), 'a.tif');
  const band = new Uint8Array(64 * 64).fill(5);
  const mask = Uint8Array.from(band, (_, i) => i % 2);
  await writeRaster(path, { dataType: 'uint8', bands: [band], masks: [mask] });
  const bytes = await readFile(path);
  const first = bytes.readUInt32LE(4);
  const next = first + 2 + 12 * bytes.readUInt16LE(first);
  const second = bytes.readUInt32LE(next);
  const damaged = Buffer.from(bytes);
  damaged.writeUInt32LE(bytes.length + 10, next);
  await writeFile(path, damaged);
  const { mask: none, warnings } = await openRaster(path);
  assert.equal(none, undefined);
  assert.match(warnings!.join(), /image 2 of the file cannot be read/);
  for (let at = second + 2; ; at += 12)
    if (bytes.readUInt16LE(at) === 259) {
      bytes.writeUInt16LE(3, at + 8);
      break;
    }
  await writeFile(path, bytes);
  await assert.rejects(openRaster(path), { code: 'TW_RASTER_UNSUPPORTED' });
});

test('circular directories end', async (t) => {
  const path = await writeRaster(join(await tempFolder(t), 'a.tif'));
  const bytes = await readFile(path);
  const first = bytes.readUInt32LE(4);
  bytes.writeUInt32LE(first, first + 2 + 12 * bytes.readUInt16LE(first));
  await writeFile(path, bytes);
  assert.equal((await openRaster(path)).mask, undefined);
});

for (const [dataType, text] of [
  ['uint8', 'nan'],
  ['uint8', '-32768'],
  ['uint8', '256'],
  ['int16', 'nan'],
  ['uint16', '1.5'],
] as const)
  test(`a nodata value ${text} that ${dataType} cannot hold marks no pixel`, needsGdal, async (t) => {
    const folder = await tempFolder(t);
    const source = await writeRaster(join(folder, 'a.tif'), {
      dataType,
      bands: [allocatePixels(dataType, 64 * 64)],
    });
    const path = join(folder, 'b.tif');
    gdal('gdal_translate', '-q', '-a_nodata', '7', source, path);
    const bytes = await readFile(path);
    setAscii(bytes, 42113, text);
    await writeFile(path, bytes);
    assert.equal((await openRaster(path)).nodata, undefined);
    const [scene] = await describeScenes(path, { collection: 'c', datetime: '2024-06-01' });
    assert.equal(scene!.groups[0]!.nodata, null);
  });

/** Replaces a text of a TIFF by one at its end. */
function setAscii(tiff: Buffer, tag: number, text: string): void {
  const directory = tiff.readUInt32LE(4);
  for (let i = 0; i < tiff.readUInt16LE(directory); i++) {
    const at = directory + 2 + 12 * i;
    if (tiff.readUInt16LE(at) !== tag) continue;
    tiff.writeUInt32LE(text.length + 1, at + 4);
    if (text.length < 4) tiff.write(`${text}\0`, at + 8, 'latin1');
    else {
      // The directory's own description of the software is not there, so the pixels begin with room to spare.
      const room = tiff.length - text.length - 1;
      tiff.write(`${text}\0`, room, 'latin1');
      tiff.writeUInt32LE(room, at + 8);
    }
  }
}

/** The pixels with data of a band of a tile, by GDAL. */
async function shownByGdal(path: string, band: number, out: string): Promise<Uint8Array> {
  gdal('gdal_translate', '-q', '-b', `mask,${band}`, path, out);
  return Uint8Array.from((await readRaster(out)).bands[0]!, (value) => Number(value !== 0));
}

test(
  'a nodata value that fits some bands of a scene leaves the gaps of the others marked',
  needsGdal,
  async (t) => {
    for (const [nodata, types] of [
      [-9999, ['uint8', 'int16', 'uint16']],
      [300, ['uint16', 'uint8']],
      [70000, ['uint16', 'float32', 'int32']],
      [0.5, ['float32', 'uint8', 'int16']],
    ] as const)
      await t.test(`${nodata} in ${types.join(', ')}`, async (t) => {
        const folder = await tempFolder(t);
        const node = await testNode(t, join(folder, 'data'));
        await mkdir(join(folder, 'in'));
        for (const [i, dataType] of types.entries()) {
          const value = (_: number, at: number) => 20 + ((at * 7 + i) % 90);
          const bands = [allocatePixels(dataType, 120 * 120).map(value) as PixelArray];
          await writeRaster(join(folder, 'in', `s_20240601_b${i}.tif`), {
            width: 120,
            height: 120,
            dataType,
            bands,
          });
        }
        const inputs = { namePattern: '{tile}_{time:%Y%m%d}_{band}.tif', collection: 'mixed', precision: 6 };
        const { failed } = await ingest(node, { ...inputs, href: join(folder, 'in'), nodata });
        assert.deepEqual(failed, []);
        assert.ok((await assertDataParts(node.storage))['raw']! > 0);
        let holes = 0;
        for (const tile of await tilesOf(node))
          for (const { name, role, bands, width, height } of tile.groups) {
            if (role !== 'data') continue;
            const { west, south, east, north } = gridByName('geohash').bounds(tile.geocode);
            const place = ['-te', ...[west, south, east, north].map(String), '-ts', `${width}`, `${height}`];
            const out = join(folder, `${tile.geocode}-${name}.tif`);
            const source = join(folder, 'in', `s_20240601_${bands[0]!.name}.tif`);
            gdal('gdalwarp', '-q', '-et', '0', '-dstalpha', '-t_srs', 'EPSG:4326', ...place, source, out);
            const alpha = (await readRaster(out)).header.alpha!;
            const expected = (await readRaster(out, [alpha])).bands[0]!;
            const found = await shownByGdal(
              gdalName(node.storage.tileImage(tile, name)),
              1,
              `${out}.mask.tif`,
            );
            const differing = found.filter((is, i) => (is !== 0) !== (expected[i] !== 0)).length;
            assert.ok(differing <= 2, `${name} of ${tile.geocode} differs at ${differing} pixels`);
            holes += found.filter((is) => is === 0).length;
            const share = (100 * found.filter((is) => is === 1).length) / found.length;
            assert.ok(Math.abs(bands[0]!.validPercent - share) < 1e-9);
          }
        assert.ok(holes > 1000);
      });
  },
);

test('an encoded group keeps the gaps of each band, in spectra too', needsGdal, async (t) => {
  const folder = await tempFolder(t);
  const size = { width: 80, height: 70 };
  const count = size.width * size.height;
  const everySecond = Uint8Array.from({ length: count }, (_, i) => i % 2);
  const upper = Uint8Array.from({ length: count }, (_, i) => Number(i > count / 3));
  for (const dataType of ['uint8', 'int16', 'float32'] as const)
    for (const nodata of [null, 7])
      for (const wavelengths of [false, true])
        for (const [n, pair] of [
          [null, null],
          [upper, upper],
          [upper, everySecond],
          [null, upper],
          [everySecond, null],
        ].entries()) {
          const valid = Array.from({ length: wavelengths ? 24 : 2 }, (_, b) => pair[b % 2]!);
          const bands = valid.map((band, b) => {
            const hole = nodata ?? (dataType === 'float32' ? NaN : 0);
            return allocatePixels(dataType, count).map((_, i) =>
              band?.[i] === 0 ? hole : 9 + b,
            ) as PixelArray;
          });
          const tags = valid.map((_, b) => ({
            ...{ name: `b${b}`, scale: 1, offset: 0 },
            ...(wavelengths && { wavelength: 500 + 10 * b, fwhm: 10 }),
          }));
          const cell = {
            grid: 'geohash' as const,
            geocode: 'u2e50p',
            ...size,
            name: 'group',
            role: 'data' as const,
          };
          const look = { resampling: 'nearest' as const, colours: undefined, metadata: {} };
          const { image } = encodeGroup(
            { ...cell, ...look, dataType, nodata, bands: tags },
            { bands, valid },
          );
          const what = `${dataType}-${nodata}-${wavelengths}-${n}`;
          const path = join(folder, `${what}.tif`);
          await writeFile(path, image.bytes);
          const read = await readRaster(path);
          for (const [b, band] of valid.entries()) {
            const expected = band ?? new Uint8Array(count).fill(1);
            assert.deepEqual(read.valid[b] ?? new Uint8Array(count).fill(1), expected, `${what}, band ${b}`);
            if (b > 1) continue;
            const shown = await shownByGdal(path, b + 1, join(folder, `${what}-${b}.mask.tif`));
            assert.deepEqual(shown, expected, `${what}, band ${b} by GDAL`);
          }
        }
});

test('validities are joined and counted pixel by pixel, for any length and place in memory', () => {
  // Validities may lie anywhere in a larger array.
  const validity = (length: number) =>
    fc
      .tuple(fc.nat(3), fc.uint8Array({ minLength: length, maxLength: length, max: 1 }))
      .map(([from, bits]) => {
        const memory = new Uint8Array(from + length + 1).fill(1);
        memory.set(bits, from);
        return memory.subarray(from, from + length);
      });
  const bandsOf = fc
    .nat(19)
    .chain((length) =>
      fc
        .array(fc.option(validity(length)), { minLength: 1, maxLength: 4 })
        .map((bands) => ({ length, bands })),
    );
  fc.assert(
    fc.property(bandsOf, ({ length, bands }) => {
      const before = structuredClone(bands);
      const holds = (band: Uint8Array | null, i: number) => band === null || band[i] === 1;
      const expected = (joins: 'some' | 'every') =>
        Array.from({ length }, (_, i) => Number(bands[joins]((band) => holds(band, i))));
      const ones = (joined: Uint8Array | null) => joined ?? new Uint8Array(length).fill(1);
      assert.deepEqual(Array.from(ones(validInSome(bands))), expected('some'));
      assert.deepEqual(Array.from(ones(validInEvery(bands))), expected('every'));
      for (const band of bands) {
        if (band) assert.equal(countValid(band), band.filter((is) => is === 1).length);
      }
      assert.deepEqual(bands, before);
    }),
    { seed: 42, numRuns: 150 },
  );
});
