import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { Semaphore } from '../../src/async/concurrency.js';

test('the number of permits is never exceeded, the order is kept, and an aborted wait holds no permit', async () => {
  const task = fc.record({
    needed: fc.integer({ min: 1, max: 6 }),
    turnsHeld: fc.nat(4),
    abortsAfter: fc.option(fc.nat(4), { nil: undefined }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(task, { maxLength: 20 }),
      async (permits, tasks) => {
        const semaphore = new Semaphore(permits);
        const entered: number[] = [];
        let inside = 0;
        let aborted = 0;
        const turns = async (count: number) => {
          for (let i = 0; i < count; i++) await turn();
        };
        await Promise.all(
          tasks.map(async ({ needed, turnsHeld, abortsAfter }, i) => {
            const controller = new AbortController();
            if (abortsAfter !== undefined) turns(abortsAfter).then(() => controller.abort(i));
            try {
              const release = await semaphore.acquire(controller.signal, needed);
              entered.push(i);
              const taken = Math.min(needed, permits);
              inside += taken;
              assert.ok(inside <= permits);
              await turns(turnsHeld);
              inside -= taken;
              release();
            } catch (error) {
              assert.equal(error, i);
              aborted++;
            }
          }),
        );
        assert.equal(entered.length + aborted, tasks.length);
        assert.deepEqual(
          entered,
          entered.toSorted((a, b) => a - b),
        );
        const all = await Promise.all(Array.from({ length: permits }, () => semaphore.acquire()));
        assert.equal(all.length, permits);
      },
    ),
    { seed: 42, numRuns: 200 },
  );
});
