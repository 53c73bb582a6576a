/** Failover: jobs of lost nodes, own jobs that do not run, and old jobs. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { toArray } from '../../../src/async/index.js';
import { documentDamaged } from '../../../src/coordination/index.js';
import { JobEntries } from '../../../src/jobs/cluster/entries.js';
import { ClusterJobRegistry, JobArtifacts } from '../../../src/jobs/cluster/registry.js';
import { JobFailover } from '../../../src/jobs/cluster/service.js';
import { LocalJobService } from '../../../src/jobs/index.js';
import { storeUnavailable } from '../../../src/storage/errors.js';
import { firstVersionAt, type ObjectStore, Storage } from '../../../src/storage/index.js';
import { faultyObjects, hooked } from '../../coordination/faulty-stores.js';
import { type SharedStores, sharedStores } from '../../dht/shared-stores.js';
import { eventually } from '../../support/eventually.js';
import { process } from '../process.js';

const DAY = 86_400_000;
/** Node `a` checks every 100 ms. */
const GRACE_MS = 400;

/** Node `a`, the only running node of a cluster, which can run `fill`. */
async function nodeOf(
  { folder, coordination, stops }: SharedStores,
  store: ObjectStore,
  collectionMs?: number,
) {
  const storage = await Storage.open(join(folder, 'a'), { reserve: 0 });
  const entries = new JobEntries(coordination);
  const artifacts = new JobArtifacts(store);
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => failures.push(error);
  const registry = new ClusterJobRegistry({
    catalogue: storage.catalogue,
    entries,
    artifacts,
    self: 'a',
    onFailure,
    work: ({ run }, inputs, context) => run(inputs, context),
    isWorkedOn: () => false,
    onTakenOver: () => undefined,
  });
  const jobs = await LocalJobService.open(storage, [], { registry, resume: true });
  const cluster = { self: 'a', nodes: [{ id: 'a' }], revokeLocksOf: async () => undefined };
  const processes = [process(async () => 'done', { resumable: true })];
  const lost = new JobFailover({
    jobs,
    registry,
    entries,
    artifacts,
    cluster,
    processes,
    onFailure,
    gracePeriodMs: GRACE_MS,
    collectionMs,
  });
  stops.push(async () => {
    await lost.close();
    registry.close();
    await jobs.close();
    await storage.close();
  });
  return { entries, artifacts, failures, lost };
}

const TILES = { total: 0, done: 0, failed: 0, skipped: 0 };

/** A queued job of node `a`. */
const waiting = (id: string) => {
  const now = Date.now();
  const job = { id, process: 'fill', status: 'accepted' as const, message: '', resumable: true };
  return { home: 'a', job: { ...job, created: now, updated: now, tiles: TILES } };
};

async function endOf(entries: JobEntries, id: string) {
  await eventually('the end', async () => (await entries.get(id))?.isLive === false);
  return (await entries.get(id))!.entry.job;
}

test('a job whose inputs are missing from the object store fails, and the others run', async (t) => {
  const place = await sharedStores(t);
  const { entries, artifacts, failures } = await nodeOf(place, place.objects);
  await entries.create(waiting('aaa'));
  await artifacts.putInputs({ ...waiting('bbb').job, inputs: {} });
  await entries.create(waiting('bbb'));
  const { status, error } = await endOf(entries, 'aaa');
  assert.deepEqual([status, error?.code], ['failed', 'TW_JOB_INTERRUPTED']);
  assert.match(error!.message, /inputs are missing/);
  assert.equal((await endOf(entries, 'bbb')).status, 'successful');
  assert.deepEqual(failures, []);
});

test('a job that its leader does not run can be cancelled', async (t) => {
  const place = await sharedStores(t);
  const away = storeUnavailable(place.objects.url, 'asked.json', 'outage');
  const store = hooked(place.objects, 'head', async (name) => {
    if (name.endsWith('asked.json')) throw away;
  });
  const { entries, lost, failures } = await nodeOf(place, store);
  await entries.create(waiting('aaa'));
  await eventually('an attempt to run the job', () => failures.includes(away));
  await lost.cancel('aaa');
  assert.equal((await endOf(entries, 'aaa')).status, 'dismissed');
  await lost.cancel('aaa');
  await lost.cancel('unknown');
});

test('a damaged entry is reported once, and stops neither other jobs nor the removal of old ones', async (t) => {
  const place = await sharedStores(t);
  const damaged = {
    'jobs/live/000': '{"home":5,"job":null}',
    'jobs/live/001': '{',
    'jobs/live/002': JSON.stringify(waiting('other')),
    'jobs/live/003': '{"home":"a","job":{"id":"003"}}',
    'jobs/ended/004': '{"home":"a","job":{}}',
  };
  for (const [key, value] of Object.entries(damaged))
    await place.coordination.transact({ success: [{ op: 'put', key, value }] });
  const finished = Date.now() - 30 * DAY;
  const old = `${firstVersionAt(finished)}aaaaaa`;
  const { entries, artifacts, failures } = await nodeOf(place, place.objects);
  const { job } = waiting(old);
  const document = { home: 'a', job: { ...job, status: 'successful' as const, updated: finished, finished } };
  const added = await entries.create(document);
  assert.ok('revision' in added);
  await entries.end({ ...document, folder: `jobs/${old}/end` }, added.revision);
  await artifacts.putInputs({ ...waiting('bbb').job, inputs: {} });
  await entries.create(waiting('bbb'));
  assert.equal((await endOf(entries, 'bbb')).status, 'successful');
  await eventually('the removal', async () => (await entries.get(old)) === undefined);
  await eventually('all reports', () => failures.length >= Object.keys(damaged).length);
  assert.ok(failures.every(documentDamaged.is));
  const reported = failures.map((error) => String(error).match(/jobs\/\w+\/\d+/)?.[0]);
  assert.deepEqual(reported.sort(), Object.keys(damaged).sort());
  await assert.rejects(toArray(entries.all()), documentDamaged.is);
  await assert.rejects(entries.get('000'), documentDamaged.is);
});

test('an object that cannot be removed does not keep other jobs', async (t) => {
  const place = await sharedStores(t);
  const finished = Date.now() - 30 * DAY;
  const ids = ['aaaaaa', 'bbbbbb', 'cccccc'].map((end) => `${firstVersionAt(finished)}${end}`);
  const faulty = faultyObjects(place.objects, (name) =>
    name.includes(ids[1]!) ? { kind: 'failed', outage: 0 } : undefined,
  );
  const entries = new JobEntries(place.coordination);
  for (const id of ids) {
    await new JobArtifacts(place.objects).putInputs({ ...waiting(id).job, inputs: {} });
    const { job: accepted } = waiting(id);
    const job = {
      ...accepted,
      status: 'successful' as const,
      created: finished,
      updated: finished,
      finished,
    };
    const added = await entries.create({ home: 'a', job });
    assert.ok('revision' in added);
    await entries.end({ home: 'a', job, folder: `jobs/${id}/end` }, added.revision);
  }
  const { failures } = await nodeOf(place, faulty);
  const left = async () => (await toArray(entries.all())).map(({ entry }) => entry.job.id);
  await eventually('the removal', async () => `${await left()}` === ids[1]);
  assert.deepEqual(
    (await toArray(place.objects.list('jobs/'))).map(({ name }) => name.split('/')[1]),
    [ids[1]],
  );
  assert.match(String(failures[0]), /TW_STORAGE_UNAVAILABLE|outage/);
});

test('jobs that only the object store has are found, or said to be lost', async (t) => {
  const place = await sharedStores(t);
  const artifacts = new JobArtifacts(place.objects);
  const jobOf = (finished: number) => ({
    ...waiting(`${firstVersionAt(finished)}aaaaaa`).job,
    ...{ status: 'successful' as const, created: finished, updated: finished, finished },
    ...{ inputs: { asked: 1 }, results: { tiles: 3 }, lines: 1 },
  });
  const [ended, old] = [jobOf(Date.now() - DAY), jobOf(Date.now() - 30 * DAY)];
  const line = { seq: 1, time: ended.updated, level: 'info', text: 'successful' } as const;
  for (const job of [ended, old]) {
    await artifacts.putInputs(job);
    await artifacts.putEnd(artifacts.endFolder(job.id), job, [line]);
  }
  const begun = { ...waiting(`${firstVersionAt(Date.now())}bbbbbb`).job, inputs: { asked: 2 } };
  await artifacts.putInputs(begun);
  const { entries, failures } = await nodeOf(place, place.objects, 200);
  // A job whose entry is just made is not lost.
  const accepted = { ...waiting(`${firstVersionAt(Date.now())}cccccc`).job, inputs: { asked: 3 } };
  await artifacts.putInputs(accepted);
  await entries.create(waiting(accepted.id));

  assert.equal((await endOf(entries, ended.id)).status, 'successful');
  const { entry: restored } = (await entries.get(ended.id))!;
  assert.ok(restored.job.hasResults);
  assert.deepEqual(await artifacts.record(restored.folder!), ended);
  assert.deepEqual(await artifacts.log(restored.folder!), [line]);
  const lost = await endOf(entries, begun.id);
  assert.deepEqual([lost.process, lost.status, lost.error?.code], ['fill', 'failed', 'TW_JOB_LOST']);
  // From these inputs it can be retried.
  const { folder } = (await entries.get(begun.id))!.entry;
  assert.deepEqual((await artifacts.record(folder!)).inputs, begun.inputs);
  assert.equal((await endOf(entries, accepted.id)).status, 'successful');
  assert.equal(await entries.get(old.id), undefined);
  assert.ok(!(await artifacts.stored()).has(old.id));
  assert.deepEqual(failures, []);
});
