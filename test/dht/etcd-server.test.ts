/** What depends on the settings of etcd itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { badEtcdUrl, coordinationRefused, coordinationUnavailable, EtcdStore } from '../../src/dht/index.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { eventually } from '../support/eventually.js';

const toBase64 = (text: string) => Buffer.from(text).toString('base64');

test('warns of a full database, of history and of keys of others', { skip: noEtcd }, async (t) => {
  const etcd = await EtcdCluster.start(t);
  const store = new EtcdStore(etcd.urls, 'test');
  for (let i = 0; i < 20; i++) await store.transact({ success: [{ op: 'put', key: 'a', value: `${i}` }] });
  assert.deepEqual(await store.warnings(), []);

  await etcd.ask(0, 'kv/put', { key: toBase64('/registry/pods'), value: toBase64('1') });
  const [full, history, others] = await store.warnings({ quota: 30_000, history: 10 });
  assert.match(full!, /^the database of etcd is at \d+ % of its quota/);
  assert.match(history!, /^etcd keeps the whole history of 2\d revisions/);
  assert.match(others!, /^etcd holds 1 keys of other programs/);
  await etcd.ask(0, 'kv/compaction', { revision: '15' });
  assert.equal((await store.warnings({ history: 10 })).length, 1);
});

test('takes a user and password from the URL, also after etcd was started again', {
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
    t.after(() => store.close());
    return store;
  };
  const store = as('root:pass%20word@');
  let wakes = 0;
  store.watch({ key: 'a' }, () => wakes++);
  await eventually('the start of the watch', () => wakes === 1);
  await store.transact({ success: [{ op: 'put', key: 'a', value: '1' }] });
  await eventually('a wake', () => wakes === 2);
  await assert.rejects(as('root:wrong@').read([{ key: 'a' }]), { code: coordinationRefused.code });
  await assert.rejects(as('').read([{ key: 'a' }]), { code: coordinationRefused.code });

  await etcd.kill(0);
  await assert.rejects(store.read([{ key: 'a' }], { patience: 500 }), { code: coordinationUnavailable.code });
  etcd.launch(0);
  const { gets } = await store.read([{ key: 'a' }], { patience: 15_000 });
  assert.equal(gets[0]!.kvs[0]!.value, '1');
  await eventually('the watch has begun anew', () => wakes > 2);
});

test('a change that a watch has told of wakes nobody again', { skip: noEtcd }, async (t) => {
  const etcd = await EtcdCluster.start(t);
  const store = new EtcdStore(etcd.urls, 'test');
  t.after(() => store.close());
  let wakes = 0;
  store.watch({ key: 'a' }, () => wakes++);
  await eventually('the start of the watch', () => wakes === 1);
  const changes = 3;
  for (let i = 1; i <= changes; i++) {
    const before = wakes;
    await store.transact({ success: [{ op: 'put', key: 'a', value: `${i}` }] });
    await eventually('a wake', () => wakes > before);
    // The watch checks every two seconds whether it has missed something.
    await sleep(2200);
  }
  // A check between a change and its event may see it first.
  assert.ok(wakes <= 1 + changes + 1, `${wakes} wakes`);
});

test('what is no URL of a server is refused, without its password', () => {
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
