/** Cubes in MATLAB files, as SciPy and a writer of the other forms make them. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { crsFromEpsg, type GeoreferencingOverride, openRaster, readWindow } from '../../src/raster/index.js';
import { tempFolder } from '../support/temp.js';
import { asRead } from './envi.js';
import { fixtures } from './gdal.js';
import { assertSamePixels, random } from './images.js';
import { MAT_TYPES, type MatType, type MatVariable, matFile } from './mat.js';

const file = (name: string) => join(fixtures, 'mat', name);
const HERE: GeoreferencingOverride = {
  crs: crsFromEpsg(32_633),
  corners: [500_000, 5_300_000, 500_700, 5_299_500],
};

async function pixelsOf(path: string, layer?: string) {
  const header = await openRaster(path, layer, HERE);
  const all = { column: 0, row: 0, width: header.width, height: header.height };
  const wanted = Array.from({ length: header.bands }, (_, band) => band);
  return { header, bands: await readWindow(header, wanted, all) };
}

/** The cubes of make.py: 5 rows, 7 columns, 4 bands. */
const planted = (change: (value: number) => number) =>
  [0, 1, 2, 3].map((band) =>
    Array.from({ length: 35 }, (_, i) => change(1000 * band + 10 * Math.floor(i / 7) + (i % 7))),
  );

for (const [name, layer, type, change] of [
  ['plain.mat', undefined, 'int16', (value: number) => value - 500],
  ['compressed.mat', undefined, 'float64', (value: number) => value / 4],
  ['several.mat', 'first', 'uint16', (value: number) => value],
  ['several.mat', 'second', 'float32', (value: number) => value * 2],
] as const)
  test(`${layer ?? 'the cube'} of ${name} has the values that SciPy wrote`, async () => {
    const { header, bands } = await pixelsOf(file(name), layer);
    assert.deepEqual(
      [header.width, header.height, header.bands, header.dataType, header.nodata],
      [7, 5, 4, type, undefined],
    );
    assert.deepEqual(header.transform, {
      originX: 500_000,
      originY: 5_300_000,
      xx: 100,
      xy: 0,
      yx: 0,
      yy: -100,
    });
    assert.equal(header.crs.epsg, 32_633);
    assert.deepEqual(
      bands.map((band) => Array.from(band)),
      planted(change),
    );
  });

test('every type, byte order and form gives the pixels that were written, in any window', async (t) => {
  const path = join(await tempFolder(t), 'cube.mat');
  const side = fc.integer({ min: 1, max: 8 });
  await fc.assert(
    fc.asyncProperty(
      fc.record({ height: side, width: side, count: fc.integer({ min: 2, max: 5 }) }),
      fc.constantFrom(...(Object.keys(MAT_TYPES) as MatType[])),
      fc.boolean(),
      fc.boolean(),
      fc.nat(),
      async ({ height, width, count }, type, bigEndian, compressed, seed) => {
        const next = random(seed);
        const most = Math.min(2 ** 31, 2 ** (8 * (Number(/\d+/.exec(type)![0]) / 8) - 1));
        const value = () => Math.floor((type.startsWith('u') ? next() : 2 * next() - 1) * (most - 1));
        const values = Array.from({ length: height * width * count }, value);
        const other: MatVariable = { name: 'x', dimensions: [1, 1], values: [7], type: 'uint8', compressed };
        const cube: MatVariable = {
          name: 'a_cube',
          dimensions: [height, width, count],
          values,
          type,
          compressed,
        };
        await writeFile(path, matFile([other, cube, other], bigEndian));
        const header = await openRaster(path, undefined, HERE);
        const [column, row] = [Math.floor(next() * width), Math.floor(next() * height)];
        const window = {
          column,
          row,
          width: 1 + Math.floor(next() * (width - column)),
          height: 1 + Math.floor(next() * (height - row)),
        };
        const wanted = [...Array(count).keys()].filter(() => next() < 0.7).toReversed();
        const parts = await readWindow(header, wanted, window);
        for (const [i, part] of parts.entries()) {
          const expected = Array.from({ length: window.width * window.height }, (_, at) => {
            const y = row + Math.floor(at / window.width);
            const x = column + (at % window.width);
            return values[y + height * (x + width * wanted[i]!)]!;
          });
          assertSamePixels(part, asRead(expected, part));
        }
      },
    ),
    { seed: 27, numRuns: 150 },
  );
});

test('what is no cube is refused, and what a file holds is said', async (t) => {
  const refused = (name: string, code: string, message: RegExp, layer?: string) =>
    assert.rejects(openRaster(file(name), layer, HERE), { code, message });
  await refused('several.mat', 'TW_RASTER_SEVERAL_LAYERS', /first, second/);
  await refused('several.mat', 'TW_RASTER_NO_LAYER', /It has: first, second/, 'third');
  await refused('plain.mat', 'TW_RASTER_NO_LAYER', /It has: cube/, 'labels');
  await refused('no-cube.mat', 'TW_RASTER_UNSUPPORTED', /but labels \(5 x 7\)/);
  await refused('complex.mat', 'TW_RASTER_UNSUPPORTED', /complex/);
  await assert.rejects(openRaster(file('plain.mat')), {
    code: 'TW_RASTER_NO_CRS',
    message: /--position/,
  });
  const newer = join(await tempFolder(t), 'newer.mat');
  await writeFile(newer, 'MATLAB 7.3 MAT-file, Platform: TEST'.padEnd(600));
  await assert.rejects(openRaster(newer, undefined, HERE), {
    code: 'TW_RASTER_NOT_TIFF',
    message: /MATLAB 7\.3.*-v7/,
  });
});

test('damaged files and files that claim more than they hold are refused', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'bad.mat');
  const read = async (bytes: Uint8Array) => {
    await writeFile(path, bytes);
    return pixelsOf(path);
  };
  const whole = await readFile(file('compressed.mat'));
  for (let length = 128; length < whole.length; length += 7)
    await assert.rejects(read(whole.subarray(0, length)), (error: { code: string }) =>
      // A file that ends between two variables lacks its cube.
      /^TW_RASTER_(CORRUPT|TRUNCATED|UNSUPPORTED)$/.test(error.code),
    );
  const cube: MatVariable = {
    name: 'cube',
    dimensions: [10, 10, 4],
    values: new Array(400).fill(1),
    type: 'uint8',
    compressed: true,
  };
  const good = matFile([cube]);
  await read(good);
  // The last bytes are the checksum of the stream.
  good[good.length - 1]! ^= 1;
  await assert.rejects(read(good), { code: 'TW_RASTER_CORRUPT' });
  for (const dimensions of [
    [10, 10, 5],
    [10, 10, -4],
    [0, 10, 4],
    [2 ** 30, 2 ** 30, 4],
  ])
    await assert.rejects(read(matFile([{ ...cube, dimensions }])), { code: 'TW_RASTER_CORRUPT' });

  // An array that goes on after its end: a stream of 64 MB in 64 kB.
  const plain = matFile([{ ...cube, compressed: false }]).subarray(128);
  const bomb = deflateSync(Buffer.concat([plain, Buffer.alloc(64e6)]));
  const tag = Buffer.alloc(8);
  tag.writeUInt32LE(15, 0);
  tag.writeUInt32LE(bomb.length, 4);
  const longer = Buffer.concat([matFile([]), tag, bomb]);
  await assert.rejects(read(longer), { code: 'TW_RASTER_CORRUPT', message: /longer than it says/ });

  // A cube of 1 GiB that the bytes of the file cannot hold.
  const huge = matFile([{ ...cube, dimensions: [2 ** 14, 2 ** 14, 4], compressed: false }]);
  // The numbers' tag is after header, tag, flags, dimensions and the name.
  huge.writeUInt32LE(2 ** 30, 128 + 8 + 16 + 24 + 8 + 4);
  await assert.rejects(read(huge), { code: 'TW_RASTER_CORRUPT' });
});

test('random damage never gives anything but an error or pixels', async (t) => {
  const path = join(await tempFolder(t), 'bad.mat');
  const files = await Promise.all(
    ['plain.mat', 'compressed.mat', 'several.mat'].map((name) => readFile(file(name))),
  );
  await fc.assert(
    fc.asyncProperty(fc.nat(2), fc.nat(), fc.integer({ min: 0, max: 255 }), async (which, at, value) => {
      const bytes = Buffer.from(files[which]!);
      bytes[128 + (at % (bytes.length - 128))] = value;
      await writeFile(path, bytes);
      const layer = which === 2 ? 'first' : undefined;
      await pixelsOf(path, layer).catch((error) => assert.match(String(error.code), /^TW_RASTER_/));
    }),
    { seed: 5, numRuns: 300 },
  );
});
