/** Tiles that are deleted or added while an analysis reads them. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AnalysisContext, agreeOnBands, requireOneSize } from '../../src/hyperspectral/analysis.js';
import { readLabels } from '../../src/hyperspectral/index.js';
import type { JobContext } from '../../src/jobs/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { ingest, testNode } from '../support/node.js';
import { tempFolder } from '../support/temp.js';
import { writeCube } from './cubes.js';

const filter = { collections: ['cubes'] };

/** The context of a job that runs on one node. */
const ALONE: JobContext = {
  ...{ id: 'job', signal: new AbortController().signal, isMine: () => true },
  allGather: async (word) => [word],
  progress() {},
  message() {},
  log() {},
  partial() {},
  async file() {},
};

/** Starts a job and waits until its message matches. Returns its id. */
async function startUntil(node: TilewrightNode, process: string, inputs: object, message: RegExp) {
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const url = `/processes/${process}/execution`;
  const answer = await node.server.inject({ method: 'POST', url, headers, payload: { inputs } });
  const id: string = answer.json().jobID;
  for (;;) {
    const job = (await node.server.inject(`/jobs/${id}`)).json();
    if (message.test(job.message ?? '')) return id;
    assert.ok(['accepted', 'running'].includes(job.status), JSON.stringify(job));
    await sleep(2);
  }
}

async function remove(node: TilewrightNode, url: string): Promise<void> {
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const { statusCode, body } = await node.server.inject({ method: 'DELETE', url, headers });
  assert.ok(statusCode < 300, body);
}

async function endOf(node: TilewrightNode, id: string) {
  for (;;) {
    const job = (await node.server.inject(`/jobs/${id}`)).json();
    if (!['accepted', 'running'].includes(job.status)) return job;
    await sleep(10);
  }
}

test('an analysis fails if tiles are deleted between its passes', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  for (const seed of [1, 2]) {
    const href = writeCube(folder, `day${seed}`, { seed, date: `2024-06-0${seed}` });
    await ingest(node, { href, collection: 'cubes', precision: 6, id: `day${seed}` });
  }
  const id = await startUntil(node, 'analyse-cluster', { filter, clusters: 50 }, /iteration/);
  await remove(node, '/collections/cubes/scenes/day2');
  const { status, error } = await endOf(node, id);
  assert.deepEqual([status, error?.code], ['failed', 'TW_ANALYSIS_CHANGED']);
});

test('tiles that are added while an analysis runs do not count, even with a different pixel size', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: writeCube(folder, 'day1'), collection: 'cubes', precision: 6 });
  const context = { storage: node.storage } as AnalysisContext;
  const agreed = await agreeOnBands(context, { filter }, ALONE);
  const href = writeCube(folder, 'day2', { seed: 2, date: '2024-06-02' });
  const header = join(folder, 'day2.hdr');
  writeFileSync(header, readFileSync(header, 'utf8').replace(', 30, 30, 33,', ', 60, 60, 33,'));
  await ingest(node, { href, collection: 'cubes', precision: 6 });
  const alike = await requireOneSize(agreed);
  assert.ok(agreed.tiles > 3);
  assert.deepEqual([alike.tiles, alike.counts.skipped], [agreed.tiles, {}]);
});

test('a classifier is not stored if its collection is deleted during the training', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: writeCube(folder, 'day1'), collection: 'cubes', precision: 6 });
  const point = (x: number, y: number) => ({ type: 'Point', coordinates: [15 + x / 4000, 47.85 - y / 4000] });
  const features = Array.from({ length: 6400 }, (_, i) => ({
    ...{ type: 'Feature', properties: { class: 1 + (i % 2) } },
    geometry: point(i % 80, Math.floor(i / 80)),
  }));
  const path = join(folder, 'labels.geojson');
  writeFileSync(path, JSON.stringify({ type: 'FeatureCollection', features }));
  const inputs = { filter, labels: await readLabels(path), classifier: 'mlp' };
  const id = await startUntil(node, 'analyse-classify', inputs, /training mlp/);
  await remove(node, '/collections/cubes');
  const { status, error } = await endOf(node, id);
  assert.deepEqual([status, error?.code], ['failed', 'TW_QUERY_NO_COLLECTION']);
  assert.deepEqual((await node.server.inject('/models')).json().models, []);
});
