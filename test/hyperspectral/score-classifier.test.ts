/** Stored classifiers on other labels: counts by a second reading of the maps, areas by the worked example of their paper. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gridByName } from '../../src/grid/index.js';
import { areaEstimates } from '../../src/hyperspectral/analyses/score-classifier.js';
import { readLabels, type ScoreClassifierResults } from '../../src/hyperspectral/index.js';
import { createTransform, crsFromEpsg, readImage } from '../../src/raster/index.js';
import { random } from '../raster/images.js';
import { ingest, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import {
  classAt,
  GROUND_SIDE,
  labelledGround,
  writeGroundCube,
  writeGroundLabels,
} from './labelled-ground.js';

/** Olofsson et al. 2014, table 8: labels of each class of the map, in columns; and table 9. */
const SAMPLE = [
  [66, 0, 5, 4],
  [0, 55, 8, 12],
  [1, 0, 153, 11],
  [2, 1, 9, 313],
];
const HECTARES = [18_000, 13_500, 288_000, 580_500];
const NAMES = ['deforestation', 'gain', 'forest', 'other'];
const transposed = (rows: number[][]) => rows[0]!.map((_, c) => rows.map((row) => row[c]!));

test('areas and accuracies agree with the worked example of Olofsson et al. 2014', () => {
  const found = areaEstimates(transposed(SAMPLE), HECTARES, NAMES);
  assert.ok(typeof found !== 'string');
  const half = (error: number) => 1.96 * error;
  assert.deepEqual(
    found.classes.map(({ area, areaError }) => [Math.round(area), Math.round(half(areaError))]),
    [
      [21_158, 6158],
      [11_686, 3756],
      [285_770, 15_510],
      [581_386, 16_282],
    ],
  );
  const digits = (values: number[]) => values.map((value) => value.toFixed(2)).join();
  assert.equal(digits([found.oa, half(found.oaError)]), '0.95,0.02');
  assert.equal(digits(found.classes.map(({ users }) => users)), '0.88,0.73,0.93,0.96');
  assert.equal(digits(found.classes.map(({ usersError }) => half(usersError))), '0.07,0.10,0.04,0.02');
  assert.equal(digits(found.classes.map(({ producers }) => producers)), '0.75,0.85,0.93,0.96');
});

test('standard errors are those of repeated samples', () => {
  const found = areaEstimates(transposed(SAMPLE), HECTARES, NAMES);
  assert.ok(typeof found !== 'string');
  const next = random(5);
  const drawn = Array.from({ length: 3000 }, () => {
    const rows = SAMPLE.map((row) => {
      const total = row.reduce((sum, one) => sum + one, 0);
      const counts = [0, 0, 0, 0];
      for (let i = 0; i < total; i++) {
        const at = next() * total;
        counts[[0, 1, 2, 3].findIndex((c) => at < row.slice(0, c + 1).reduce((sum, one) => sum + one))]!++;
      }
      return counts;
    });
    const estimates = areaEstimates(transposed(rows), HECTARES, NAMES);
    assert.ok(typeof estimates !== 'string');
    return estimates;
  });
  const deviation = (values: number[]) => {
    const mean = values.reduce((sum, one) => sum + one, 0) / values.length;
    return Math.sqrt(values.reduce((sum, one) => sum + (one - mean) ** 2, 0) / values.length);
  };
  const isNear = (error: number, values: number[]) =>
    assert.ok(Math.abs(error / deviation(values) - 1) < 0.1, `${error} ${deviation(values)}`);
  isNear(
    found.oaError,
    drawn.map(({ oa }) => oa),
  );
  for (const [c, one] of found.classes.entries()) {
    isNear(
      one.areaError,
      drawn.map(({ classes }) => classes[c]!.area),
    );
    isNear(
      one.producersError,
      drawn.map(({ classes }) => classes[c]!.producers),
    );
  }
});

test('a class of the map without two labels has no estimates', () => {
  const rows = [
    [1, 0],
    [30, 40],
  ];
  assert.match(areaEstimates(transposed(rows), [5, 5], ['a', 'b']) as string, /fewer than 2 labels .* to a$/);
  assert.ok(typeof areaEstimates(transposed(rows), [0, 5], ['a', 'b']) !== 'string');
});

for (const classifier of ['lda', 'resnet3d'])
  test(`${classifier}: the counts are those of the map that predict makes, and trained ground is named`, async (t) => {
    const { node, folder, filter, classify } = await labelledGround(
      t,
      (column, row) => column < 60 && (column + row) % 3 === 0,
    );
    const epochs = classifier === 'lda' ? {} : { epochs: 1 };
    const { results: trained, error } = await classify({ classifier, ...epochs });
    assert.ok(trained, error?.message);
    const { model } = trained;
    await ingest(node, {
      href: writeGroundCube(folder, 'later', '2024-07-01'),
      collection: 'later',
      // Networks that read neighbours need pixels of the same size.
      precision: classifier === 'lda' ? 6 : 5,
    });
    const before = await tilesOf(node);
    const east = await readLabels(
      writeGroundLabels(folder, 'east', (column, row) => column > 99 && row % 2 === 0),
    );
    const score = async (labels: object, inputs: object = {}) => {
      const { results, error } = await runJob<ScoreClassifierResults>(node, 'score-classifier', {
        model,
        labels,
        filter,
        ...inputs,
      });
      assert.ok(results, error?.message);
      return results;
    };
    const other = await score(east);
    assert.deepEqual(other.trained, { pixels: 0, squares: 0 });
    assert.equal(other.elsewhere, undefined);
    const later = await score(east, { filter: { collections: ['later'] } });
    assert.ok(Math.abs(later.pixels / other.pixels - 1) < 0.1 && Math.abs(later.oa - other.oa) < 0.1);
    assert.deepEqual(await tilesOf(node), before);

    const all = await score(await readLabels(writeGroundLabels(folder, 'all', (column) => column % 5 === 0)));
    assert.ok(all.trained.pixels > 500 && all.elsewhere!.pixels === all.pixels - all.trained.pixels);
    assert.match(all.warnings.join(), /labelled pixels lie on ground that trained the classifier/);
    assert.match(all.noArea!, /not declared as a probability sample/);

    // A second reading: the map of the same tiles, and the labels of the image at the centres of its pixels.
    const maps = (await tilesOf(node)).filter(({ source }) => source === 'classify');
    const project = createTransform(crsFromEpsg(4326), crsFromEpsg(32633));
    const confusion = [0, 1, 2].map(() => [0, 0, 0]);
    for (const map of maps) {
      const [codes] = (await readImage(node.storage.tileImage(map, 'class'))).bands;
      const { width, height } = map.groups[0]!;
      const { west, east, north, south } = gridByName(map.grid).bounds(map.geocode);
      for (const [i, code] of codes!.entries()) {
        const x = west + (((i % width) + 0.5) * (east - west)) / width;
        const y = north - ((Math.floor(i / width) + 0.5) * (north - south)) / height;
        const [e, n] = project(x, y);
        const [column, row] = [Math.floor((e - 500_000) / 30), Math.floor((5_300_000 - n) / 30)];
        const isInside = column >= 0 && row >= 0 && column < GROUND_SIDE && row < GROUND_SIDE;
        if (!isInside || column % 5 !== 0 || code > 3) continue;
        confusion[classAt(row * GROUND_SIDE + column) - 1]![code - 1]!++;
      }
    }
    assert.deepEqual(all.confusion, confusion);
    // A map of the same classifier as its own labels.
    const own = await score({ collection: 'cubes' });
    assert.equal(own.oa, 1);
    assert.match(own.warnings.join(), /labels are those of a map .* not how much they are right/);
    assert.equal(
      all.pixels,
      confusion.flat().reduce((sum, count) => sum + count, 0),
    );
  });

test('labels are matched by their names; classes that the classifier does not know count as errors', async (t) => {
  const { node, folder, filter, classify } = await labelledGround(
    t,
    (column, row) => (column + row) % 3 === 0,
  );
  const path = join(folder, 'names.geojson');
  const points = async (nameOf: (code: number) => string | number | undefined) => {
    const toDegrees = createTransform(crsFromEpsg(32633), crsFromEpsg(4326));
    const features = Array.from({ length: GROUND_SIDE ** 2 }, (_, i) => i)
      .filter((i) => i % 7 === 0)
      .flatMap((i) => {
        const name = nameOf(classAt(i));
        const at = toDegrees(
          500_000 + 30 * ((i % GROUND_SIDE) + 0.5),
          5_300_000 - 30 * (Math.floor(i / GROUND_SIDE) + 0.5),
        );
        const geometry = { type: 'Point', coordinates: at };
        return name === undefined ? [] : [{ type: 'Feature', properties: { class: name }, geometry }];
      });
    await writeFile(path, JSON.stringify({ type: 'FeatureCollection', features }));
    return readLabels(path);
  };
  const names = ['', 'water', 'grass', 'roof'];
  const { results: trained } = await classify({ labels: await points((code) => names[code]) });
  const score = async (labels: object) =>
    (await runJob<ScoreClassifierResults>(node, 'score-classifier', { model: trained.model, labels, filter }))
      .results;
  const all = await score(await points((code) => names[code]));
  assert.ok(all.oa > 0.7, `${all.oa}`);
  assert.deepEqual(all.names, ['grass', 'roof', 'water']);
  // Without grass, GeoJSON gives other codes to the same names.
  const some = await score(await points((code) => (code === 2 ? undefined : names[code])));
  assert.deepEqual(some.confusion[0], [0, 0, 0]);
  assert.deepEqual(some.confusion.slice(1), all.confusion.slice(1));
  // A name that the classifier does not know, under a code that it knows.
  const strange = await score(await points((code) => (code === 2 ? 'asphalt' : names[code])));
  assert.deepEqual(strange.names, ['grass', 'roof', 'water', 'asphalt']);
  assert.match(strange.warnings.join(), /does not know asphalt: their pixels count as errors/);
  assert.ok(strange.oa < all.oa);
  assert.deepEqual(strange.confusion[3]!.slice(0, 3), all.confusion[0]);
});

test('areas need single pixels of one date that are declared as a probability sample', async (t) => {
  const { node, folder, filter, classify } = await labelledGround(
    t,
    (column, row) => column < 60 && (column + row) % 3 === 0,
  );
  const { model } = (await classify()).results;
  const next = random(9);
  const drawn = Array.from({ length: GROUND_SIDE ** 2 }, () => next() < 0.05);
  const sample = await readLabels(
    writeGroundLabels(folder, 'sample', (column, row) => drawn[row * GROUND_SIDE + column]!),
  );
  const score = async (inputs: object) =>
    (
      await runJob<ScoreClassifierResults>(node, 'score-classifier', {
        model,
        labels: sample,
        filter,
        ...inputs,
      })
    ).results;
  const { area, warnings } = await score({ sample: 'random' });
  const total = area!.classes.reduce((sum, one) => sum + one.area, 0);
  const mapped = area!.classes.reduce((sum, one) => sum + one.mapped, 0);
  assert.ok(Math.abs(mapped / (GROUND_SIDE * 0.03) ** 2 - 1) < 0.03, `${mapped}`);
  assert.ok(Math.abs(total / mapped - 1) < 1e-9);
  for (const { area: estimate, areaError } of area!.classes)
    assert.ok(Math.abs(estimate - mapped / 3) < 3 * areaError + 0.01 * mapped, `${estimate} ${areaError}`);
  assert.match(warnings.join(), /ground that trained/);
  assert.match((await score({})).noArea!, /--sample random or stratified/);
  const dense = await readLabels(writeGroundLabels(folder, 'dense', (column) => column > 90));
  assert.match((await score({ sample: 'random', labels: dense })).noArea!, /label single pixels/);
  await ingest(node, {
    href: writeGroundCube(folder, 'later', '2024-07-01'),
    collection: 'cubes',
    precision: 5,
  });
  assert.match((await score({ sample: 'stratified' })).noArea!, /choose one date with --datetime/);
  const dated = {
    filter: { ...filter, datetime: '2024-07-01T00:00:00Z/2024-07-02T00:00:00Z' },
    sample: 'stratified',
  };
  assert.ok((await score(dated)).area);
});

test('what cannot be scored is refused with the reason', async (t) => {
  const { node, folder, filter, labels, classify } = await labelledGround(
    t,
    (column, row) => (column + row) % 3 === 0,
  );
  const { model } = (await classify()).results;
  const refusal = async (inputs: object) =>
    (await runJob<ScoreClassifierResults>(node, 'score-classifier', { model, labels, filter, ...inputs }))
      .error;
  assert.equal((await refusal({ model: 'classifier_none_gu' }))!.code, 'TW_STORAGE_NO_MODEL');
  assert.equal((await refusal({ version: 'none' }))!.code, 'TW_STORAGE_NO_MODEL_VERSION');
  const none = { features: [{ code: 1, geometry: { type: 'Point', coordinates: [20, 20] } }] };
  const outside = await refusal({ labels: none });
  assert.equal(outside!.code, 'TW_ANALYSIS_FEW_LABELS');
  assert.match(outside!.message, /no labelled pixel lies in the \d+ tiles/);
  assert.equal((await refusal({ filter: { collections: ['nosuch'] } }))!.code, 'TW_QUERY_NO_COLLECTION');
  await ingest(node, { href: writeGroundCube(folder, 'raw'), collection: 'raw', precision: 5, scale: 1 });
  const other = await refusal({ filter: { collections: ['raw'] } });
  assert.match(other!.message, /where the classifier was trained/);
});
