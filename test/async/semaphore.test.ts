import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { Semaphore } from '../../src/async/semaphore.js';

test('never more than allowed at once, in the order of their coming, and who gives up holds no place', async () => {
  const visitor = fc.record({ stays: fc.nat(4), givesUpAfter: fc.option(fc.nat(4), { nil: undefined }) });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(visitor, { maxLength: 20 }),
      async (most, visitors) => {
        const limit = new Semaphore(most);
        const entered: number[] = [];
        let inside = 0;
        let gaveUp = 0;
        const turns = async (count: number) => {
          for (let i = 0; i < count; i++) await turn();
        };
        await Promise.all(
          visitors.map(async ({ stays, givesUpAfter }, i) => {
            const patience = new AbortController();
            if (givesUpAfter !== undefined) turns(givesUpAfter).then(() => patience.abort(i));
            try {
              const leave = await limit.acquire(patience.signal);
              entered.push(i);
              assert.ok(++inside <= most);
              await turns(stays);
              inside--;
              leave();
            } catch (error) {
              assert.equal(error, i);
              gaveUp++;
            }
          }),
        );
        assert.equal(entered.length + gaveUp, visitors.length);
        assert.deepEqual(
          entered,
          entered.toSorted((a, b) => a - b),
        );
        const all = await Promise.all(Array.from({ length: most }, () => limit.acquire()));
        assert.equal(all.length, most);
      },
    ),
    { seed: 42, numRuns: 200 },
  );
});
