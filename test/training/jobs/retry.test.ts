/** The retry of a training trains only the cells that failed. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { PAIR_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { versionsOf } from '../../../src/storage/index.js';
import { type TrainResults, trainProcess } from '../../../src/training/index.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { resultsOf } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';

test('a retry trains only the cells that failed', { timeout: 240_000 }, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const options = { size: { width: 800, height: 700 }, dates: PAIR_DATES.slice(0, 1) };
  const [scene] = await writeSentinelLikeSeries(join(folder, 'scenes'), options);
  await ingest(node, { href: scene!.path, collection: 's', scale: 0.0001, maskBand: 5 });
  const jobOf = async (url: string, payload: object) => {
    const headers = { authorization: `Bearer ${node.ownerSecret}` };
    const answer = await node.server.inject({ method: 'POST', url, headers, payload });
    assert.equal(answer.statusCode, 201, answer.body);
    const { jobID } = answer.json();
    return { jobID, results: await resultsOf<TrainResults>(node, jobID) };
  };
  const filter = { collections: ['s'], minCoverage: 60 };
  const inputs = { model: 'ndvi', mode: 'partitioned', epochs: 1, filter };
  const tiles = (await tilesOf(node)).filter(({ coverage }) => coverage >= 60);
  const [broken] = tiles;
  const path = node.storage.tileImage(broken!, broken!.groups[0]!.name).path;
  const whole = await readFile(path);
  await writeFile(path, whole.subarray(0, 100));
  const first = await jobOf('/processes/train/execution', { inputs });
  assert.deepEqual(
    first.results.failed.map(({ geocode }) => geocode),
    [broken!.geocode],
  );
  assert.equal(first.results.models.length, tiles.length - 1);
  assert.ok(tiles.length > 1);

  await writeFile(path, whole);
  const second = await jobOf(`/jobs/${first.jobID}/retry`, {});
  assert.deepEqual(
    second.results.models.map(({ geocode }) => geocode),
    [broken!.geocode],
  );
  for (const { id } of [...first.results.models, ...second.results.models])
    assert.equal(versionsOf((await node.storage.models.get(id))!).length, 1, id);
  const again = await node.server.inject({
    ...{ method: 'POST', url: `/jobs/${second.jobID}/retry` },
    headers: { authorization: `Bearer ${node.ownerSecret}` },
  });
  assert.deepEqual([again.statusCode, again.json().code], [409, 'TW_JOB_NOTHING_FAILED']);
});

test('a retry keeps the other inputs', async () => {
  const { retryInputs } = trainProcess({} as Parameters<typeof trainProcess>[0]);
  const failed = ['u2', 'u3', 'u2'].map((geocode) => ({ geocode, model: 'ndvi', code: 'X', message: 'x' }));
  const filter = { collections: ['s'], filter: "platform = 'a'" };
  const inputs = { model: ['ndvi', 'ndmi'], epochs: 3, transfer: 'similar', filter };
  const narrowed = {
    ...inputs,
    // As the failed job was, although fewer places are left.
    mode: 'partitioned',
    curriculum: false,
    filter: { ...filter, query: { geocode: { in: ['u2', 'u3'] } } },
  };
  // The first cells already have their models, so the retry needs no curriculum.
  assert.deepEqual(await retryInputs!({ ...inputs, curriculum: true }, { failed }), narrowed);
  assert.equal(await retryInputs!(inputs, { failed: [] }), null);
  // A retry of the retry.
  const source = { source: { eq: 'raw' } };
  assert.deepEqual(
    await retryInputs!(
      { ...narrowed, filter: { query: { ...source, geocode: { in: ['u1', 'u2', 'u3'] } } } },
      { failed },
    ),
    { ...narrowed, filter: { query: { ...source, geocode: { in: ['u2', 'u3'] } } } },
  );
  for (const whole of [
    { ...inputs, mode: 'distributed' },
    { ...inputs, filter: { query: { geocode: { startsWith: 'u' } } } },
    { ...inputs, filter: { query: '{"source": {"eq": "raw"}}' } },
  ])
    assert.equal(await retryInputs!(whole, { failed }), whole);
});
