/** Principal components and minimum noise fractions, compared with the results of single pixels. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { type ComponentsTask, pcaOrMnf } from '../../src/hyperspectral/components.js';
import type { ComponentsResults } from '../../src/hyperspectral/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { Mask, readImage } from '../../src/raster/index.js';
import { writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { suiteContext } from '../support/at-end.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';
import { COUNT, momentsOf, pixelsOf, UNUSED, writeCube } from './cubes.js';
import { matrixOf } from './matrix.js';

const USED = Array.from({ length: COUNT }, (_, band) => band).filter((band) => !UNUSED.includes(band));
const filter = { collections: ['cubes'] };

let node: TilewrightNode;
/** A cube in a file. */
let cube: string;
const file = suiteContext();
before(async () => {
  const folder = await tempFolder(file);
  node = await testNode(file, join(folder, 'data'), { cores: 1 });
  cube = writeCube(folder, 'a');
  await ingest(node, { href: cube, collection: 'cubes', precision: 6 });
});

const tilesIn = async (collection: string) =>
  (await tilesOf(node)).filter((tile) => tile.collection === collection);

/** A symmetric positive definite matrix, row by row. */
function covarianceOf(size: number, seed: number): Float64Array {
  const next = random(seed);
  const a = Array.from({ length: size }, () => Array.from({ length: size }, () => next() - 0.5));
  return Float64Array.from({ length: size * size }, (_, at) => {
    const [i, j] = [Math.floor(at / size), at % size];
    return a.reduce((sum, row) => sum + row[i]! * row[j]!, i === j ? 0.01 : 0);
  });
}

const rowOf = (values: Float64Array, row: number, size: number) =>
  values.subarray(row * size, (row + 1) * size);
/** a' C b */
const form = (a: ArrayLike<number>, c: Float64Array, b: ArrayLike<number>) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++)
    for (let j = 0; j < b.length; j++) sum += a[i]! * c[i * a.length + j]! * b[j]!;
  return sum;
};

test('components are uncorrelated; noise fractions have noise of variance 1, and eigenvalues fall', () => {
  for (const size of [2, 17, 60]) {
    const [covariance, noise] = [covarianceOf(size, size), covarianceOf(size, size + 1)];
    for (const task of [{ covariance }, { covariance, noise }] as ComponentsTask[]) {
      const { eigenvalues, weights } = pcaOrMnf({ ...task, count: size });
      for (let i = 0; i < size; i++) {
        assert.ok(i === 0 || eigenvalues[i]! <= eigenvalues[i - 1]!);
        const row = rowOf(weights, i, size);
        assert.ok(Math.max(...row) >= -Math.min(...row), 'the largest number is positive');
        for (let j = 0; j < size; j++) {
          const other = rowOf(weights, j, size);
          const most = eigenvalues[0]!;
          const wanted = i === j ? eigenvalues[i]! : 0;
          assert.ok(Math.abs(form(row, covariance, other) - wanted) <= 1e-10 * most, `${size}: ${i} ${j}`);
          if (task.noise)
            assert.ok(Math.abs(form(row, task.noise, other) - Number(i === j)) <= 1e-9, `noise ${i} ${j}`);
        }
      }
    }
  }
});

test('noise without an inverse is refused', () => {
  const covariance = covarianceOf(4, 1);
  const noise = new Float64Array(16).fill(1);
  assert.throws(() => pcaOrMnf({ covariance, noise, count: 2 }), {
    code: 'TW_ANALYSIS_SINGULAR_NOISE',
  });
});

/** Compares the band values of all tiles of a source with the values from the spectra of their input tiles. */
async function compareMaps(
  source: string,
  weights: Float64Array,
  mean: ArrayLike<number>,
  tolerance: number,
): Promise<void> {
  const tiles = await tilesIn('cubes');
  const maps = tiles.filter((tile) => tile.source === source);
  assert.equal(maps.length, tiles.filter((tile) => tile.source === 'raw').length);
  let compared = 0;
  for (const map of maps) {
    const raw = tiles.find(({ id }) => id === map.derivedFrom[0])!;
    const group = raw.groups.find(({ role }) => role === 'data')!;
    const { bands: stored } = await readImage(node.storage.tileImage(raw, group.name));
    const { bands: made } = await readImage(node.storage.tileImage(map, group.name));
    const mask = (await readImage(node.storage.tileImage(map, 'mask'))).bands[0]!;
    for (let i = 0; i < group.width * group.height; i++) {
      const isHole = USED.some((band) => stored[band]![i] === group.nodata);
      assert.equal(Number.isNaN(made[0]![i]), isHole);
      assert.equal(mask[i] === Mask.nodata, isHole);
      if (isHole) continue;
      for (const [row, band] of made.entries()) {
        const wanted = USED.reduce((sum, b, k) => {
          const value = stored[b]![i]! * group.bands[b]!.scale + group.bands[b]!.offset;
          return sum + weights[row * USED.length + k]! * (value - mean[k]!);
        }, 0);
        assert.ok(Math.abs(band[i]! - wanted) <= tolerance, `${map.id} ${row} ${i}: ${band[i]} ${wanted}`);
        compared++;
      }
    }
  }
  assert.ok(compared > 10_000);
}

test('maps of principal components are projections of the spectra; a repeated run changes nothing, another replaces them', async () => {
  const first = await runJob<ComponentsResults>(node, 'analyse-pca', { filter, components: 5 });
  assert.equal(first.status, 'successful', first.error?.message);
  const { mean, covariance } = momentsOf(await pixelsOf(node, 'cubes', USED));
  const weights = await matrixOf(node, first.id, 'components.npy');
  assert.equal(weights.length, 5 * USED.length);
  const flat = Float64Array.from(covariance.flat());
  for (let i = 0; i < 5; i++) {
    const row = rowOf(weights, i, USED.length);
    const value = first.results.eigenvalues[i]!;
    assert.ok(Math.abs(form(row, flat, row) - value) <= 1e-12 * first.results.eigenvalues[0]!);
  }
  const total = USED.reduce((sum, _, i) => sum + covariance[i]![i]!, 0);
  assert.ok(Math.abs(first.results.shares![0]! - first.results.eigenvalues[0]! / total) < 1e-12);
  // Three spectra are mixed, so two components contain their differences.
  assert.ok(first.results.shares![0]! + first.results.shares![1]! > 0.95);
  await compareMaps('pca', weights, mean, 1e-6);
  const again = (await runJob<ComponentsResults>(node, 'analyse-pca', { filter, components: 5 })).results;
  assert.deepEqual([again.tiles, again.unchanged], [0, first.results.tiles]);
  const fewer = (await runJob<ComponentsResults>(node, 'analyse-pca', { filter, components: 3 })).results;
  assert.deepEqual([fewer.tiles, fewer.unchanged], [first.results.tiles, 0]);
  const maps = (await tilesIn('cubes')).filter(({ source }) => source === 'pca');
  assert.equal(maps.length, first.results.tiles);
  assert.deepEqual(
    maps[0]!.groups[0]!.bands.map(({ name }) => name),
    ['pc1', 'pc2', 'pc3'],
  );
});

test('a constant cube has components without variance; pixels without neighbours have no noise estimate', async (t) => {
  const folder = await tempFolder(t);
  const next = random(3);
  const write = async (name: string, width: number, value: (_: unknown, i: number) => number) => {
    const bands = Array.from({ length: COUNT }, () => Array.from({ length: width * 40 }, value));
    writeEnvi(join(folder, `${name}.bil`), {
      ...{ width, height: 40, bands, type: 'float32', interleave: 'bil' },
      lines: [
        'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}',
        'acquisition time = 2024-06-01T10:00:00Z',
        'wavelength units = Nanometers',
        `wavelength = {${bands.map((_, band) => 450 + 50 * band).join()}}`,
      ],
    });
    await ingest(node, { href: join(folder, `${name}.hdr`), collection: name, precision: 6 });
  };
  await write('constant', 40, () => 0.25);
  await write('apart', 1, (_, i) => (i % 2 === 0 ? next() : NaN));
  await write('column', 1, next);
  const analyse = (name: string, collection: string) =>
    runJob<ComponentsResults>(node, `analyse-${name}`, { filter: { collections: [collection] } });
  const { results } = await analyse('pca', 'constant');
  assert.ok(results.eigenvalues.every((value) => value === 0));
  assert.ok(results.shares!.every((share) => share === 0));
  assert.equal((await analyse('mnf', 'column')).status, 'successful');
  const { error } = await analyse('mnf', 'apart');
  assert.equal(error?.code, 'TW_ANALYSIS_TOO_FEW_PIXELS');
  assert.match(error.message, /^0 pairs of neighbours have data/);
});

test('minimum noise fractions reveal the number of mixed spectra', async () => {
  const { id, status, results, error } = await runJob<ComponentsResults>(node, 'analyse-mnf', { filter });
  assert.equal(status, 'successful', error?.message);
  const [one, two, three] = results.eigenvalues as [number, number, number];
  assert.ok(one > 20 && two > 5, `${one} ${two}`);
  // Pure noise has an eigenvalue of 1.
  assert.ok(three < 1.6, `${three}`);
  assert.ok(results.eigenvalues.slice(2).every((value) => value > 0.6));
  const { mean } = momentsOf(await pixelsOf(node, 'cubes', USED));
  await compareMaps('mnf', await matrixOf(node, id, 'components.npy'), mean, 1e-3);
});

test('maps of bands that most tiles lack are deleted, and a report is written without their pictures', async (t) => {
  const folder = await tempFolder(t);
  await runJob<ComponentsResults>(node, 'analyse-pca', { filter, components: 1 });
  for (const day of [2, 3]) {
    const wide = join(folder, `wide${day}`);
    mkdirSync(wide);
    const href = writeCube(wide, `b${day}`, { bands: 24, date: `2024-06-0${day}`, seed: day });
    await ingest(node, { href, collection: 'cubes', precision: 6 });
  }
  const { status, results, error } = await runJob<ComponentsResults>(node, 'analyse-pca', {
    filter,
    components: 3,
  });
  assert.equal(status, 'successful', error?.message);
  assert.equal(Object.keys(results.skipped).length, 1, JSON.stringify(results.skipped));
  const maps = (await tilesIn('cubes')).filter(({ source }) => source === 'pca');
  assert.equal(maps.length, results.tiles);
  assert.ok(maps.every(({ groups }) => groups[0]!.bands.length === 3));
});

test('a tile that cannot be read is one failure, and has no map', async () => {
  await ingest(node, { href: cube, collection: 'broken', precision: 6 });
  const [broken, ...others] = await tilesIn('broken');
  await writeFile(node.storage.tileImage(broken!, '30m').path, 'no GeoTIFF');
  const inputs = { filter: { collections: ['broken'] }, components: 2 };
  const { status, results } = await runJob<ComponentsResults>(node, 'analyse-pca', inputs);
  assert.deepEqual(
    [status, results.tiles, results.failures, results.failed.map(({ tile }) => tile)],
    ['successful', others.length, 1, [broken!.id]],
  );
});
