/** Signals of a node for operators: metrics of its work, readiness, and its log. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { DependencyChecks } from '../../src/api/routes/operations.js';
import { Storage } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { start } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { ingest, testNode } from '../support/node.js';
import { parsePrometheus } from '../support/prometheus.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

test('metrics count requests by route, scenes, failures and jobs', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const read = async () => parsePrometheus((await node.server.inject('/metrics')).body);
  const before = await read();
  assert.equal(before.get('tilewright_jobs_ended_total{process="ingest",state="failed"}'), 0);
  const href = await writeTestScene(join(folder, 'scene.tif'), { width: 60, height: 50 });
  const scene = { href, datetime: '2024-06-01T10:00:00Z', collection: 'test', precision: 6, maskBand: 5 };
  await ingest(node, scene);
  await ingest(node, scene);
  await ingest(node, { ...scene, href: `${href}.missing` }).catch(() => undefined);
  for (const path of ['/collections/test', '/collections/other', '/nowhere/1', '/nowhere/2'])
    await node.server.inject(path);
  await node.server.inject({ method: 'HEAD', url: '/collections/test' });

  const samples = await read();
  const value = (name: string) => samples.get(`tilewright_${name}`);
  assert.equal(value('ingest_scenes_total{outcome="new"}'), 1);
  assert.equal(value('ingest_scenes_total{outcome="unchanged"}'), 1);
  assert.equal(value('ingest_failures_total'), 1);
  // 60 x 50 pixels in each band that makes tiles.
  assert.equal(value('ingest_pixels_total')! % (60 * 50), 0);
  assert.ok(value('ingest_pixels_total')! >= 4 * 60 * 50);
  assert.equal(value('jobs_ended_total{process="ingest",state="successful"}'), 2);
  assert.equal(value('jobs_ended_total{process="ingest",state="failed"}'), 1);
  assert.equal(value('jobs{process="ingest",state="running"}'), 0);
  assert.equal(value('jobs_oldest_queued_seconds'), 0);
  const requests = (method: string, route: string, status: number) =>
    value(`http_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"}`);
  assert.equal(requests('GET', '/collections/:id', 200), 1);
  assert.equal(requests('GET', '/collections/:id', 404), 1);
  assert.equal(requests('HEAD', '/collections/:id', 200), 1);
  assert.equal(requests('GET', 'none', 404), 2);
  assert.ok(![...samples.keys()].some((name) => name.includes('nowhere')));
  assert.equal(value('dependency_up{dependency="disk"}'), 1);
  assert.ok(value('disk_free_bytes')! > 0);
});

test('readiness names the dependency that is unavailable', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const storage = await Storage.open(data, { reserve: 1e18 });
  atEnd(t, () => storage.close());
  // The timeout of a check does not keep a process alive; the socket of a server does.
  const alive = setInterval(() => {}, 1e6);
  atEnd(t, () => clearInterval(alive));
  const objects = {
    head: async (name: string) => (name === 'cluster.json' ? { name, bytes: 1, modified: 0 } : undefined),
  };
  const bounds = async () => ({ head: 7, checkpoint: 0 });
  const statesWith = (more: { objects?: object; bounds?: () => Promise<unknown>; hasEtcd?: boolean }) => {
    const cluster = { log: { bounds: more.bounds ?? bounds }, replica: { applied: 7 } };
    const service = { cluster, objects: more.objects ?? objects, hasEtcd: more.hasEtcd ?? true };
    return new DependencyChecks({ storage, cluster: service as never }).states();
  };
  const low = { disk: 'unavailable' };
  assert.deepEqual(await new DependencyChecks({ storage, cluster: undefined }).states(), low);
  assert.deepEqual(await statesWith({}), { ...low, store: 'ok', etcd: 'ok' });
  assert.deepEqual(await statesWith({ hasEtcd: false }), { ...low, store: 'ok' });
  const failing = { head: () => Promise.reject(new Error('no connection')) };
  assert.deepEqual(await statesWith({ objects: failing }), { ...low, store: 'unavailable', etcd: 'ok' });
  const hanging = { head: () => new Promise(() => {}) };
  assert.deepEqual(await statesWith({ objects: hanging }), { ...low, store: 'unavailable', etcd: 'ok' });
  // An etcd without the commits is the wrong one, or has lost them.
  const behind = async () => ({ head: 6, checkpoint: 0 });
  for (const log of [behind, () => Promise.reject(new Error('no etcd'))])
    assert.deepEqual(await statesWith({ bounds: log }), { ...low, store: 'ok', etcd: 'unavailable' });

  // Twenty clients cost one request to the object store and one to etcd.
  const calls = { head: 0, bounds: 0 };
  const counting = {
    cluster: {
      replica: { applied: 7 },
      log: {
        bounds: async () => {
          calls.bounds++;
          return bounds();
        },
      },
    },
    objects: {
      head: async (name: string) => {
        calls.head++;
        return { name, bytes: 1, modified: 0 };
      },
    },
    hasEtcd: true,
  };
  const checks = new DependencyChecks({ storage, cluster: counting as never });
  await Promise.all(Array.from({ length: 20 }, () => [checks.states(), checks.logBounds()]).flat());
  assert.deepEqual(calls, { head: 1, bounds: 1 });
});

/** Long enough on a machine that is busy with other things. */
const TIMEOUT_MS = 60_000;

interface LogLine {
  level: number;
  reqId?: string;
  job?: string;
  process?: string;
  msg: string;
}

test('the log has the ids of requests and of jobs', async (t) => {
  const folder = await tempFolder(t);
  const server = start(['serve', '--data', join(folder, 'data'), '--port', '0', '--cores', '1']);
  let text = '';
  server.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  atEnd(t, async () => {
    server.kill();
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  });
  const listening = /"msg":"Server listening at (http:[^"]+)"/;
  const url = await eventually('the server listens', () => listening.exec(text)?.[1], TIMEOUT_MS);
  const answer = await fetch(`${url}/processes/verify/execution`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-id': 'from-the-client.1' },
    body: '{}',
  });
  assert.equal(answer.headers.get('x-request-id'), 'from-the-client.1');
  const { jobID } = (await answer.json()) as { jobID: string };
  // The last line may not be complete yet.
  const lines = () =>
    text
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as LogLine);
  const ofJob = () => lines().filter(({ job }) => job === jobID);
  const hasEnded = () => ofJob().some(({ msg }) => msg === 'successful');
  await eventually('the log has the end of the job', hasEnded, TIMEOUT_MS);
  const [accepted] = ofJob().filter(({ reqId }) => reqId !== undefined);
  assert.equal(accepted?.reqId, 'from-the-client.1');
  const states = ofJob().filter(({ reqId }) => reqId === undefined);
  for (const { process } of states) assert.equal(process, 'verify');
  const messages = states.map(({ msg }) => msg);
  for (const state of ['accepted', 'running', 'successful']) assert.ok(messages.includes(state), state);
});
