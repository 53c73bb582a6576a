/** K-means compared with scikit-learn, and as a job compared with passes over single pixels. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type KMeans, lloyd, type Passes } from '../../src/hyperspectral/analyses/clustering.js';
import { type ClusterResults, readLibrary } from '../../src/hyperspectral/index.js';
import { drawWeightedPixel } from '../../src/hyperspectral/tile-passes.js';
import { readImage, readRaster } from '../../src/raster/index.js';
import { writeEnvi } from '../raster/envi.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';
import { COUNT, momentsOf, pixelsOf, UNUSED } from './cubes.js';
import { writePlantedCube } from './planted.js';

const filter = { collections: ['cubes'] };
const USED = Array.from({ length: COUNT }, (_, band) => band).filter((band) => !UNUSED.includes(band));
const fixture = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../test/fixtures/hyperspectral/${name}`, import.meta.url), 'utf8'));

const distance = (a: readonly number[], b: readonly number[]) =>
  Math.sqrt(a.reduce((sum, value, i) => sum + (value - b[i]!) ** 2, 0));
const nearest = (pixel: readonly number[], centres: readonly number[][]) => {
  const distances = centres.map((centre) => distance(pixel, centre));
  return { code: distances.indexOf(Math.min(...distances)), distance: Math.min(...distances) };
};

/** Passes over pixels in memory; the farthest pixel is drawn. */
function passesOver(pixels: readonly number[][]): Passes {
  return {
    draw: async (centres) =>
      pixels.reduce((most, pixel) =>
        nearest(pixel, centres).distance > nearest(most, centres).distance ? pixel : most,
      ),
    members: async (centres) => {
      const groups = centres.map(() => [] as { pixel: number[]; distance: number }[]);
      for (const pixel of pixels) {
        const { code, distance } = nearest(pixel, centres);
        groups[code]!.push({ pixel, distance });
      }
      return groups.map((group) => {
        if (group.length === 0) return undefined;
        const meanOf = (of: (one: (typeof group)[number]) => number) =>
          group.reduce((sum, one) => sum + of(one), 0) / group.length;
        return {
          pixels: group.length,
          spread: Math.sqrt(meanOf((one) => one.distance ** 2)),
          mean: group[0]!.pixel.map((_, band) => meanOf(({ pixel }) => pixel[band]!)),
        };
      });
    },
  };
}

/** 1e-4 of the mean variance of the bands. */
function toleranceOf(pixels: readonly number[][]): number {
  const { covariance } = momentsOf(pixels);
  const trace = covariance.reduce((sum, row, i) => sum + row[i]!, 0);
  return (1e-4 * trace * (pixels.length - 1)) / pixels.length / covariance.length;
}

const close = (a: number, b: number, share: number) => Math.abs(a - b) <= share * Math.abs(b);

test('from the same start, centres, sizes, inertia and iterations equal those of scikit-learn', async () => {
  const { stored } = fixture('detectors.json') as { stored: number[][] };
  const wanted = fixture('clusters.json');
  const pixels = stored[0]!.map((_, i) => stored.map((band) => band[i]! / 10_000));
  const options = { tolerance: toleranceOf(pixels), iterations: 300 };
  const found = await lloyd(passesOver(pixels), wanted.start, options);
  assert.deepEqual([found.iterations, found.converged], [wanted.iterations, true]);
  assert.ok(close(found.inertia, wanted.inertia, 1e-12));
  const order = (wanted.sizes as number[]).map((_, k) => k).sort((a, b) => wanted.sizes[b] - wanted.sizes[a]);
  for (const [i, k] of order.entries()) {
    assert.equal(found.clusters[i]!.pixels, wanted.sizes[k]);
    assert.ok(distance(found.clusters[i]!.centre, wanted.centres[k]) < 1e-12);
  }
});

test('a cluster without pixels restarts at a drawn pixel', async () => {
  const pixels = [0, 1, 10, 11, 20, 21].map((value) => [value, 0]);
  const start = [
    [0, 0],
    [0, 0],
    [10, 0],
  ];
  const found = await lloyd(passesOver(pixels), start, { tolerance: 1e-9, iterations: 50 });
  assert.ok(found.converged);
  assert.deepEqual(found.clusters.map(({ centre }) => centre[0]).sort(), [0.5, 10.5, 20.5]);
  // After one iteration the drawn centre has not moved yet.
  const early = await lloyd(passesOver(pixels), start, { tolerance: 1e-9, iterations: 1 });
  assert.equal(early.converged, false);
  assert.equal(early.clusters.length, 3);
});

test('clusters of a collection equal those of its pixels, largest first, and the maps show them', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const { cube } = writePlantedCube(folder, { snr: 30 });
  await ingest(node, { href: cube, collection: 'cubes', precision: 6 });
  const pixels = await pixelsOf(node, 'cubes', USED);
  const cluster = async (inputs: object) => {
    const { id, status, results, error } = await runJob<ClusterResults>(node, 'analyse-cluster', {
      ...{ filter, clusters: 6 },
      ...inputs,
    });
    assert.equal(status, 'successful', error?.message);
    const path = join(await node.storage.results.makeFolder(id), 'centres.csv');
    return { results, centres: (await readLibrary(path)).spectra.map(({ values }) => [...values]) };
  };

  const first = await cluster({ iterations: 1 });
  assert.deepEqual([first.results.iterations, first.results.converged], [1, false]);
  const { results, centres } = await cluster({});
  // Six clusters in a mixture with four corners need many iterations.
  assert.ok(results.converged && results.iterations > 5, `${results.iterations}`);
  const wanted: KMeans = await lloyd(passesOver(pixels), first.centres, {
    ...{ tolerance: toleranceOf(pixels), iterations: 100 },
  });
  assert.equal(results.iterations, wanted.iterations + 1);
  assert.equal(results.pixels, pixels.length);
  assert.ok(close(results.inertia, wanted.inertia, 1e-5), `${results.inertia} ${wanted.inertia}`);
  for (const [i, { code, pixels, spread }] of results.clusters.entries()) {
    assert.deepEqual([code, pixels], [i + 1, wanted.clusters[i]!.pixels]);
    assert.ok(close(spread, wanted.clusters[i]!.spread, 1e-5));
    assert.ok(distance(centres[i]!, wanted.clusters[i]!.centre) < 1e-9);
    assert.ok(i === 0 || pixels <= results.clusters[i - 1]!.pixels);
  }
  const { covariance } = momentsOf(pixels);
  const variance = covariance.reduce((sum, row, i) => sum + row[i]!, 0) * (pixels.length - 1);
  assert.ok(close(results.explained, 1 - wanted.inertia / variance, 1e-5));

  const tiles = await tilesOf(node);
  const maps = tiles.filter(({ source }) => source === 'cluster');
  assert.ok(maps.length > 3);
  const counts = results.clusters.map(() => 0);
  for (const map of maps) {
    const raw = tiles.find(({ id }) => id === map.derivedFrom[0])!;
    const group = raw.groups.find(({ role }) => role === 'data')!;
    assert.deepEqual(
      map.groups[0]!.bands.map(({ name }) => name),
      results.clusters.map(({ code }) => `cluster${code}`),
    );
    const { bands: stored } = await readImage(node.storage.tileImage(raw, group.name));
    const { bands: made } = await readImage(node.storage.tileImage(map, group.name));
    const [codes] = (await readImage(node.storage.tileImage(map, 'class'))).bands;
    for (const [i, code] of codes!.entries()) {
      assert.equal(code === 255, Number.isNaN(made[0]![i]));
      if (code === 255) continue;
      const pixel = USED.map((band) => stored[band]![i]! * group.bands[band]!.scale);
      for (const [k, centre] of centres.entries())
        assert.ok(Math.abs(made[k]![i]! - distance(pixel, centre)) < 1e-5);
      assert.equal(code, nearest(pixel, centres).code + 1);
      counts[code - 1]!++;
    }
  }
  assert.deepEqual(
    counts,
    results.clusters.map(({ pixels }) => pixels),
  );

  const again = (await cluster({})).results;
  assert.deepEqual([again.tiles, again.unchanged], [0, results.tiles]);
  const other = (await cluster({ seed: 2, iterations: 1 })).results;
  assert.notEqual(other.inertia, first.results.inertia);
});

test('pixels are drawn in proportion to their squared distance from the centres', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const file = await cubeOf(node, folder, [0, 1, 2, 3]);
  const spectrum = (value: number) => Float64Array.from({ length: 16 }, () => value / 10_000);
  const task = { kind: 'draw', file, centre: spectrum(2) } as const;
  const [stored] = (await readRaster(file.path)).bands;
  const pixels = [0, 1, 2, 3].map((value) => stored!.filter((one) => one === value).length);
  assert.ok(pixels.every((count) => count > 10));
  const share = (centres: Float64Array, squares: number[]) => {
    const weights = squares.map((square, value) => square * pixels[value]!);
    const counts = weights.map(() => 0);
    const DRAWS = 1000;
    for (let i = 0; i < DRAWS; i++) {
      const found = drawWeightedPixel({ ...task, centres, key: `${i}` })!;
      const value = Math.round(found.spectrum[0]! * 10_000);
      assert.ok(found.spectrum.every((one) => close(one, value / 10_000, 1e-9)));
      counts[value]!++;
    }
    const total = weights.reduce((sum, one) => sum + one, 0);
    for (const [value, weight] of weights.entries()) {
      const chance = weight / total;
      const sigma = Math.sqrt((chance * (1 - chance)) / DRAWS);
      assert.ok(Math.abs(counts[value]! / DRAWS - chance) <= 4 * sigma, `${value}: ${counts}`);
    }
  };
  share(new Float64Array(0), [1, 1, 1, 1]);
  share(spectrum(0), [0, 1, 4, 9]);
  share(Float64Array.of(...spectrum(0), ...spectrum(3)), [0, 1, 1, 0]);
  const all = [0, 1, 2, 3].flatMap((value) => [...spectrum(value)]);
  assert.equal(drawWeightedPixel({ ...task, centres: Float64Array.from(all), key: 'x' }), undefined);
  assert.deepEqual(
    drawWeightedPixel({ ...task, centres: spectrum(1), key: 'x' }),
    drawWeightedPixel({ ...task, centres: spectrum(1), key: 'x' }),
  );
});

/** A cube of one small tile whose spectra are flat. */
async function cubeOf(node: Awaited<ReturnType<typeof testNode>>, folder: string, values: number[]) {
  const side = 8;
  // On diagonals: a cell may leave out or repeat whole columns.
  const band = Array.from(
    { length: side * side },
    (_, i) => values[(i + Math.floor(i / side)) % values.length]!,
  );
  writeEnvi(join(folder, 'flat.bsq'), {
    ...{ width: side, height: side, type: 'int16', interleave: 'bsq' },
    bands: Array.from({ length: 16 }, () => band),
    lines: [
      'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}',
      ...['data ignore value = -9999', 'acquisition time = 2024-06-01T10:00:00Z'],
      ...['reflectance scale factor = 10000', 'wavelength units = Nanometers'],
      `wavelength = {${Array.from({ length: 16 }, (_, b) => 500 + 50 * b).join()}}`,
    ],
  });
  await ingest(node, { href: join(folder, 'flat.hdr'), collection: 'cubes', precision: 6 });
  const [tile, ...others] = await tilesOf(node);
  assert.equal(others.length, 0);
  const group = tile!.groups.find(({ role }) => role === 'data')!;
  const bands = Array.from(group.bands.keys());
  const { width, height, dataType } = group;
  return {
    ...{ ...node.storage.tileImage(tile!, group.name), width, height, dataType, bands },
    ...{ nodata: group.nodata ?? NaN, mask: undefined },
    scales: bands.map((one) => group.bands[one]!.scale),
    offsets: bands.map((one) => group.bands[one]!.offset),
  };
}

test('more clusters than there are different spectra are refused', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  await cubeOf(node, folder, [0, 500, 1000]);
  const cluster = (clusters: number) => runJob<ClusterResults>(node, 'analyse-cluster', { filter, clusters });
  const found = await cluster(3);
  assert.equal(found.status, 'successful', found.error?.message);
  assert.ok(found.results.inertia < 1e-6 && found.results.converged);
  const many = await cluster(4);
  assert.equal(many.error?.code, 'TW_ANALYSIS_FEW_CLUSTERS');
  assert.match(many.error!.message, /3 different spectra, and 4 clusters/);
  for (const clusters of [1, 51]) await assert.rejects(cluster(clusters), /clusters/);
  await assert.rejects(runJob(node, 'analyse-cluster', { filter }), /clusters/);
});
