/** A real etcd behind a proxy that refuses requests or loses answers. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { after, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { coordinationRefused, EtcdStore, leaseGone, outcomeUnknown } from '../../src/coordination/index.js';
import { Lease } from '../../src/coordination/lease.js';
import { compareAndSet, firstKeyValue, retryUntilAnswered } from '../../src/coordination/store.js';
import { listMembers, Membership } from '../../src/dht/membership.js';
import { member, noEvents } from '../dht/membership/membership-contract.js';
import { atEnd } from '../support/at-end.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy, type Faults } from '../support/fault-proxy.js';

/** On a machine that runs other tests as well, etcd may take longer than a second. */
const BUSY_TIMEOUT_MS = 20_000;

const server = noEtcd ? undefined : await EtcdCluster.start({ after });

const isRenewal = ({ url }: IncomingMessage) => url === '/v3/lease/keepalive';

interface Setting {
  proxy: FaultProxy;
  /** Connected through the proxy. */
  store: EtcdStore;
  /** Connected directly, with the same keys. */
  direct: EtcdStore;
}

async function behindProxy(t: TestContext, faults: Faults): Promise<Setting> {
  const proxy = await FaultProxy.start(t, server!.urls[0]!, faults);
  const cluster = randomUUID();
  const [store, direct] = [proxy.endpoint, server!.urls[0]!].map((url) => {
    const one = new EtcdStore([url], cluster, BUSY_TIMEOUT_MS);
    atEnd(t, () => one.close());
    return one;
  });
  return { proxy, store: store!, direct: direct! };
}

const valueIn = async (store: EtcdStore, key: string) =>
  firstKeyValue((await store.read([{ key }])).gets[0]!)?.value;

/** A lease and its key `held`, after an outage of `lifetimes` lifetimes that began with the answer to a renewal. */
async function afterOutage(t: TestContext, ttl: number, lifetimes: number, status = 503) {
  let phase: 'before' | 'due' | 'away' | 'over' = 'before';
  const { store, direct } = await behindProxy(t, {
    answer: () => (phase === 'away' ? status : undefined),
    passed: (direction, _bytes, request) => {
      if (direction !== 'down' || phase !== 'due' || !isRenewal(request)) return;
      phase = 'away';
      setTimeout(
        () => {
          phase = 'over';
        },
        lifetimes * ttl * 1000,
      );
    },
  });
  const lease = await Lease.grant(store, ttl);
  atEnd(t, () => lease.stopRenewing());
  await store.transact({ success: [{ op: 'put', key: 'held', value: '1', lease: lease.id }] });
  phase = 'due';
  await eventually('the end of the outage', () => phase === 'over', BUSY_TIMEOUT_MS);
  return { lease, direct };
}

describe('leases through outages', { concurrency: true, skip: noEtcd }, () => {
  const TTL = 8;
  for (const lifetimes of [0.3, 0.6, 0.9])
    test(`a lease survives an outage of ${lifetimes} of its lifetime`, async (t) => {
      const { lease, direct } = await afterOutage(t, TTL, lifetimes);
      await sleep(TTL * 1000);
      assert.equal(lease.lost.aborted, false);
      assert.equal(await valueIn(direct, 'held'), '1');
    });

  test('a lease is lost after an outage of 1.5 of its lifetime, and its holder is notified', async (t) => {
    const { lease, direct } = await afterOutage(t, TTL, 1.5);
    await eventually('the loss', () => lease.lost.aborted);
    assert.ok(leaseGone.is(lease.lost.reason));
    assert.equal(await valueIn(direct, 'held'), undefined);
  });

  test('a lease is not lost because a proxy has no route', async (t) => {
    const { lease, direct } = await afterOutage(t, TTL, 0.5, 404);
    await sleep(TTL * 1000);
    assert.equal(lease.lost.aborted, false);
    assert.equal(await valueIn(direct, 'held'), '1');
  });

  test('a lease survives if etcd itself is down for longer than its lifetime', async (t) => {
    const etcd = await EtcdCluster.start(t);
    const store = new EtcdStore(etcd.urls, 'test', BUSY_TIMEOUT_MS);
    atEnd(t, () => store.close());
    const ttl = 3;
    const lease = await Lease.grant(store, ttl);
    atEnd(t, () => lease.stopRenewing());
    await store.transact({ success: [{ op: 'put', key: 'held', value: '1', lease: lease.id }] });
    await etcd.kill(0);
    await sleep(1.5 * ttl * 1000);
    etcd.launch(0);
    assert.equal(await valueIn(store, 'held'), '1');
    await sleep(ttl * 1000);
    assert.equal(lease.lost.aborted, false);
  });
});

test('a member that has lost its lease rejoins after any error except a taken id', {
  skip: noEtcd,
}, async (t) => {
  let status: number | undefined;
  const { store, direct } = await behindProxy(t, { answer: () => status });
  const events: unknown[] = [];
  const membership = await Membership.join(store, member('a'), {
    lost: () => {
      events.push('lost');
      status = 404;
    },
    back: () => events.push('back'),
    failed: (error) => events.push((error as { code?: string }).code),
  });
  atEnd(t, () => membership.leave());
  const { gets } = await direct.read([{ key: 'members/a' }]);
  await direct.revokeLease(firstKeyValue(gets[0]!)!.lease);
  await eventually('a failure', () => events.length > 1);
  await sleep(1500);
  assert.deepEqual(events, ['lost', coordinationRefused.code], 'each error is reported once');
  status = undefined;
  await eventually('the member has rejoined', () => events.includes('back'));
  assert.deepEqual(await listMembers(direct), [member('a')]);
});

describe('lost answers', { concurrency: true, skip: noEtcd }, () => {
  /** A store that loses the first answer to each call of `path`, and the number of these calls. */
  const losing = async (t: TestContext, path: string) => {
    let isNext = true;
    const setting = await behindProxy(t, {
      lose: ({ url }) => {
        const isLost = isNext && url === `/v3/${path}`;
        if (isLost) isNext = false;
        return isLost;
      },
    });
    return {
      ...setting,
      calls: () => setting.proxy.requests.filter((request) => request === `POST /v3/${path}`).length,
    };
  };
  const keyValueOf = async (store: EtcdStore, key: string) =>
    firstKeyValue((await store.read([{ key }])).gets[0]!);

  test('compare-and-set: the key is set once', async (t) => {
    const { store, direct, calls } = await losing(t, 'kv/txn');
    const { set, current } = await compareAndSet(store, { key: 'a', value: '1', revision: 0 });
    const kv = await keyValueOf(direct, 'a');
    assert.deepEqual([set, current?.value, current?.modRevision], [true, '1', kv?.modRevision]);
    assert.equal(kv?.createRevision, kv?.modRevision);
    assert.equal(calls(), 2);
  });

  test('compare-and-set: the key is deleted, and counts as deleted', async (t) => {
    const { store, direct, calls } = await losing(t, 'kv/txn');
    const { revision } = await direct.transact({ success: [{ op: 'put', key: 'a', value: '1' }] });
    const { set } = await compareAndSet(store, { key: 'a', value: undefined, revision });
    assert.deepEqual([set, await valueIn(direct, 'a'), calls()], [true, undefined, 2]);
  });

  test('a refusal of the next attempt does not hide that the first one may have been made', async (t) => {
    let calls = 0;
    const { store, direct } = await behindProxy(t, {
      answer: () => (++calls > 1 ? 404 : undefined),
      lose: () => true,
    });
    await assert.rejects(compareAndSet(store, { key: 'a', value: '1', revision: 0 }), {
      code: outcomeUnknown.code,
      message: /; the next attempt failed: .*HTTP 404/,
    });
    assert.equal(await valueIn(direct, 'a'), '1');
  });

  test('a put without a comparison is sent once, and its outcome is unknown', async (t) => {
    const { store, direct, calls } = await losing(t, 'kv/txn');
    await assert.rejects(store.transact({ success: [{ op: 'put', key: 'a', value: '1' }] }), {
      code: outcomeUnknown.code,
    });
    assert.deepEqual([await valueIn(direct, 'a'), calls()], ['1', 1]);
  });

  test('a retried transaction is made once, and completely', async (t) => {
    const { store, direct, calls } = await losing(t, 'kv/txn');
    const { succeeded } = await retryUntilAnswered(BUSY_TIMEOUT_MS, (timeoutMs) =>
      store.transact(
        {
          compare: [{ key: 'a', modRevision: 0 }],
          success: [
            { op: 'put', key: 'a', value: '1' },
            { op: 'put', key: 'b', value: '1' },
          ],
        },
        { timeoutMs },
      ),
    );
    const [a, b] = [await keyValueOf(direct, 'a'), await keyValueOf(direct, 'b')];
    assert.deepEqual([succeeded, calls()], [false, 2]);
    assert.deepEqual([a?.createRevision, b?.createRevision], [a?.modRevision, a?.modRevision]);
  });

  test('a read is repeated', async (t) => {
    const { store, direct, calls } = await losing(t, 'kv/txn');
    await direct.transact({ success: [{ op: 'put', key: 'a', value: '1' }] });
    assert.deepEqual([await valueIn(store, 'a'), calls()], ['1', 2]);
  });

  test('a lease is granted again; the first one stays unused', async (t) => {
    const { store, direct, calls } = await losing(t, 'lease/grant');
    const lease = await store.grantLease(60);
    await store.transact({ success: [{ op: 'put', key: 'a', value: '1', lease }] });
    assert.equal((await keyValueOf(direct, 'a'))?.lease, lease);
    assert.equal(calls(), 2);
  });

  test('a renewal is repeated', async (t) => {
    const { store, calls } = await losing(t, 'lease/keepalive');
    assert.equal(await store.keepAlive(await store.grantLease(60)), true);
    assert.equal(calls(), 2);
  });

  test('the end of a lease is repeated without an error', async (t) => {
    const { store, direct, calls } = await losing(t, 'lease/revoke');
    const lease = await store.grantLease(60);
    await store.transact({ success: [{ op: 'put', key: 'a', value: '1', lease }] });
    await store.revokeLease(lease);
    assert.deepEqual([await valueIn(direct, 'a'), calls()], [undefined, 2]);
  });

  test('a node becomes a member under one lease', async (t) => {
    const { store, direct } = await losing(t, 'kv/txn');
    const membership = await Membership.join(store, member('a'), noEvents);
    const kv = await keyValueOf(direct, 'members/a');
    assert.equal(await direct.keepAlive(kv!.lease), true);
    await membership.leave();
    assert.deepEqual(await listMembers(direct), []);
  });
});
