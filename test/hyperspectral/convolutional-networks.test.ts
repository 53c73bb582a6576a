/** Networks trained by an engine: their gradients, their files, and a classification by a planted absorption. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { Tensor } from '@tensorflow/tfjs-core';
import { loadEngine, type Tf } from '../../src/engines/index.js';
import type { SpectrumFile } from '../../src/hyperspectral/blocks.js';
import { eachPatch, GROUP, NetCompute, type PixelGroup } from '../../src/hyperspectral/cnn/compute.js';
import { NETS, type NetName, patchSide } from '../../src/hyperspectral/cnn/net.js';
import { type ClassifyResults, readLabels } from '../../src/hyperspectral/index.js';
import { readImage } from '../../src/raster/index.js';
import { exportOnnx, loadModel, type PredictResults } from '../../src/training/index.js';
import { fromFloat16, toFloat16 } from '../../src/utils/float16.js';
import { writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { imageFile } from '../support/image-file.js';
import { onlyNightly } from '../support/nightly.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';

let tf: Tf;
before(async () => {
  ({ tf } = await loadEngine('wasm'));
});

test('values are rounded to the nearest numbers of binary16', () => {
  const all = Uint16Array.from({ length: 2 ** 16 }, (_, half) => half).filter(
    (half) => (half & 0x7c00) !== 0x7c00,
  );
  assert.deepEqual(toFloat16(fromFloat16(all)), all);
  const ascending = fromFloat16(all.filter((half) => half < 0x8000));
  for (let i = 1; i < ascending.length; i++) {
    const [low, high] = [ascending[i - 1]!, ascending[i]!];
    const middle = (low + high) / 2;
    const even = i % 2 === 0 ? i : i - 1;
    const below = middle * (1 - 2 ** -20);
    assert.deepEqual(
      [...toFloat16(Float32Array.of(below, middle, middle * (1 + 2 ** -20)))],
      [i - 1, even, i],
    );
  }
  const known = Float32Array.of(65_519, 65_520, -1e9, 2 ** -25, 2 ** -24, NaN);
  assert.deepEqual([...fromFloat16(toFloat16(known))], [65_504, Infinity, -Infinity, 0, 2 ** -24, NaN]);
});

/** A network with random weights and two tiles of random pixels, of which some have neighbours without data. */
function randomNet(name: NetName, bands = 23) {
  const next = random(5);
  const side = patchSide(name);
  const compute = new NetCompute(tf, { name, bands, classes: 3 });
  const count = compute.parameters.reduce((sum, { size }) => sum + size, 0);
  const weights = Float32Array.from({ length: count }, () => 0.6 * (next() - 0.5));
  const tiles = [70, 40].map((pixels) => ({
    spectra: Float32Array.from({ length: pixels * bands }, () => 2 * next() - 1),
    patches: Int32Array.from({ length: pixels * side * side }, (_, i) =>
      i % side ** 2 === (side ** 2 - 1) / 2
        ? Math.floor(i / side ** 2)
        : Math.floor((pixels + 9) * next()) - 9,
    ).map((number) => Math.max(-1, number)),
    classes: Uint8Array.from({ length: pixels }, () => Math.floor(3 * next())),
  }));
  compute.holdTiles(tiles);
  compute.setWeights(weights);
  const group = (tile: number, from: number, to: number): PixelGroup => ({
    tile,
    pixels: Int32Array.from({ length: to - from }, (_, i) => from + i),
  });
  return { compute, weights, tiles, group, next, side, bands };
}

for (const name of NETS)
  test(`${name}: the gradient belongs to the loss, and pixels count once wherever they are`, () => {
    const { compute, weights, group } = randomNet(name);
    const { gradient, loss } = compute.gradientOf(group(0, 0, GROUP));
    const square = gradient.reduce((sum, value) => sum + value ** 2, 0);
    const step = 4e-3 / Math.sqrt(square);
    const lossAt = (sign: number) => {
      compute.setWeights(weights.map((value, i) => value + sign * step * gradient[i]!));
      return compute.gradientOf(group(0, 0, GROUP)).loss;
    };
    const slope = (lossAt(1) - lossAt(-1)) / (2 * step);
    assert.ok(Math.abs(slope / square - 1) < 0.02, `${slope} for ${square}`);
    compute.setWeights(weights);
    // An incomplete group is padded with pixels of weight 0.
    const parts = [group(0, 0, 20), group(0, 20, GROUP)].map((part) => compute.gradientOf(part));
    const sum = parts.reduce((total, part) => total + part.loss, 0);
    assert.ok(Math.abs(sum - loss) < 1e-4 * loss);
    const most = gradient.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    for (const [i, value] of gradient.entries())
      assert.ok(Math.abs(parts[0]!.gradient[i]! + parts[1]!.gradient[i]! - value) < 1e-4 * most);
    assert.deepEqual(compute.gradientOf(group(0, 0, GROUP)).gradient, gradient);
  });

for (const name of NETS)
  test(`${name}: the stored model gives the probabilities for physical values, and ONNX has its layers`, async () => {
    const { compute, tiles, group, next, side, bands } = randomNet(name);
    const centre = Float64Array.from({ length: bands }, () => next());
    const deviation = Float64Array.from({ length: bands }, () => 0.1 + next());
    const files = await compute.files({ centre, deviation });
    const model = await loadModel(tf, files['model.json']!, files['weights.bin']!);
    const pixels = group(1, 0, 40);
    const values = compute.valuesOf(pixels);
    const { spectra, patches } = tiles[1]!;
    const physical = Float32Array.from({ length: 40 * side * side * bands }, (_, at) => {
      const number = patches[Math.floor(at / bands)]!;
      const b = at % bands;
      return number < 0 ? centre[b]! : centre[b]! + deviation[b]! * spectra[number * bands + b]!;
    });
    const shape = side === 1 ? [40, bands] : [40, side, side, bands];
    const [shares, wanted] = tf.tidy(() => [
      (model.predict(tf.tensor(physical, shape)) as Tensor).dataSync(),
      tf.softmax(tf.tensor2d(values, [40, 3])).dataSync(),
    ]);
    for (const [i, share] of shares.entries()) assert.ok(Math.abs(share - wanted[i]!) < 1e-4);
    assert.ok(exportOnnx(files['model.json']!, files['weights.bin']!, 'test').length > 1000);
  });

test('the patches of a tile equal those of its parts, which read the pixels around them', async (t) => {
  const folder = await tempFolder(t);
  const next = random(2);
  const [width, height, count] = [70, 66, 3];
  const entire = Array.from({ length: count }, () =>
    Int16Array.from({ length: width * height }, () => (next() < 0.1 ? -9999 : Math.round(1000 * next()))),
  );
  const part = async (x: number, y: number, columns: number, rows: number): Promise<SpectrumFile> => {
    const bands = entire.map((band) =>
      Int16Array.from(
        { length: columns * rows },
        (_, i) => band[(y + Math.floor(i / columns)) * width + x + (i % columns)]!,
      ),
    );
    const size = { width: columns, height: rows, dataType: 'int16' } as const;
    const path = await writeRaster(join(folder, `${x}-${y}-${columns}.tif`), {
      ...size,
      bands,
      nodata: -9999,
    });
    return {
      ...{ ...imageFile(path), ...size, nodata: -9999, mask: undefined, bands: [0, 1, 2] },
      ...{ scales: [1, 1, 1], offsets: [0, 0, 0] },
    };
  };
  const missing = Float32Array.of(-1, -2, -3);
  const found = new Map<number, string>();
  eachPatch(await part(0, 0, width, height), [], { side: 5, missing }, (pixel, patch) => {
    found.set(pixel, patch.join());
  });
  assert.equal([...found.keys()].join(), [...found.keys()].sort((a, b) => a - b).join());
  const [columns, rows] = [35, 33];
  const parts = [0, 1, 2, 3].map((i) => ({ east: i % 2, south: Math.floor(i / 2) }));
  const files = await Promise.all(
    parts.map(({ east, south }) => part(east * columns, south * rows, columns, rows)),
  );
  let seen = 0;
  for (const [i, { east, south }] of parts.entries()) {
    const around = parts.flatMap((other, o) =>
      o === i ? [] : [{ file: files[o]!, east: other.east - east, south: other.south - south }],
    );
    eachPatch(files[i]!, around, { side: 5, missing }, (pixel, patch) => {
      const at = (south * rows + Math.floor(pixel / columns)) * width + east * columns + (pixel % columns);
      assert.equal(patch.join(), found.get(at));
      seen++;
    });
  }
  assert.equal(seen, found.size);
});

const BANDS = 60;
/** The band of the planted absorption, in the order of the wavelengths. */
const PLANTED = 37;
const SIDE = 64;

/** Two classes that differ only in an absorption; the second detector comes first in the file. */
function writeAbsorption(folder: string): { cube: string; labels: string } {
  const next = random(7);
  const wavelengths = Array.from({ length: BANDS }, (_, b) => 450 + 20 * b);
  const order = [...wavelengths.keys()].map((b) => (b + 27) % BANDS);
  const codes = Array.from({ length: SIDE * SIDE }, () => (next() < 0.35 ? 1 + Math.floor(2 * next()) : 0));
  const spectra = codes.map((code) => {
    const [a, b, c] = [next(), next(), next()];
    return wavelengths.map((_, band) => {
      const smooth = 0.3 + 0.1 * a + 0.05 * Math.sin(band / 9 + 6 * b) + 0.05 * c * Math.cos(band / 17);
      const depth = code === 2 ? 0.15 * Math.exp(-0.5 * ((band - PLANTED) / 3) ** 2) : 0;
      return Math.round(10_000 * (smooth * (1 - depth) + 0.003 * (next() + next() - 1)));
    });
  });
  const size = { width: SIDE, height: SIDE, interleave: 'bsq' } as const;
  const map = 'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}';
  writeEnvi(join(folder, 'cube.bsq'), {
    ...{ ...size, type: 'int16', bands: order.map((b) => spectra.map((spectrum) => spectrum[b]!)) },
    lines: [
      ...[map, 'reflectance scale factor = 10000', 'data ignore value = -9999'],
      ...['acquisition time = 2024-06-01T10:00:00Z', 'wavelength units = Nanometers'],
      `wavelength = {${order.map((b) => wavelengths[b]).join()}}`,
    ],
  });
  writeEnvi(join(folder, 'labels.bsq'), {
    ...{ ...size, type: 'uint8', bands: [codes] },
    lines: [map, 'data ignore value = 0'],
  });
  return { cube: join(folder, 'cube.hdr'), labels: join(folder, 'labels.hdr') };
}

test('cnn1d detects a planted absorption, Grad-CAM shows it, and predict makes the same map', {
  skip: onlyNightly,
}, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const paths = writeAbsorption(folder);
  await ingest(node, { href: paths.cube, collection: 'cubes', precision: 5 });
  await ingest(node, { href: paths.cube, collection: 'others', precision: 5 });
  const filter = { collections: ['cubes'] };
  const labels = await readLabels(paths.labels);
  const inputs = { filter, labels, classifier: 'cnn1d', epochs: 6 };
  const { results, status, error } = await runJob<ClassifyResults>(node, 'analyse-classify', inputs);
  assert.equal(status, 'successful', error?.message);
  assert.deepEqual(
    results.compared.map(({ classifier }) => classifier),
    ['lda', 'logistic', 'cnn1d'],
  );
  assert.ok(results.oa > 0.9, `${results.oa}`);
  const wavelengths = results.bands.map(({ wavelength }) => wavelength);
  assert.deepEqual(
    wavelengths,
    wavelengths.toSorted((a, b) => a - b),
  );
  const absorbing = results.bandWeights![1]!;
  const peak = absorbing.indexOf(Math.max(...absorbing));
  assert.ok(Math.abs(peak - PLANTED) <= 4, `the peak is at band ${peak}: ${absorbing}`);
  assert.equal(absorbing[peak], 1);

  const maps = (await tilesOf(node)).filter(({ source }) => source === 'classify');
  const predict = { model: results.model, filter: { collections: ['others'] } };
  const predicted = await runJob<PredictResults>(node, 'predict', predict);
  assert.equal(predicted.results.tiles, maps.length, JSON.stringify(predicted));
  for (const map of maps) {
    const other = (await tilesOf(node)).find(
      ({ collection, geocode, source }) =>
        collection === 'others' && geocode === map.geocode && source === 'predicted',
    )!;
    for (const group of ['class', map.groups[0]!.name]) {
      const [a, b] = await Promise.all(
        [map, other].map((one) => readImage(node.storage.tileImage(one, group))),
      );
      assert.deepEqual(b!.bands, a!.bands);
    }
  }
  assert.equal((await node.server.inject(`/models/${results.model}/model.onnx`)).statusCode, 200);

  const half = await runJob<ClassifyResults>(node, 'analyse-classify', { ...inputs, precision: 'mixed' });
  const [full, mixed] = [results.training!, half.results.training!];
  assert.equal(2 * mixed.gradientBytes, full.gradientBytes);
  assert.equal(2 * mixed.spectraBytes, full.spectraBytes);
  assert.ok(Math.abs(half.results.oa - results.oa) <= 0.005, `${half.results.oa} for ${results.oa}`);
  const refused = await runJob(node, 'analyse-classify', { filter, labels, epochs: 3 }).catch(
    (error) => error,
  );
  assert.match(JSON.stringify(refused.message ?? refused), /NET_OPTION|epochs apply only/);
});
