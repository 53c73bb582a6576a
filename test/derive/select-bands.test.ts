/** Selection of bands of a tensor by any of their names, expressions over them, and the georeference of the tensor. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { toArray } from '../../src/async/index.js';
import { splitBands } from '../../src/cli/options.js';
import { DerivePool, type TensorResults, tensorProcess } from '../../src/derive/index.js';
import { npyHead } from '../../src/derive/tensor.js';
import { localQueries } from '../../src/dht/index.js';
import { cellBbox, geohash } from '../../src/grid/index.js';
import { TileFinder } from '../../src/query/index.js';
import { Storage } from '../../src/storage/index.js';
import { tilewright } from '../support/command.js';
import { tempFolder } from '../support/temp.js';
import { type GivenTile, randomly, runProcess, storeScene } from './tiles.js';

const CELL = '9q8yyk';
const [WIDTH, HEIGHT] = [6, 4];
const SIZE = WIDTH * HEIGHT;

/** A finer band than red and near infrared, so that the mask is finer as well. */
function tileOf(collection: string, seed: number, nir: string): GivenTile {
  const random = randomly(seed);
  const pixels = (count: number) => Uint16Array.from({ length: count }, () => Math.floor(9000 * random()));
  const scale = 0.0001;
  return {
    collection,
    geocode: CELL,
    mask: Uint8Array.from({ length: 4 * SIZE }, () => 1 + Math.floor(2 * random())),
    groups: [
      {
        name: '15m',
        width: 2 * WIDTH,
        height: 2 * HEIGHT,
        bands: [{ name: 'B8', commonName: 'pan', pixels: pixels(4 * SIZE) }],
      },
      {
        name: '30m',
        width: WIDTH,
        height: HEIGHT,
        bands: [
          { name: 'B4', commonName: 'red', scale, pixels: pixels(SIZE) },
          { name: 'B5', commonName: nir, scale, pixels: pixels(SIZE) },
        ],
      },
    ],
  };
}

test('bands have aliases and expressions, and a mask does not set the size', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const storage = await Storage.open(data);
  const workers = new DerivePool(1);
  const tiles = [tileOf('alpha', 1, 'nir08'), tileOf('beta', 2, 'nir')];
  for (const [day, tile] of tiles.entries()) await storeScene(storage, { id: `s${day}`, day, tiles: [tile] });
  const process = tensorProcess({
    storage,
    finder: new TileFinder(storage, localQueries(storage.index)),
    workers,
  });
  const bands = ['red', 'nir', 'mask', 'ndvi', 'nir/red', 'alpha/where(red > 0.4, nir08, 0)', '30m_b2'];
  let expected: Float64Array;
  try {
    const { files } = await runProcess<TensorResults>(storage, process, { bands });
    const [file] = files;
    assert.deepEqual(file.shape, [2, bands.length, HEIGHT, WIDTH]);
    assert.deepEqual(file.bands, bands);
    assert.deepEqual(file.substitutes, [{ collection: 'alpha', asked: 'nir', taken: 'nir08' }]);
    const { west, south, east, north } = geohash.bounds(CELL);
    const [a, b, c, d, e, f] = file.transform;
    const at = (column: number, row: number) => [a * column + b * row + c, d * column + e * row + f];
    assert.deepEqual(at(0, 0), [west, north]);
    for (const [i, value] of at(WIDTH, HEIGHT).entries())
      assert.ok(Math.abs(value - [east, south][i]!) < 1e-12, `${value}`);
    assert.deepEqual([file.crs, file.bbox], ['EPSG:4326', cellBbox(geohash, CELL)]);

    const [job] = await toArray(storage.catalogue.jobs.keys());
    const bytes = await readFile(storage.results.path(job!, file.name));
    const head = npyHead('float32', file.shape);
    const numbers = new Float32Array(Uint8Array.from(bytes.subarray(head.length)).buffer);
    for (const [step, tile] of tiles.entries()) {
      const plane = (band: number) => {
        const start = (step * bands.length + band) * SIZE;
        return [...numbers.subarray(start, start + SIZE)];
      };
      const physical = (band: number) =>
        Array.from(tile.groups[1]!.bands[band]!.pixels, (v) => (v === 0 ? NaN : Math.fround(v * 0.0001)));
      const [red, nir] = [physical(0), physical(1)];
      const of = (value: (i: number) => number) =>
        red.map((_, i) => {
          const result = value(i);
          return Number.isFinite(result) ? Math.fround(result) : NaN;
        });
      assert.deepEqual(plane(0), red);
      assert.deepEqual(plane(1), nir);
      assert.deepEqual(
        plane(3),
        of((i) => (nir[i]! - red[i]!) / (nir[i]! + red[i]!)),
      );
      assert.deepEqual(
        plane(4),
        of((i) => nir[i]! / red[i]!),
      );
      const bright = of((i) => (Number.isNaN(red[i]!) ? NaN : red[i]! > 0.4 ? nir[i]! : 0));
      assert.deepEqual(plane(5), step === 0 ? bright : red.map(() => NaN));
      assert.deepEqual(plane(6), nir);
      for (const [i, code] of plane(2).entries()) {
        const [x, y] = [2 * (i % WIDTH), 2 * Math.floor(i / WIDTH)];
        const covered = [0, 1].flatMap((v) => [0, 1].map((u) => tile.mask[(y + v) * 2 * WIDTH + x + u]));
        assert.ok(covered.includes(code), 'a code of the pixels that it covers');
      }
    }
    const alone = await runProcess<TensorResults>(storage, process, { bands: ['mask'] });
    assert.deepEqual(alone.files[0]!.shape.slice(2), [2 * HEIGHT, 2 * WIDTH]);
    const refused = (inputs: object, code: string) =>
      assert.rejects(runProcess(storage, process, inputs), { code });
    await refused({ bands: ['red', 'ndvi'], stored: true }, 'TW_WRANGLE_STORED_EXPRESSION');
    await refused({ bands: ['red +'] }, 'TW_IMAGERY_EXPRESSION');
    await refused({ bands: ['gamma/red'] }, 'TW_WRANGLE_NO_BAND');
    expected = Float64Array.from(numbers);
  } finally {
    await workers.close();
    await storage.close();
  }

  const out = join(folder, 'out.npy');
  const done = await tilewright('tensor', '--data', data, '--bands', bands.join(','), '--output', out);
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stderr, /^alpha has no nir: using nir08$/m);
  const beside = JSON.parse(await readFile(join(folder, 'out.json'), 'utf8'));
  assert.deepEqual([beside.bands, beside.times.length, beside.crs], [bands, 2, 'EPSG:4326']);
  const written = (await readFile(out)).subarray(npyHead('float32', beside.shape).length);
  assert.deepEqual(Float64Array.from(new Float32Array(Uint8Array.from(written).buffer)), expected);
});

test('commas inside parentheses belong to functions', () => {
  assert.deepEqual(splitBands('red,where(a > 0, min(b, c), 0),ndvi'), [
    'red',
    'where(a > 0, min(b, c), 0)',
    'ndvi',
  ]);
  const part = fc.constantFrom('red', 'min(a,b)', 'where(a>0,max(b,c),d)', '(a+b)/c', 'x/y');
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) => {
      assert.deepEqual(splitBands(parts.join(',')), parts);
    }),
    { seed: 42 },
  );
});
