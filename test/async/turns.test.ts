/** Work in turns of the event loop. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { runAtOnce, runInTurns } from '../../src/async/index.js';

/** Work of so many steps, each of which takes some milliseconds. */
function* busy(steps: number, milliseconds: number): Generator<void, number> {
  for (let step = 0; step < steps; step++) {
    const end = performance.now() + milliseconds;
    while (performance.now() < end);
    yield;
  }
  return steps;
}

/** Counts turns of the event loop until a promise settles. */
async function turnsUntil(end: Promise<unknown>): Promise<number> {
  let isOver = false;
  const stop = () => {
    isOver = true;
  };
  end.then(stop, stop);
  let turns = 0;
  for (; !isOver; turns++) await nextTurn();
  return turns;
}

test('long work gives other events their turn, and begins and pauses at its call', async () => {
  let pauses = 0;
  const pause = () => {
    pauses++;
  };
  const work = runInTurns(busy(10, 5), { pause });
  assert.equal(pauses, 1);
  assert.ok((await turnsUntil(work)) >= 9);
  assert.equal(await work, 10);
  assert.equal(pauses, 1);
  assert.equal(runAtOnce(busy(3, 0)), 3);
});

test('short work that waits shares a turn, and long work does not keep it waiting', async () => {
  const long = runInTurns(busy(100, 5));
  let longIsOver = false;
  void long.then(() => {
    longIsOver = true;
  });
  const short = Promise.all(Array.from({ length: 200 }, () => runInTurns(busy(3, 0))));
  assert.ok((await turnsUntil(short)) < 100);
  assert.equal(longIsOver, false);
  await long;
});

test('work that fails or is aborted does not keep the others waiting', async () => {
  const broken = new Error('broken');
  const failing = function* (): Generator<void, void> {
    yield;
    throw broken;
  };
  const stop = new AbortController();
  const works = [
    runInTurns(busy(1, 10)),
    runInTurns(failing()),
    runInTurns(busy(1000, 5), { signal: stop.signal }),
    runInTurns(busy(3, 0)),
  ];
  // One may fail before the wait is over.
  const settled = Promise.allSettled(works);
  await sleep(1);
  stop.abort(new Error('nobody waits'));
  const ends = await settled;
  assert.deepEqual(
    ends.map((end) => (end.status === 'fulfilled' ? end.value : end.reason.message)),
    [1, 'broken', 'nobody waits', 3],
  );
  assert.equal(await runInTurns(busy(2, 0)), 2);
});
