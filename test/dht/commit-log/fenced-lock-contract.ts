import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { lockHeld } from '../../../src/dht/index.js';
import {
  acquireLock,
  isOwnedBy,
  listLocks,
  ownerLabel,
  pruneCommittedLocks,
  revokeLocksOf,
} from '../../../src/dht/log/fenced-lock.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import type { OpenStore } from '../../coordination/kv-store-contract.js';

export function fencedLockContract(open: OpenStore): void {
  test('one node locks a scene; the others see its holder; after a release the next one gets the lock', async (t) => {
    const node = await open(t);
    const tries = await Promise.allSettled(['n1', 'n2', 'n3'].map((id) => acquireLock(node(), 'c/s', id)));
    const won = tries.filter((one) => one.status === 'fulfilled').map(({ value }) => value);
    assert.equal(won.length, 1);
    const [first] = won;
    for (const one of tries)
      if (one.status === 'rejected') {
        assert.equal(one.reason.code, lockHeld.code);
        assert.match(one.reason.message, new RegExp(`c/s is busy: ${first!.holder} is working`));
      }
    assert.deepEqual(await listLocks(node(), 'c/'), [
      {
        name: 'c/s',
        holder: first!.holder,
        fence: first!.fence,
        first: first!.fence,
        done: undefined,
        segment: undefined,
      },
    ]);
    await first!.release();
    assert.deepEqual(await listLocks(node(), 'c/'), []);
    const next = await acquireLock(node(), 'c/s', 'n4');
    assert.ok(next.fence > first!.fence);
    await next.release();
  });

  test('a committed lock is replaced by the next, with a larger fence', async (t) => {
    const node = await open(t);
    const store = node();
    const log = new CommitLog(store);
    let last = 0;
    for (const seq of [1, 2, 3]) {
      const held = await acquireLock(store, 'c/s', 'n1');
      assert.ok(held.fence > last);
      assert.equal(await log.commit(held, { segment: `s${seq}`, slots: '' }), seq);
      assert.deepEqual(await listLocks(store, 'c/'), [
        { name: 'c/s', holder: 'n1', fence: held.fence, first: held.fence, done: seq, segment: `s${seq}` },
      ]);
      await held.release();
      assert.equal((await listLocks(store, 'c/')).length, 1, 'a done claim is not released');
      last = held.fence;
    }
  });

  test('the holder is notified that the lock is lost', async (t) => {
    const node = await open(t);
    const [store, other] = [node(), node()];
    const held = await acquireLock(store, 'c/s', 'n1', { ttl: 3 });
    await sleep(3500);
    assert.equal(held.lost.aborted, false, 'it is kept alive');
    const { gets } = await other.read([{ key: 'claim/c/s' }]);
    await other.revokeLease(gets[0]!.kvs[0]!.lease);
    const next = await acquireLock(other, 'c/s', 'n2');
    if (!held.lost.aborted) await new Promise((resolve) => held.lost.addEventListener('abort', resolve));
    await held.release();
    assert.equal((await listLocks(other, 'c/'))[0]!.fence, next.fence, 'the next claim stays');
    await next.release();
  });

  test('marks of committed locks are deleted up to a commit, others stay', async (t) => {
    const node = await open(t);
    const store = node();
    const log = new CommitLog(store);
    const names = Array.from({ length: 70 }, (_, i) => `c/s${`${i}`.padStart(3, '0')}`);
    for (const name of names)
      await log.commit(await acquireLock(store, name, 'n1'), { segment: name, slots: '' });
    const held = await acquireLock(store, names[3]!, 'n2');
    assert.equal(await pruneCommittedLocks(store, 60), 59);
    assert.deepEqual(
      (await listLocks(store, '')).map(({ name }) => name),
      [names[3]!, ...names.slice(60)],
    );
    await held.release();
  });

  test('the locks of a dead process of a node are free immediately; locks and marks of others stay', async (t) => {
    const node = await open(t);
    const store = node();
    const [mine, other] = [
      ownerLabel({ id: 'n1', url: 'http://a' }),
      ownerLabel({ id: 'n10', url: 'http://b' }),
    ];
    const old = await acquireLock(store, 'c/open', mine);
    await new CommitLog(store).commit(await acquireLock(store, 'c/done', mine), { segment: 's', slots: '' });
    const others = await acquireLock(store, 'c/other', other);
    assert.equal(await revokeLocksOf(store, isOwnedBy('n1')), 1);
    assert.deepEqual(
      (await listLocks(store, 'c/')).map(({ name }) => name),
      ['c/done', 'c/other'],
    );
    const next = await acquireLock(store, 'c/open', mine);
    assert.ok(next.fence > old.fence);
    const late = new CommitLog(store).commit(old, { segment: 'late', slots: '' });
    await assert.rejects(late, { code: 'TW_DHT_CLAIM_LOST' });
    for (const held of [old, next, others]) await held.release();
  });

  test('a lock is acquired although the mark of the previous one is deleted at that moment', async (t) => {
    const node = await open(t);
    const store = node();
    const done = await acquireLock(store, 'c/s', 'n1');
    await new CommitLog(store).commit(done, { segment: 's', slots: '' });
    let reads = 0;
    const racing = new Proxy(store, {
      get(target, key) {
        if (key !== 'read') return (Reflect.get(target, key) as () => unknown).bind(target);
        return async (...args: Parameters<typeof store.read>) => {
          const answer = await target.read(...args);
          if (reads++ === 0) assert.equal(await pruneCommittedLocks(target, 1), 1);
          return answer;
        };
      },
    });
    const next = await acquireLock(racing, 'c/s', 'n2');
    assert.ok(next.fence > done.fence);
    await next.release();
  });
}
