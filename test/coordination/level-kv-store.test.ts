import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { LevelStore } from '../../src/coordination/index.js';
import { lockHeld, lockLost } from '../../src/dht/index.js';
import { acquireLock, listLocks } from '../../src/dht/log/fenced-lock.js';
import { CommitLog } from '../../src/dht/log/log.js';
import { listMembers } from '../../src/dht/membership.js';
import { entriesSince } from '../dht/commit-log/commit-log-contract.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';
import { kvStoreContract } from './kv-store-contract.js';

kvStoreContract(
  'level: the coordination store of a single process',
  async (t) => {
    const store = await LevelStore.open(join(await tempFolder(t), 'coordination'));
    atEnd(t, () => store.close());
    return () => store;
  },
  { skip: false, runs: 100 },
);

test('revisions continue after a restart; locks under leases are free', async (t) => {
  const folder = join(await tempFolder(t), 'coordination');
  const first = await LevelStore.open(folder);
  await assert.rejects(LevelStore.open(folder), { code: 'TW_STORAGE_LOCKED' });
  const done = await acquireLock(first, 'c/done', 'n1');
  await new CommitLog(first).commit(done, { segment: 'a', slots: '' });
  const held = await acquireLock(first, 'c/held', 'n1');
  await first.close();

  const second = await LevelStore.open(folder);
  atEnd(t, () => second.close());
  assert.deepEqual(
    (await listLocks(second, 'c/')).map(({ name, fence, done }) => [name, fence, done]),
    [['c/done', done.fence, 1]],
  );
  assert.deepEqual(await listMembers(second), []);
  const again = await acquireLock(second, 'c/held', 'n1');
  assert.ok(again.fence > held.fence);
  assert.equal(await new CommitLog(second).commit(again, { segment: 'b', slots: '' }), 2);
});

test('locks and commits in any order: one commit for each lock, and none after a later lock has committed', async (t) => {
  const step = fc.record({
    writer: fc.nat(2),
    name: fc.constantFrom('c/1', 'c/2'),
    act: fc.constantFrom('claim', 'commit', 'release', 'expire'),
  });
  const property = fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.scheduler(), async (steps, s) => {
    const store = await LevelStore.open(join(await tempFolder(t), 'coordination'));
    const held = new Map<string, Awaited<ReturnType<typeof acquireLock>>>();
    const acknowledged: string[] = [];
    const run = async (writer: number) => {
      const log = new CommitLog(store);
      for (const [i, { name, act }] of steps.entries()) {
        if (steps[i]!.writer !== writer) continue;
        await s.schedule(Promise.resolve());
        const mine = `${writer} ${name}`;
        const claimNow = held.get(mine);
        try {
          if (act === 'claim' && !claimNow) held.set(mine, await acquireLock(store, name, `n${writer}`));
          if (act === 'commit' && claimNow) {
            held.delete(mine);
            acknowledged[await log.commit(claimNow, { segment: `${i}`, slots: '' })] = `${i}`;
          }
          if (act === 'release' && claimNow) {
            held.delete(mine);
            await claimNow.release();
          }
          // The holder has not noticed the loss yet.
          if (act === 'expire') await store.transact({ success: [{ op: 'delete', key: `claim/${name}` }] });
        } catch (error) {
          if (!lockHeld.is(error) && !lockLost.is(error)) throw error;
        }
      }
    };
    const runs = Promise.all([0, 1, 2].map(run));
    await s.waitFor(runs);
    const entries = await entriesSince(new CommitLog(store), 0);
    await store.close();
    assert.deepEqual(
      entries.map(({ segment }) => segment),
      acknowledged.slice(1),
    );
    for (const name of ['c/1', 'c/2']) {
      const fences = entries.filter(({ claim }) => claim === name).map(({ fence }) => fence);
      for (const [i, fence] of fences.entries())
        assert.ok(i === 0 || fence > fences[i - 1]!, 'nobody commits after a later claim has');
    }
  });
  await fc.assert(property, { seed: 42, numRuns: 80 });
});
