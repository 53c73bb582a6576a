import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommitLog, claim, claimed, forgetDoneClaims, listClaims } from '../../src/dht/index.js';
import type { OpenStore } from './coordination-contract.js';

export function claimContract(open: OpenStore): void {
  test('a scene is claimed by one; the others are told by whom; after a release by the next', async (t) => {
    const node = await open(t);
    const tries = await Promise.allSettled(['n1', 'n2', 'n3'].map((id) => claim(node(), 'c/s', id)));
    const won = tries.filter((one) => one.status === 'fulfilled').map(({ value }) => value);
    assert.equal(won.length, 1);
    const [first] = won;
    for (const one of tries)
      if (one.status === 'rejected') {
        assert.equal(one.reason.code, claimed.code);
        assert.match(one.reason.message, new RegExp(`c/s is busy: ${first!.holder} works`));
      }
    assert.deepEqual(await listClaims(node(), 'c/'), [
      { name: 'c/s', holder: first!.holder, fence: first!.fence, first: first!.fence, done: undefined },
    ]);
    await first!.release();
    assert.deepEqual(await listClaims(node(), 'c/'), []);
    const next = await claim(node(), 'c/s', 'n4');
    assert.ok(next.fence > first!.fence);
    await next.release();
  });

  test('a done claim is replaced by the next, under a larger fence', async (t) => {
    const node = await open(t);
    const store = node();
    const log = new CommitLog(store);
    let last = 0;
    for (const seq of [1, 2, 3]) {
      const held = await claim(store, 'c/s', 'n1');
      assert.ok(held.fence > last);
      assert.equal(await log.commit(held, { segment: `s${seq}`, slots: '' }), seq);
      assert.deepEqual(await listClaims(store, 'c/'), [
        { name: 'c/s', holder: 'n1', fence: held.fence, first: held.fence, done: seq },
      ]);
      await held.release();
      assert.equal((await listClaims(store, 'c/')).length, 1, 'a done claim is not released');
      last = held.fence;
    }
  });

  test('whoever works is told that the claim is lost', async (t) => {
    const node = await open(t);
    const [store, other] = [node(), node()];
    const held = await claim(store, 'c/s', 'n1', { ttl: 3 });
    await sleep(3500);
    assert.equal(held.lost.aborted, false, 'it is kept alive');
    const { gets } = await other.read([{ key: 'claim/c/s' }]);
    await other.revokeLease(gets[0]!.kvs[0]!.lease);
    const next = await claim(other, 'c/s', 'n2');
    if (!held.lost.aborted) await new Promise((resolve) => held.lost.addEventListener('abort', resolve));
    await held.release();
    assert.equal((await listClaims(other, 'c/'))[0]!.fence, next.fence, 'the next claim stays');
    await next.release();
  });

  test('marks of done claims are forgotten up to a commit, others stay', async (t) => {
    const node = await open(t);
    const store = node();
    const log = new CommitLog(store);
    const names = Array.from({ length: 70 }, (_, i) => `c/s${`${i}`.padStart(3, '0')}`);
    for (const name of names) await log.commit(await claim(store, name, 'n1'), { segment: name, slots: '' });
    const held = await claim(store, names[3]!, 'n2');
    assert.equal(await forgetDoneClaims(store, 60), 59);
    assert.deepEqual(
      (await listClaims(store, '')).map(({ name }) => name),
      [names[3]!, ...names.slice(60)],
    );
    await held.release();
  });
}
