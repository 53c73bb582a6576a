/** Statistics of spectra, compared with those of single pixels. */

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { StatsResults } from '../../src/hyperspectral/index.js';
import { gdalName } from '../../src/raster/index.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';
import { COUNT, momentsOf, pixelsOf, UNUSED, writeCube } from './cubes.js';
import { matrixOf } from './matrix.js';

const USED = Array.from({ length: COUNT }, (_, band) => band).filter((band) => !UNUSED.includes(band));
const filter = { collections: ['cubes'] };

function near(values: ArrayLike<number>, wanted: ArrayLike<number>, tolerance: number, what: string): void {
  assert.equal(values.length, wanted.length, what);
  const most = Math.max(...Array.from(wanted, Math.abs));
  for (let i = 0; i < wanted.length; i++)
    assert.ok(
      Math.abs(values[i]! - wanted[i]!) <= tolerance * most,
      `${what} ${i}: ${values[i]} ${wanted[i]}`,
    );
}

test('mean, covariance and correlation of all tiles equal those of their pixels, even if scenes have different scales', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  for (const [i, scale] of [10_000, 10_000, 5000].entries()) {
    const href = writeCube(folder, `day${i}`, { seed: i + 1, date: `2024-06-0${i + 1}`, scale });
    assert.deepEqual((await ingest(node, { href, collection: 'cubes', precision: 6 })).failed, []);
  }
  const { id, status, results } = await runJob<StatsResults>(node, 'analyse-stats', { filter });
  assert.equal(status, 'successful');
  const pixels = await pixelsOf(node, 'cubes', USED);
  const { mean, covariance } = momentsOf(pixels);
  assert.equal(results.pixels, pixels.length);
  assert.equal(results.tiles, (await tilesOf(node)).length);
  assert.ok(results.tiles > 6);
  assert.deepEqual(
    results.bands.map(({ wavelength }) => wavelength),
    USED.map((band) => 450 + 50 * band),
  );
  near(
    results.bands.map((band) => band.mean),
    mean,
    1e-12,
    'mean',
  );
  near(await matrixOf(node, id, 'covariance.npy'), covariance.flat(), 1e-12, 'covariance');
  const std = covariance.map((row, i) => Math.sqrt(row[i]!));
  const correlation = covariance.flatMap((row, i) => row.map((value, j) => value / (std[i]! * std[j]!)));
  near(await matrixOf(node, id, 'correlation.npy'), correlation, 1e-11, 'correlation');

  // A browser shows the report without running its scripts, and shows no other file as a page.
  const file = (name: string) => node.server.inject(`/jobs/${id}/results/files/${name}`);
  const { headers, body } = await file('report.html');
  assert.equal(headers['content-type'], 'text/html; charset=utf-8');
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(body)![1]!;
  assert.equal(headers['content-security-policy'], `${policy.replaceAll('&#39;', "'")}; sandbox`);
  for (const name of ['report.html', 'covariance.npy'])
    assert.equal((await file(name)).headers['x-content-type-options'], 'nosniff');
  assert.equal((await file('covariance.npy')).headers['content-type'], 'application/octet-stream');
});

test('bands, including bad ones, are chosen by name and by wavelength', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: writeCube(folder, 'cube'), collection: 'cubes', precision: 6 });
  const inputs = { filter, bands: ['560nm', 'b9', '0.455um'] };
  const { results } = await runJob<StatsResults>(node, 'analyse-stats', inputs);
  assert.deepEqual(
    results.bands.map(({ wavelength }) => wavelength),
    [450, 550, 850],
  );
  const { mean } = momentsOf(await pixelsOf(node, 'cubes', [0, 2, 8]));
  near(
    results.bands.map((band) => band.mean),
    mean,
    1e-12,
    'mean',
  );
});

test('tiles whose bands differ from most are skipped and counted, and a damaged tile is named', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: writeCube(folder, 'most'), collection: 'cubes', precision: 6 });
  const before = await tilesOf(node);
  const wanted = (await runJob<StatsResults>(node, 'analyse-stats', { filter })).results;
  const other = writeCube(folder, 'other', { side: 20, date: '2024-06-05', empty: [12, 13] });
  await ingest(node, { href: other, collection: 'cubes', precision: 6 });
  const { results } = await runJob<StatsResults>(node, 'analyse-stats', { filter });
  const others = (await tilesOf(node)).length - before.length;
  assert.ok(others > 0);
  assert.deepEqual(Object.values(results.skipped), [others]);
  assert.deepEqual(results.bands, wanted.bands);
  const [tile] = before;
  const path = gdalName(node.storage.tileImage(tile!, '30m'));
  const bytes = await readFile(path);
  await writeFile(path, bytes.subarray(0, bytes.length / 2));
  const damaged = (await runJob<StatsResults>(node, 'analyse-stats', { filter })).results;
  assert.equal(damaged.failures, 1);
  assert.deepEqual([damaged.failed[0]!.tile, damaged.failed[0]!.code], [tile!.id, 'TW_IMAGERY_TILE_FILE']);
  assert.equal(damaged.tiles, before.length - 1);
});

test('inputs that cannot be analysed are refused with a reason', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const small = writeCube(folder, 'small', { side: 10, bands: 10 });
  await ingest(node, { href: small, collection: 'few', precision: 6 });
  await assert.rejects(runJob(node, 'analyse-stats', { filter: {} }), /collections/);
  await assert.rejects(
    runJob(node, 'analyse-stats', { filter: { collections: ['few', 'cubes'] } }),
    /TW_ANALYSIS_COLLECTION/,
  );
  const none = await runJob(node, 'analyse-stats', { filter: { collections: ['few'] } });
  assert.equal(none.error?.code, 'TW_ANALYSIS_NO_SPECTRA');
  assert.match(none.error.message, /at least 16 bands/);
  await ingest(node, { href: writeCube(folder, 'cube'), collection: 'cubes', precision: 6 });
  const far = await runJob(node, 'analyse-stats', { filter, bands: ['3000nm'] });
  assert.match(far.error!.message, /nearest good band/);
});
