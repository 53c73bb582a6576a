/** `tilewright analyse`: real processes over a small planted cube. */
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeGroundCube, writeGroundLabels } from '../hyperspectral/labelled-ground.js';
import { writePlantedCube } from '../hyperspectral/planted.js';
import { tilewright } from '../support/command.js';
import { tempFolder } from '../support/temp.js';

test('analyses by the command: tables, JSON, files, and what is refused', async (t) => {
  const folder = await tempFolder(t);
  const target = ['--data', join(folder, 'data')];
  const { cube, pure, wavelengths } = writePlantedCube(folder, { snr: 30, side: 40 });
  const which = ['--collection', 'cubes', ...target];
  assert.equal((await tilewright('ingest', cube, '--precision', '6', ...which)).code, 0);

  const output = join(folder, 'out');
  const stats = await tilewright('analyse', 'stats', ...which, '--output', output);
  assert.equal(stats.code, 0, stats.stderr);
  assert.match(stats.stdout, /b1 +450\.0 +0\.\d+/);
  assert.match(stats.stdout, /3 files in .*out/);
  assert.deepEqual((await readdir(output)).sort(), ['correlation.npy', 'covariance.npy', 'report.html']);
  const report = await readFile(join(output, 'report.html'), 'utf8');
  assert.match(report, /18 bands, 450 to 1400 nm/);
  assert.doesNotMatch(report, /(src|href)="(?!data:)/, 'the page fetches nothing');

  const library = join(folder, 'library.csv');
  const rows = wavelengths.map((nm, b) => [nm, ...pure.map((spectrum) => spectrum[b]!)].join());
  await writeFile(library, ['wavelength (nm),a,b,"c, d",e', ...rows].join('\n'));
  const match = async (...more: string[]) =>
    tilewright('analyse', 'match', '--library', library, ...which, '--format', 'json', ...more);
  const found = JSON.parse((await match('--targets', 'b,e', '--method', 'sid')).stdout);
  assert.deepEqual(
    found.targets.map(({ name }: { name: string }) => name),
    ['b', 'e'],
  );
  assert.equal(found.method, 'sid');
  const wrong = await match('--targets', 'granite');
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /no spectrum "granite"; it has a, b, .*TW_CLI_TARGETS/);

  const unmix = await tilewright('analyse', 'unmix', '--library', library, '--method', 'nnls', ...which);
  assert.equal(unmix.code, 0, unmix.stderr);
  assert.match(unmix.stdout, /nnls over 18 bands/);
  assert.match(unmix.stdout, /made, 0 unchanged: --collection cubes --source unmix/);
  const cluster = await tilewright('analyse', 'cluster', '--clusters', '3', ...which, '--output', output);
  assert.equal(cluster.code, 0, cluster.stderr);
  assert.match(cluster.stdout, /code +pixels +share +rms distance\n1 +\d+ +\d+\.\d %/);
  assert.match(cluster.stdout, /3 clusters explain \d+\.\d % of the variance of \d+ pixels; \d+ iterations/);
  const centres = join(output, 'centres.csv');
  const found3 = await tilewright('analyse', 'match', '--library', centres, ...which, '--format', 'json');
  assert.equal(JSON.parse(found3.stdout).targets.length, 3, found3.stderr);
  const anomaly = (...more: string[]) => tilewright('analyse', 'anomaly', ...which, ...more);
  const local = await anomaly('--window-pixels', '9,3', '--components', '4');
  assert.equal(local.code, 0, local.stderr);
  assert.match(
    local.stdout,
    /background between windows of 3 and 9 pixels, in 4 components that explain \d+/,
  );
  const even = await anomaly('--window-pixels', '8');
  assert.equal(even.code, 2);
  assert.match(even.stderr, /a side of 8 pixels is not odd .*TW_ANALYSIS_WINDOW/);
  const epochs = await tilewright(
    'analyse',
    'classify',
    '--label-collection',
    'x',
    '--epochs',
    '3',
    ...which,
  );
  assert.equal(epochs.code, 2);
  assert.match(
    epochs.stderr,
    /epochs apply only to the classifiers cnn1d and resnet3d.*TW_ANALYSIS_NET_OPTION/,
  );
  const maps = await tilewright('search', '--source', 'unmix', '--format', 'json', ...which);
  assert.ok(JSON.parse(maps.stdout).features.length > 0);

  const none = await tilewright('analyse', 'pca', ...target);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /collections/);
});

test('indices, smoothing, resampling and continuum removal by the command', async (t) => {
  const folder = await tempFolder(t);
  const target = ['--data', join(folder, 'data')];
  const { cube } = writePlantedCube(folder, { snr: 30, side: 40 });
  const which = ['--collection', 'cubes', ...target];
  assert.equal((await tilewright('ingest', cube, '--precision', '6', ...which)).code, 0);
  const made = (source: string) => new RegExp(`made, 0 unchanged: --collection cubes --source ${source}`);

  const list = await tilewright('analyse', 'indices', '--list', ...target);
  assert.equal(list.code, 0, list.stderr);
  assert.match(
    list.stdout,
    /cai +0\.5 \* \(2000nm \+ 2200nm\) - 2100nm +cellulose absorption index \(Daughtry 2001/,
  );
  const indices = async (...more: string[]) => tilewright('analyse', 'indices', ...more, ...which);
  const ratio = await indices('--indices', 'max(900nm,800nm)/650nm,(900nm-650nm)/(900nm+650nm)');
  assert.equal(ratio.code, 0, ratio.stderr);
  assert.match(
    ratio.stdout,
    /max\(900nm,800nm\)\/650nm +900nm: b10 \(900\.0 nm\), 800nm: b8 \(800\.0 nm\), 650nm/,
  );
  assert.match(ratio.stdout, made('indices'));
  const far = await indices('--indices', 'cai,ndvi');
  assert.equal(far.code, 1);
  assert.match(far.stderr, /cai needs 2000 nm, and the nearest is b20 at 1400 nm.*TW_ANALYSIS_INDEX_BANDS/);
  const none = await indices();
  assert.equal(none.code, 2);
  assert.match(none.stderr, /indices/);

  const output = join(folder, 'out');
  const smooth = await tilewright('analyse', 'smooth', '--window-bands', '5', ...which, '--output', output);
  assert.equal(smooth.code, 0, smooth.stderr);
  assert.match(smooth.stdout, /smoothed: window 5, order 2\n18 bands in 1 run\n/);
  assert.match(smooth.stdout, made('smooth'));
  const report = await readFile(join(output, 'report.html'), 'utf8');
  assert.match(report, /<h2>Smoothed spectra<\/h2>.*<path d="M/s);
  assert.match(report, /smoothed/);

  const sensor = join(folder, 'sensor.csv');
  await writeFile(sensor, 'centre (um),fwhm\n0.56,0.04\n0.66,0.03\n1.6,0.09\n');
  const resample = await tilewright('analyse', 'resample', '--sensor', sensor, ...which);
  assert.equal(resample.code, 0, resample.stderr);
  assert.match(resample.stdout, /b1 +560 +40\nb2 +660 +30\nnot covered: b3\n/);
  assert.match(resample.stdout, made('resample'));
  await writeFile(sensor, '560,40\n660,wide\n');
  const wrong = await tilewright('analyse', 'resample', '--sensor', sensor, ...which);
  assert.match(wrong.stderr, /line 2 does not contain a centre and a FWHM.*TW_ANALYSIS_SENSOR_FILE/);

  const range = (text: string) =>
    tilewright('analyse', 'continuum', '--range', text, '--depth', ...which, '--output', output);
  const depth = await range('600nm,1.0um');
  assert.equal(depth.code, 0, depth.stderr);
  assert.match(depth.stdout, /depth: 8 bands, 10 beyond the range\n/);
  assert.match(
    await readFile(join(output, 'report.html'), 'utf8'),
    /Depth below the continuum.*class="legend scale">[\d.e-]+<i style="background: linear-gradient\(to right, #440154.*data:image\/png/s,
  );
  const turned = await range('1000nm,600nm');
  assert.equal(turned.code, 2);
  assert.match(turned.stderr, /two wavelengths/);
  const even = await tilewright('analyse', 'smooth', '--window-bands', '4', ...which);
  assert.equal(even.code, 2);
  assert.match(even.stderr, /a window of 4 bands.*TW_ANALYSIS_SMOOTHING/);
});

test('a classifier is trained and scored on other labels by the commands', async (t) => {
  const folder = await tempFolder(t);
  const target = ['--data', join(folder, 'data')];
  const cube = writeGroundCube(folder, 'cube');
  const which = ['--collection', 'cubes', ...target];
  assert.equal((await tilewright('ingest', cube, '--precision', '5', ...which)).code, 0);
  const west = writeGroundLabels(folder, 'west', (column, row) => column < 60 && (column + row) % 3 === 0);
  const classify = await tilewright('analyse', 'classify', '--classifier', 'lda', '--labels', west, ...which);
  assert.equal(classify.code, 0, classify.stderr);
  assert.match(classify.stdout, /code +class +pixels +squares +recall +precision +F1 +95 % interval\n/);
  assert.match(
    classify.stdout,
    /overall accuracy \S+ % \(95 % \S+ % to \S+ %\), average \S+ %, kappa \S+ \(95 % .* squares of separate ground/,
  );
  const [id] = /classifier_cubes_\w+/.exec(classify.stdout)!;
  const sample = writeGroundLabels(folder, 'sample', (column, row) => column % 5 === 0 && row % 7 === 0);
  const score = (...more: string[]) => tilewright('score', id, ...more, ...which);
  const plain = await score('--labels', sample);
  assert.equal(plain.code, 0, plain.stderr);
  assert.match(plain.stdout, /on ground that did not train the classifier: overall accuracy/);
  assert.match(plain.stdout, /label \/ map +class 1 +class 2 +class 3\nclass 1 +\d+/);
  assert.match(plain.stdout, /areas are not estimated: the labels are not declared .* --sample random/);
  assert.match(plain.stderr, /warning: \d+ of \d+ labelled pixels lie on ground that trained/);
  // The advice of the reason.
  const areas = await score('--labels', sample, '--sample', 'random', '--datetime', '2024-06-01');
  assert.equal(areas.code, 0, areas.stderr);
  assert.match(areas.stdout, /class 3 +\S+ +\S+ \+- \S+ +\S+ % \+- \S+ %/);
  const json = JSON.parse((await score('--labels', sample, '--format', 'json')).stdout);
  assert.equal(json.model, id);
  assert.equal(
    json.confusion.flat().reduce((sum: number, count: number) => sum + count, 0),
    json.pixels,
  );
  const unlabelled = await score();
  assert.equal(unlabelled.code, 2);
  assert.match(unlabelled.stderr, /--labels FILE or --label-collection ID .*TW_CLI_LABELS/);
  const wrong = await tilewright('score', 'ndvi', '--labels', sample, ...target);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /must be the id of a model/);
});
