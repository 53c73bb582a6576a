/** Unmixing as a job: planted endmembers and abundances are recovered. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { inverse, Matrix } from 'ml-matrix';
import { pcaOrMnf } from '../../src/hyperspectral/components.js';
import { readLibrary, type UnmixResults } from '../../src/hyperspectral/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { readImage } from '../../src/raster/index.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';
import { COUNT, HOLE, momentsOf, pixelsOf, UNUSED } from './cubes.js';
import { writePlantedCube } from './planted.js';

const filter = { collections: ['cubes'] };
const dot = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const degrees = (a: readonly number[], b: readonly number[]) =>
  (180 / Math.PI) * Math.acos(Math.min(1, dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))));

const USED = Array.from({ length: COUNT }, (_, band) => band).filter((band) => !UNUSED.includes(band));

/** The largest factor by which replacing an endmember with a pixel increases the volume of the simplex of the endmembers. */
async function largestGain(node: TilewrightNode, endmembers: UnmixResults['endmembers']): Promise<number> {
  const pixels = await pixelsOf(node, 'cubes', USED);
  const { mean, covariance } = momentsOf(pixels);
  const size = endmembers.length - 1;
  const { weights } = pcaOrMnf({
    ...{ kind: 'components', count: size },
    covariance: Float64Array.from(covariance.flat()),
  });
  const pointOf = (spectrum: number[]) => [
    1,
    ...Array.from({ length: size }, (_, row) =>
      spectrum.reduce((sum, value, b) => sum + weights[row * USED.length + b]! * (value - mean[b]!), 0),
    ),
  ];
  const tiles = await tilesOf(node);
  const corners: number[][] = [];
  for (const { tile: id, pixel, position } of endmembers) {
    const tile = tiles.find((one) => one.id === id)!;
    const group = tile.groups.find(({ role }) => role === 'data')!;
    const { bands } = await readImage(node.storage.tileImage(tile, group.name));
    const spectrum = group.bands.map(({ scale }, band) => bands[band]![pixel!]! * scale);
    corners.push(pointOf(USED.map((band) => spectrum[band]!)));
    const geometry = { type: 'Point', coordinates: position };
    const payload = { geometry, collections: ['cubes'] };
    const there = (await node.server.inject({ method: 'POST', url: '/spectra', payload })).json();
    for (const band of USED)
      assert.ok(
        Math.abs(there.spectra[0].values[band] - spectrum[band]!) < 1e-6,
        `band ${band} at ${position}`,
      );
  }
  const gains = inverse(new Matrix(corners).transpose());
  return pixels.reduce(
    (most, spectrum) =>
      Math.max(
        most,
        ...gains
          .mmul(Matrix.columnVector(pointOf(spectrum)))
          .to1DArray()
          .map(Math.abs),
      ),
    0,
  );
}

/** Pairs of abundances: of the tiles and of the scene. */
async function abundances(
  node: TilewrightNode,
  order: number[],
): Promise<[found: number, planted: number][]> {
  const pairs: [number, number][] = [];
  const tiles = await tilesOf(node);
  for (const map of tiles.filter(({ source }) => source === 'unmix')) {
    const raw = tiles.find(({ id }) => id === map.derivedFrom[0])!;
    const truth = tiles.find(({ collection, geocode }) => collection === 'truth' && geocode === map.geocode)!;
    const group = raw.groups.find(({ role }) => role === 'data')!;
    const { bands } = await readImage(node.storage.tileImage(map, group.name));
    const planted = await readImage(node.storage.tileImage(truth, truth.groups[0]!.name));
    for (let i = 0; i < bands[0]!.length; i++) {
      if (Number.isNaN(bands[0]![i]) || planted.bands[0]![i] === HOLE) continue;
      const sum = order.reduce((total, row) => total + bands[row]![i]!, 0);
      assert.ok(Math.abs(sum - 1) < 1e-6);
      for (const [k, row] of order.entries()) {
        assert.ok(bands[row]![i]! >= 0);
        pairs.push([bands[row]![i]!, planted.bands[k]![i]! / 10_000]);
      }
    }
  }
  assert.ok(pairs.length > 5000);
  return pairs;
}

test('planted endmembers at 30 dB are recovered within 2 degrees, and their abundances within 0.03', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const { cube, truth, pure, wavelengths } = writePlantedCube(folder, { snr: 30 });
  await ingest(node, { href: cube, collection: 'cubes', precision: 6 });
  await ingest(node, {
    href: truth,
    collection: 'truth',
    precision: 6,
    datetime: '2024-06-01T10:00:00Z',
  });
  const { id, status, results, error } = await runJob<UnmixResults>(node, 'analyse-unmix', {
    filter,
    endmembers: pure.length,
  });
  assert.equal(status, 'successful', error?.message);
  const found = await readLibrary(join(await node.storage.results.makeFolder(id), 'endmembers.csv'));
  const used = found.wavelengths.map((nm) => wavelengths.indexOf(nm));
  assert.equal(used.length, COUNT - UNUSED.length);
  const wanted = pure.map((spectrum) => used.map((band) => spectrum[band]!));
  const order = wanted.map((spectrum) => {
    const angles = found.spectra.map(({ values }) => degrees(values, spectrum));
    return angles.indexOf(Math.min(...angles));
  });
  assert.deepEqual(new Set(order).size, pure.length);
  const angles = wanted.map((spectrum, k) => degrees(found.spectra[order[k]!]!.values, spectrum));
  assert.ok(angles.reduce((sum, angle) => sum + angle, 0) / angles.length < 2, `${angles}`);
  const pairs = await abundances(node, order);
  const rmse = Math.sqrt(pairs.reduce((sum, [a, b]) => sum + (a - b) ** 2, 0) / pairs.length);
  assert.ok(rmse < 0.03, `${rmse}`);
  assert.equal(results.endmembers.length, pure.length);
  assert.ok((await largestGain(node, results.endmembers)) < 1 + 1e-4, 'no exchange makes the simplex larger');

  // The same endmembers as a library give the same maps.
  const library = { wavelengths: found.wavelengths, spectra: found.spectra };
  const again = await runJob<UnmixResults>(node, 'analyse-unmix', { filter, library });
  assert.equal(again.status, 'successful', again.error?.message);
  const other = await abundances(node, order);
  for (const [i, [value]] of other.entries()) assert.ok(Math.abs(value - pairs[i]![0]) < 1e-5);
});

test('inputs that cannot be unmixed are refused', async (t) => {
  const folder = await tempFolder(t);
  await mkdir(folder, { recursive: true });
  const node = await testNode(t, join(folder, 'data'));
  const { cube, pure, wavelengths } = writePlantedCube(folder, { snr: 30, side: 12 });
  await ingest(node, { href: cube, collection: 'cubes', precision: 6 });
  await assert.rejects(runJob(node, 'analyse-unmix', { filter }), /TW_ANALYSIS_ENDMEMBERS/);
  const many = await runJob(node, 'analyse-unmix', { filter, endmembers: 25 });
  assert.equal(many.error?.code, 'TW_ANALYSIS_FEW_ENDMEMBERS');
  const spectra = [0, 1, 0].map((k, i) => ({ name: `${i}`, values: pure[k]! }));
  const copies = await runJob(node, 'analyse-unmix', { filter, library: { wavelengths, spectra } });
  assert.equal(copies.error?.code, 'TW_ANALYSIS_DEPENDENT');
});
