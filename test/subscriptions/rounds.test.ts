/** Rounds with a clock of the test: when they start, how they end, and that each has one job. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LevelStore } from '../../src/coordination/index.js';
import { LocalJobService } from '../../src/jobs/index.js';
import { Storage } from '../../src/storage/index.js';
import { SubscriptionRounds } from '../../src/subscriptions/rounds.js';
import { SubscriptionStore } from '../../src/subscriptions/store.js';
import { Leadership, Subscriptions } from '../../src/subscriptions/subscriptions.js';
import { gate, process as jobProcess, type Work } from '../jobs/process.js';
import { atEnd } from '../support/at-end.js';
import { eventually } from '../support/eventually.js';
import { tempFolder } from '../support/temp.js';

const HOUR = 3_600_000;
const START = Date.parse('2024-09-01T00:00:00Z');
const URL = 'https://archive.example/stac';
const scene = (id: string, unchanged = false) => ({ id, collection: 'c', tiles: 3, unchanged, warnings: [] });
const stored = (...scenes: object[]) => ({ scenes, failed: [] });

/** A job service with a process whose work is that of the test, and subscriptions without a scheduler. */
async function setUp(t: TestContext, work: Work) {
  const folder = await tempFolder(t);
  const storage = await Storage.open(join(folder, 'data'));
  const ran: { id: string; inputs: unknown }[] = [];
  const state: { work: Work; now: number } = { work, now: START };
  const ingest = jobProcess(
    (context, inputs) => {
      ran.push({ id: context.id, inputs });
      return state.work(context, inputs);
    },
    { id: 'ingest', resumable: true },
  );
  const jobs = await LocalJobService.open(storage, [ingest], { resume: true });
  const coordination = await LevelStore.open(join(folder, 'coordination'));
  const open = async () => coordination;
  const failures: unknown[] = [];
  const ends: string[] = [];
  const options = {
    ...{ open, jobs, ingest, self: 'a', intervalMs: 20, now: () => state.now },
    hosts: { hosts: ['archive.example'], anyPublic: false },
    onEnd: (status: string) => ends.push(status),
    onFailure: (error: unknown) => failures.push(error),
  };
  const subscriptions = new Subscriptions(options);
  const store = new SubscriptionStore(open);
  atEnd(t, async () => {
    await jobs.close();
    await coordination.close();
    await storage.close();
  });
  const create = (every = '6h', stac: object = {}) =>
    subscriptions.create({ name: 'berlin', every, inputs: { stac: { url: URL, ...stac } } });
  const schedule = () => {
    const scheduler = new Subscriptions({ ...options, isScheduling: true });
    atEnd(t, () => scheduler.close());
    return scheduler;
  };
  const ended = () =>
    eventually('the last round has ended', async () => {
      const { record } = await store.get('berlin');
      return record.round?.finishedAt === undefined ? undefined : record;
    });
  return { ...{ subscriptions, store, jobs, options, state, ran, failures, ends, create, schedule, ended } };
}

test('a round starts when it is due, and rounds that were missed are one round', async (t) => {
  const { create, schedule, ended, state, ran, ends, failures } = await setUp(t, async () =>
    stored(scene('s'), scene('old', true)),
  );
  await create();
  const scheduler = schedule();
  const first = await ended();
  assert.equal(first.nextRunAt, START + 6 * HOUR);
  assert.deepEqual(first.round?.result, { ingested: 1, unchanged: 1, failed: 0, tiles: 3 });
  assert.equal(first.succeededAt, START);
  await scheduler.close();
  // Four rounds are missed.
  state.now = START + 25 * HOUR;
  schedule();
  const second = await eventually('the second round', async () => {
    const record = await ended();
    return record.round?.planned === START + 6 * HOUR ? record : undefined;
  });
  assert.equal(second.nextRunAt, START + 30 * HOUR);
  assert.equal(ran.length, 2);
  assert.deepEqual(ends, ['successful', 'successful']);
  assert.deepEqual(failures, []);
});

test('no round starts while the job of the last one runs; an overdue one follows', async (t) => {
  const { work, open } = gate();
  const { create, schedule, subscriptions, state, ran, store } = await setUp(t, work);
  await create();
  schedule();
  await eventually('the job runs', () => ran.length === 1);
  state.now = START + 13 * HOUR;
  await assert.rejects(subscriptions.run('berlin'), { code: 'TW_SUBSCRIPTION_RUNNING' });
  // The scheduler checks subscriptions in the order of their ids.
  await subscriptions.create({ name: 'later', every: '1d', inputs: { stac: { url: URL } } });
  await eventually('a check', async () => (await store.get('later')).record.round !== undefined);
  const { round } = (await store.get('berlin')).record;
  assert.equal(round?.planned, START);
  assert.equal(ran.length, 1);
  state.work = async () => stored();
  open(stored());
  await eventually(
    'the overdue round',
    async () => (await store.get('berlin')).record.round?.planned === START + 6 * HOUR,
  );
  assert.equal((await subscriptions.get('berlin')).nextRunAt, START + 18 * HOUR);
});

test('a failed round is shown with its error, and the next one comes at its time', async (t) => {
  const { create, schedule, ended, state, ran, ends } = await setUp(t, async () => {
    throw new Error('the archive is closed');
  });
  await create('6h', { datetime: '2023-01/..' });
  schedule();
  const failed = await ended();
  assert.deepEqual(failed.round?.error, { code: 'TW_JOB_FAILED', message: 'the archive is closed' });
  assert.equal(failed.succeededAt, undefined);
  assert.equal(failed.nextRunAt, START + 6 * HOUR);
  state.work = async () => stored(scene('s'));
  state.now = START + 6 * HOUR;
  await eventually('success', async () => (await ended()).succeededAt !== undefined);
  state.now = START + 12 * HOUR;
  await eventually('the third round', () => ran.length === 3);
  const datetimes = ran.map(({ inputs }) => (inputs as { stac: { datetime: string } }).stac.datetime);
  // The failed round does not count, so the second one searched everything; the third began 30 days before the second.
  assert.deepEqual(datetimes, ['2023-01/..', '2023-01/..', '2024-08-02T06:00:00Z/..']);
  await eventually('its end', () => ends.length === 3);
  assert.deepEqual(ends, ['failed', 'successful', 'successful']);
});

test('failed scenes and a reached limit keep the complete search', async (t) => {
  const { create, subscriptions, state, ran, store } = await setUp(t, async () => ({
    ...stored(scene('s')),
    failed: [{ path: 'https://archive.example/x', code: 'TW_REMOTE_REFUSED', message: 'x' }],
  }));
  await create('6h', { limit: 2 });
  const runOnce = async () => {
    const { id } = await subscriptions.run('berlin');
    await eventually(
      'the job',
      async () => (await subscriptions.get('berlin')).round?.finishedAt !== undefined,
    );
    return id;
  };
  await runOnce();
  state.work = async () => stored(scene('s'), scene('t'));
  state.now += 1;
  await runOnce();
  assert.equal((await subscriptions.get('berlin')).succeededAt, undefined);
  state.work = async () => stored(scene('s'));
  state.now += 1;
  await runOnce();
  // The list shows the end before it is stored; the next round stores it.
  assert.equal((await subscriptions.get('berlin')).succeededAt, START + 2);
  assert.equal((await store.get('berlin')).record.round?.finishedAt, undefined);
  state.now += 1;
  await runOnce();
  assert.equal((await store.get('berlin')).record.succeededAt, START + 2);
  assert.equal(ran.length, 4);
});

test('nodes that all believe to lead start one job', async (t) => {
  const { create, store, options, state, ran, jobs } = await setUp(t, async () => stored());
  await create();
  const nodes = Array.from({ length: 4 }, () => new SubscriptionRounds({ ...options, store }));
  for (let round = 0; round < 5; round++) {
    state.now = START + 6 * HOUR * round;
    const due = await store.get('berlin');
    await Promise.all(nodes.map((node) => node.advance(due)));
    await eventually('the end of the round', async () => {
      await nodes[0]!.settle(await store.get('berlin'));
      return (await store.get('berlin')).record.round?.finishedAt !== undefined;
    });
  }
  assert.equal(ran.length, 5);
  assert.equal((await jobs.list()).length, 5);
});

test('a round whose node died before its job was known gets one job', async (t) => {
  const { create, store, options, ran, ended, schedule } = await setUp(t, async () => stored());
  const { id } = await create();
  const round = { planned: START, startedAt: START, status: 'accepted' } as const;
  // The record as it is between the two steps of a start: once before and once after the job was accepted.
  const claimed = await store.update(id, (record) => ({ ...record, round, nextRunAt: START + 6 * HOUR }));
  const rounds = new SubscriptionRounds({ ...options, store });
  await Promise.all([1, 2, 3].map(() => rounds.advance(claimed)));
  await eventually('the job', () => ran.length === 1);
  await store.update(id, (record) => ({ ...record, round }));
  schedule();
  const record = await ended();
  assert.equal(record.round?.job, ran[0]!.id);
  assert.equal(ran.length, 1);
});

test('pause stops rounds, resume starts an overdue one, and a removed subscription is gone', async (t) => {
  const { create, schedule, subscriptions, ended, state, ran } = await setUp(t, async () => stored());
  await create();
  schedule();
  await ended();
  assert.equal((await subscriptions.change('berlin', { state: 'paused' })).state, 'paused');
  state.now = START + 24 * HOUR;
  await subscriptions.run('berlin');
  await eventually('the round that was asked for', () => ran.length === 2);
  await ended();
  state.now = START + 48 * HOUR;
  await subscriptions.change('berlin', { state: 'active', every: '1d' });
  await eventually('the overdue round', () => ran.length === 3);
  const { nextRunAt, every } = await ended();
  assert.equal(every, 24 * HOUR);
  assert.ok(nextRunAt > state.now && nextRunAt <= state.now + every);
  await subscriptions.remove('berlin');
  await assert.rejects(subscriptions.get('berlin'), { code: 'TW_SUBSCRIPTION_NOT_FOUND' });
  await assert.rejects(subscriptions.change('berlin', {}), { code: 'TW_SUBSCRIPTION_NOT_FOUND' });
});

test('a round waits while too many jobs wait', async (t) => {
  const { work, open } = gate();
  const { create, subscriptions, jobs, options, state, ran, store, schedule, failures } = await setUp(
    t,
    work,
  );
  await jobs.start(options.ingest, {});
  await eventually('the job runs', () => ran.length === 1);
  for (let i = 0; i < 100; i++) await jobs.start(options.ingest, {});
  await create();
  await assert.rejects(subscriptions.run('berlin'), { code: 'TW_JOB_LIMIT' });
  const { round } = (await store.get('berlin')).record;
  assert.deepEqual(round, { planned: START, startedAt: START, status: 'accepted' });
  await assert.rejects(subscriptions.run('berlin'), /just starting/);
  schedule();
  await eventually('the error is reported', () => failures.length === 1);
  state.work = async () => stored();
  open(stored());
  await eventually('the round', () => ran.length === 102);
  assert.equal(failures.length, 1);
});

test('there are at most 1,000 subscriptions, and a search is subscribed to once', async (t) => {
  const { subscriptions, store } = await setUp(t, async () => stored());
  const inputs = { stac: { url: URL, collections: ['Sentinel-2 L2A'] } };
  const { id } = await subscriptions.create({ every: '1d', inputs });
  assert.match(id, /^sentinel-2-l2a-[0-9a-f]{6}$/);
  await assert.rejects(subscriptions.create({ every: '6h', inputs }), { code: 'TW_SUBSCRIPTION_EXISTS' });
  const { record } = await store.get(id);
  for (let i = 1; i < 1000; i++) await store.replace({ ...record, id: `s${i}` }, 0);
  await assert.rejects(subscriptions.create({ name: 'last', every: '1d', inputs }), {
    code: 'TW_SUBSCRIPTION_LIMIT',
  });
  await subscriptions.remove('s5');
  await subscriptions.create({ name: 'last', every: '1d', inputs });
  assert.equal((await subscriptions.list()).length, 1000);
});

test('one node leads until it resigns', async (t) => {
  const coordination = await LevelStore.open(join(await tempFolder(t), 'coordination'));
  atEnd(t, () => coordination.close());
  const [a, b] = [new Leadership('a'), new Leadership('b')];
  const results = await Promise.all([a.acquire(coordination), b.acquire(coordination)]);
  assert.deepEqual(results.sort(), [false, true]);
  const [leader, other] = (await a.acquire(coordination)) ? [a, b] : [b, a];
  assert.equal(await other.acquire(coordination), false);
  assert.equal(await leader.acquire(coordination), true);
  await leader.resign();
  assert.equal(await other.acquire(coordination), true);
  assert.equal(await leader.acquire(coordination), false);
  await other.resign();
});
