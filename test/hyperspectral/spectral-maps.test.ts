/** Indices, smoothing, resampling and continuum removal as jobs, compared with the results of single pixels. */
import assert from 'node:assert/strict';
import { mkdirSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { savitzkyGolay } from '../../src/hyperspectral/analyses/smoothing.js';
import type {
  ContinuumResults,
  IndicesResults,
  MapResults,
  ResampleResults,
  SmoothResults,
  StatsResults,
} from '../../src/hyperspectral/index.js';
import { multiplyVector } from '../../src/hyperspectral/linear-algebra.js';
import { continuumRemoval } from '../../src/hyperspectral/methods/continuum.js';
import { responseWeights, SENSORS } from '../../src/hyperspectral/sensors.js';
import type { TilewrightNode } from '../../src/node.js';
import { type ImageFile, openImage, readImage } from '../../src/raster/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { assertDataParts } from '../derive/tiles.js';
import { suiteContext } from '../support/at-end.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { smallDisk } from '../support/small-disk.js';
import { tempFolder } from '../support/temp.js';
import { BAD, DETECTORS, FIRST, FWHM, SIDE, writeDetectorCube } from './detector-cube.js';

const filter = { collections: ['cubes'] };
const USED = Array.from(DETECTORS.keys()).filter((band) => band !== BAD);
const WAVELENGTHS = USED.map((band) => DETECTORS[band]!);

type Context = Parameters<typeof tempFolder>[0] & Parameters<typeof testNode>[0];

async function ingestCube(
  t: Context,
  node: TilewrightNode,
  collection: string,
  change = 0,
  changedFrom = SIDE,
): Promise<void> {
  const folder = await tempFolder(t);
  mkdirSync(join(folder, 'cube'));
  const href = writeDetectorCube(join(folder, 'cube'), 'a', change, changedFrom);
  assert.deepEqual((await ingest(node, { href, collection, precision: 5 })).failed, []);
}

async function nodeWithCube(t: Context, folder: string): Promise<TilewrightNode> {
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  await ingestCube(t, node, 'cubes');
  return node;
}

/** Most tests share this node with a cube. */
let node: TilewrightNode;
const file = suiteContext();
before(async () => {
  node = await nodeWithCube(file, await tempFolder(file));
});

async function analysed<R extends MapResults>(
  node: TilewrightNode,
  name: string,
  inputs: object,
): Promise<R> {
  const { status, results, error } = await runJob<R>(node, `analyse-${name}`, { filter, ...inputs });
  assert.equal(status, 'successful', error?.message);
  assert.deepEqual(results.failed, []);
  assert.ok(results.tiles > 0);
  return results;
}

type MapFile = { tile: TileRecord; image: ImageFile };

/** The ingested tiles of a collection, or their maps of a source; without the maps of smoothed spectra. */
const filesOf = async (source: string, collection = 'cubes'): Promise<MapFile[]> => {
  const tiles = await tilesOf(node);
  const ingested = new Set(tiles.filter((tile) => tile.source === 'raw').map(({ id }) => id));
  return tiles
    .filter((tile) => tile.source === source && tile.collection === collection)
    .filter(({ id, derivedFrom }) => ingested.has(derivedFrom[0] ?? id))
    .map((tile) => ({ tile, image: node.storage.tileImage(tile, '30m') }));
};

/** Calls `visit` with the spectrum of the good bands and the map values of some pixels that have values. */
async function eachPixel(
  source: string,
  visit: (spectrum: number[], values: number[]) => void,
): Promise<void> {
  const tiles = await tilesOf(node);
  let [seen, valid] = [0, 0];
  for (const { tile: map, image } of await filesOf(source)) {
    const raw = tiles.find(({ id }) => id === map.derivedFrom[0])!;
    const { bands: stored } = await readImage(node.storage.tileImage(raw, '30m'));
    const { bands: made } = await readImage(image);
    const mask = (await readImage(node.storage.tileImage(map, 'mask'))).bands[0]!;
    for (let i = 0; i < mask.length; i++) {
      const hasValue = made.some((band) => !Number.isNaN(band[i]!));
      assert.equal(mask[i] !== 0, hasValue);
      if (!hasValue) continue;
      valid++;
      if (seen++ % 37 !== 0) continue;
      visit(
        USED.map((band) => stored[band]![i]! * 1e-4),
        made.map((band) => band[i]!),
      );
    }
  }
  // Nearest neighbour leaves out or repeats some pixels, and a corner has no data.
  assert.ok(Math.abs(valid - (SIDE * SIDE - 180)) < 200, `${valid}`);
}

function near(values: readonly number[], wanted: ArrayLike<number>, tolerance: number, what: string): void {
  assert.equal(values.length, wanted.length, what);
  const most = Math.max(...Array.from(wanted, Math.abs).filter(Number.isFinite));
  for (const [i, value] of values.entries())
    assert.ok(Math.abs(value - wanted[i]!) <= tolerance * most, `${what} ${i}: ${value} ${wanted[i]}`);
}

test('smoothing works run by run; its tiles are spectra for maps by wavelength and further analyses', async () => {
  const window = { window: 9, order: 3, derivative: 1 };
  const results = await analysed<SmoothResults>(node, 'smooth', window);
  const starts = [0, FIRST - 1];
  for (const [i, wavelength] of WAVELENGTHS.entries())
    if (i > FIRST - 1 && wavelength - WAVELENGTHS[i - 1]! > 60) starts.push(i);
  const runs = starts.map((start, i) => (starts[i + 1] ?? WAVELENGTHS.length) - start);
  assert.deepEqual([results.runs, results.leftOut], [runs, 0]);
  const weights = starts.map((start, i) => savitzkyGolay(WAVELENGTHS.slice(start, start + runs[i]!), window));
  await eachPixel('smooth', (spectrum, values) => {
    const wanted = starts.flatMap((start, i) => [
      ...multiplyVector(weights[i]!, spectrum.slice(start, start + runs[i]!)),
    ]);
    near(values, wanted, 1e-5, 'derivative');
  });
  assert.ok((await assertDataParts(node.storage))['smooth']! > 0);
  for (const { tile, image } of await filesOf('smooth')) {
    const { bandTags } = await openImage(image);
    assert.equal(bandTags.length, USED.length);
    for (const [i, { wavelength, fwhm }] of bandTags.entries())
      assert.deepEqual([wavelength, fwhm], [WAVELENGTHS[i], FWHM]);
    assert.ok(tile.groups[0]!.bands.every(({ commonName }) => commonName === undefined));
  }

  await analysed<SmoothResults>(node, 'smooth', { window: 5 });
  const smoothed = { ...filter, source: 'smooth' };
  const again = await analysed<ContinuumResults>(node, 'continuum', {
    filter: smoothed,
    range: [2100, 2300],
  });
  assert.ok(
    again.bands.length > 10 && again.bands.every(({ wavelength }) => Math.abs(wavelength - 2200) <= 100),
  );
  const [{ tile }] = (await filesOf('smooth')) as [MapFile];
  for (const expression of ['(860nm - 660nm) / (860nm + 660nm)', 'ndvi']) {
    const look = new URLSearchParams({ expression, rescale: '0,1' });
    const url = `/preview/${tile.id}.png?${look}`;
    assert.equal((await node.server.inject(url)).statusCode, 200, expression);
  }
});

test('a run shorter than the window is skipped, and a window longer than every run is refused', async () => {
  const { runs, leftOut, bands } = await analysed<SmoothResults>(node, 'smooth', { window: 89, order: 1 });
  assert.deepEqual([runs, leftOut, bands.length], [[89], USED.length - 89, 89]);
  const long = await runJob(node, 'analyse-smooth', { filter, window: 101 });
  assert.equal(long.error?.code, 'TW_ANALYSIS_SHORT_RUNS');
  for (const inputs of [{ window: 8 }, { window: 3, order: 3 }, { order: 1, derivative: 2 }])
    await assert.rejects(runJob(node, 'analyse-smooth', { filter, ...inputs }), /TW_ANALYSIS_SMOOTHING/);
});

test('continuum removal keeps the bands, and depth has the wavelength of the deepest band', async () => {
  await analysed<ContinuumResults>(node, 'continuum', {});
  const remove = continuumRemoval(WAVELENGTHS);
  await eachPixel('continuum', (spectrum, values) => {
    const wanted = Float64Array.from(spectrum);
    remove(wanted);
    near(values, wanted, 1e-6, 'continuum');
  });
  const [{ image }] = (await filesOf('continuum')) as [MapFile];
  assert.deepEqual(
    (await openImage(image)).bandTags.map(({ wavelength, fwhm }) => [wavelength, fwhm]),
    WAVELENGTHS.map((wavelength) => [wavelength, FWHM]),
  );

  const range = [2120, 2290];
  const { outside, bands } = await analysed<ContinuumResults>(node, 'continuum', { range, depth: true });
  const inside = WAVELENGTHS.filter((wavelength) => wavelength >= 2120 && wavelength <= 2290);
  assert.deepEqual([outside, bands.length], [USED.length - inside.length, inside.length]);
  const first = WAVELENGTHS.indexOf(inside[0]!);
  const removeInside = continuumRemoval(inside);
  let near2205 = 0;
  await eachPixel('continuum', (spectrum, [depth, position]) => {
    const wanted = Float64Array.from(spectrum.slice(first, first + inside.length));
    removeInside(wanted);
    const least = Math.min(...wanted);
    assert.ok(Math.abs(depth! - (1 - least)) < 1e-6);
    assert.equal(position, Math.fround(inside[wanted.indexOf(least)]!));
    if (Math.abs(position! - 2205) < 30) near2205++;
  });
  assert.ok(near2205 > 100, 'the planted absorption');
  const none = await runJob(node, 'analyse-continuum', { filter, range: [1360, 1440] });
  assert.equal(none.error?.code, 'TW_ANALYSIS_RANGE');
  assert.match(none.error.message, /bands lie between 1360 and 1440 nm/);
  const [one, other] = bands.map(({ name }) => name);
  const few = await runJob(node, 'analyse-continuum', { filter, bands: [one, other] });
  assert.equal(few.error?.code, 'TW_ANALYSIS_RANGE');
  assert.match(few.error.message, /^2 bands are analysed, and a continuum needs 3; choose more bands$/);
  for (const turned of [
    [2300, 500],
    [500, 500],
  ])
    await assert.rejects(
      runJob(node, 'analyse-continuum', { filter, range: turned }),
      /"status":400.*TW_ANALYSIS_RANGE_ORDER|TW_ANALYSIS_RANGE_ORDER.*"status":400/,
    );
});

test('resampled tiles carry the bands of the sensor', async () => {
  const { uncovered, sensorBands } = await analysed<ResampleResults>(node, 'resample', {
    sensor: 'sentinel-2a',
  });
  assert.deepEqual(uncovered, ['B10']);
  const all = SENSORS['sentinel-2a'].bands.filter(({ name }) => name !== 'B10');
  assert.deepEqual(sensorBands, all);
  const rows = all.map((band) => responseWeights(band, WAVELENGTHS)!);
  await eachPixel('resample', (spectrum, values) =>
    near(
      values,
      rows.map((row) => multiplyVector(row, spectrum)[0]!),
      1e-6,
      'resampled',
    ),
  );
  const [{ tile }] = (await filesOf('resample')) as [MapFile];
  assert.deepEqual(
    tile.groups[0]!.bands.map(({ name, wavelength, fwhm }) => ({ name, wavelength, fwhm })),
    all,
  );
  assert.equal(tile.groups[0]!.bands[3]!.commonName, 'red');
  for (const expression of ['ndvi', '(833nm - 665nm) / (833nm + 665nm)'])
    assert.equal(
      (await node.server.inject(`/preview/${tile.id}.png?${new URLSearchParams({ expression })}`)).statusCode,
      200,
    );
  const few = await runJob(node, 'analyse-stats', { filter: { ...filter, source: 'resample' } });
  assert.equal(few.error?.code, 'TW_ANALYSIS_NO_SPECTRA', '12 bands are not a spectrum');

  const coarse = Array.from({ length: 20 }, (_, i) => ({ wavelength: 440 + 20 * i, fwhm: 20 }));
  await analysed<ResampleResults>(node, 'resample', { sensorBands: coarse });
  const { results } = await runJob<StatsResults>(node, 'analyse-stats', {
    filter: { ...filter, source: 'resample' },
  });
  assert.deepEqual(
    results.bands.map(({ name, wavelength, fwhm }) => ({ name, wavelength, fwhm })),
    coarse.map((band, i) => ({ name: `b${i + 1}`, ...band })),
  );
  await assert.rejects(runJob(node, 'analyse-resample', { filter }), /TW_ANALYSIS_SENSOR/);
  const far = [{ wavelength: 9000, fwhm: 100 }];
  const beyond = await runJob(node, 'analyse-resample', { filter, sensorBands: far });
  assert.equal(beyond.error?.code, 'TW_ANALYSIS_SENSOR_RANGE');
});

test('indices by name and by expression, from the nearest bands', async () => {
  const own = '1000 * (860nm - 0.66um) / (860nm + ndvi)';
  const { indices } = await analysed<IndicesResults>(node, 'indices', {
    indices: ['PRI', 'cai', 'ndvi', own, 'pri'],
  });
  assert.deepEqual(
    indices.map(({ name }) => name),
    ['pri', 'cai', 'ndvi', own],
  );
  assert.equal(indices[0]!.source, 'Gamon et al. 1992');
  const nearest = (wanted: number) =>
    WAVELENGTHS.reduce(
      (best, wavelength, i) =>
        Math.abs(wavelength - wanted) < Math.abs(WAVELENGTHS[best]! - wanted) ? i : best,
      0,
    );
  for (const { bands } of indices)
    for (const { asked, wavelength } of bands) {
      const wanted = Number.parseFloat(asked) * (asked.endsWith('um') ? 1000 : 1);
      assert.equal(wavelength, WAVELENGTHS[nearest(wanted)]);
    }
  await eachPixel('indices', (spectrum, values) => {
    const r = (wavelength: number) => spectrum[nearest(wavelength)]!;
    const ndvi = (r(800) - r(670)) / (r(800) + r(670));
    const wanted = [
      (r(531) - r(570)) / (r(531) + r(570)),
      0.5 * (r(2000) + r(2200)) - r(2100),
      ndvi,
      (1000 * (r(860) - r(660))) / (r(860) + ndvi),
    ];
    for (const [i, value] of values.entries())
      assert.ok(Math.abs(value - wanted[i]!) <= 1e-6 * (1 + Math.abs(wanted[i]!)), `${i}: ${value}`);
  });

  const missing = await runJob(node, 'analyse-indices', { filter, indices: ['ndvi', '1380nm / 900nm'] });
  assert.equal(missing.error?.code, 'TW_ANALYSIS_INDEX_BANDS');
  assert.match(
    missing.error!.message,
    /1380nm \/ 900nm needs 1380 nm, and the nearest is b\d+ at 1\d+(\.\d+)? nm \(at most 15 nm away\)/,
  );
  const unknown = await runJob(node, 'analyse-indices', { filter, indices: ['ndxi'] });
  assert.equal(unknown.error?.code, 'TW_ANALYSIS_INDEX');
  assert.match(unknown.error!.message, /no band or index "ndxi".*ndvi705/);
  await assert.rejects(
    runJob(node, 'analyse-indices', { filter, indices: ['(860nm'] }),
    /TW_IMAGERY_EXPRESSION/,
  );
});

test('an index without a value in a pixel does not affect the other indices', async () => {
  await analysed<IndicesResults>(node, 'indices', { indices: ['log(660nm - 0.1)', 'ndvi'] });
  let lacking = 0;
  await eachPixel('indices', (_, [log, ndvi]) => {
    assert.ok(Number.isFinite(ndvi));
    if (Number.isNaN(log)) lacking++;
  });
  assert.ok(lacking > 10);
});

test('the map of a pixel depends only on its own spectrum', async (t) => {
  const changedFrom = SIDE / 2;
  await ingestCube(t, node, 'changed', 0.4, changedFrom);
  for (const [name, inputs] of [
    ['indices', { indices: ['ndvi', 'cai'] }],
    ['smooth', {}],
    ['resample', { sensor: 'landsat-8' }],
    ['continuum', {}],
  ] as const) {
    await analysed(node, name, inputs);
    await analysed(node, name, { ...inputs, filter: { collections: ['changed'] } });
    let [same, different] = [0, 0];
    for (const { tile, image } of await filesOf(name)) {
      const bandsOf = async (source: string, collection: string) =>
        (
          await readImage(
            (await filesOf(source, collection)).find((other) => other.tile.geocode === tile.geocode)!.image,
          )
        ).bands;
      const { bands } = await readImage(image);
      const changed = await bandsOf(name, 'changed');
      const [[before], [after]] = [await bandsOf('raw', 'cubes'), await bandsOf('raw', 'changed')];
      for (let i = 0; i < bands[0]!.length; i++) {
        if (before![i] === after![i]) {
          same++;
          for (const [b, band] of bands.entries())
            if (!Object.is(band[i], changed[b]![i])) assert.fail(`${name} ${b} ${i}`);
        } else if (bands.some((band, b) => band[i] !== changed[b]![i])) different++;
      }
    }
    assert.ok(same > 2000 && different > 2000, `${name}: ${same} ${different}`);
  }
});

test('a disk that fills up while spectra are written ends the job and keeps the earlier tiles', async (t) => {
  const disk = await smallDisk(t, 48);
  if (disk === undefined) return;
  const small = await nodeWithCube(t, disk);
  const before = await tilesOf(small);
  // The disk usage of the catalogue depends on when it is compacted.
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(join(disk, 'filler'), Buffer.alloc(bavail * bsize - 4e6));
  const { status, error } = await runJob(small, 'analyse-continuum', { filter });
  assert.equal(status, 'failed');
  // The code depends on whether the free space is checked just before the disk is full.
  assert.match(error!.code, /^TW_STORAGE_(FULL|DISK_LOW)$/, error!.message);
  assert.deepEqual(await tilesOf(small), before);
  await analysed<IndicesResults>(small, 'indices', { indices: ['ndvi'] });
});
