/** Behaviour that depends on the settings of etcd. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  badEtcdUrl,
  coordinationFull,
  coordinationRefused,
  coordinationUnavailable,
  EtcdStore,
} from '../../src/coordination/index.js';
import { compareAndSet, firstKeyValue, type WatchSignal } from '../../src/coordination/store.js';
import { acquireLock } from '../../src/dht/log/fenced-lock.js';
import { listMembers, Membership } from '../../src/dht/membership.js';
import { member, noEvents } from '../dht/membership/membership-contract.js';
import { atEnd } from '../support/at-end.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { tempFolder } from '../support/temp.js';

const toBase64 = (text: string) => Buffer.from(text).toString('base64');

test('warns about a full database, history and keys of other programs', { skip: noEtcd }, async (t) => {
  const etcd = await EtcdCluster.start(t);
  const store = new EtcdStore(etcd.urls, 'test');
  for (let i = 0; i < 20; i++) await store.transact({ success: [{ op: 'put', key: 'a', value: `${i}` }] });
  assert.deepEqual(await store.healthWarnings(), []);

  await etcd.ask(0, 'kv/put', { key: toBase64('/registry/pods'), value: toBase64('1') });
  const [full, history, others] = await store.healthWarnings({ quotaBytes: 30_000, maxRevisions: 10 });
  assert.match(full!, /^the database of etcd is at \d+ % of its quota/);
  assert.match(history!, /^etcd keeps the complete history of 2\d revisions/);
  assert.match(others!, /^etcd holds 1 keys of other programs/);
  await etcd.ask(0, 'kv/compaction', { revision: '15' });
  assert.equal((await store.healthWarnings({ maxRevisions: 10 })).length, 1);
});

test('uses the user and password of the URL, even after a restart of etcd', {
  skip: noEtcd,
}, async (t) => {
  const etcd = await EtcdCluster.start(t);
  const calls: [string, object][] = [
    ['auth/user/add', { name: 'root', password: 'pass word' }],
    ['auth/role/add', { name: 'root' }],
    ['auth/user/grant', { user: 'root', role: 'root' }],
    ['auth/enable', {}],
  ];
  for (const [path, body] of calls) assert.ok(await etcd.ask(0, path, body), path);
  const as = (user: string) => {
    const store = new EtcdStore(
      etcd.urls.map((url) => url.replace('//', `//${user}`)),
      'test',
    );
    atEnd(t, () => store.close());
    return store;
  };
  const store = as('root:pass%20word@');
  let signals = 0;
  store.watch({ key: 'a' }, () => signals++);
  await eventually('the start of the watch', () => signals === 1);
  await store.transact({ success: [{ op: 'put', key: 'a', value: '1' }] });
  await eventually('a signal', () => signals === 2);
  await assert.rejects(as('root:wrong@').read([{ key: 'a' }]), { code: coordinationRefused.code });
  await assert.rejects(as('').read([{ key: 'a' }]), { code: coordinationRefused.code });

  await etcd.kill(0);
  await assert.rejects(store.read([{ key: 'a' }], { timeoutMs: 500 }), {
    code: coordinationUnavailable.code,
  });
  etcd.launch(0);
  const { gets } = await store.read([{ key: 'a' }], { timeoutMs: 15_000 });
  assert.equal(gets[0]!.kvs[0]!.value, '1');
  await eventually('the watch has restarted', () => signals > 2);
});

test('a change that a watch has reported is not reported again', { skip: noEtcd }, async (t) => {
  const etcd = await EtcdCluster.start(t);
  const store = new EtcdStore(etcd.urls, 'test');
  atEnd(t, () => store.close());
  let signals = 0;
  store.watch({ key: 'a' }, () => signals++);
  await eventually('the start of the watch', () => signals === 1);
  const changes = 2;
  for (let i = 1; i <= changes; i++) {
    const before = signals;
    await store.transact({ success: [{ op: 'put', key: 'a', value: `${i}` }] });
    await eventually('a signal', () => signals > before);
    // The watch checks every two seconds for missed changes.
    await sleep(2200);
  }
  // A check between a change and its event may see the change first.
  assert.ok(signals <= 1 + changes + 1, `${signals} signals`);
});

test('a text that is not a server URL is refused, and its password is not shown', () => {
  for (const url of [
    '',
    'host:2379',
    'user:secret@host',
    'ftp://user:secret@host',
    'http://user:secret@ho st',
  ])
    assert.throws(
      () => new EtcdStore([url], 'test'),
      (error) => badEtcdUrl.is(error) && !error.message.includes('secret'),
    );
});

const ROOT: [string, object][] = [
  ['auth/user/add', { name: 'root', password: 'pass' }],
  ['auth/role/add', { name: 'root' }],
  ['auth/user/grant', { user: 'root', role: 'root' }],
];

/** A call as the user root. */
async function asRoot(etcd: EtcdCluster, path: string, body: object): Promise<void> {
  const post = async (path: string, body: object, headers = {}) => {
    const request = { method: 'POST', body: JSON.stringify(body), headers };
    const response = await fetch(`${etcd.urls[0]}/v3/${path}`, request);
    assert.ok(response.ok, path);
    return (await response.json()) as { token: string };
  };
  const { token } = await post('auth/authenticate', { name: 'root', password: 'pass' });
  await post(path, body, { authorization: token });
}

/** A store with this user, behind a proxy that sees its requests. */
async function storeOf(t: TestContext, etcd: EtcdCluster, user: string) {
  const proxy = await FaultProxy.start(t, etcd.urls[0]!, {});
  const store = new EtcdStore([proxy.endpoint.replace('//', `//${user}@`)], 'test');
  atEnd(t, () => store.close());
  return { store, proxy };
}

test('with JSON web tokens, everything continues after a change of users', { skip: noEtcd }, async (t) => {
  const folder = await tempFolder(t);
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });
  const [pub, priv] = [join(folder, 'public.pem'), join(folder, 'private.pem')];
  await writeFile(pub, publicKey);
  await writeFile(priv, privateKey);
  const jwt = `jwt,pub-key=${pub},priv-key=${priv},sign-method=RS256,ttl=10m`;
  const etcd = await EtcdCluster.start(t, 1, ['--auth-token', jwt]);
  for (const [path, body] of [...ROOT, ['auth/enable', {}] as const])
    assert.ok(await etcd.ask(0, path, body), path);

  const { store } = await storeOf(t, etcd, 'root:pass');
  const joined = await Membership.join(store, member('a'), {
    ...noEvents,
    lost: () => assert.fail('the lease was lost'),
  });
  atEnd(t, () => joined.leave());
  const signals: WatchSignal[] = [];
  store.watch({ key: 'a' }, (signal) => signals.push(signal));
  await eventually('the start of the watch', () => signals.length === 1);
  for (const [n, name] of ['alice', 'bob'].entries()) {
    await asRoot(etcd, 'auth/user/add', { name, password: 'x' });
    // First a change, whose outcome the refusal must not make unknown, then a read.
    if (n === 0) assert.equal((await compareAndSet(store, { key: 'a', value: '1', revision: 0 })).set, true);
    assert.equal(firstKeyValue((await store.read([{ key: 'a' }])).gets[0]!)?.value, '1');
  }
  await eventually('a signal', () => signals.length > 1);
  await joined.leave();
  assert.deepEqual(await listMembers(store), []);
});

test('everything recovers by itself when a full etcd has room again', { skip: noEtcd }, async (t) => {
  const etcd = await EtcdCluster.start(t, 1, ['--quota-backend-bytes', '1000000']);
  const [store, other] = [new EtcdStore(etcd.urls, 'test'), new EtcdStore(etcd.urls, 'test')];
  atEnd(t, () => Promise.all([store.close(), other.close()]));
  const events: unknown[] = [];
  const membership = await Membership.join(store, member('a'), {
    lost: () => events.push('lost'),
    back: () => events.push('back'),
    failed: (error) => events.push((error as { code?: string }).code),
  });
  const kept = await Membership.join(other, member('b'), {
    ...noEvents,
    lost: () => assert.fail('a full etcd still renews leases'),
  });
  atEnd(t, () => Promise.all([membership.leave(), kept.leave()]));
  const value = 'v'.repeat(100_000);
  await assert.rejects(
    async () => {
      for (let i = 0; i < 100; i++) await store.transact({ success: [{ op: 'put', key: `x${i}`, value }] });
    },
    { code: coordinationFull.code },
  );
  const lease = firstKeyValue((await store.read([{ key: 'members/a' }])).gets[0]!)!.lease;
  await store.revokeLease(lease);
  await eventually('a failed attempt to rejoin', () => events.length > 1);
  await assert.rejects(acquireLock(store, 'c/s', 'n'), { code: coordinationFull.code });
  await sleep(1500);
  assert.deepEqual(events, ['lost', coordinationFull.code]);

  const { revision } = await store.transact({ success: [{ op: 'delete', key: 'x', end: 'y' }] });
  await etcd.ask(0, 'kv/compaction', { revision: `${revision}`, physical: true });
  await etcd.ask(0, 'maintenance/defragment', {});
  const { alarms } = (await etcd.ask<{ alarms: object[] }>(0, 'maintenance/alarm', { action: 'GET' }))!;
  for (const alarm of alarms)
    assert.ok(await etcd.ask(0, 'maintenance/alarm', { action: 'DEACTIVATE', ...alarm }));
  await eventually('the member has rejoined', () => events.includes('back'));
  assert.deepEqual(await listMembers(store), [member('a'), member('b')]);
  await (await acquireLock(store, 'c/s', 'n')).release();
});

test('a watch that etcd cancels is restarted with pauses, and the reader gets the reason', {
  skip: noEtcd,
}, async (t) => {
  const etcd = await EtcdCluster.start(t);
  const range = { key: toBase64('/tilewright/'), range_end: toBase64('/tilewright0') };
  const permission = { name: 'tw', perm: { permType: 'READWRITE', ...range } };
  const calls: [string, object][] = [
    ...ROOT,
    ['auth/user/add', { name: 'tw', password: 'pass' }],
    ['auth/role/add', { name: 'tw' }],
    ['auth/user/grant', { user: 'tw', role: 'tw' }],
    ['auth/role/grant', permission],
    ['auth/enable', {}],
  ];
  for (const [path, body] of calls) assert.ok(await etcd.ask(0, path, body), path);
  const { store, proxy } = await storeOf(t, etcd, 'tw:pass');
  const signals: WatchSignal[] = [];
  const failures: unknown[] = [];
  store.watch(
    { key: 'a' },
    (signal) => signals.push(signal),
    (error) => failures.push(error),
  );
  await eventually('the start of the watch', () => signals.length === 1);

  await asRoot(etcd, 'auth/role/revoke', { role: 'tw', key: range.key, range_end: range.range_end });
  // The open stream continues; the next one is cancelled.
  await etcd.kill(0);
  etcd.launch(0);
  await eventually('the reason', () => failures.length > 0);
  const isWatch = (request: string) => request === 'POST /v3/watch';
  const before = proxy.requests.filter(isWatch).length;
  await sleep(2000);
  const watches = proxy.requests.filter(isWatch).length - before;
  assert.ok(watches <= 20, `${watches} watches in 2 s`);
  assert.equal(failures.length, 1, 'the reader is notified once');
  const [failure] = failures;
  assert.ok(coordinationRefused.is(failure));
  assert.match(failure.message, /^a watch: .*permission denied/);

  const count = signals.length;
  await asRoot(etcd, 'auth/role/grant', permission);
  await eventually('the watch has restarted', () => signals.length > count);
});

test('a quiet watch stays open for longer than the timeout of fetch', { skip: noEtcd }, async (t) => {
  const etcd = await EtcdCluster.start(t, 3);
  // fetch ends an answer that is silent for five minutes; in this test, after a second.
  const dispatcher = Symbol.for('undici.globalDispatcher.1');
  const global = globalThis as unknown as Record<symbol, { constructor: new (options: object) => object }>;
  const former = global[dispatcher]!;
  Object.assign(globalThis, { [dispatcher]: new former.constructor({ bodyTimeout: 1000 }) });
  atEnd(t, () => Object.assign(globalThis, { [dispatcher]: former }));

  const store = new EtcdStore(etcd.urls, 'test');
  atEnd(t, () => store.close());
  const signals: WatchSignal[] = [];
  store.watch({ key: 'a' }, (signal) => signals.push(signal));
  await eventually('the start of the watch', () => signals.length === 1);
  await sleep(4000);
  assert.deepEqual(
    signals.map(({ reason }) => reason),
    ['start'],
  );
  await store.transact({ success: [{ op: 'put', key: 'a', value: '1' }] });
  await eventually('a signal', () => signals.length === 2);
});
