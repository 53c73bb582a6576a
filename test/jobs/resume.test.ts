/** Jobs that outlive the process that accepted them. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type JobContext,
  LocalJobService,
  type LocalJobServiceOptions,
  type Process,
} from '../../src/jobs/index.js';
import type { JobRegistry } from '../../src/jobs/records.js';
import { Storage } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';
import { gate, process as processOf } from './process.js';

const CHILD = fileURLToPath(new URL('./job-child.js', import.meta.url));

/** Runs the child until its output matches, kills it, and returns the output. */
async function killedWhen(fits: RegExp, ...args: string[]): Promise<string> {
  const child = spawn(process.execPath, [CHILD, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  for await (const text of child.stdout) {
    out += text;
    if (fits.test(out)) break;
  }
  child.kill('SIGKILL');
  await once(child, 'close');
  return out;
}

async function open(t: TestContext, dir: string, processes: Process[], options: LocalJobServiceOptions = {}) {
  const storage = await Storage.open(dir);
  const jobs = await LocalJobService.open(storage, processes, { resume: true, ...options });
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= jobs.close().then(() => storage.close());
    return closed;
  };
  atEnd(t, close);
  return { storage, jobs, close };
}

async function states(jobs: LocalJobService, id: string): Promise<(string | undefined)[]> {
  return (await jobs.log(id)).map(({ status }) => status).filter(Boolean);
}

test('after kill -9, jobs are resumed in their order, with their inputs', async (t) => {
  const dir = await tempFolder(t);
  const out = await killedWhen(/accepted[\s\S]*"n":1|"n":1[\s\S]*accepted/, dir, 'start');
  const [ended, once, ...ids] = /accepted (.*)/.exec(out)![1]!.split(' ') as [string, string, ...string[]];
  const ran: unknown[] = [];
  const work = async (_context: unknown, inputs: unknown) => {
    ran.push(inputs);
    return 'done';
  };
  const { jobs } = await open(t, dir, [processOf(work, { resumable: true })]);
  for (const id of ids) assert.equal((await jobs.wait(id)).results, 'done');
  assert.deepEqual(ran, [{ n: 1 }, { n: 2 }, { n: 3 }]);
  assert.equal((await jobs.get(ended)).status, 'successful');
  assert.equal((await jobs.get(once)).error?.code, 'TW_JOB_INTERRUPTED');
  assert.deepEqual(await states(jobs, ids[0]!), ['accepted', 'running', 'accepted', 'running', 'successful']);
  assert.deepEqual(await states(jobs, ids[2]!), ['accepted', 'running', 'successful']);
});

test('a job that runs each time the process dies fails the third time, and the others run', async (t) => {
  const dir = await tempFolder(t);
  const out = await killedWhen(/accepted[\s\S]*"n":1|"n":1[\s\S]*accepted/, dir, 'start');
  const [, , first, second] = /accepted (.*)/.exec(out)![1]!.split(' ');
  for (let kill = 2; kill <= 3; kill++) await killedWhen(/"n":1/, dir);
  const { jobs } = await open(t, dir, [processOf(async () => 'done', { resumable: true })]);
  const { status, error } = await jobs.get(first!);
  assert.deepEqual([status, error?.code], ['failed', 'TW_JOB_CRASHES']);
  assert.match(error!.message, /died 3 times/);
  assert.equal((await jobs.wait(second!)).status, 'successful');
});

test('a job that is accepted while the node begins to stop is not run by it', async (t) => {
  const dir = await tempFolder(t);
  const accepting = gate();
  const ran: unknown[] = [];
  const work = async (_context: unknown, inputs: unknown) => {
    ran.push(inputs);
    return 'done';
  };
  // A slow coordination store.
  const registry: JobRegistry = {
    accept: async () => {
      await accepting.work({ signal: new AbortController().signal } as JobContext, {});
      return undefined;
    },
    storePrepared: async (_, given) => given,
    publish: async () => undefined,
    isLedHere: async () => true,
    withdraw: async () => undefined,
    markRetried: async () => undefined,
    hasPublishedEnd: async () => true,
    isWorkedOn: () => false,
    release: () => undefined,
    work: (process, inputs, context) => process.run(inputs, context),
  };
  const processes = [processOf(work, { resumable: true })];
  const first = await open(t, dir, processes, { registry });
  const started = first.jobs.start(processes[0]!, { n: 1 });
  await accepting.running;
  await first.jobs.close();
  accepting.open(undefined);
  const { id } = await started;
  assert.equal((await first.jobs.wait(id)).status, 'accepted');
  await first.close();
  assert.deepEqual(ran, []);
  const { jobs } = await open(t, dir, processes);
  assert.equal((await jobs.wait(id)).results, 'done');
});

test('a clean stop leaves jobs to the next process, and does not count as a crash', async (t) => {
  const dir = await tempFolder(t);
  for (let start = 0; start < 4; start++) {
    const { work, running } = gate();
    const process = processOf(work, { resumable: true });
    const { jobs, close } = await open(t, dir, [process]);
    if (start === 0) for (const n of [1, 2]) await jobs.start(process, { n });
    await running;
    const [waiting, run] = await jobs.list();
    const waits = [waiting, run].map((job) => jobs.wait(job!.id));
    await close();
    for (const { status, finished } of await Promise.all(waits))
      assert.deepEqual([status, finished], ['accepted', undefined]);
  }
  const { jobs } = await open(t, dir, [processOf(async () => 'done', { resumable: true })]);
  for (const { id } of await jobs.list()) assert.equal((await jobs.wait(id)).results, 'done');
});

test('a process that does not resume jobs leaves them unchanged, and can cancel them', async (t) => {
  const dir = await tempFolder(t);
  const { work, running } = gate();
  const process = processOf(work, { resumable: true });
  const first = await open(t, dir, [process]);
  for (const n of [1, 2]) await first.jobs.start(process, { n });
  await running;
  await first.close();
  const looks = await open(t, dir, [process], { resume: false });
  const [second, run] = await looks.jobs.list();
  assert.equal((await looks.jobs.cancel(run!.id)).status, 'dismissed');
  const own = await looks.jobs.start(process, { n: 3 });
  await looks.close();
  const last = await open(t, dir, [processOf(async () => 'done', { resumable: true })]);
  assert.equal((await last.jobs.get(own.id)).error?.code, 'TW_JOB_INTERRUPTED', 'its own are not left');
  assert.equal((await last.jobs.wait(second!.id)).results, 'done');
});

test('an uploaded file is kept until its job ends, and is then removed', async (t) => {
  const dir = await tempFolder(t);
  const { work, running } = gate();
  const process = processOf(work, { resumable: true });
  const first = await open(t, dir, [process]);
  const [kept, other] = [await first.storage.scratch.make('upload'), await first.storage.scratch.make()];
  const { id } = await first.jobs.start(process, {}, { uploads: [basename(kept)] });
  await running;
  await first.close();
  const second = await open(t, dir, [processOf(async () => existsSync(kept), { resumable: true })]);
  assert.equal((await second.jobs.wait(id)).results, true);
  assert.deepEqual([kept, other].map(existsSync), [false, false]);
  await second.close();
});
