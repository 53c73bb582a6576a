/** Bands of spectra in tensors, by wavelength and by number. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { npyHead } from '../../src/derive/tensor.js';
import { readImage } from '../../src/raster/index.js';
import { writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { tilewright } from '../support/command.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const SIDE = 30;
const COUNT = 20;

test('bands of a spectrum are addressed by wavelength, by number and by name', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const next = random(3);
  const bands = Array.from({ length: COUNT }, () =>
    Array.from({ length: SIDE * SIDE }, () => 1 + Math.floor(3000 * next())),
  );
  writeEnvi(join(folder, 'cube.bil'), {
    ...{ width: SIDE, height: SIDE, bands, type: 'int16', interleave: 'bil' },
    lines: [
      'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}',
      ...[
        'data ignore value = 0',
        'acquisition time = 2024-06-01T10:00:00Z',
        'wavelength units = Nanometers',
      ],
      `wavelength = {${bands.map((_, band) => 450 + 50 * band).join()}}`,
      // 800 and 850 nm are equally near 825 nm, and the latter is bad.
      `bbl = {${bands.map((_, band) => (band === 8 ? 0 : 1)).join()}}`,
      `band names = {${bands.map((_, band) => `refl_${band + 1}`).join()}}`,
    ],
  });
  const node = await testNode(t, data);
  const { failed } = await ingest(node, {
    href: join(folder, 'cube.hdr'),
    collection: 'cubes',
    precision: 5,
  });
  assert.deepEqual(failed, []);
  const [tile] = await tilesOf(node);
  const { bands: stored, header } = await readImage(node.storage.tileImage(tile!, '30m'));

  // A tile of another product, which has two bands but no `b2`.
  await writeRaster(join(folder, 'other.tif'), {
    bands: [new Uint16Array(64 * 64).fill(5), new Uint16Array(64 * 64).fill(6)],
    bandTags: [{ description: 'one' }, { description: 'two' }],
  });
  const flags = { collection: 'other', datetime: '2024-06-05T10:00:00Z', precision: 5 };
  await ingest(node, { href: join(folder, 'other.tif'), ...flags });
  await node.close();

  const tensor = async (list: string, ...more: string[]) => {
    const out = join(folder, 'out.npy');
    const where = ['--data', data, '--geocode', tile!.geocode, '--output', out];
    const done = await tilewright('tensor', ...where, '--bands', list, ...more);
    if (done.code !== 0) return done.stderr;
    const { shape } = JSON.parse(await readFile(join(folder, 'out.json'), 'utf8'));
    const type = more.includes('--stored') ? 'int16' : 'float32';
    const bytes = Uint8Array.from((await readFile(out)).subarray(npyHead(type, shape).length));
    const numbers = type === 'int16' ? new Int16Array(bytes.buffer) : new Float32Array(bytes.buffer);
    assert.deepEqual(shape.slice(1), [list.split(',').length, header.height, header.width]);
    const size = header.width * header.height;
    return Array.from({ length: numbers.length / size }, (_, i) =>
      Array.from(numbers.subarray(i * size, (i + 1) * size)),
    );
  };
  const wanted = (index: number) => Array.from(stored[index]!);
  const isHole = (value: number) => value === 0;

  const numbers = await tensor('660nm,0.825um,b12,12,refl_12', '--stored', '--collection', 'cubes');
  assert.deepEqual(numbers, [wanted(4), wanted(7), wanted(11), wanted(11), wanted(11)]);

  const ratio = (await tensor('b3/660nm,3', '--collection', 'cubes')) as number[][];
  for (const [i, red] of wanted(4).entries()) {
    const green = wanted(2)[i]!;
    if (isHole(red) || isHole(green)) continue;
    assert.equal(ratio[0]![i], Math.fround(green / red));
    assert.equal(ratio[1]![i], green);
  }

  // Only spectra have numbers.
  assert.match(String(await tensor('b2', '--collection', 'other')), /TW_WRANGLE_NO_BAND/);
  assert.match(String(await tensor('b99', '--collection', 'cubes')), /TW_WRANGLE_NO_BAND/);
  assert.match(String(await tensor('1900nm', '--collection', 'cubes')), /TW_WRANGLE_NO_BAND/);
});
