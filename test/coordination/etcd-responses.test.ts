/** A real etcd behind a proxy that replaces its answers with malformed ones of status 200. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, describe, type TestContext, test } from 'node:test';
import { EtcdStore, outcomeUnknown } from '../../src/coordination/index.js';
import { compareAndSet, firstKeyValue } from '../../src/coordination/store.js';
import { acquireLock } from '../../src/dht/log/fenced-lock.js';
import { CommitLog } from '../../src/dht/log/log.js';
import { JobEntries } from '../../src/jobs/cluster/entries.js';
import { entriesSince } from '../dht/commit-log/commit-log-contract.js';
import { atEnd } from '../support/at-end.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { FaultProxy } from '../support/fault-proxy.js';

/** On a machine that runs other tests as well, etcd may take longer than a second. */
const BUSY_TIMEOUT_MS = 20_000;

const server = noEtcd ? undefined : await EtcdCluster.start({ after });

const WRONG = [
  ...['{}', 'null', '5', '[]', '"x"', '{"succeeded":true}', '{"header":{}}', '{"header":{"revision":"5"}}'],
  '{"header":{"revision":"x"},"succeeded":true}',
  '{"header":{"revision":"5"},"succeeded":true}',
  '{"header":{"revision":"5"},"succeeded":"yes"}',
  '{"header":{"revision":"5"},"responses":5}',
  '{"header":{"revision":"5"},"succeeded":true,"responses":[{}]}',
  '{"header":{"revision":"5"},"succeeded":true,"responses":[{"response_range":{"kvs":"x"}}]}',
];

/** A store behind a proxy. On the path `on`, each item of `next` replaces one answer; undefined lets the answer pass. */
async function behindProxy(t: TestContext) {
  const faults = { on: '/v3/kv/txn', next: [] as (string | undefined)[] };
  const proxy = await FaultProxy.start(t, server!.urls[0]!, {
    replace: ({ url }) => (url === faults.on ? faults.next.shift() : undefined),
  });
  const store = new EtcdStore([proxy.endpoint], randomUUID(), BUSY_TIMEOUT_MS);
  atEnd(t, () => store.close());
  return { store, faults };
}

describe('malformed answers', { skip: noEtcd }, () => {
  test('after one, the outcome of a change is unknown, and a repeated attempt finds that it was made', async (t) => {
    const { store, faults } = await behindProxy(t);
    for (const [i, body] of WRONG.entries()) {
      const key = `k${i}`;
      faults.next.push(body);
      const put = { compare: [{ key, modRevision: 0 }], success: [{ op: 'put' as const, key, value: 'v' }] };
      await assert.rejects(store.transact(put), outcomeUnknown.is, body);
      assert.equal(firstKeyValue((await store.read([{ key }])).gets[0]!)?.value, 'v');
      const refused = await store.transact(put);
      assert.deepEqual([refused.succeeded, refused.gets], [false, []], 'a real refusal is one');

      faults.next.push(body);
      const set = await compareAndSet(store, { key: `${key}/set`, value: 'v', revision: 0 });
      assert.equal(set.set, true, body);
      const stored = firstKeyValue((await store.read([{ key: `${key}/set` }])).gets[0]!)!;
      assert.equal(set.current!.modRevision, stored.modRevision);
    }
  });

  test('a read is repeated', async (t) => {
    const { store, faults } = await behindProxy(t);
    await store.transact({ success: [{ op: 'put', key: 'k', value: 'v' }] });
    faults.next = [...WRONG];
    while (faults.next.length > 0)
      assert.equal(firstKeyValue((await store.read([{ key: 'k' }])).gets[0]!)?.value, 'v');
  });

  test('a lease is still granted, renewed and revoked', async (t) => {
    const { store, faults } = await behindProxy(t);
    const wrong = ['{}', 'null', '{"header":{}}', '{"result":{}}', '{"result":{"header":{"revision":"5"}}}'];
    faults.on = '/v3/lease/grant';
    faults.next = [...wrong];
    const lease = await store.grantLease(60);
    assert.match(lease, /^\d+$/);
    faults.on = '/v3/lease/keepalive';
    faults.next = [...wrong];
    assert.equal(await store.keepAlive(lease), true);
    assert.equal(faults.next.length, 0);
    faults.on = '/v3/lease/revoke';
    faults.next = [...wrong];
    await store.revokeLease(lease);
    assert.equal(await store.keepAlive(lease), false);
  });

  test('a commit is made once, and is not reported as lost', async (t) => {
    const { store, faults } = await behindProxy(t);
    const log = new CommitLog(store);
    for (const [i, body] of WRONG.entries()) {
      const held = await acquireLock(store, `scene/${i}`, 'node');
      faults.next.push(body);
      assert.equal(await log.commit(held, { segment: `s${i}`, slots: '' }), i + 1, body);
    }
    const segments = (await entriesSince(log, 0)).map(({ segment }) => segment);
    assert.deepEqual(
      segments,
      WRONG.map((_, i) => `s${i}`),
    );
  });

  test('a job is accepted', async (t) => {
    const { store, faults } = await behindProxy(t);
    const documents = new JobEntries(store);
    const times = { created: 1, updated: 1 };
    const tiles = { total: 0, done: 0, failed: 0, skipped: 0 };
    for (const [i, body] of WRONG.entries())
      for (const request of [undefined, { key: `key${i}`, digest: 'd' }]) {
        const id = request ? `keyed${i}` : `plain${i}`;
        const job = { ...times, id, process: 'fill', status: 'accepted' as const, message: '', tiles };
        // Before it accepts a request with a key, it reads whether the key is known.
        faults.next.push(...(request ? [undefined, body] : [body]));
        const added = await documents.create({ home: 'a', job }, request);
        assert.ok('revision' in added, body);
        assert.equal((await documents.get(id))?.revision, added.revision);
      }
  });
});
