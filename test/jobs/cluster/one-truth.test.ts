/** Every node reports the state of a job that the cluster knows, even if a former leader of the job has another record on its disk. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { coordinationUnavailable } from '../../../src/coordination/index.js';
import type { CoordinationStore } from '../../../src/coordination/store.js';
import { PeerClient, Signatures } from '../../../src/dht/index.js';
import { JobEntries } from '../../../src/jobs/cluster/entries.js';
import { ClusterJobRegistry, JobArtifacts } from '../../../src/jobs/cluster/registry.js';
import { ClusterJobService, type Process, retryJob } from '../../../src/jobs/index.js';
import { firstVersionAt, Storage } from '../../../src/storage/index.js';
import { hooked } from '../../coordination/faulty-stores.js';
import { startMember } from '../../dht/cluster-members.js';
import { type SharedStores, sharedStores } from '../../dht/shared-stores.js';
import { noEtcd } from '../../support/etcd.js';
import { eventually } from '../../support/eventually.js';
import { writeTestScene } from '../../support/scenes.js';
import { gate, process as processOf } from '../process.js';
import { Servers, startJob, until } from '../servers.js';

const RESULTS = { tiles: 30 };

/** The job service of node `a`, over the real stores of a cluster. */
async function nodeA(
  place: SharedStores,
  processes: Process[],
  coordination: CoordinationStore = place.coordination,
) {
  const storage = await Storage.open(join(place.folder, 'a'), { reserve: 0 });
  const { cluster } = await startMember(place, 'a', { storage });
  const signatures = new Signatures('a', ['secret']);
  const peers = new PeerClient(signatures);
  const service = await ClusterJobService.open({
    ...{ storage, processes, resume: true, gracePeriodMs: 60_000 },
    cluster: {
      ...{ cluster, peers, objects: place.objects, coordination, hasEtcd: false, signatures },
      owners: undefined as never,
      close: async () => undefined,
    },
    onFailure: () => undefined,
  });
  place.stops.push(async () => {
    // A job that another node leads has no end here.
    await service.close().catch(() => undefined);
    peers.close();
  });
  return { service, storage };
}

/** Node `b`, which can only lead jobs. */
async function nodeB({ folder, coordination, objects, stops }: SharedStores) {
  const storage = await Storage.open(join(folder, 'b'), { reserve: 0 });
  stops.push(() => storage.close());
  const entries = new JobEntries(coordination);
  const registry = new ClusterJobRegistry({
    ...{ catalogue: storage.catalogue, entries, artifacts: new JobArtifacts(objects), self: 'b' },
    work: async () => undefined,
    isWorkedOn: () => false,
    onTakenOver: () => undefined,
    onFailure: () => undefined,
  });
  const takeOver = async (id: string) => {
    const stored = (await entries.get(id))!;
    assert.ok(await registry.takeOver({ ...stored.entry.job, inputs: {} }, stored));
    return stored.entry.job;
  };
  const end = async (id: string, status: 'successful' | 'failed') => {
    const job = (await entries.get(id))!.entry.job;
    const error = status === 'failed' ? { error: { code: 'TW_X', message: 'at b' } } : { results: RESULTS };
    await registry.publish({ ...job, inputs: {}, status, finished: Date.now(), ...error }, true);
  };
  return { takeOver, end };
}

async function runningJob(t: TestContext) {
  const place = await sharedStores(t);
  const { work, running } = gate();
  let fail = (_: Error) => {};
  const failing = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const process = processOf((context, inputs) => Promise.race([work(context, inputs), failing]), {
    resumable: true,
  });
  const a = await nodeA(place, [process]);
  const { id } = await a.service.start(process, {});
  await running;
  return { ...a, ...(await nodeB(place)), place, id, fail };
}

test('a job that another node has taken over and ended stays as it ended, when its former run fails', async (t) => {
  const { service, storage, takeOver, end, id, fail } = await runningJob(t);
  await takeOver(id);
  await end(id, 'successful');
  fail(new Error('the scene is busy: node b works on it'));
  await eventually('its former run ends', () => service.active.length === 0);
  const job = await service.get(id);
  assert.deepEqual([job.status, job.results], ['successful', RESULTS]);
  assert.deepEqual(
    (await service.list()).map(({ status }) => status),
    ['successful'],
  );
  assert.equal(await storage.catalogue.jobs.get(id), undefined);
});

test('a cancelled job that another node has taken over is reported as running there', async (t) => {
  const { service, takeOver, end, id } = await runningJob(t);
  await takeOver(id);
  assert.equal((await service.cancel(id)).status, 'running');
  await end(id, 'failed');
  const { status, error } = await service.get(id);
  assert.deepEqual([status, error?.message], ['failed', 'at b']);
});

test('an end that a killed node has only on its disk does not hide the end that the cluster knows', async (t) => {
  const place = await sharedStores(t);
  const { work, running } = gate();
  const process = processOf(work, { resumable: true });
  const { service, storage } = await nodeA(place, [process]);
  const { id } = await service.start(process, {});
  await running;
  const b = await nodeB(place);
  const record = await service.get(id);
  await b.takeOver(id);
  await b.end(id, 'failed');
  // As if node a had been killed before it could publish its own end.
  const end = { ...record, status: 'successful' as const, finished: Date.now(), results: RESULTS };
  await storage.catalogue.write(storage.catalogue.jobs.set(end));
  await eventually('its former run ends', async () => {
    await service.cancel(id);
    return service.active.length === 0;
  });
  await storage.catalogue.write(storage.catalogue.jobs.set(end));
  const { status, error } = await service.get(id);
  assert.deepEqual([status, error?.message], ['failed', 'at b']);
});

test('a job that the cluster has lost is found in the object store and can be retried', async (t) => {
  const place = await sharedStores(t);
  const process = processOf(async () => RESULTS);
  const now = Date.now();
  const id = `${firstVersionAt(now)}aaaaaa`;
  const record = {
    ...{ id, process: process.id, status: 'failed' as const, message: '', inputs: { asked: 1 } },
    ...{ created: now, updated: now, finished: now, error: { code: 'TW_JOB_LOST', message: 'lost' } },
    tiles: { total: 0, done: 0, failed: 0, skipped: 0 },
  };
  const artifacts = new JobArtifacts(place.objects);
  await artifacts.putInputs(record);
  await artifacts.putEnd(artifacts.endFolder(id), record, []);
  const { service } = await nodeA(place, [process]);
  await eventually('the job is listed', async () => (await service.list()).some((job) => job.id === id));
  assert.deepEqual(await service.get(id), record);
  const retry = await retryJob(service, id, process);
  await eventually('the retry ends', async () => (await service.get(retry.id)).status === 'successful');
  const { inputs, retryOf } = await service.get(retry.id);
  assert.deepEqual([inputs, retryOf], [record.inputs, id]);
  assert.equal((await service.get(id)).retriedBy, retry.id);
});

test('while the cluster cannot be asked, a node answers the last state that it has seen, and says so', async (t) => {
  const place = await sharedStores(t);
  let isAway = false;
  const coordination = hooked(place.coordination, 'read', async () => {
    if (isAway) throw coordinationUnavailable('read', 'etcd', 'an outage');
  });
  const process = processOf(async () => RESULTS);
  const { service } = await nodeA(place, [process], coordination);
  const { id } = await service.start(process, {});
  await eventually('the cluster knows the end', () => service.active.length === 0);
  const { status, stale } = await service.status(id);
  assert.deepEqual([status, stale], ['successful', undefined]);
  isAway = true;
  const last = await service.status(id);
  assert.deepEqual([last.status, last.stale], ['successful', true]);
  await assert.rejects(service.get(id), { code: 'TW_DHT_COORDINATION_UNAVAILABLE' });
  await assert.rejects(service.status('000000000aaaaaa'), { code: 'TW_DHT_COORDINATION_UNAVAILABLE' });
});

test('requests for a job whose leader is paused are answered soon', { skip: noEtcd }, async (t) => {
  const servers = await Servers.start(t);
  const [a, b] = servers.three;
  const href = await writeTestScene(join(servers.folder, 'scene.tif'));
  const scene = {
    collection: 'c',
    datetime: '2024-06-01T10:00:00Z',
    bands: { red: 3, nir: 4 },
    precision: 6,
  };
  const ingest = await startJob(a, 'ingest', { href, ...scene });
  await until('the tiles are there', async () =>
    /"successful"/.test(await (await fetch(`${a.url}/jobs/${ingest}`)).text()),
  );
  const id = await startJob(a, 'train', { model: 'ndvi', epochs: 10_000 });
  await until('it runs', async () => /"running"/.test(await (await fetch(`${b.url}/jobs/${id}`)).text()));
  a.process.kill('SIGSTOP');
  try {
    const statuses = await Promise.all(
      ['', '/logs', '/results'].map(async (path) => {
        const answer = await fetch(`${b.url}/jobs/${id}${path}`, { signal: AbortSignal.timeout(20_000) });
        return answer.status;
      }),
    );
    assert.deepEqual(statuses, [200, 503, 503]);
  } finally {
    a.process.kill('SIGCONT');
  }
});
