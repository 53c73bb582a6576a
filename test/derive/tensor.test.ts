/** Tensors: every value is compared with a plain loop, read by NumPy and GDAL, over HTTP and by the command. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { resizeBand } from '../../src/derive/bands.js';
import type { TensorResults } from '../../src/derive/index.js';
import { npyHead } from '../../src/derive/tensor.js';
import { type PixelArray, readRaster } from '../../src/raster/index.js';
import { tilewright } from '../support/command.js';
import { hasGdal } from '../support/gdal.js';
import { testNode } from '../support/node.js';
import { tempFolder } from '../support/temp.js';
import { type GivenTile, randomly, storeScene } from './tiles.js';

const CELL = '9q8yyk';
const [WIDTH, HEIGHT] = [12, 8];
const hasNumpy = spawnSync('python3', ['-c', 'import numpy']).status === 0;

function tileOf(collection: string, seed: number, scale: number, offset: number, names: string[]): GivenTile {
  const random = randomly(seed);
  const mask = Uint8Array.from({ length: WIDTH * HEIGHT }, () =>
    random() < 0.2 ? 0 : 1 + Math.floor(2 * random()),
  );
  const pixels = (size: number) =>
    Uint16Array.from({ length: size }, (_, i) => (mask[i] === 0 ? 0 : 1 + Math.floor(9000 * random())));
  return {
    collection,
    geocode: CELL,
    mask,
    groups: [
      {
        name: '10m',
        width: WIDTH,
        height: HEIGHT,
        bands: [{ name: names[0]!, commonName: 'red', scale, offset, pixels: pixels(WIDTH * HEIGHT) }],
      },
      {
        name: '20m',
        width: WIDTH / 2,
        height: HEIGHT / 2,
        bands: [
          { name: names[1]!, commonName: 'swir16', scale, offset, pixels: pixels((WIDTH * HEIGHT) / 4) },
        ],
      },
    ],
  };
}

test('a tensor holds the physical values of all dates, as NumPy reads them', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await testNode(t, data);
  const a = tileOf('alpha', 1, 0.0001, -0.1, ['B4', 'B11']);
  const b = tileOf('beta', 2, 0.0002, 0.3, ['R', 'S']);
  await storeScene(node.storage, { id: 'late', day: 5, tiles: [a] });
  await storeScene(node.storage, { id: 'early', day: 1, tiles: [b] });

  const run = async (inputs: object) => {
    const headers = { authorization: `Bearer ${node.ownerSecret}` };
    const url = '/processes/tensor/execution';
    const answer = await node.server.inject({ method: 'POST', url, headers, payload: { inputs } });
    assert.equal(answer.statusCode, 201, answer.body);
    const { jobID } = answer.json();
    for (;;) {
      const { status, error } = (await node.server.inject(`/jobs/${jobID}`)).json();
      if (status === 'failed') return { jobID, code: error.code as string };
      if (status === 'successful') break;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return { jobID, results: (await node.server.inject(`/jobs/${jobID}/results`)).json() as TensorResults };
  };
  const download = (jobID: string, name: string) =>
    node.server.inject(`/jobs/${jobID}/results/files/${name}`);

  const { jobID, results } = await run({ bands: ['red', 'swir16', 'mask', 'alpha/B4'] });
  const [file] = results!.files;
  assert.deepEqual(file!.shape, [2, 4, HEIGHT, WIDTH]);
  assert.deepEqual(
    file!.times.map(({ collection }) => collection),
    ['beta', 'alpha'],
  );
  const answer = await download(jobID, file!.name);
  assert.equal(answer.rawPayload.length, file!.bytes);
  const head = npyHead('float32', file!.shape);
  assert.ok(answer.rawPayload.subarray(0, head.length).equals(head));
  assert.equal(head.length % 64, 0);
  const numbers = new Float32Array(Uint8Array.from(answer.rawPayload.subarray(head.length)).buffer);
  const size = WIDTH * HEIGHT;
  assert.equal(numbers.length, 2 * 4 * size);
  for (const [step, tile] of [b, a].entries()) {
    const plane = (band: number) => numbers.subarray((step * 4 + band) * size, (step * 4 + band + 1) * size);
    const [red] = tile.groups[0]!.bands;
    const physical = (stored: number, i: number) =>
      stored === 0 && tile.mask[i] === 0 ? NaN : Math.fround(stored * red!.scale! + red!.offset!);
    assert.deepEqual([...plane(0)], Array.from(red!.pixels, physical));
    assert.deepEqual(
      [...plane(2)],
      Array.from(tile.mask, (code) => (code === 0 ? NaN : code)),
    );
    assert.deepEqual([...plane(3)], tile === a ? [...plane(0)] : Array.from(plane(3), () => NaN));
    // Up-sampled values are valid where the coarse pixel is, and within the range of the surrounding values.
    const [swir] = tile.groups[1]!.bands;
    const values = Array.from(swir!.pixels).filter((value) => value !== 0);
    const [low, high] = [Math.min(...values), Math.max(...values)].map(
      (v) => v * swir!.scale! + swir!.offset!,
    );
    for (const [i, value] of plane(1).entries()) {
      const coarse = Math.floor(i / WIDTH / 2) * (WIDTH / 2) + Math.floor((i % WIDTH) / 2);
      assert.equal(Number.isNaN(value), swir!.pixels[coarse] === 0);
      if (!Number.isNaN(value)) assert.ok(value >= low! - 1e-6 && value <= high! + 1e-6);
    }
  }
  const beside = (await download(jobID, file!.name.replace('npy', 'json'))).json();
  assert.deepEqual([beside.shape, beside.times], [file!.shape, file!.times]);
  for (const name of ['..%2f..%2fnode.json', 'absent.npy', '.hidden'])
    assert.ok([400, 404].includes((await download(jobID, name)).statusCode), name);
  assert.equal((await download('0mabsent000', file!.name)).statusCode, 404);

  const stored = await run({
    bands: ['red', 'swir16'],
    stored: true,
    filter: { collections: ['alpha'] },
    format: 'tif',
  });
  const tif = join(folder, 'out.tif');
  await import('node:fs/promises').then(async ({ writeFile }) =>
    writeFile(tif, (await download(stored.jobID, stored.results!.files[0]!.name)).rawPayload),
  );
  const { header, bands } = await readRaster(tif);
  assert.deepEqual(
    [header.width, header.height, header.bands, header.dataType, header.nodata],
    [WIDTH, HEIGHT, 2, 'uint16', 0],
  );
  assert.deepEqual(bands[0], a.groups[0]!.bands[0]!.pixels);
  assert.equal(header.bandTags[1]!.description, 'alpha 2024-06-06T10:00:00.000Z swir16');
  if (hasGdal) {
    const info = JSON.parse(execFileSync('gdalinfo', ['-json', tif], { encoding: 'utf8' }));
    assert.equal(info.bands[0].description, 'alpha 2024-06-06T10:00:00.000Z red');
  }

  assert.equal((await run({ bands: ['none'] })).code, 'TW_WRANGLE_NO_BAND');
  assert.equal((await run({ bands: ['red', 'mask'], stored: true })).code, 'TW_WRANGLE_TYPES');
  assert.equal((await run({ bands: ['red'], resolution: 0.001 })).code, 'TW_WRANGLE_TENSOR_SIZE');
  assert.deepEqual((await run({ bands: ['red'], filter: { collections: ['none'] } })).results!.files, []);

  // The command runs in the folder that the node has used until now.
  await node.close();
  node.close = async () => {};
  const out = join(folder, 'cell.npy');
  const command = ['tensor', '--data', data, '--bands', 'red', '--output', out];
  const done = await tilewright(...command, '--collection', 'alpha', '--resolution', '300');
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /cell\.npy: float32, 1 x 1 x 2 x 3/);
  assert.equal((await readFile(out)).length, npyHead('float32', [1, 1, 2, 3]).length + 4 * 6);
  if (hasNumpy) {
    const script =
      'import numpy,sys; a=numpy.load(sys.argv[1]); print(a.shape, a.dtype, numpy.nansum(a, dtype="f8"))';
    const [shape, sum] = execFileSync('python3', ['-c', script, out], { encoding: 'utf8' }).split(
      ' float32 ',
    );
    assert.equal(shape, '(1, 1, 2, 3)');
    assert.ok(Number(sum) > 0);
  }
});

test('down-sampling is the mean of the area of a pixel', () => {
  const random = randomly(7);
  for (const [width, height, w, h] of [
    [12, 8, 3, 2],
    [10, 7, 4, 3],
    [9, 9, 9, 2],
  ] as const) {
    const pixels = Float32Array.from({ length: width * height }, () => (random() < 0.2 ? NaN : random()));
    const out = resizeBand(
      { width, height, pixels, nodata: NaN, codes: false },
      { width: w, height: h },
      NaN,
    );
    // A second method: each pixel is replaced by a block of small pixels that divide both sizes.
    for (let y = 0; y < h; y++)
      for (let x = 0; x < w; x++) {
        let [sum, count] = [0, 0];
        for (let v = 0; v < height; v++)
          for (let u = 0; u < width; u++) {
            const i = (y * height + v) * width * w + x * width + u;
            const column = Math.floor((i % (width * w)) / w);
            const row = Math.floor(Math.floor(i / (width * w)) / h);
            const value = pixels[row * width + column]!;
            if (Number.isNaN(value)) continue;
            sum += value;
            count++;
          }
        const centre =
          pixels[Math.floor(((y + 0.5) * height) / h) * width + Math.floor(((x + 0.5) * width) / w)]!;
        const value = (out as PixelArray)[y * w + x]!;
        if (Number.isNaN(centre)) assert.ok(Number.isNaN(value));
        else assert.ok(Math.abs(value - sum / count) < 1e-6, `${value} ${sum / count}`);
      }
  }
});
