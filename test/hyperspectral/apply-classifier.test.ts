/** Stored classifiers on tiles with different bands and pixel sizes, and labels that cannot train them. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { storeClassifier } from '../../src/hyperspectral/classification/stored-classifier.js';
import { type ClassifyResults, readLabels } from '../../src/hyperspectral/index.js';
import { readImage } from '../../src/raster/index.js';
import type { PredictResults } from '../../src/training/index.js';
import { writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { onlyNightly } from '../support/nightly.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';

const BANDS = 20;
/** Two detectors measure the wavelength of the band before this one; the classes differ only in this one. */
const SECOND = 13;
const SIDE = 40;
/** Every third row has labels, so that a training is short. */
const LABELLED_ROWS = 3;
const filter = { collections: ['cubes'] };

interface Ground {
  /** Side in pixels of 30 m. */
  side?: number;
  metres?: number;
  bandNames?: string[];
  /** The class of a pixel. */
  codeAt?: (column: number, row: number) => number;
  valueAt?: (code: number, band: number, pixel: number) => number;
}

const halves = (column: number) => (column % 4 < 2 ? 1 : 2);

/** Writes a cube and its labels. Returns their paths. */
function writeGround(
  folder: string,
  name: string,
  { side: fineSide = SIDE, metres = 30, codeAt = halves, valueAt, bandNames }: Ground = {},
): { href: string; labels: string } {
  const next = random(3);
  const side = Math.round((fineSide * 30) / metres);
  const codes = Array.from({ length: side * side }, (_, i) => codeAt(i % side, Math.floor(i / side)));
  const value = (code: number, band: number) =>
    3000 + 200 * (next() - 0.5) + (band === SECOND ? 1000 * code : 0);
  const size = { width: side, height: side, interleave: 'bsq' } as const;
  const map = `map info = {UTM, 1, 1, 500000, 5300000, ${metres}, ${metres}, 33, North, WGS-84}`;
  const wavelengths = Array.from({ length: BANDS }, (_, b) => 450 + 50 * (b < SECOND ? b : b - 1));
  mkdirSync(join(folder, name));
  writeEnvi(join(folder, name, 'cube.bsq'), {
    ...{ ...size, type: 'float32' },
    bands: wavelengths.map((_, band) => codes.map((code, i) => (valueAt ?? value)(code, band, i))),
    lines: [
      ...[map, 'acquisition time = 2024-06-01T10:00:00Z', 'wavelength units = Nanometers'],
      `wavelength = {${wavelengths.join()}}`,
      ...(bandNames ? [`band names = {${bandNames.join()}}`] : []),
    ],
  });
  const labels = join(folder, `${name}.bsq`);
  const labelled = codes.map((code, i) => (Math.floor(i / side) % LABELLED_ROWS === 0 ? code : 0));
  writeEnvi(labels, { ...size, type: 'uint8', bands: [labelled], lines: [map, 'data ignore value = 0'] });
  return { href: join(folder, name, 'cube.hdr'), labels: labels.replace('bsq', 'hdr') };
}

async function nodeWith(t: TestContext, ground: Ground = {}) {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const { href, labels } = writeGround(folder, 'cube', ground);
  await ingest(node, { href, collection: 'cubes', precision: 5 });
  return { folder, node, labels: await readLabels(labels) };
}

test('two bands of a model are never read from one band, even if detectors overlap', async (t) => {
  const { folder, node, labels } = await nodeWith(t);
  const inputs = { filter, labels, classifier: 'lda' };
  const { results } = await runJob<ClassifyResults>(node, 'analyse-classify', inputs);
  assert.equal(results.oa, 1);
  const bandNames = Array.from({ length: BANDS }, (_, b) => `x${b}`);
  const { href } = writeGround(folder, 'renamed', { bandNames });
  await ingest(node, { href, collection: 'renamed', precision: 5 });
  for (const collection of ['cubes', 'renamed'])
    await runJob(node, 'predict', { model: results.model, filter: { collections: [collection] } });
  const tiles = await tilesOf(node);
  assert.equal(tiles.find((one) => one.collection === 'renamed')!.groups[0]!.bands[0]!.name, 'x0');
  const maps = tiles.filter(({ source }) => source === 'classify');
  const predicted = tiles.filter(({ source }) => source === 'predicted');
  assert.ok(maps.length > 0 && predicted.length === 2 * maps.length);
  for (const map of maps)
    for (const other of predicted.filter(({ geocode }) => geocode === map.geocode)) {
      const [a, b] = await Promise.all(
        [map, other].map((one) => readImage(node.storage.tileImage(one, 'class'))),
      );
      assert.deepEqual(b!.bands, a!.bands, other.collection);
    }
});

test('a spatial network is not applied to a different pixel size', async (t) => {
  const side = 24;
  const { folder, node, labels } = await nodeWith(t, { side });
  const inputs = { filter, labels, classifier: 'resnet3d', epochs: 1 };
  const { results, error } = await runJob<ClassifyResults>(node, 'analyse-classify', inputs);
  assert.ok(results, error?.message);
  const { href } = writeGround(folder, 'coarse', { side, metres: 90 });
  await ingest(node, { href, collection: 'coarse', precision: 5 });
  const other = { model: results.model, filter: { collections: ['coarse'] } };
  const predicted = await runJob<PredictResults>(node, 'predict', other);
  assert.equal(predicted.results.tiles, 0);
  assert.deepEqual(Object.keys(predicted.results.skipped), [
    'their pixels have another size than those that the model was trained on',
  ]);
  const own = await runJob<PredictResults>(node, 'predict', { model: results.model, filter });
  assert.equal(own.results.tiles, results.tiles);
});

test('a damaged pixel does not end the training in mixed precision', { skip: onlyNightly }, async (t) => {
  const { folder, node, labels } = await nodeWith(t);
  // In a row with labels.
  const pixel = 30 * SIDE + 20;
  const next = random(5);
  // In a band that is almost 0, such as bands of water vapour, one bright pixel lies a million deviations away.
  const valueAt = (code: number, band: number, at: number) => {
    if (band === 5) return at === pixel ? 1 : 1e-6 * next();
    return 0.3 + 0.02 * next() + (band === SECOND ? 0.1 * code : 0);
  };
  const { href } = writeGround(folder, 'damaged', { valueAt });
  await ingest(node, { href, collection: 'damaged', precision: 5 });
  for (const of of [{ classifier: 'cnn1d', epochs: 1 }, { classifier: 'mlp' }]) {
    const inputs = { filter: { collections: ['damaged'] }, labels, precision: 'mixed', ...of };
    const { status, results, error } = await runJob<ClassifyResults>(node, 'analyse-classify', inputs);
    assert.equal(status, 'successful', error?.message);
    if (of.classifier === 'mlp') assert.ok(results.oa > 0.98, `${results.oa}`);
  }
});

test('a resumed job returns the version that it has stored', async (t) => {
  const { node } = await nodeWith(t);
  const store = (job: string) =>
    storeClassifier(
      node.storage,
      {
        ...{ classifier: 'lda', strength: 0.1, collection: 'cubes', job, sizes: [1, 2], seed: 1, seconds: 1 },
        ...{ bands: [], split: '', classes: [], baseline: {}, filter: { op: 'and', args: [] } },
        calibration: { temperature: 1, error: 0, uncalibrated: 0, bins: [] },
        metrics: {
          validation: { pixels: 1, squares: 1, oa: 1, aa: 1, kappa: 1, confusion: [], classes: [] },
        },
        labelled: { side: 32, size: [1, 1], at: [] },
        tiles: [{ id: 'a', version: '1', start: 0, grid: 'geohash', geocode: 'gu2d8z', source: 'raw' }],
      },
      { 'model.json': Buffer.from('{}'), 'weights.bin': Buffer.alloc(4) },
    );
  const first = await store('job-a');
  const second = await store('job-b');
  assert.notEqual(first.version, second.version);
  assert.deepEqual(await store('job-a'), { id: first.id, version: first.version });
});

test('a cube whose scale differs from that of the training is refused, not mapped wrongly', async (t) => {
  const { folder, node, labels } = await nodeWith(t);
  const { href } = writeGround(folder, 'scaled');
  await ingest(node, { href, collection: 'scaled', precision: 5, scale: 0.0001 });
  for (const classifier of ['lda', 'cnn1d']) {
    const epochs = classifier === 'cnn1d' ? { epochs: 1 } : {};
    const inputs = { filter, labels, classifier, ...epochs };
    const { results, error } = await runJob<ClassifyResults>(node, 'analyse-classify', inputs);
    assert.ok(results, error?.message);
    const other = { model: results.model, filter: { collections: ['scaled'] } };
    const refused = await runJob<PredictResults>(node, 'predict', other);
    assert.equal(refused.status, 'failed');
    assert.match(
      refused.error!.message,
      /mean of 0\.4\d* here and 4\d\d\d? where the classifier was trained/,
    );
    assert.match(
      refused.error!.message,
      /collection of the training again .* --scale 0\.0001, and train again/,
    );
  }
});
