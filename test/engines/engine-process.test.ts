/** Requests to child processes that answer, fail, end by themselves and are killed, at many moments. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { EngineProcess, ProcessEnded } from '../../src/engines/processes.js';
import { atEnd } from '../support/at-end.js';
import { children, childrenGone, HAS_PROC, isRunning } from '../support/child-processes.js';
import { tempFolder } from '../support/temp.js';
import type { TestHandlers } from './request-worker.js';

const SCRIPT = new URL('./request-worker.js', import.meta.url);

function testProcess(t: TestContext, options = {}): EngineProcess<TestHandlers> {
  const child = new EngineProcess<TestHandlers>(SCRIPT, 'wasm', { quiet: true, ...options });
  atEnd(t, () => child.close());
  return child;
}

const endedWith = (message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ProcessEnded, String(error));
  assert.match(error.message, message);
  return true;
};

/** Blocks this process, so that it learns of all that happened in the meantime at once. */
function blockFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** After its end a process stays dead, whatever is asked of it. */
async function staysDead(child: EngineProcess<TestHandlers>, how: RegExp): Promise<void> {
  assert.equal(child.alive, false);
  for (let times = 0; times < 3; times++) {
    await assert.rejects(child.request('echo', 1), endedWith(how));
    child.close();
  }
  assert.deepEqual([child.alive, child.busy], [false, false]);
}

// One that hangs fails by the time limit.
describe('a request to a child process', { timeout: 200_000, skip: !HAS_PROC && 'needs /proc' }, () => {
  test('settles by the answer, the error and the progress of the child', async (t) => {
    const child = testProcess(t);
    const pixels = Uint16Array.of(1, 2, 3);
    assert.deepEqual(await child.request('echo', { pixels }), { pixels });
    const progress: number[] = [];
    assert.equal(await child.request('count', 4, { onProgress: (one) => progress.push(one) }), 4);
    assert.deepEqual(progress, [1, 2, 3, 4]);
    const coded = { code: 'TW_TRAIN_PREDICT', status: 422, message: /no such thing/ };
    await assert.rejects(child.request('fail', 'with code'), coded);
    await assert.rejects(child.request('fail', 'without code'), { code: 'TW_TRAIN_FAILED', status: 500 });
    await assert.rejects(child.request('unsendable', undefined), {
      code: 'TW_TRAIN_FAILED',
      message: /could not be cloned/,
    });
    await assert.rejects(
      child.request('echo', () => 1),
      /could not be cloned/,
    );
    const first = child.request('echo', 'first');
    await assert.rejects(child.request('echo', 'second'), /one request at a time/);
    assert.equal(await first, 'first');
  });

  test('fails if the child ends, with its exit and its error output', async (t) => {
    for (const [how, message] of [
      ['exit', /^exit code 3: a warning that is no reason$/],
      ['abort', /^SIGABRT: /],
      ['uncaught', /^exit code 1: RangeError: nobody catches this$/],
      ['disconnect', /^SIGKILL$/],
    ] as const) {
      const child = testProcess(t);
      await assert.rejects(child.request('end', how), endedWith(message), how);
      await staysDead(child, message);
    }
    await childrenGone();
  });

  test('fails if the child is killed at any moment, busy or idle', async (t) => {
    for (const wait of [0, 10, 30, 60, 100, 200]) {
      const busy = testProcess(t);
      const answer = assert.rejects(busy.request('hang', undefined), endedWith(/^SIGKILL$/));
      await sleep(wait);
      process.kill(busy.pid!, 'SIGKILL');
      await answer;
      await staysDead(busy, /^SIGKILL$/);

      const idle = testProcess(t);
      await sleep(wait);
      process.kill(idle.pid!, 'SIGKILL');
      while (idle.alive) await sleep(5);
      await staysDead(idle, /^SIGKILL$/);
    }
    await childrenGone();
  });

  test('fails if the child is killed just before, and this process does not know yet', async (t) => {
    const child = testProcess(t);
    await child.request('echo', 1);
    process.kill(child.pid!, 'SIGKILL');
    blockFor(100);
    assert.equal(child.alive, true, 'nothing is known yet');
    await assert.rejects(child.request('echo', 2), endedWith(/^SIGKILL$/));
    await staysDead(child, /^SIGKILL$/);
  });

  test('settles with an answer even if the child ends immediately afterwards', async (t) => {
    const child = testProcess(t);
    await child.request('echo', 1);
    const answer = child.request('last', undefined);
    blockFor(400);
    assert.equal(await answer, 'the last answer');
    while (child.alive) await sleep(5);
    await staysDead(child, /^exit code 4$/);
  });

  test('is aborted with the reason of the signal, and ends the child', async (t) => {
    const reason = new Error('no longer wanted');
    const abort = new AbortController();
    const child = testProcess(t);
    const onProgress = () => abort.abort(reason);
    await assert.rejects(child.request('hang', undefined, { signal: abort.signal, onProgress }), reason);
    assert.deepEqual([child.alive, child.busy], [false, false]);
    await childrenGone();
    await staysDead(child, /^SIGKILL$/);
    const other = testProcess(t);
    await assert.rejects(other.request('echo', 1, { signal: abort.signal }), reason);
    assert.equal(await other.request('echo', 1), 1, 'it has seen nothing of the aborted request');
    assert.equal(getEventListeners(abort.signal, 'abort').length, 0);
  });

  test('fails with what its progress callback throws', async (t) => {
    const child = testProcess(t);
    const error = new Error('the callback is broken');
    const onProgress = () => {
      throw error;
    };
    await assert.rejects(child.request('count', 3, { onProgress }), error);
    await staysDead(child, /^SIGKILL$/);
  });

  test('is not answered by the late reply to an abandoned request', async (t) => {
    const child = testProcess(t);
    const onProgress = () => {
      // By then the child has answered.
      blockFor(300);
      throw new Error('the callback is broken');
    };
    await assert.rejects(child.request('count', 3, { onProgress }));
    await assert.rejects(child.request('echo', 1), endedWith(/^SIGKILL$/));
  });

  test('fails if the system cannot start a process', async (t) => {
    const { execPath } = process;
    process.execPath = '/absent/node';
    const absent = testProcess(t);
    process.execPath = execPath;
    await assert.rejects(absent.request('echo', 1), endedWith(/is not installed/));
    await staysDead(absent, /is not installed/);

    process.env.TILEWRIGHT_TEST_TOO_LONG = 'x'.repeat(8e6);
    const refused = testProcess(t);
    delete process.env.TILEWRIGHT_TEST_TOO_LONG;
    await assert.rejects(refused.request('echo', 1), endedWith(/are too long/));
    await staysDead(refused, /are too long/);
  });

  test('leaves no listener, file descriptor or warning behind', async (t) => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    atEnd(t, () => process.off('warning', onWarning));
    const { signal } = new AbortController();
    const pool = Array.from({ length: 12 }, () => testProcess(t));
    const listeners = () =>
      pool.flatMap((one) => {
        const { child } = one as unknown as { child: ChildProcess };
        return child.eventNames().map((name) => [name, child.listenerCount(name)]);
      });
    const descriptors = () => readdirSync('/proc/self/fd').length;
    await Promise.all(pool.map((one) => one.request('echo', 0, { signal })));
    const before = [listeners(), descriptors()];
    for (let round = 0; round < 20; round++)
      await Promise.all(pool.map((one) => one.request('count', 1, { signal, onProgress: () => undefined })));
    assert.deepEqual([listeners(), descriptors()], before);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    assert.deepEqual(warnings, []);
  });
});

test('a child ends when its parent is killed, and its error output is that of the parent', {
  skip: !HAS_PROC && 'needs /proc',
  timeout: 200_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const parent = join(folder, 'parent.mjs');
  const module = new URL('../../src/engines/processes.js', import.meta.url);
  writeFileSync(
    parent,
    `import { EngineProcess } from ${JSON.stringify(module.href)};
    const start = () => new EngineProcess(new URL(${JSON.stringify(SCRIPT.href)}), 'wasm');
    await start().request('end', 'uncaught').catch(() => undefined);
    start().request('hang', undefined, { onProgress: () => process.stdout.write('busy') });`,
  );
  const server = spawn(process.execPath, [parent], { stdio: ['ignore', 'pipe', 'pipe'] });
  atEnd(t, () => server.kill('SIGKILL'));
  let printed = '';
  server.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  await once(server.stdout, 'data');
  const [child, ...others] = children(server.pid);
  assert.ok(child !== undefined && others.length === 0);
  while (!printed.includes('RangeError: nobody catches this')) await sleep(20);
  server.kill('SIGKILL');
  while (isRunning(child)) await sleep(20);
});
