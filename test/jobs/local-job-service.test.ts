import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { jobLimit } from '../../src/jobs/errors.js';
import {
  FailedWithResults,
  type JobContext,
  LocalJobService,
  type LocalJobServiceOptions,
} from '../../src/jobs/index.js';
import { storageFull } from '../../src/storage/errors.js';
import { type Catalogue, type JobRecord, Storage } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { gate, process, startWork } from './process.js';
import { until } from './servers.js';

async function tempFolder(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'tilewright-jobs-'));
  atEnd(t, () => rm(dir, { recursive: true, force: true }));
  return dir;
}

async function openJobs(
  t: TestContext,
  options: LocalJobServiceOptions = {},
): Promise<{ jobs: LocalJobService; catalogue: Catalogue }> {
  const storage = await Storage.open(await tempFolder(t));
  const jobs = await LocalJobService.open(storage, [], options);
  atEnd(t, async () => {
    await jobs.close();
    await storage.close();
  });
  return { jobs, catalogue: storage.catalogue };
}

test('a job is accepted, runs, and ends with its results; each state is on disk when it is reported', async (t) => {
  const { jobs, catalogue } = await openJobs(t);
  const { work, running, open } = gate();
  const accepted = await startWork(jobs, { collection: 'x' }, work);
  assert.equal(accepted.status, 'accepted');
  const told: Promise<void>[] = [];
  const states: string[] = [];
  await jobs.subscribe(accepted.id, (job) => {
    states.push(job.status);
    told.push(
      catalogue.jobs.get(accepted.id).then((stored) => {
        const order = ['accepted', 'running', 'successful'];
        assert.ok(order.indexOf(stored!.status) >= order.indexOf(job.status));
      }),
    );
  });
  await running;
  assert.equal((await jobs.get(accepted.id)).status, 'running');
  open({ tiles: 3 });
  const ended = await jobs.wait(accepted.id);
  assert.equal(ended.status, 'successful');
  const seconds = (ended.finished! - ended.started!) / 1000;
  assert.deepEqual(ended.results, { tiles: 3, seconds });
  assert.deepEqual(ended.inputs, { collection: 'x' });
  assert.ok(ended.created <= ended.started! && ended.started! <= ended.finished!);
  assert.deepEqual(await catalogue.jobs.get(accepted.id), JSON.parse(JSON.stringify(ended)));
  await Promise.all(told);
  assert.deepEqual(states, ['accepted', 'running', 'successful']);
  assert.deepEqual(await jobs.wait(accepted.id), await jobs.get(accepted.id), 'even after the end');
});

test('an error of the work is kept with its code', async (t) => {
  const { jobs } = await openJobs(t);
  const plain = await startWork(jobs, {}, async () => {
    throw new Error('the disk is on fire');
  });
  const { status, error } = await jobs.wait(plain.id);
  assert.equal(status, 'failed');
  assert.deepEqual(error, { code: 'TW_JOB_FAILED', message: 'the disk is on fire' });
  const coded = await startWork(jobs, {}, () => jobs.get('nothing'));
  assert.equal((await jobs.wait(coded.id)).error?.code, 'TW_JOB_NOT_FOUND');
  const cause = jobLimit(2);
  const partly = await startWork(jobs, {}, async () => {
    throw new FailedWithResults(cause, { tried: 2 });
  });
  const { results, ...ended } = await jobs.wait(partly.id);
  const seconds = (ended.finished! - ended.started!) / 1000;
  assert.deepEqual([ended.status, ended.error?.code, results], ['failed', cause.code, { tried: 2, seconds }]);
  const circular: { self?: unknown } = {};
  circular.self = circular;
  const unwritable = await startWork(jobs, {}, async () => circular);
  const end = await jobs.wait(unwritable.id);
  assert.equal(end.status, 'failed');
  assert.match(end.error!.message, /circular/);
});

test('progress is monotonic, and the last of it is in the record', async (t) => {
  const { jobs } = await openJobs(t);
  const { id } = await startWork(jobs, {}, async (context) => {
    context.progress({ total: 10, done: 4 });
    context.progress({ done: 2, failed: 1 });
    context.message('filling');
    context.progress({ skipped: 3, total: 9 });
  });
  const { tiles, message } = await jobs.wait(id);
  assert.deepEqual(tiles, { total: 10, done: 4, failed: 1, skipped: 3 });
  assert.equal(message, 'filling');
});

test('progress is written without the long parts of the record, and these when they change', async (t) => {
  const { jobs, catalogue } = await openJobs(t);
  const written: number[] = [];
  const { write } = catalogue;
  catalogue.write = (changes, sync) => {
    const bytes = changes.map((change) => (change.type === 'put' ? change.value.length : 0));
    written.push(bytes.reduce((sum, count) => sum + count, 0));
    return write.call(catalogue, changes, sync);
  };
  const inputs = { labels: 'x'.repeat(1_000_000) };
  const steps = [gate(), gate(), gate()];
  const { id } = await startWork(jobs, inputs, async (context) => {
    context.message('y'.repeat(100));
    await steps[0]!.work(context, {});
    context.log('warning', 'band B1 is missing');
    await steps[1]!.work(context, {});
    await context.file('a.tif', 'jobs/a.tif');
    await steps[2]!.work(context, {});
    return { cells: 'z'.repeat(1_000_000) };
  });
  const stored = async () => (await catalogue.jobs.get(id))!;
  await until('the message is stored', async () => (await stored()).message !== '');
  assert.ok(
    written.slice(1).every((bytes) => bytes < 4096),
    `${written}`,
  );
  steps[0]!.open(undefined);
  await until('the warning is stored', async () => (await stored()).warnings?.length === 1);
  steps[1]!.open(undefined);
  await until('the file is stored', async () => (await stored()).files?.['a.tif'] !== undefined);
  assert.deepEqual((await stored()).inputs, inputs);
  const [listed] = await jobs.list();
  assert.deepEqual(
    [listed!.id, listed!.status, listed!.inputs, listed!.results],
    [id, 'running', undefined, undefined],
  );
  steps[2]!.open(undefined);
  const ended = await jobs.wait(id);
  assert.deepEqual(await stored(), JSON.parse(JSON.stringify(ended)));
  assert.equal((await jobs.list())[0]!.results, null);
});

test('a job whose long parts are missing is damaged, not a job without inputs', async (t) => {
  const { jobs, catalogue } = await openJobs(t);
  const { id } = await startWork(jobs, { collection: 'x' }, async () => 'done');
  await jobs.wait(id);
  const [, deleteDetails] = catalogue.jobs.delete(id);
  await catalogue.write([deleteDetails!]);
  await assert.rejects(catalogue.jobs.get(id), { code: 'TW_STORAGE_CORRUPT' });
  await catalogue.write(catalogue.jobs.delete(id));
  assert.equal(await catalogue.jobs.get(id), undefined);
});

test('progress is reported while the job runs, and nothing after its end changes the record', async (t) => {
  const { jobs, catalogue } = await openJobs(t);
  const { work, open } = gate();
  let kept: JobContext | undefined;
  const { id } = await startWork(jobs, {}, (context) => {
    kept = context;
    context.progress({ total: 5, done: 1 });
    return work(context, {});
  });
  await new Promise<void>((resolve) => {
    jobs.subscribe(id, (job) => job.tiles.done === 1 && resolve());
  });
  assert.equal((await catalogue.jobs.get(id))?.tiles.done, 1);
  open('done');
  const ended = await jobs.wait(id);
  kept!.progress({ done: 5 });
  kept!.message('late');
  await delay(1100); // longer than progress waits to be written
  assert.deepEqual(await jobs.get(id), JSON.parse(JSON.stringify(ended)));
});

test('jobs run one at a time in their order, or with the given concurrency', async (t) => {
  for (const concurrency of [1, 3]) {
    const { jobs } = await openJobs(t, { concurrency });
    let running = 0;
    let most = 0;
    const order: number[] = [];
    const records: JobRecord[] = [];
    for (let i = 0; i < 7; i++)
      records.push(
        await startWork(jobs, { i }, async () => {
          order.push(i);
          most = Math.max(most, ++running);
          await delay(20);
          running--;
        }),
      );
    await Promise.all(records.map((job) => jobs.wait(job.id)));
    // If jobs run concurrently, each writes its start first; the order of these writes is not defined.
    assert.deepEqual(concurrency === 1 ? order : order.toSorted(), [0, 1, 2, 3, 4, 5, 6]);
    assert.ok(most <= concurrency && most > 0);
    const listed = (await jobs.list()).map((job) => job.id);
    assert.deepEqual(listed, records.map((job) => job.id).reverse(), 'newest first');
    assert.deepEqual(
      [...(await jobs.list(3)), ...(await jobs.list(9, listed[2]))].map((job) => job.id),
      listed,
    );
  }
});

test('jobs run concurrently, up to the limit', async (t) => {
  const { jobs } = await openJobs(t, { concurrency: 2 });
  const gates = [gate(), gate()];
  for (const { work } of gates) await startWork(jobs, {}, work);
  await Promise.all(gates.map((one) => one.running));
});

test('a waiting and a running job can be cancelled; an ended job stays as it is', async (t) => {
  const { jobs } = await openJobs(t);
  const first = gate();
  const running = await startWork(jobs, {}, first.work);
  const waiting = await startWork(jobs, {}, async () => assert.fail('it must not run'));
  const last = await startWork(jobs, {}, async () => 'last');
  await first.running;
  const dismissed = await jobs.cancel(waiting.id);
  assert.equal(dismissed.status, 'dismissed');
  assert.equal(dismissed.started, undefined);
  assert.equal((await jobs.cancel(running.id)).status, 'dismissed');
  assert.equal((await jobs.wait(last.id)).results, 'last', 'the permit is free again');
  assert.equal((await jobs.cancel(last.id)).status, 'successful');
  const stubborn = gate();
  const late = await startWork(jobs, {}, async (context) => {
    await stubborn.work(context, {}).catch(() => undefined);
    return 'finished all the same';
  });
  await stubborn.running;
  assert.equal((await jobs.cancel(late.id)).status, 'successful');
});

test('unknown jobs, and jobs for a full queue, are refused', async (t) => {
  const { jobs } = await openJobs(t);
  const unknown = { code: 'TW_JOB_NOT_FOUND', status: 404 };
  await assert.rejects(jobs.get('x'), unknown);
  await assert.rejects(jobs.wait('x'), unknown);
  await assert.rejects(jobs.cancel('x'), unknown);
  await assert.rejects(
    jobs.subscribe('x', () => {}),
    unknown,
  );
  const first = gate();
  await startWork(jobs, {}, first.work);
  await first.running;
  for (let i = 0; i < 100; i++) await startWork(jobs, {}, async () => i);
  await assert.rejects(
    startWork(jobs, {}, async () => 0),
    { code: 'TW_JOB_LIMIT', status: 429 },
  );
  first.open('done');
});

test('a request whose job could not be written can be repeated', async (t) => {
  const { jobs, catalogue } = await openJobs(t);
  const write = catalogue.write.bind(catalogue);
  const work = process(async () => 'done');
  const options = { request: { key: 'once', digest: 'a' } };
  catalogue.write = async () => {
    throw storageFull('the test');
  };
  await assert.rejects(jobs.startIdempotent(work, {}, options), { code: 'TW_STORAGE_FULL' });
  await assert.rejects(jobs.startIdempotent(work, {}, options), { code: 'TW_STORAGE_FULL' });
  catalogue.write = write;
  const first = await jobs.startIdempotent(work, {}, options);
  assert.equal(first.repeated, false);
  const second = await jobs.startIdempotent(work, {}, options);
  assert.deepEqual([second.repeated, second.job.id], [true, first.job.id]);
});

test('closing interrupts running and waiting jobs', async (t) => {
  const { jobs } = await openJobs(t);
  const { work, running } = gate();
  const ids = [(await startWork(jobs, {}, work)).id, (await startWork(jobs, {}, work)).id];
  await running;
  const waits = ids.map((id) => jobs.wait(id));
  await jobs.close();
  for (const job of await Promise.all(waits)) {
    assert.equal(job.status, 'failed');
    assert.equal(job.error?.code, 'TW_JOB_INTERRUPTED');
  }
  await assert.rejects(startWork(jobs, {}, work), { code: 'TW_JOB_CLOSED' });
});

test('partial results are kept if a job is cancelled or fails', async (t) => {
  const { jobs } = await openJobs(t);
  const { work, running } = gate();
  const made: number[] = [];
  const { id } = await startWork(jobs, {}, async (context) => {
    context.partial(() => ({ made }));
    made.push(1, 2);
    return work(context, {});
  });
  await running;
  const { status, results, started, finished } = await jobs.cancel(id);
  const seconds = (finished! - started!) / 1000;
  assert.deepEqual([status, results], ['dismissed', { made: [1, 2], seconds }]);
  const broken = await startWork(jobs, {}, async ({ partial }) => {
    partial(() => {
      throw new Error('nor can this be told');
    });
    throw new Error('it broke');
  });
  const failed = await jobs.wait(broken.id);
  assert.deepEqual([failed.error?.message, failed.results], ['it broke', undefined]);
});

test('requests with the same key at the same time start one job', async (t) => {
  const { jobs } = await openJobs(t);
  const work = process(async () => ({}));
  const request = { key: 'once', digest: 'a' };
  const started = await Promise.all([1, 2, 3].map(() => jobs.startIdempotent(work, {}, { request })));
  assert.equal(new Set(started.map(({ job }) => job.id)).size, 1);
  assert.deepEqual(started.map(({ repeated }) => repeated).sort(), [false, true, true]);
});
