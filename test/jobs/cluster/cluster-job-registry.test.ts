/** The state that a node keeps of the jobs that it publishes. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { toArray } from '../../../src/async/index.js';
import { coordinationFull } from '../../../src/coordination/index.js';
import { JobEntries } from '../../../src/jobs/cluster/entries.js';
import { ClusterJobRegistry, JobArtifacts } from '../../../src/jobs/cluster/registry.js';
import { LocalJobService } from '../../../src/jobs/index.js';
import { storageFull } from '../../../src/storage/errors.js';
import { Storage } from '../../../src/storage/index.js';
import { faultyCoordination } from '../../coordination/faulty-stores.js';
import { sharedStores } from '../../dht/shared-stores.js';
import { eventually } from '../../support/eventually.js';
import { process, startWork } from '../process.js';

async function open(t: TestContext) {
  const { folder, coordination, objects, stops } = await sharedStores(t);
  const storage = await Storage.open(join(folder, 'a'), { reserve: 0 });
  const disk = { isFull: false };
  const full = faultyCoordination(coordination, () =>
    disk.isFull ? { kind: 'full', outage: 0 } : undefined,
  );
  const entries = new JobEntries(full);
  const failures: unknown[] = [];
  const registry = new ClusterJobRegistry({
    catalogue: storage.catalogue,
    entries,
    artifacts: new JobArtifacts(objects),
    self: 'a',
    work: ({ run }, inputs, context) => run(inputs, context),
    isWorkedOn: () => false,
    onTakenOver: (job) => jobs.abandon(job),
    onFailure: (error) => failures.push(error),
  });
  const jobs = await LocalJobService.open(storage, [], { registry });
  stops.push(async () => {
    registry.close();
    await jobs.close();
    await storage.close();
    for (const error of failures) assert.ok(coordinationFull.is(error) || storageFull.is(error));
  });
  return { jobs, registry, entries, objects, disk, failures, storage };
}

test('the end of a job is published once a full etcd has room again', async (t) => {
  const { jobs, entries, disk, failures } = await open(t);
  const job = await startWork(jobs, {}, async () => {
    disk.isFull = true;
    return 'done';
  });
  await eventually('a refused attempt', () => failures.length > 0);
  disk.isFull = false;
  assert.equal((await jobs.wait(job.id)).status, 'successful');
  await eventually('the end', async () => (await entries.get(job.id))?.isLive === false);
});

test('other nodes know the end of a job that this node could not write', async (t) => {
  const { jobs, registry, entries, storage } = await open(t);
  const { catalogue } = storage;
  const write = catalogue.write.bind(catalogue);
  const job = await startWork(jobs, {}, async () => {
    catalogue.write = async () => {
      throw storageFull(storage.dir);
    };
    throw storageFull(storage.dir);
  });
  await eventually('the end', async () => (await entries.get(job.id))?.isLive === false);
  assert.equal((await entries.get(job.id))?.entry.job.status, 'failed');
  catalogue.write = write;
  assert.equal(await registry.isLedHere(job), false, 'the next start does not run it again');
});

test('no state remains of a job that has ended, nor of a repeated request', async (t) => {
  const { jobs, registry } = await open(t);
  const request = { key: 'once', digest: 'a' };
  const work = process(async () => 'done');
  const { job } = await jobs.startIdempotent(work, {}, { request });
  assert.equal((await jobs.wait(job.id)).status, 'successful');
  const again = await jobs.startIdempotent(work, {}, { request });
  assert.deepEqual([again.repeated, again.job.id], [true, job.id]);
  assert.deepEqual([...registry.accepting], []);
});

test('no state remains of a job that another node has taken over', async (t) => {
  const { jobs, registry, entries } = await open(t);
  const job = await startWork(jobs, {}, async ({ signal, progress }) => {
    const { entry, revision } = (await entries.get(job.id))!;
    await entries.update({ ...entry, home: 'b' }, revision);
    progress({ done: 1 });
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  await assert.rejects(jobs.wait(job.id), { code: 'TW_JOB_TAKEN_OVER' });
  assert.deepEqual([...registry.accepting], []);
  assert.equal(await jobs.find(job.id), undefined);
});

test('a job that is refused leaves nothing in the object store', async (t) => {
  const { jobs, objects } = await open(t);
  const work = process(async () => 'done');
  const { job } = await jobs.startIdempotent(work, {}, { request: { key: 'once', digest: 'a' } });
  await jobs.wait(job.id);
  const other = { request: { key: 'once', digest: 'b' } };
  await assert.rejects(jobs.startIdempotent(work, {}, other), { code: 'TW_JOB_KEY_REUSED' });
  const names = (await toArray(objects.list('jobs/'))).map(({ name }) => name.split('/')[1]);
  assert.deepEqual([...new Set(names)], [job.id]);
});

test('a job that this node cannot write is withdrawn: it never runs, and the request can be repeated', async (t) => {
  const { jobs, registry, entries, objects, disk, storage } = await open(t);
  const { catalogue } = storage;
  const write = catalogue.write.bind(catalogue);
  const request = { key: 'once', digest: 'a' };
  const work = process(async () => 'done');
  catalogue.write = async () => {
    throw storageFull(storage.dir);
  };
  await assert.rejects(jobs.startIdempotent(work, {}, { request }), { code: 'TW_STORAGE_FULL' });
  assert.deepEqual(await entries.live(), []);
  assert.deepEqual(await toArray(objects.list('jobs/')), []);
  assert.deepEqual([...registry.accepting], []);

  // Without etcd, the job may still be taken over later.
  catalogue.write = async () => {
    disk.isFull = true;
    throw storageFull(storage.dir);
  };
  await assert.rejects(jobs.startIdempotent(work, {}, { request }), { code: 'TW_JOB_PERHAPS_ACCEPTED' });
  const [stored] = await entries.live();
  disk.isFull = false;
  catalogue.write = write;
  const again = await jobs.startIdempotent(work, {}, { request });
  assert.deepEqual(again, { job: { ...again.job, id: stored!.entry.job.id }, repeated: true });
});
