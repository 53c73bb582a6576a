/** Work on many items, from lists and streams, with a limit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { mapConcurrent } from '../../src/async/index.js';

test('a stream is read no further than items are worked on, and closed after an error', async () => {
  let read = 0;
  let isClosed = false;
  async function* numbers() {
    try {
      for (;;) yield read++;
    } finally {
      isClosed = true;
    }
  }
  let active = 0;
  const worked: number[] = [];
  const failing = mapConcurrent(numbers(), 3, async (item) => {
    active++;
    assert.ok(active <= 3 && read - worked.length <= 3);
    await setImmediate();
    active--;
    worked.push(item);
    if (item === 10) throw new Error('ten');
  });
  await assert.rejects(failing, /ten/);
  assert.ok(isClosed && active === 0 && worked.length <= 13);
});

test('results have the order of the items, and an error of the stream is thrown', async () => {
  async function* items(fails: boolean) {
    yield* [30, 1, 2];
    if (fails) throw new Error('broken');
  }
  const double = async (item: number) => {
    for (let i = 0; i < item; i++) await setImmediate();
    return 2 * item;
  };
  for (const source of [[30, 1, 2], new Set([30, 1, 2]), items(false)])
    assert.deepEqual(await mapConcurrent(source, 2, double), [60, 2, 4]);
  await assert.rejects(mapConcurrent(items(true), 2, double), /broken/);
});
