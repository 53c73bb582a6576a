/** Classification as a job: planted classes are recognised on ground that was not used for training. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';
import { type ClassifyResults, readLabels } from '../../src/hyperspectral/index.js';
import { openImage, readImage, readRaster } from '../../src/raster/index.js';
import type { PredictResults } from '../../src/training/index.js';
import { assertDataParts } from '../derive/tiles.js';
import { writeEnvi } from '../raster/envi.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';
import { writeCube } from './cubes.js';
import { writePlantedCube } from './planted.js';

const filter = { collections: ['cubes'] };
const MAP = 'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}';

const CLASS_NAMES = `class names = {${Array.from({ length: 31 }, (_, code) => `rock ${code}`).join()}}`;

test('planted classes are recognised, and the map shows them', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const side = 64;
  const { cube, truth } = writePlantedCube(folder, { snr: 30, side });
  await ingest(node, { href: cube, collection: 'cubes', precision: 5 });
  const { bands } = await readRaster(truth);
  const shares = bands.slice(0, 4).map((band) => Array.from(band));
  // Every fifth pixel has a label, so that trainings are short.
  const codes = shares[0]!.map((_, i) => {
    if (i % 5 > 0) return 0;
    const own = shares.map((band) => band[i]!);
    return Math.max(...own) > 5000 ? 10 * (1 + own.indexOf(Math.max(...own))) : 0;
  });
  const size = { width: side, height: side, type: 'uint8', interleave: 'bsq' } as const;
  writeEnvi(join(folder, 'labels.bsq'), {
    ...size,
    bands: [codes],
    lines: [MAP, 'data ignore value = 0', CLASS_NAMES],
  });
  const labels = await readLabels(join(folder, 'labels.hdr'));
  const { id, status, results, error } = await runJob<ClassifyResults>(node, 'analyse-classify', {
    filter,
    labels,
    split: 'random',
  });
  assert.equal(status, 'successful', error?.message);
  assert.deepEqual(
    results.compared.map(({ classifier }) => classifier),
    ['lda', 'logistic', 'mlp'],
  );
  assert.ok(
    results.compared.every(({ oa }) => oa > 0.9),
    JSON.stringify(results.compared),
  );
  const simple = results.compared.find(({ excess, excessError }) => excess <= excessError!)!;
  assert.equal(simple.classifier, results.classifier);
  assert.ok(results.calibration.error < 0.1, JSON.stringify(results.calibration));
  assert.deepEqual(
    results.classes.map(({ code }) => code),
    [10, 20, 30, 40],
  );
  assert.ok(results.oa > 0.9 && results.kappa > 0.85 && results.oaByPlace! > 0.9, JSON.stringify(results));
  const maps = (await tilesOf(node)).filter(({ source }) => source === 'classify');
  assert.ok(maps.length > 0);
  assert.ok((await assertDataParts(node.storage))['classify']! > 0);
  const seen = new Set<number>();
  for (const map of maps) {
    const made = (await readImage(node.storage.tileImage(map, map.groups[0]!.name))).bands;
    const classes = (await readImage(node.storage.tileImage(map, 'class'))).bands[0]!;
    for (let i = 0; i < classes.length; i++) {
      if (Number.isNaN(made[0]![i])) {
        assert.equal(classes[i], 255);
        continue;
      }
      const own = made.map((band) => band[i]!);
      assert.ok(Math.abs(own.reduce((sum, value) => sum + value, 0) - 1) < 1e-5);
      assert.equal(classes[i], 10 * (1 + own.indexOf(Math.max(...own))));
      seen.add(classes[i]!);
    }
  }
  assert.deepEqual([...seen].sort(), [10, 20, 30, 40]);

  const { models } = (await node.server.inject('/models')).json();
  assert.equal(models[0].id, results.model);
  assert.equal(models[0].classifier, results.classifier);
  const { card } = (await node.server.inject(`/models/${results.model}`)).json();
  assert.deepEqual([card.job, card.classes.length, card.bands.length], [id, 4, 18]);
  const item = (await node.server.inject(`/models/${results.model}/item`)).json();
  assert.deepEqual(item.properties['mlm:tasks'], ['classification']);
  assert.equal((await node.server.inject(`/models/${results.model}/model.onnx`)).statusCode, 200);

  // The same pixels in another collection get the same classes.
  await ingest(node, { href: cube, collection: 'others', precision: 5 });
  const predict = { model: results.model, filter: { collections: ['others'] } };
  const predicted = await runJob<PredictResults>(node, 'predict', predict);
  assert.equal(predicted.results.tiles, maps.length, JSON.stringify(predicted));
  const tiles = await tilesOf(node);
  for (const map of maps) {
    const other = tiles.find(
      ({ collection, geocode, source }) =>
        collection === 'others' && geocode === map.geocode && source === 'predicted',
    )!;
    assert.deepEqual(other.model, { id: results.model, version: results.version });
    for (const group of ['class', map.groups[0]!.name]) {
      const [a, b] = await Promise.all(
        [map, other].map((one) => readImage(node.storage.tileImage(one, group))),
      );
      assert.deepEqual(b!.bands, a!.bands);
    }
  }
  const { metadata, colours } = await openImage(node.storage.tileImage(maps[0]!, 'class'));
  assert.deepEqual([metadata['CLASS_30'], metadata['CLASS_40']], ['rock 30', 'class 40']);
  assert.deepEqual(
    [0, 256, 512].map((channel) => colours![channel + 10]! >> 8),
    [0xcc, 0xeb, 0xc5],
  );

  // A file of the map is not a truth either.
  const file = await node.server.inject(`/tiles/${maps[0]!.id}/class.tif`);
  const path = join(folder, 'map.tif');
  await writeFile(path, file.rawPayload);
  const ofMap = { model: results.model, labels: await readLabels(path) };
  const scored = await runJob<{ warnings: string[] }>(node, 'score-classifier', ofMap);
  assert.match(scored.results.warnings.join(), /labels are those of a map that a classifier has made/);

  const labelled = { labels: { collection: 'cubes' }, classifier: 'lda', filter: predict.filter };
  const learnt = await runJob<ClassifyResults>(node, 'analyse-classify', labelled);
  assert.deepEqual(
    learnt.results.classes.map(({ code }) => code),
    [10, 20, 30, 40],
  );
  assert.ok(learnt.results.oa > 0.9);
  assert.equal(learnt.results.model.split('_')[1], 'others');
  const again = await runJob<PredictResults>(node, 'predict', predict);
  assert.deepEqual([again.results.tiles, again.results.unchanged], [0, maps.length]);

  const of = async (precision: string) => {
    const inputs = { filter, labels, classifier: 'logistic', precision };
    return (await runJob<ClassifyResults>(node, 'analyse-classify', inputs)).results;
  };
  const [full, mixed] = [await of('full'), await of('mixed')];
  assert.ok(Math.abs(mixed.oa - full.oa) <= 0.005, `${mixed.oa} for ${full.oa}`);
  assert.equal(2 * mixed.training!.spectraBytes, full.training!.spectraBytes);
  const [most, least] = [full, mixed].map(({ training }) => {
    const { gradientBytes, evaluations, parameters } = training!;
    return gradientBytes / evaluations! / parameters;
  });
  // Near the minimum, sums are small and need 32 bits even in full precision.
  assert.ok(most! > 4 && most! <= 8 && least === 4, `${most} ${least}`);
});

test('a classifier is not applied to tiles without its bands', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const { cube, truth } = writePlantedCube(folder, { snr: 30, side: 70 });
  await ingest(node, { href: cube, collection: 'cubes', precision: 5 });
  const { bands } = await readRaster(truth);
  const codes = Array.from(bands[0]!, (share, i) => (i % 4 > 0 ? 0 : share > bands[1]![i]! ? 1 : 2));
  const size = { width: 70, height: 70, type: 'uint8', interleave: 'bsq' } as const;
  writeEnvi(join(folder, 'labels.bsq'), { ...size, bands: [codes], lines: [MAP, 'data ignore value = 0'] });
  const labels = await readLabels(join(folder, 'labels.hdr'));
  const inputs = { filter, labels, classifier: 'lda' };
  const { results } = await runJob<ClassifyResults>(node, 'analyse-classify', inputs);
  assert.equal(results.classifier, 'lda');
  const narrow = join(folder, 'narrow');
  mkdirSync(narrow);
  const other = writeCube(narrow, 'narrow', { seed: 1, date: '2024-06-01', scale: 5000 });
  const header = other.replace(/[^.]*$/, 'hdr');
  const moved = (list: string) => list.replace(/[\d.]+/g, (nm) => `${Number(nm) + 20}`);
  const text = await readFile(header, 'utf8');
  await writeFile(header, text.replace(/(?<=wavelength = \{)[^}]*/, moved));
  await ingest(node, { href: other, collection: 'narrow', precision: 5 });
  const filterOf = { collections: ['narrow'] };
  const predicted = await runJob<PredictResults>(node, 'predict', { model: results.model, filter: filterOf });
  assert.equal(predicted.results.tiles, 0);
  assert.match(Object.keys(predicted.results.skipped).join(), /no good band at .* nm, which the model reads/);
  const refused = await runJob(node, 'predict', { model: 'classifier_none_gu' });
  assert.equal(refused.error?.code, 'TW_TRAIN_NO_MODEL');
});

/** Two classes without noise, so that the covariance within them is 0. `metres`: side of a pixel. Returns the path of their labels. */
async function writeHalves(folder: string, name: string, metres = 30, date = '2024-06-01'): Promise<string> {
  const side = Math.round(2100 / metres);
  const halves = Array.from({ length: side * side }, (_, i) => (i % side < side / 2 ? 1 : 2));
  const size = { width: side, height: side, interleave: 'bsq' } as const;
  const wavelengths = Array.from({ length: 20 }, (_, b) => 450 + 50 * b);
  const bands = wavelengths.map((_, b) => halves.map((half) => 1000 * half + 100 * half * b));
  const map = `map info = {UTM, 1, 1, 500000, 5300000, ${metres}, ${metres}, 33, North, WGS-84}`;
  const about = [
    ...[map, 'reflectance scale factor = 10000', `acquisition time = ${date}T10:00:00Z`],
    ...['wavelength units = Nanometers', `wavelength = {${wavelengths.join()}}`],
  ];
  writeEnvi(join(folder, `${name}.bsq`), { ...size, type: 'int16', bands, lines: about });
  // Every fourth pixel has a label, so that trainings are short.
  const labelled = halves.map((half, i) => (i % 4 === 0 ? half : 0));
  const lines = [map, 'data ignore value = 0'];
  writeEnvi(join(folder, `${name}-labels.bsq`), { ...size, type: 'uint8', bands: [labelled], lines });
  return join(folder, `${name}-labels.hdr`);
}

test('tiles with a different pixel size are skipped, because their squares would overlap', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const labels = await readLabels(await writeHalves(folder, 'coarse'));
  await writeHalves(folder, 'fine', 15, '2024-06-02');
  await writeHalves(folder, 'again', 30, '2024-06-03');
  for (const name of ['coarse', 'fine', 'again'])
    await ingest(node, { href: join(folder, `${name}.hdr`), collection: 'cubes', precision: 5 });
  const inputs = { filter, labels, classifier: 'logistic' };
  const { status, results, error } = await runJob<ClassifyResults>(node, 'analyse-classify', inputs);
  assert.equal(status, 'successful', error?.message);
  const raw = (await tilesOf(node)).filter(({ source }) => source === 'raw');
  const fine = raw.filter(({ scene }) => scene.startsWith('fine'));
  assert.ok(fine.length > 0);
  assert.equal(results.tiles, raw.length - fine.length);
  assert.deepEqual(results.skipped, {
    'their pixels have another size than those of most tiles': fine.length,
  });
});

test('a classifier of derived spectra applies only to derived spectra, and is trained even if discriminants cannot be', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const labels = await readLabels(await writeHalves(folder, 'cube'));
  await ingest(node, { href: join(folder, 'cube.hdr'), collection: 'cubes', precision: 5 });
  await runJob(node, 'analyse-smooth', { filter, derivative: 1 });
  const smooth = { ...filter, source: 'smooth' };
  const { status, results, error } = await runJob<ClassifyResults>(node, 'analyse-classify', {
    ...{ filter: smooth, labels },
    classifier: 'logistic',
  });
  assert.equal(status, 'successful', error?.message);
  assert.deepEqual([results.oa, results.compared.length, results.shrinkage], [1, 1, undefined]);
  const { model } = results;
  const predicted = await runJob<PredictResults>(node, 'predict', { model, filter });
  assert.equal(predicted.results.tiles, results.tiles);
  const raw = await runJob<PredictResults>(node, 'predict', { model, filter: { ...filter, source: 'raw' } });
  assert.deepEqual(
    [raw.results.tiles, Object.keys(raw.results.skipped)],
    [0, ['their source is raw, and the model was trained on smooth']],
  );
});

test('numbers in GeoJSON labels are codes, and 0 means no label', async (t) => {
  const path = join(await tempFolder(t), 'labels.geojson');
  const feature = (value: number) => ({
    ...{ type: 'Feature', properties: { class: value } },
    geometry: { type: 'Point', coordinates: [15, 47] },
  });
  const write = (...values: number[]) =>
    writeFile(path, JSON.stringify({ type: 'FeatureCollection', features: values.map(feature) }));
  await write(0, 7, 2);
  const { names, features } = await readLabels(path);
  assert.deepEqual([names, features!.map(({ code }) => code)], [undefined, [7, 2]]);
  await write(1, 300);
  await assert.rejects(readLabels(path), /has the class 300; codes are 1 to 254/);
});

test('labels that have one class, lie outside the tiles or are damaged are refused', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const { cube } = writePlantedCube(folder, { snr: 30, side: 40 });
  await ingest(node, { href: cube, collection: 'cubes', precision: 5 });
  const square = (west: number, code: string) => ({
    type: 'Feature',
    properties: { class: code },
    geometry: {
      type: 'Polygon',
      coordinates: [
        [
          [west, 47.84],
          [west + 0.005, 47.84],
          [west + 0.005, 47.86],
          [west, 47.86],
          [west, 47.84],
        ],
      ],
    },
  });
  const path = join(folder, 'labels.geojson');
  const read = async (features: object[]) => {
    await writeFile(path, JSON.stringify({ type: 'FeatureCollection', features }));
    return readLabels(path);
  };
  const two = await read([square(15, 'grass'), square(16, 'water')]);
  assert.deepEqual(two.names, { 1: 'grass', 2: 'water' });
  const one = await runJob(node, 'analyse-classify', { filter, labels: two });
  assert.equal(one.error?.code, 'TW_ANALYSIS_FEW_LABELS');
  await assert.rejects(read([{ ...square(15, 'x'), properties: {} }]), /no property "class"/);
  const raw = await runJob(node, 'analyse-classify', { filter, labels: { collection: 'cubes' } });
  assert.match(raw.error!.message, /has no codes/);
  const raster = { epsg: 32633, transform: [0, 1, 0, 0, 0, -1], width: 9, height: 9, codes: 'eJwDAAAAAAE=' };
  await assert.rejects(
    runJob(node, 'analyse-classify', { filter, labels: { raster } }),
    /TW_ANALYSIS_LABELS/,
  );
  const image = (codes: number[], change = {}) => ({
    ...{ epsg: 32633, transform: [500_000, 30, 0, 5_300_000, 0, -30], width: 2, height: 2, ...change },
    codes: deflateSync(Uint8Array.from(codes)).toString('base64'),
  });
  for (const [bad, why] of [
    [image([1, 2, 255, 0]), /holds the code 255/],
    [image([1, 2, 0, 0], { transform: [0, 30, 0, 0, 0, 0] }), /has no inverse/],
    [image([1, 2, 0, 0], { epsg: 1 }), /EPSG:1\b/],
  ] as const)
    await assert.rejects(runJob(node, 'analyse-classify', { filter, labels: { raster: bad } }), why);
  await assert.rejects(
    runJob(node, 'analyse-classify', { filter, labels: {} }),
    /either an image, geometries or a collection/,
  );
});
