/** The memory of rows and threads is returned once nothing is ingested. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SharedMemory } from '../../src/ingest/cut/memory.js';
import { IdleTimer } from '../../src/ingest/process.js';

test('the timer starts at the end of the last work, and new work stops it', async () => {
  const calls: string[] = [];
  let resolve = () => {};
  const done = new Promise<void>((settle) => {
    resolve = settle;
  });
  const idle = new IdleTimer(50, async () => {
    calls.push('idle');
    resolve();
  });
  const slow = idle.runBusy(() => sleep(200, 'slow'));
  await assert.rejects(
    idle.runBusy(() => Promise.reject(new Error('failed'))),
    /failed/,
  );
  assert.equal(await slow, 'slow');
  assert.equal(calls.length, 0);
  await idle.runBusy(async () => calls.push('more'));
  // The timer of the object does not keep the process alive.
  const alive = setInterval(() => {}, 1000);
  await done;
  clearInterval(alive);
  assert.deepEqual(calls, ['more', 'idle']);
});

test('the buffer is freed unless a part of it is allocated', async () => {
  const arena = new SharedMemory(1024);
  const first = await arena.allocate(100, 'a.tif');
  arena.releaseBuffer();
  const second = await arena.allocate(100, 'a.tif');
  assert.equal(second.buffer, first.buffer);
  first.release();
  second.release();
  arena.releaseBuffer();
  const third = await arena.allocate(100, 'a.tif');
  assert.notEqual(third.buffer, first.buffer);
  assert.equal(third.offset, 0);
});
