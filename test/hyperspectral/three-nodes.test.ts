/** Analyses of three nodes, compared with those of one. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type {
  ClassifyResults,
  MapResults,
  ScoreClassifierResults,
  StatsResults,
} from '../../src/hyperspectral/index.js';
import { openNode } from '../../src/node.js';
import { type Item, itemsOf, resultsOf, Servers, startJob, until } from '../jobs/servers.js';
import { atEnd } from '../support/at-end.js';
import { noEtcd } from '../support/etcd.js';
import { isNightly } from '../support/nightly.js';
import { ingest, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { COUNT, writeCube } from './cubes.js';

const filter = { collections: ['cubes'] };
/** For maps of which each pixel follows from its own spectrum alone. */
const firstDay = { ...filter, datetime: '2024-06-01T00:00:00Z/2024-06-01T23:59:59Z' };
const HAVE_CLASSES: readonly string[] = ['match', 'classify', 'cluster'];

/** Four cells of precision 4 meet in the middle of the cubes, so their tiles lie in four slots of several nodes. */
const FOUR_SLOTS = [507_660, 5_335_590];

/** Two halves of the cubes. */
const labels = {
  features: [15.094, 15.1172].map((west, i) => ({
    code: i + 1,
    geometry: {
      type: 'Polygon',
      coordinates: [
        [
          [west, 48.1],
          [west + 0.023, 48.1],
          [west + 0.023, 48.2],
          [west, 48.2],
          [west, 48.1],
        ],
      ],
    },
  })),
};

/** A report says in which minute it was made. */
const withoutTime = (report: Buffer) => report.toString().replace(/[\d-]{10} [\d:]{5} UTC/, '');

function assertSameFile(name: string, actual: Buffer, expected: Buffer): void {
  if (name === 'report.html') assert.ok(withoutTime(actual) === withoutTime(expected), name);
  else assert.ok(actual.equals(expected), name);
}

test('three nodes give the same bits as one node', { skip: noEtcd }, async (t) => {
  const servers = await Servers.start(t);
  const { folder } = servers;
  const [a, b, c] = servers.three;
  const single = await openNode({
    data: join(folder, 'alone'),
    memory: 256e6,
    cores: 1,
    allowFolders: [folder],
  });
  atEnd(t, () => single.close());
  // A header applies to all files beside it.
  const cubes = join(folder, 'cubes');
  mkdirSync(cubes);
  for (const day of [1, 2]) {
    const date = `2024-06-0${day}`;
    const href = writeCube(cubes, `day${day}`, {
      seed: day,
      date,
      scale: 5000 * day,
      side: 48,
      at: FOUR_SLOTS,
    });
    const scene = { href, collection: 'cubes', precision: 6 };
    await resultsOf(a, await startJob(a, 'ingest', scene));
    assert.deepEqual((await ingest(single, scene)).failed, []);
  }
  const fileOf = async (job: string, name: string) =>
    Buffer.from(await (await fetch(`${c.url}/jobs/${job}/results/files/${name}`)).arrayBuffer());
  const ownFile = async (job: string, name: string) =>
    (await single.server.inject(`/jobs/${job}/results/files/${name}`)).rawPayload;

  const id = await startJob(a, 'analyse-stats', { filter });
  const stats = await resultsOf<StatsResults>(b, id);
  const alone = await runJob<StatsResults>(single, 'analyse-stats', { filter });
  assert.equal(stats.tiles, alone.results.tiles);
  assert.deepEqual(stats.bands, alone.results.bands);
  for (const name of stats.files) {
    const bytes = await fileOf(id, name);
    assert.ok(bytes.length > 8 * (COUNT - 2) ** 2);
    assertSameFile(name, bytes, await ownFile(alone.id, name));
  }
  const { headers } = await fetch(`${c.url}/jobs/${id}/results/files/report.html`);
  assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'.*; sandbox$/);
  assert.equal(headers.get('x-content-type-options'), 'nosniff');

  const wavelengths = Array.from({ length: COUNT }, (_, band) => 450 + 50 * band);
  const library = { wavelengths, spectra: [{ name: 'rising', values: wavelengths.map((nm) => nm / 2000) }] };
  const analyses: [name: string, inputs: object][] = [
    ['pca', { filter, components: 4 }],
    ['match', { filter, library, method: 'ace' }],
    ['indices', { filter: firstDay, indices: ['(900nm - 650nm) / (900nm + 650nm)', 'log(1100nm) / 1250nm'] }],
    ['anomaly', { filter, window: [11, 3], components: 4 }],
    ['classify', { filter, labels, classifier: 'logistic' }],
  ];
  if (isNightly)
    analyses.push(
      ['mnf', { filter, components: 4 }],
      ['unmix', { filter, endmembers: 3 }],
      ['smooth', { filter: firstDay, window: 5, derivative: 1 }],
      ['resample', { filter: firstDay, sensor: 'sentinel-2a' }],
      ['continuum', { filter: firstDay }],
      ['anomaly', { filter }],
      ['classify', { filter, labels, classifier: 'resnet3d', epochs: 1, precision: 'mixed' }],
      ['cluster', { filter, clusters: 7 }],
    );
  for (const [name, inputs] of analyses) {
    const versionsOf = (maps: Item[]) => maps.map(({ properties }) => properties['version']);
    const former = new Set(versionsOf(await mapsOf(name)));
    const id = await startJob(a, `analyse-${name}`, inputs);
    const made = await resultsOf<MapResults>(b, id);
    const wanted = await runJob<MapResults>(single, `analyse-${name}`, inputs);
    assert.equal(wanted.status, 'successful', wanted.error?.message);
    assert.equal(made.tiles, wanted.results.tiles);
    for (const file of made.files)
      assertSameFile(file, await fileOf(id, file), await ownFile(wanted.id, file));
    await until('all maps are there', async () => {
      const versions = versionsOf(await mapsOf(name));
      return versions.length === made.tiles && versions.every((one) => !former.has(one));
    });
    const tiles = (await tilesOf(single)).filter(({ source }) => source === name);
    for (const item of await mapsOf(name)) {
      for (const file of HAVE_CLASSES.includes(name) ? ['30m', 'class'] : ['30m']) {
        const answer = await fetch(`${c.url}/tiles/${item.id}/${file}.tif`);
        assert.equal(answer.status, 200);
        const own = await single.server.inject(`/tiles/${item.id}/${file}.tif`);
        assert.ok(Buffer.from(await answer.arrayBuffer()).equals(own.rawPayload), `${item.id} ${file}`);
      }
    }
    assert.equal(tiles.length, made.tiles);
    if (name !== 'classify') continue;
    const of = (results: MapResults) => ({ model: (results as ClassifyResults).model, labels, filter });
    const scored = await resultsOf<ScoreClassifierResults>(
      b,
      await startJob(a, 'score-classifier', of(made)),
    );
    const scoredAlone = (await runJob<ScoreClassifierResults>(single, 'score-classifier', of(wanted.results)))
      .results;
    assert.ok(scored.pixels > 0);
    for (const member of ['confusion', 'oaInterval', 'classes', 'trained', 'tiles'] as const)
      assert.deepEqual(scored[member], scoredAlone[member]);
  }

  // Sums over hundreds of bands have megabytes as text.
  const wide = { folder: join(folder, 'wide'), at: FOUR_SLOTS };
  mkdirSync(wide.folder);
  const href = writeCube(wide.folder, 'wide', { bands: 218, side: 40, at: wide.at });
  await resultsOf(a, await startJob(a, 'ingest', { href, collection: 'wide', precision: 6 }));
  const mnf = { filter: { collections: ['wide'] }, bands: undefined, components: 3 };
  assert.ok((await resultsOf<MapResults>(b, await startJob(a, 'analyse-mnf', mnf))).tiles > 3);

  function mapsOf(source: string): Promise<Item[]> {
    return itemsOf(c, `source=${source}&collections=cubes`);
  }
});
