/** Matching and anomalies as jobs, compared with the results of single pixels. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { AnomalyResults, MatchResults } from '../../src/hyperspectral/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { readImage } from '../../src/raster/index.js';
import { suiteContext } from '../support/at-end.js';
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
  source: string,
  visit: (spectrum: number[], values: number[], code: number | undefined) => void,
): Promise<void> {
  const tiles = await tilesOf(node);
  let count = 0;
  for (const map of tiles.filter((tile) => tile.source === source)) {
    const raw = tiles.find(({ id }) => id === map.derivedFrom[0])!;
    const group = raw.groups.find(({ role }) => role === 'data')!;
    const { bands: stored } = await readImage(node.storage.tileImage(raw, group.name));
    const { bands: made } = await readImage(node.storage.tileImage(map, group.name));
    const hasClasses = map.groups.some(({ name }) => name === 'class');
    const codes = hasClasses ? (await readImage(node.storage.tileImage(map, 'class'))).bands[0] : undefined;
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

let node: TilewrightNode;
const file = suiteContext();
before(async () => {
  const folder = await tempFolder(file);
  node = await testNode(file, join(folder, 'data'), { cores: 1 });
  await ingest(node, { href: writeCube(folder, 'a'), collection: 'cubes', precision: 6 });
});

test('a map has the angle to each spectrum and the best spectrum, or no data beyond the threshold', async () => {
  const threshold = 0.1;
  const inputs = { filter, library, threshold };
  const { status, results, error } = await runJob<MatchResults>(node, 'analyse-match', inputs);
  assert.equal(status, 'successful', error?.message);
  assert.deepEqual(results.targets[2], { code: 3, name: 'spectrum 2' });
  const targets = spectra.map(({ values }) => USED.map((band) => values[band]!));
  const found = new Set<number>();
  await eachPixel('match', (spectrum, values, code) => {
    const angles = targets.map((one) =>
      Math.acos(dot(spectrum, one) / Math.sqrt(dot(one, one) * dot(spectrum, spectrum))),
    );
    for (const [k, angle] of angles.entries())
      assert.ok(Math.abs(values[k]! - angle) < 1e-3, `${values} ${angles}`);
    const least = Math.min(...values);
    // The threshold is stored as f32, like the value.
    assert.equal(code, least > threshold ? 0 : values.indexOf(least) + 1);
    found.add(code!);
  });
  assert.deepEqual([...found].sort(), [0, 1, 2, 3]);
});

test('the matched filter is 1 for its target, and distances are Mahalanobis distances', async () => {
  const { mean, covariance } = momentsOf(await pixelsOf(node, 'cubes', USED));
  const mf = await runJob<MatchResults>(node, 'analyse-match', { filter, library, method: 'mf' });
  assert.equal(mf.status, 'successful', mf.error?.message);
  const filters = spectra.map(({ values }) => {
    const less = USED.map((band, i) => values[band]! - mean[i]!);
    const weights = solve(covariance, less);
    return weights.map((weight) => weight / dot(weights, less));
  });
  await eachPixel('match', (spectrum, values) => {
    const less = spectrum.map((value, i) => value - mean[i]!);
    for (const [k, weights] of filters.entries()) assert.ok(Math.abs(values[k]! - dot(weights, less)) < 1e-4);
  });
  const rx = await runJob<AnomalyResults>(node, 'analyse-anomaly', { filter });
  assert.equal(rx.status, 'successful', rx.error?.message);
  assert.equal(rx.results.loading, 0);
  let seen = 0;
  await eachPixel('anomaly', (spectrum, [value]) => {
    if (seen++ % 50 !== 0) return;
    const less = spectrum.map((one, i) => one - mean[i]!);
    const wanted = dot(less, solve(covariance, less));
    assert.ok(Math.abs(value! - wanted) < 1e-4 * wanted, `${value} ${wanted}`);
  });
});

test('unsuitable libraries are refused, and bands that they lack are skipped', async () => {
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
  for (const value of [1e308, -1e308, 1.1e9])
    await assert.rejects(
      runJob(node, 'analyse-match', {
        filter,
        library: of(wavelengths.map((_, b) => (b === 3 ? value : 1))),
      }),
      /values\/3 must be at (?:most|least) -?1000000000/,
    );
});

const of = (values: number[], at = wavelengths) => ({
  wavelengths: at,
  spectra: [...spectra.slice(0, 1), { name: 'odd', values }],
});

test('a spectrum that is zero in the bands of the collection is refused by name', async () => {
  // The line is above 0 only between the bands, which are 50 nm apart.
  const fine = Array.from({ length: 191 }, (_, i) => 450 + 5 * i);
  const between = {
    wavelengths: fine,
    spectra: [{ name: 'odd', values: fine.map((nm) => Number(nm % 50 === 25)) }],
  };
  const refused = async (process: string, inputs: object, message: RegExp) => {
    const { error } = await runJob(node, process, { filter, ...inputs });
    assert.deepEqual(error?.code, 'TW_ANALYSIS_LIBRARY_SPECTRUM', error?.message);
    assert.match(error.message, message);
  };
  for (const process of ['analyse-match', 'analyse-unmix']) {
    await refused(process, { library: between }, /"odd" cannot be used: its values at the bands .* all 0/);
    await refused(process, { library: of(wavelengths.map(() => 1e-60)) }, /"odd" .* all 0/);
  }
  const negative = of(wavelengths.map((_, b) => -0.1 - 0.01 * b));
  await refused(
    'analyse-match',
    { library: negative, method: 'sid' },
    /"odd" .*sid needs a value above 0\.000001/,
  );
  const { status } = await runJob(node, 'analyse-match', { filter, library: negative });
  assert.equal(status, 'successful', 'angles are defined');
});

test('sid replaces negative values by the smallest positive one', async () => {
  const values = wavelengths.map((_, b) => (b % 4 === 0 ? -0.2 : 0.3 + 0.01 * b));
  const inputs = { filter, library: of(values), method: 'sid' };
  const { status, error } = await runJob<MatchResults>(node, 'analyse-match', inputs);
  assert.equal(status, 'successful', error?.message);
  const shares = (spectrum: number[]) => {
    const positive = spectrum.map((value) => Math.max(value, 1e-6));
    const sum = positive.reduce((total, value) => total + value, 0);
    return positive.map((value) => value / sum);
  };
  const q = shares(USED.map((band) => values[band]!));
  await eachPixel('match', (spectrum, [, value]) => {
    const p = shares(spectrum);
    const wanted = p.reduce((sum, one, b) => sum + (one - q[b]!) * Math.log(one / q[b]!), 0);
    assert.ok(Math.abs(value! - wanted) < 1e-4 * Math.max(1, wanted), `${value} ${wanted}`);
  });
});
