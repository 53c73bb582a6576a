import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type JobEvent, jobEvents, LocalJobService } from '../../src/jobs/index.js';
import { Storage } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';
import { gate, process as processOf, startWork } from './process.js';

async function openJobs(t: TestContext) {
  const storage = await Storage.open(await tempFolder(t));
  const jobs = await LocalJobService.open(storage, [], { resume: true });
  atEnd(t, async () => {
    await jobs.close();
    await storage.close();
  });
  return jobs;
}

const live = () => new AbortController().signal;

test('a slow reader gets every state and line once, and the newest progress', async (t) => {
  const jobs = await openJobs(t);
  const LINES = 3000;
  const { id } = await startWork(jobs, {}, async (context) => {
    for (let i = 0; i < LINES; i++) {
      context.progress({ total: LINES, done: i });
      context.log('info', `line ${i}`);
      if (i % 500 === 0) await sleep(100);
    }
  });
  const seen: JobEvent[] = [];
  for await (const event of jobEvents(jobs, id, { after: 0, signal: live() })) {
    seen.push(event);
    if (seen.length % 300 === 0) await sleep(50);
  }
  const lines = seen.flatMap((event) => (event.kind === 'log' ? [event.line.text] : []));
  assert.deepEqual(
    lines,
    Array.from({ length: LINES }, (_, i) => `line ${i}`),
  );
  const states = seen.flatMap((event) => (event.kind === 'state' ? [event.status] : []));
  assert.deepEqual(states, ['accepted', 'running', 'successful']);
  const last = seen.at(-1);
  assert.ok(last?.kind === 'state' && last.job?.tiles.done === LINES - 1);
  const done = seen.flatMap((event) => (event.kind === 'progress' ? [event.job.tiles.done] : []));
  assert.deepEqual(
    done,
    done.toSorted((a, b) => a - b),
  );
});

test('a reader without a position gets new events; silence is reported; the stop of the node ends the stream', async (t) => {
  const jobs = await openJobs(t);
  const { work, running } = gate();
  const process = processOf(
    async (context, inputs) => {
      context.log('info', 'old');
      return work(context, inputs);
    },
    { resumable: true },
  );
  const { id } = await jobs.start(process, {});
  await running;
  while ((await jobs.log(id)).length < 3) await sleep(20);
  const events = jobEvents(jobs, id, { signal: live(), idleMs: 20 });
  const first = (await events.next()).value;
  assert.ok(first?.kind === 'state' && first.status === 'running' && first.seq === 3);
  assert.equal((await events.next()).value?.kind, 'idle');
  const rest: JobEvent[] = [];
  const end = (async () => {
    for await (const event of events) rest.push(event);
  })();
  await jobs.close();
  await end;
  const last = rest.at(-1);
  assert.ok(last?.kind === 'state' && last.status === 'accepted', 'left to the next process');
});

test('an aborted signal ends the stream immediately', async (t) => {
  const jobs = await openJobs(t);
  const { work } = gate();
  const { id } = await startWork(jobs, {}, work);
  const controller = new AbortController();
  const seen: JobEvent[] = [];
  for await (const event of jobEvents(jobs, id, { signal: controller.signal })) {
    seen.push(event);
    controller.abort();
  }
  assert.equal(seen.length, 1);
  await assert.rejects(jobEvents(jobs, 'none', { signal: live() }).next(), { code: 'TW_JOB_NOT_FOUND' });
});
