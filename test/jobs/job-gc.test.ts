/** Removal of jobs that ended long ago, on a server that is not restarted. */
import assert from 'node:assert/strict';
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { toArray } from '../../src/async/index.js';
import { LocalJobService } from '../../src/jobs/index.js';
import { collectGarbage, IdempotencyKeys } from '../../src/jobs/records.js';
import { openNode } from '../../src/node.js';
import { firstVersionAt, type JobRecord, Storage } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';
import { gate, process, startWork } from './process.js';
import { until } from './servers.js';

const DAY = 86_400_000;
const daysAgo = (days: number) => Date.now() - days * DAY;

function jobOf(created: number, finished: number | undefined): JobRecord {
  return {
    ...{
      id: `${firstVersionAt(Math.round(created))}aaaaaa`,
      process: 'fill',
      message: '',
      inputs: {},
      lines: 3,
    },
    status: finished === undefined ? 'running' : 'successful',
    created,
    updated: finished ?? created,
    ...(finished !== undefined && { finished, results: {} }),
    tiles: { total: 0, done: 0, failed: 0, skipped: 0 },
  };
}

/** Puts a job of an earlier process into the store, with three log lines and a result file. */
async function putJob({ catalogue, dir }: Storage, job: JobRecord): Promise<string> {
  const { jobs, logs } = catalogue;
  const line = { time: job.updated, level: 'info', text: 'x' } as const;
  const keys = [1, 2, 3].map((seq) => `${job.id}/${String(seq).padStart(10, '0')}`);
  await catalogue.write([...jobs.set(job), ...keys.map((key) => logs.set(key, line))]);
  await putOld(join(dir, 'results', job.id), job.updated);
  return job.id;
}

/** Makes a folder with a file that was last changed at the given time. */
async function putOld(folder: string, time: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'a.tif'), Buffer.alloc(300_000));
  await utimes(folder, time / 1000, time / 1000);
}

async function open(t: TestContext): Promise<Storage> {
  const storage = await Storage.open(await tempFolder(t), { reserve: 0 });
  atEnd(t, () => storage.close());
  return storage;
}

async function left({ catalogue, dir }: Storage) {
  const logs = new Set((await toArray(catalogue.logs.keys())).map((key) => key.split('/')[0]));
  return {
    jobs: await toArray(catalogue.jobs.keys()),
    logs: [...logs],
    results: (await readdir(join(dir, 'results'))).sort(),
  };
}

test('jobs are hidden a week after their end, and removed with their logs and results a day later', async (t) => {
  const storage = await open(t);
  const gone = await putJob(storage, jobOf(daysAgo(8.2), daysAgo(8.1)));
  const hidden = await putJob(storage, jobOf(daysAgo(7.2), daysAgo(7.1)));
  const shown = await putJob(storage, jobOf(daysAgo(6.9), daysAgo(6.8)));
  const late = await putJob(storage, jobOf(daysAgo(60), daysAgo(0.1)));
  const jobs = await LocalJobService.open(storage, []);
  atEnd(t, () => jobs.close());
  await jobs.collectGarbage();
  const kept = [late, hidden, shown];
  assert.deepEqual(await left(storage), { jobs: kept, logs: kept, results: kept });
  assert.deepEqual(
    (await jobs.list()).map(({ id }) => id),
    [shown, late],
  );
  for (const id of [gone, hidden]) await assert.rejects(jobs.get(id), { code: 'TW_JOB_NOT_FOUND' });
  assert.equal((await jobs.get(shown)).status, 'successful');
  assert.equal((await jobs.log(hidden)).length, 3, 'a reader that has begun comes to the end');

  await jobs.collectGarbage(Date.now() + DAY);
  assert.deepEqual((await left(storage)).jobs, [late, shown]);
  await jobs.collectGarbage(Date.now() + 9 * DAY);
  assert.deepEqual(await left(storage), { jobs: [], logs: [], results: [] });
});

test('nothing is removed of a job that has not ended, or that this node works on for another node', async (t) => {
  const storage = await open(t);
  const jobs = await LocalJobService.open(storage, []);
  atEnd(t, () => jobs.close());
  const { work, running, open: end } = gate();
  const { id } = await startWork(jobs, {}, work);
  await running;
  const foreign = `${firstVersionAt(daysAgo(30))}bbbbbb`;
  const lost = `${firstVersionAt(daysAgo(30))}cccccc`;
  for (const job of [id, foreign, lost]) {
    await putOld(join(storage.dir, 'results', job), daysAgo(30));
    await putOld(join(storage.dir, 'scratch', job), daysAgo(30));
  }
  await putOld(join(storage.dir, 'scratch', 'upload-x'), daysAgo(30));
  await putOld(await storage.scratch.makePersistent('old'), daysAgo(30));
  await putOld(await storage.scratch.makePersistent('young'), daysAgo(1));
  const requests = await IdempotencyKeys.open(storage.catalogue);
  const isWorkedOn = (job: string) => job === foreign;
  const hasPublishedEnd = async () => true;
  const isStopping = () => false;
  await collectGarbage({ storage, requests, isWorkedOn, hasPublishedEnd, isStopping }, Date.now());
  assert.deepEqual(await left(storage), { jobs: [id], logs: [id], results: [foreign, id].sort() });
  assert.deepEqual(
    (await readdir(join(storage.dir, 'scratch'))).sort(),
    [foreign, id, 'kept-young', 'upload-x'].sort(),
  );
  await jobs.collectGarbage(Date.now() + 30 * DAY);
  assert.equal((await jobs.get(id)).status, 'running');
  end('done');
  assert.equal((await jobs.wait(id)).status, 'successful');
});

test('a result that is removed during its download arrives completely', async (t) => {
  const storage = await open(t);
  const id = await putJob(storage, jobOf(daysAgo(7), daysAgo(6.99)));
  const jobs = await LocalJobService.open(storage, []);
  atEnd(t, () => jobs.close());
  const file = await jobs.file(id, 'a.tif');
  const stream = await file!.open();
  const first = await new Promise<Buffer>((resolve) =>
    stream.once('data', resolve).once('data', () => stream.pause()),
  );
  await jobs.collectGarbage(Date.now() + 30 * DAY);
  assert.equal(await jobs.file(id, 'a.tif'), undefined);
  assert.equal(first.length + (await buffer(stream)).length, file!.bytes);
});

test('expired idempotency keys are removed', async (t) => {
  const storage = await open(t);
  const jobs = await LocalJobService.open(storage, []);
  atEnd(t, () => jobs.close());
  const request = { key: 'once', digest: 'a' };
  const work = process(async () => 'done');
  const { job } = await jobs.startIdempotent(work, {}, { request });
  await jobs.wait(job.id);
  const keys = async () => (await toArray(storage.catalogue.requests.keys())).length;
  await jobs.collectGarbage(Date.now() + 0.9 * DAY);
  assert.equal(await keys(), 1);
  assert.ok((await jobs.startIdempotent(work, {}, { request })).repeated);
  await jobs.collectGarbage(Date.now() + 1.1 * DAY);
  assert.equal(await keys(), 0);
});

test('a node collects garbage by itself', async (t) => {
  const dir = await tempFolder(t);
  const storage = await Storage.open(dir, { reserve: 0 });
  const old = await putJob(storage, jobOf(daysAgo(100), daysAgo(99)));
  await storage.close();
  const node = await openNode({ data: dir, memory: 512e6, cores: 1, reserve: 0 });
  atEnd(t, () => node.close());
  assert.equal((await node.server.inject(`/jobs/${old}`)).statusCode, 404);
  await until('it is removed', async () => {
    const { jobs, logs, results } = await left(node.storage);
    return jobs.length + logs.length + results.length === 0;
  });
});
