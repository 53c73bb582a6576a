/** Jobs in a cluster: three servers, etcd and a shared folder, compared with a single node that has the same scenes. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNode, type TilewrightNode } from '../../../src/node.js';
import { atEnd } from '../../support/at-end.js';
import { tilewright } from '../../support/command.js';
import { noEtcd } from '../../support/etcd.js';
import { onlyNightly } from '../../support/nightly.js';
import { runRequest } from '../../support/run-job.js';
import { writeTestScene } from '../../support/scenes.js';
import {
  DATES,
  get,
  type Item,
  itemsOf,
  type Job,
  type Models,
  nodeId,
  OPTIONS,
  resultsOf,
  Servers,
  startJob,
  until,
  writeScenes,
} from '../servers.js';

/** Runs a job on a single node; it must succeed. */
async function alone<T>(node: TilewrightNode, url: string, payload: object): Promise<T> {
  const { status, results, error } = await runRequest<T>(node, url, payload);
  assert.equal(status, 'successful', JSON.stringify(error));
  return results;
}

const figuresOf = (items: Item[]) =>
  items.map(({ id, properties }) => [id, properties['pixel_coverage'], properties['eo:cloud_cover']]);
const metricsOf = ({ models }: Models) => models.map(({ id, metrics }) => [id, metrics]);

test('jobs of a cluster', { skip: noEtcd }, async (t) => {
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
  const nodes = await Promise.all([a, b, c].map(nodeId));
  for (const scenes of await writeScenes(folder)) {
    await resultsOf(a, await startJob(a, 'ingest', { ...scenes, ...OPTIONS }));
    await alone(single, '/ingest', { ...scenes, ...OPTIONS });
  }
  const filter = { collections: ['test'] };
  const asked = (query: string) => async (): Promise<Item[]> => {
    const { features } = (await single.server.inject(`/search?limit=1000&${query}`)).json();
    return (features as Item[]).sort((x, y) => (x.id < y.id ? -1 : 1));
  };

  await t.test('fill and split run where the tiles are, and give the result of a single node', async () => {
    for (const [process, source, inputs] of [
      ['fill', 'filled', { filter }],
      ['split', 'split', { filter, precision: 6 }],
    ] as const) {
      const id = await startJob(a, process, inputs);
      const list = await get<{ jobs: Job[] }>(c, '/jobs');
      assert.ok(list.jobs.some(({ jobID }) => jobID === id));
      const results = await resultsOf<{ tiles: number; unchanged: number }>(b, id);
      const expected = await alone<{ tiles: number }>(single, `/processes/${process}/execution`, { inputs });
      assert.ok(expected.tiles > 0);
      assert.equal(results.tiles, expected.tiles);
      const { lines } = await get<{ lines: { text: string }[] }>(c, `/jobs/${id}/logs`);
      for (const node of nodes)
        assert.ok(
          lines.some(({ text }) => text.startsWith(`node ${node}: its task with`)),
          JSON.stringify(lines),
        );
      const wanted = await asked(`source=${source}`)();
      await until(
        'all commits applied',
        async () => (await itemsOf(c, `source=${source}`)).length === wanted.length,
      );
      assert.deepEqual(figuresOf(await itemsOf(c, `source=${source}`)), figuresOf(wanted));
      const again = await resultsOf<{ tiles: number; unchanged: number }>(
        c,
        await startJob(b, process, inputs),
      );
      assert.deepEqual([again.tiles, again.unchanged], [0, expected.tiles]);
    }
  });

  await t.test('coalesce uses tiles in other slots', async () => {
    const path = join(folder, 'coarse.tif');
    const href = await writeTestScene(path, { width: 400, height: 60, pixel: 500, x: 490_000 });
    const scene = { href, datetime: DATES[0], ...OPTIONS, collection: 'coarse', precision: 3 };
    await resultsOf(a, await startJob(a, 'ingest', scene));
    await alone(single, '/ingest', scene);
    const inputs = { to: 'test', filter: { collections: ['coarse'] } };
    const results = await resultsOf<{ tiles: number }>(c, await startJob(b, 'coalesce', inputs));
    const expected = await alone<{ tiles: number }>(single, '/processes/coalesce/execution', { inputs });
    assert.ok(expected.tiles > 0);
    assert.equal(results.tiles, expected.tiles);
    const wanted = await asked('source=coalesced')();
    assert.deepEqual(figuresOf(await itemsOf(b, 'source=coalesced')), figuresOf(wanted));
  });

  await t.test('the events of a job are available from any node', async () => {
    const id = await startJob(b, 'split', { filter, precision: 6 });
    const text = await (await fetch(`${c.url}/jobs/${id}/events`)).text();
    assert.match(text, /event: state\nid: \d+\ndata: .*"status":"successful"/);
    assert.ok(text.includes(`${c.url}/jobs/${id}`) && !text.includes(`${b.url}/jobs/${id}`));
  });

  await t.test('the tensors of all cells are available from any node', async () => {
    const inputs = { filter, bands: ['red', 'nir'] };
    const id = await startJob(c, 'tensor', inputs);
    const { files } = await resultsOf<{ files: { name: string; bytes: number }[] }>(a, id);
    const expected = await alone<{ files: { name: string; bytes: number }[] }>(
      single,
      '/processes/tensor/execution',
      { inputs },
    );
    assert.deepEqual(
      files.map(({ name, bytes }) => [name, bytes]),
      expected.files.map(({ name, bytes }) => [name, bytes]),
    );
    const { name, bytes } = files[0]!;
    const file = await fetch(`${b.url}/jobs/${id}/results/files/${name}`);
    assert.equal((await file.arrayBuffer()).byteLength, bytes);
  });

  await t.test('a request that is sent to two nodes with the same key starts one job', async () => {
    const headers = { 'idempotency-key': 'once' };
    const inputs = { filter, precision: 6 };
    const ids = await Promise.all([a, b, c].map((server) => startJob(server, 'split', inputs, headers)));
    assert.equal(new Set(ids).size, 1);
    await resultsOf(c, ids[0]!);
    assert.equal(await startJob(b, 'split', inputs, headers), ids[0]);
  });

  const training = { model: 'ndvi', mode: 'partitioned', filter, epochs: 2, seed: 5 };
  let expected: Models;
  await t.test('training gives the result of a single node', async () => {
    expected = await alone(single, '/processes/train/execution', { inputs: training });
    assert.ok(expected.models.length >= 3, JSON.stringify(expected.skipped));
    const results = await resultsOf<Models>(b, await startJob(a, 'train', training));
    assert.deepEqual(metricsOf(results), metricsOf(expected));
    assert.deepEqual(results.skipped, expected.skipped);
    assert.ok(Math.abs(results.pooled!.model.r2 - expected.pooled!.model.r2) < 1e-9);
  });

  await t.test(
    'a cell is trained outside of the nodes, through any of them',
    { skip: onlyNightly },
    async () => {
      const [{ geocode, metrics }] = expected.models as [Models['models'][0] & { geocode: string }];
      const place = ['--collection', 'test', '--geocode', geocode, '--epochs', '2', '--seed', '5'];
      for (const { url } of [a, b, c]) {
        const target = ['--server', url, '--format', 'json'];
        const args = ['train', 'ndvi', '--mode', 'contained', '--here', ...place, ...target];
        const { code, stdout, stderr } = await tilewright(...args);
        assert.equal(code, 0, stderr);
        assert.deepEqual(JSON.parse(stdout).models[0].metrics, metrics);
      }
    },
  );

  await t.test('a job is cancelled through another node, and all stop', async () => {
    const id = await startJob(a, 'train', { ...training, epochs: 60 });
    await until('the job is running', async () => (await get<Job>(b, `/jobs/${id}`)).tiles.total > 0);
    const answer = await fetch(`${b.url}/jobs/${id}`, { method: 'DELETE' });
    assert.equal(((await answer.json()) as Job).status, 'dismissed');
    const { models } = await get<Models>(c, `/jobs/${id}/results`);
    assert.ok(models.length < expected.models.length);
  });

  await t.test(
    'the log has the requests of clients and the tasks, but not the requests between nodes',
    () => {
      const logs = [a, b, c].map(({ log }) => log());
      assert.ok(logs.every((log) => log.includes('/jobs/')));
      assert.ok(logs.some((log) => log.includes('task of a job accepted')));
      for (const log of logs) assert.ok(!log.includes('/cluster/internal/'), log);
    },
  );
});
