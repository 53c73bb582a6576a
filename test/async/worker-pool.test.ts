import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { WorkerPool } from '../../src/async/index.js';
import { TilewrightError } from '../../src/errors.js';
import { fixtures, temporaryFolder } from '../raster/gdal.js';
import { atEnd } from '../support/at-end.js';
import type { Result, Task } from './worker.js';

const module = new URL('./worker.js', import.meta.url);

test('tasks are shared between threads that are kept', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 2);
  atEnd(t, () => pool.close());
  // Long enough for one thread to leave some tasks waiting until the second may be started.
  const run = () =>
    Promise.all(Array.from({ length: 8 }, () => pool.run({ kind: 'thread', milliseconds: 200 })));
  const first = new Set(await run());
  assert.equal(first.size, 2);
  assert.deepEqual(new Set(await run()), first);
});

test('arrays move to the thread and back', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  atEnd(t, () => pool.close());
  const values = Float64Array.of(1, 2, 3);
  const doubled = await pool.run({ kind: 'double', values }, { transfer: [values.buffer] });
  assert.deepEqual(doubled, Float64Array.of(2, 4, 6));
  assert.equal(values.length, 0);
});

test('errors cross with their code, status and cause', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  atEnd(t, () => pool.close());
  await assert.rejects(pool.run({ kind: 'known' }), (error) => {
    assert.ok(error instanceof TilewrightError && error.code === 'TW_RASTER_CORRUPT');
    assert.equal(error.status, 422);
    assert.match(error.message, /a\.tif is corrupt/);
    assert.match((error.cause as Error).message, /inner/);
    return true;
  });
  await assert.rejects(pool.run({ kind: 'plain' }), { name: 'TypeError', message: 'not a number' });
  await assert.rejects(pool.run({ kind: 'unsendable' }), { name: 'DataCloneError' });
  const task = { kind: 'thread', milliseconds: 0, extra: () => {} } as Task;
  await assert.rejects(pool.run(task), { name: 'DataCloneError' });
  assert.equal(typeof (await pool.run({ kind: 'thread', milliseconds: 0 })), 'number');
});

test('a thread that dies fails its own task only, and is replaced', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  atEnd(t, () => pool.close());
  const results = await Promise.allSettled([
    pool.run({ kind: 'thread', milliseconds: 0 }),
    pool.run({ kind: 'exit' }),
    pool.run({ kind: 'thread', milliseconds: 0 }),
  ]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.ok(results[1]?.status === 'rejected' && results[1].reason.code === 'TW_RASTER_WORKER_DIED');
});

test('a module that cannot be loaded fails the task', async (t) => {
  const pool = new WorkerPool<Task, Result>(new URL('./absent.js', import.meta.url), 1);
  atEnd(t, () => pool.close());
  await assert.rejects(pool.run({ kind: 'known' }), { code: 'TW_RASTER_WORKER_DIED' });
});

test('rare codecs are decoded in threads as well', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  atEnd(t, () => pool.close());
  assert.equal(await pool.run({ kind: 'pixels', path: join(fixtures, 'zstd.tif') }), 75 * 53);
});

test('closing rejects unfinished tasks', async () => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  const open = [pool.run({ kind: 'thread', milliseconds: 60_000 }), pool.run({ kind: 'known' })];
  const settled = Promise.allSettled(open);
  await pool.close();
  for (const { status, ...rest } of await settled) {
    assert.ok(status === 'rejected' && 'reason' in rest && rest.reason.code === 'TW_RASTER_WORKER_DIED');
  }
  await assert.rejects(pool.run({ kind: 'known' }), { code: 'TW_RASTER_WORKER_DIED' });
});

test('a thread is not terminated while it loads', async (t) => {
  const folder = temporaryFolder(t);
  atEnd(t, () => delete process.env.SLOW_WORKER_MARK);
  const slow = (name: string) => {
    process.env.SLOW_WORKER_MARK = join(folder, name);
    return new WorkerPool(new URL('./slow-worker.js', import.meta.url), 1);
  };
  const closed = slow('closed');
  const task = assert.rejects(closed.run(null), { code: 'TW_RASTER_WORKER_DIED' });
  await closed.close();
  await task;
  const aborted = slow('aborted');
  const signal = AbortSignal.timeout(10);
  await assert.rejects(aborted.run(null, { signal, graceMs: 0 }), { name: 'TimeoutError' });
  await aborted.close();
  assert.deepEqual(readdirSync(folder), ['aborted', 'closed']);
});

test('a thread that never finishes loading is still terminated', { timeout: 60_000 }, async () => {
  const pool = new WorkerPool(new URL('./slow-worker.js', import.meta.url), 1);
  const task = assert.rejects(pool.run(null), { code: 'TW_RASTER_WORKER_DIED' });
  await pool.close();
  await task;
});

test('Node does not warn about many tasks with one signal', async (t) => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  atEnd(t, () => process.off('warning', onWarning));
  const pool = new WorkerPool<Task, Result>(module, 1);
  atEnd(t, () => pool.close());
  const { signal } = new AbortController();
  const run = () => pool.run({ kind: 'thread', milliseconds: 1 }, { signal });
  await Promise.all(Array.from({ length: 20 }, run));
  assert.deepEqual(warnings, []);
});

test('an idle pool lets the process end; a busy one does not', () => {
  const script = `
    import(${JSON.stringify(new URL('../../src/async/index.js', import.meta.url).href)}).then(({ WorkerPool }) => {
      const pool = new WorkerPool(new URL(${JSON.stringify(module.href)}), 1);
      return pool.run({ kind: 'thread', milliseconds: 100 }).then(() => console.log('done'));
    });
  `;
  const { stdout, status } = spawnSync(process.execPath, ['-e', script], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  assert.equal(status, 0);
  assert.equal(stdout, 'done\n');
});

test('a task that does not end is terminated with its thread, and the pool continues', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1, 3000);
  atEnd(t, () => pool.close());
  const stuck = pool.run({ kind: 'endless' });
  const next = pool.run({ kind: 'thread', milliseconds: 1 });
  await assert.rejects(stuck, { code: 'TW_RASTER_WORKER_STUCK' });
  assert.equal(typeof (await next), 'number');
});

test('a task may have a shorter time limit than the pool', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1, 600_000);
  atEnd(t, () => pool.close());
  await assert.rejects(pool.run({ kind: 'endless' }, { timeLimitMs: 1500 }), {
    code: 'TW_RASTER_WORKER_STUCK',
    message: /within 1.5 s of CPU time/,
  });
});

test('a task whose thread gets no CPU time may last longer, but not endless time', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  atEnd(t, () => pool.close());
  const blocked = (milliseconds: number) => pool.run({ kind: 'blocked', milliseconds }, { timeLimitMs: 300 });
  const thread = await blocked(900);
  assert.equal(await blocked(900), thread);
  await assert.rejects(blocked(600_000), {
    code: 'TW_RASTER_WORKER_BLOCKED',
    message:
      /^a task did not end within \d+ s, in which its thread had 0\.\d s of CPU time: the machine is busy/,
  });
  await assert.rejects(pool.run({ kind: 'endless' }, { timeLimitMs: 300 }), {
    code: 'TW_RASTER_WORKER_STUCK',
  });
});

test('a thread that keeps much WebAssembly memory is replaced after its task', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  atEnd(t, () => pool.close());
  const first = await pool.run({ kind: 'memory', bytes: 2 ** 26 });
  const second = await pool.run({ kind: 'memory', bytes: 2 ** 27 });
  const [third, fourth] = await Promise.all([
    pool.run({ kind: 'thread', milliseconds: 1 }),
    pool.run({ kind: 'thread', milliseconds: 1 }),
  ]);
  assert.equal(second, first);
  assert.notEqual(third, first);
  assert.equal(fourth, third);
});

test('idle threads can be terminated; a busy one continues, and later tasks start new ones', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  atEnd(t, () => pool.close());
  const first = await pool.run({ kind: 'thread', milliseconds: 1 });
  const busy = pool.run({ kind: 'thread', milliseconds: 300 });
  await pool.endThreads();
  assert.equal(await busy, first);
  await pool.endThreads();
  assert.notEqual(await pool.run({ kind: 'thread', milliseconds: 1 }), first);
});

test('a running task gets the abort; a waiting one is not started', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  atEnd(t, () => pool.close());
  const controller = new AbortController();
  const running = pool.run({ kind: 'patient' }, { signal: controller.signal });
  const waiting = pool.run({ kind: 'endless' }, { signal: controller.signal });
  const reason = new Error('enough');
  controller.abort(reason);
  await Promise.all([assert.rejects(running, reason), assert.rejects(waiting, reason)]);
  assert.equal(typeof (await pool.run({ kind: 'thread', milliseconds: 1 })), 'number');
});

test('a waiting task that is aborted ends while all threads are busy', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  const busy = assert.rejects(pool.run({ kind: 'endless' }), { code: 'TW_RASTER_WORKER_DIED' });
  atEnd(t, async () => {
    await pool.close();
    await busy;
  });
  const controller = new AbortController();
  const waiting = pool.run({ kind: 'thread', milliseconds: 1 }, { signal: controller.signal });
  const reason = new Error('enough');
  controller.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(pool.run({ kind: 'endless' }, { signal: controller.signal }), reason);
});

test('an aborted task without a grace period ends with its thread', async (t) => {
  const pool = new WorkerPool<Task, Result>(module, 1);
  atEnd(t, () => pool.close());
  const controller = new AbortController();
  const stuck = pool.run({ kind: 'endless' }, { signal: controller.signal, graceMs: 0 });
  const reason = new Error('enough');
  setTimeout(() => controller.abort(reason), 100);
  await assert.rejects(stuck, reason);
  assert.equal(typeof (await pool.run({ kind: 'thread', milliseconds: 1 })), 'number');
});
