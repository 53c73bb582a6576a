/** Matching and anomalies as jobs, beside what follows from the pixels one by one. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AnomalyResults, MatchResults } from '../../src/analysis/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { readRaster } from '../../src/raster/index.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';
import { COUNT, momentsOf, pixelsOf, UNUSED, writeCube } from './cubes.js';

const USED = Array.from({ length: COUNT }, (_, band) => band).filter((band) => !UNUSED.includes(band));
const filter = { collections: ['cubes'] };
const wavelengths = Array.from({ length: COUNT }, (_, band) => 450 + 50 * band);
const spectra = [0, 1, 2].map((k) => ({
  name: `spectrum ${k}`,
  values: wavelengths.map((_, b) => 0.3 + 0.2 * Math.sin((k + 1) * 0.4 * b + k)),
}));
const library = { wavelengths, spectra };

/** Solves A x = b by Gaussian elimination. */
function solve(a: number[][], b: number[]): number[] {
  const rows = a.map((row, i) => [...row, b[i]!]);
  for (let i = 0; i < rows.length; i++)
    for (let r = i + 1; r < rows.length; r++) {
      const factor = rows[r]![i]! / rows[i]![i]!;
      for (let c = i; c <= rows.length; c++) rows[r]![c]! -= factor * rows[i]![c]!;
    }
  const x = new Array<number>(rows.length).fill(0);
  for (let i = rows.length - 1; i >= 0; i--) {
    let sum = rows[i]![rows.length]!;
    for (let c = i + 1; c < rows.length; c++) sum -= rows[i]![c]! * x[c]!;
    x[i] = sum / rows[i]![i]!;
  }
  return x;
}

const dot = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

/** Calls `visit` with the spectrum and the map values of each pixel that has values. */
async function eachPixel(
  node: TilewrightNode,
  source: string,
  visit: (spectrum: number[], values: number[], code: number | undefined) => void,
): Promise<void> {
  const tiles = await tilesOf(node);
  let count = 0;
  for (const map of tiles.filter((tile) => tile.source === source)) {
    const raw = tiles.find(({ id }) => id === map.derivedFrom[0])!;
    const group = raw.groups.find(({ role }) => role === 'data')!;
    const { bands: stored } = await readRaster(node.storage.tilePath(raw, group.name));
    const { bands: made } = await readRaster(node.storage.tilePath(map, group.name));
    const hasClasses = map.groups.some(({ name }) => name === 'class');
    const codes = hasClasses ? (await readRaster(node.storage.tilePath(map, 'class'))).bands[0] : undefined;
    for (let i = 0; i < group.width * group.height; i++) {
      if (Number.isNaN(made[0]![i])) {
        assert.equal(codes?.[i] ?? 255, 255);
        continue;
      }
      count++;
      const { scale, offset } = group.bands[0]!;
      visit(
        USED.map((band) => stored[band]![i]! * scale + offset),
        made.map((band) => band[i]!),
        codes?.[i],
      );
    }
  }
  assert.ok(count > 1000);
}

async function cubes(t: Parameters<typeof tempFolder>[0] & Parameters<typeof testNode>[0]) {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: writeCube(folder, 'a'), collection: 'cubes', precision: 6 });
  return node;
}

test('angles to each spectrum, the best one, and none beyond the threshold', async (t) => {
  const node = await cubes(t);
  const threshold = 0.1;
  const inputs = { filter, library, threshold };
  const { status, results, error } = await runJob<MatchResults>(node, 'analyse-match', inputs);
  assert.equal(status, 'successful', error?.message);
  assert.deepEqual(results.targets[2], { code: 3, name: 'spectrum 2' });
  const targets = spectra.map(({ values }) => USED.map((band) => values[band]!));
  const found = new Set<number>();
  await eachPixel(node, 'match', (spectrum, values, code) => {
    const angles = targets.map((one) =>
      Math.acos(dot(spectrum, one) / Math.sqrt(dot(one, one) * dot(spectrum, spectrum))),
    );
    for (const [k, angle] of angles.entries())
      assert.ok(Math.abs(values[k]! - angle) < 1e-3, `${values} ${angles}`);
    const least = Math.min(...values);
    // Stored as f32, as the value is compared.
    assert.equal(code, least > threshold ? 0 : values.indexOf(least) + 1);
    found.add(code!);
  });
  assert.deepEqual([...found].sort(), [0, 1, 2, 3]);
});

test('the matched filter is 1 for its target, and distances are those of Mahalanobis', async (t) => {
  const node = await cubes(t);
  const { mean, covariance } = momentsOf(await pixelsOf(node, 'cubes', USED));
  const mf = await runJob<MatchResults>(node, 'analyse-match', { filter, library, method: 'mf' });
  assert.equal(mf.status, 'successful', mf.error?.message);
  const filters = spectra.map(({ values }) => {
    const less = USED.map((band, i) => values[band]! - mean[i]!);
    const weights = solve(covariance, less);
    return weights.map((weight) => weight / dot(weights, less));
  });
  await eachPixel(node, 'match', (spectrum, values) => {
    const less = spectrum.map((value, i) => value - mean[i]!);
    for (const [k, weights] of filters.entries()) assert.ok(Math.abs(values[k]! - dot(weights, less)) < 1e-4);
  });
  const rx = await runJob<AnomalyResults>(node, 'analyse-anomaly', { filter });
  assert.equal(rx.status, 'successful', rx.error?.message);
  assert.equal(rx.results.loading, 0);
  let seen = 0;
  await eachPixel(node, 'anomaly', (spectrum, [value]) => {
    if (seen++ % 50 !== 0) return;
    const less = spectrum.map((one, i) => one - mean[i]!);
    const wanted = dot(less, solve(covariance, less));
    assert.ok(Math.abs(value! - wanted) < 1e-4 * wanted, `${value} ${wanted}`);
  });
});

test('libraries that do not fit are refused, and bands that they lack are left out', async (t) => {
  const node = await cubes(t);
  const cut = (from: number) => ({
    wavelengths: wavelengths.slice(from),
    spectra: spectra.map(({ name, values }) => ({ name, values: values.slice(from) })),
  });
  const { results } = await runJob<MatchResults>(node, 'analyse-match', { filter, library: cut(3) });
  assert.deepEqual([results.uncovered, results.bands.length], [3, USED.length - 3]);
  const far = await runJob(node, 'analyse-match', { filter, library: cut(15) });
  assert.equal(far.error?.code, 'TW_ANALYSIS_LIBRARY_RANGE');
  for (const [spectrum, why] of [
    [{ name: 'short', values: [1, 2] }, /2 values, and there are 20 wavelengths/],
    [{ name: 'dark', values: wavelengths.map(() => 0) }, /all of its values are 0/],
  ] as const)
    await assert.rejects(
      runJob(node, 'analyse-match', { filter, library: { wavelengths, spectra: [spectrum] } }),
      why,
    );
  await assert.rejects(runJob(node, 'analyse-match', { filter }), /library/);
});
