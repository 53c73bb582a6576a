/** The contract of every coordination store, and of the functions built on it. Each implementation runs this suite. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { coordinationRefused, leaseGone } from '../../src/coordination/index.js';
import {
  type CoordinationStore,
  firstKeyValue,
  type Operation,
  prefixRange,
  type Transaction,
  type WatchSignal,
} from '../../src/coordination/store.js';
import { commitLogContract } from '../dht/commit-log/commit-log-contract.js';
import { fencedLockContract } from '../dht/commit-log/fenced-lock-contract.js';
import { documentContract } from '../dht/document-contract.js';
import { membershipContract } from '../dht/membership/membership-contract.js';
import { eventually } from '../support/eventually.js';
import { StoreModel } from './kv-store-model.js';

/** Opens a store without keys, which ends with the test. The returned function opens a store for each node. */
export type OpenStore = (t: TestContext) => Promise<() => CoordinationStore>;

export function kvStoreContract(
  name: string,
  open: OpenStore,
  options: { skip: string | false; runs: number },
): void {
  describe(name, { concurrency: true, skip: options.skip }, () => {
    storeContract(open, options.runs);
    membershipContract(open);
    documentContract(open);
    fencedLockContract(open);
    commitLogContract(open);
  });
}

const put = (key: string, value: string, lease = ''): Operation => ({ op: 'put', key, value, lease });
const get = (key: string): Operation => ({ op: 'get', key });

async function valueIn(store: CoordinationStore, key: string): Promise<string | undefined> {
  return firstKeyValue((await store.read([{ key }])).gets[0]!)?.value;
}

function storeContract(open: OpenStore, runs: number): void {
  test('transactions compare revisions, and are made completely or not at all', async (t) => {
    const store = (await open(t))();
    const made = await store.transact({
      compare: [{ key: 'a', modRevision: 0 }],
      success: [put('a', '1'), get('a')],
    });
    const created = firstKeyValue(made.gets[0]!)!;
    assert.deepEqual(created, {
      key: 'a',
      value: '1',
      createRevision: made.revision,
      modRevision: made.revision,
      lease: '',
    });

    const refused = await store.transact({
      compare: [
        { key: 'a', modRevision: made.revision },
        { key: 'a', createRevision: 0 },
      ],
      success: [put('a', '2'), put('b', '2')],
      failure: [get('a'), get('b')],
    });
    assert.equal(refused.succeeded, false);
    assert.deepEqual(refused.gets, [
      { kvs: [created], more: false },
      { kvs: [], more: false },
    ]);

    const changed = await store.transact({
      compare: [{ key: 'a', createRevision: made.revision }],
      success: [put('a', ''), get('a')],
    });
    const kv = firstKeyValue(changed.gets[0]!)!;
    assert.deepEqual([kv.value, kv.createRevision, kv.modRevision], ['', made.revision, changed.revision]);
    assert.ok(changed.revision > made.revision);
  });

  test('a transaction that writes a key twice is refused, and writes nothing', async (t) => {
    const store = (await open(t))();
    const twice: Operation[][] = [
      [put('x', '1'), put('a', '1'), put('a', '2')],
      [put('x', '1'), put('ab', '1'), { op: 'delete', ...prefixRange('a') }],
      [put('x', '1'), { op: 'delete', key: 'a' }, put('a', '2')],
    ];
    for (const success of twice)
      await assert.rejects(store.transact({ success }), { code: coordinationRefused.code });
    assert.equal(await valueIn(store, 'x'), undefined);
  });

  test('keys are ordered by their bytes, with any text in keys and values', async (t) => {
    const store = (await open(t))();
    const keys = ['k/a', 'k/a/b', 'k/ä', 'k/｡', 'k/🌍', 'k0', 'j/z'];
    const long = 'ß'.repeat(100_000);
    await store.transact({ success: keys.map((key) => put(key, key === 'k/ä' ? long : key)) });
    const { gets } = await store.read([prefixRange('k/'), { key: 'j/z' }]);
    assert.deepEqual(
      gets[0]!.kvs.map(({ key }) => key),
      ['k/a', 'k/a/b', 'k/ä', 'k/｡', 'k/🌍'],
    );
    assert.equal(gets[0]!.kvs[2]!.value, long);
    assert.equal(firstKeyValue(gets[1]!)!.value, 'j/z');

    const page = await store.transact({
      success: [
        { op: 'get', ...prefixRange('k/'), limit: 2 },
        { op: 'get', ...prefixRange('k/'), limit: 5 },
      ],
    });
    assert.deepEqual(
      page.gets.map(({ kvs, more }) => [kvs.length, more]),
      [
        [2, true],
        [5, false],
      ],
    );
  });

  test('gives the same answers as a simple model', async (t) => {
    const node = await open(t);
    const key = fc.constantFrom('a', 'b', 'c/1', 'c/2');
    const range = fc.oneof(
      key.map((key) => ({ key })),
      fc.constantFrom({ key: 'a', end: 'c/2' }, prefixRange('c/'), { key: 'b', end: 'b' }),
    );
    const operation = fc.oneof(
      fc.record({ op: fc.constant('put' as const), key, value: fc.string({ maxLength: 3 }) }),
      range.map((range) => ({ op: 'delete' as const, ...range })),
      fc
        .tuple(range, fc.integer({ min: 1, max: 3 }))
        .map(([range, limit]) => ({ op: 'get' as const, ...range, limit })),
    );
    const compare = fc.record({ key, back: fc.integer({ min: 0, max: 3 }), isMod: fc.boolean() });
    const step = fc.record({
      compare: fc.array(compare, { maxLength: 2 }),
      success: fc.array(operation, { maxLength: 4 }),
      failure: fc.array(operation, { maxLength: 4 }),
    });
    let run = 0;
    const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const store = node();
      const root = `${run++}/`;
      const model = new StoreModel();
      let last = (await store.read([{ key: root }])).revision;
      for (const { compare, success, failure } of steps) {
        const transaction: Transaction = {
          compare: compare.map(({ key, back, isMod }) => model.nearRevision(key, back, isMod)),
          success,
          failure,
        };
        if (!model.isAllowed(transaction)) continue;
        const answer = await store.transact(below(root, transaction));
        assert.deepEqual(withoutRoot(root, answer), model.transact(transaction, answer.revision));
        assert.ok(answer.revision >= last);
        last = answer.revision;
      }
    });
    await fc.assert(property, { seed: 42, numRuns: runs });
  });

  test('keys under a lease are deleted with it', async (t) => {
    const store = (await open(t))();
    const lease = await store.grantLease(60);
    await store.transact({ success: [put('a', '1', lease), put('b', '1', lease), put('c', '1')] });
    await store.transact({ success: [put('b', '2')] });
    assert.equal(firstKeyValue((await store.read([{ key: 'a' }])).gets[0]!)!.lease, lease);
    assert.equal(await store.keepAlive(lease), true);
    await store.revokeLease(lease);
    const { gets } = await store.read([prefixRange('a'), { key: 'b' }, { key: 'c' }]);
    assert.deepEqual(
      gets.map((get) => firstKeyValue(get)?.value),
      [undefined, '2', '1'],
    );
    assert.equal(await store.keepAlive(lease), false);
    await store.revokeLease(lease);
    await assert.rejects(store.transact({ success: [put('d', '1', lease)] }), { code: leaseGone.code });
    assert.equal(await valueIn(store, 'd'), undefined);
  });

  test('a lease that is not renewed ends, a renewed one stays', async (t) => {
    const store = (await open(t))();
    const [left, kept] = [await store.grantLease(2), await store.grantLease(2)];
    await store.transact({ success: [put('left', '1', left), put('kept', '1', kept)] });
    await eventually('the end of a lease', async () => {
      assert.equal(await store.keepAlive(kept), true);
      await sleep(200);
      return (await valueIn(store, 'left')) === undefined;
    });
    assert.equal(await valueIn(store, 'kept'), '1');
    assert.equal(await store.keepAlive(left), false);
  });

  test('a watch signals its start and changes in its range, and nothing after it is closed', async (t) => {
    const node = await open(t);
    const [store, other] = [node(), node()];
    const signals: WatchSignal[] = [];
    const watch = store.watch(prefixRange('w/'), (signal) => signals.push(signal));
    await eventually('the start', () => signals.length === 1 && signals[0]!.reason === 'start');
    await other.transact({ success: [put('v', '1')] });
    const lease = await other.grantLease(60);
    const { revision } = await other.transact({ success: [put('w/a', '1')] });
    await eventually('a signal', () => signals.length > 1);
    assert.deepEqual(signals[1], { reason: 'change', revision });
    const changes: (() => Promise<unknown>)[] = [
      () => other.transact({ success: [{ op: 'delete', key: 'w/a' }] }),
      () => other.transact({ success: [put('w/b', '1', lease)] }),
      () => other.revokeLease(lease),
    ];
    for (const change of changes) {
      const before = signals.length;
      await change();
      await eventually('a signal', () => signals.length > before);
    }
    watch.close();
    const count = signals.length;
    await other.transact({ success: [put('w/a', '3')] });
    await sleep(100);
    assert.equal(signals.length, count);
  });
}

/** The transaction with all keys below `root`. */
function below(root: string, { compare = [], success, failure = [] }: Transaction): Transaction {
  const move = <T extends { key: string; end?: string }>(one: T): T => ({
    ...one,
    key: root + one.key,
    ...(one.end === undefined ? {} : { end: root + one.end }),
  });
  return { compare: compare.map(move), success: success.map(move), failure: failure.map(move) };
}

function withoutRoot(root: string, answer: Awaited<ReturnType<CoordinationStore['transact']>>): object {
  const gets = answer.gets.map(({ kvs, more }) => ({
    kvs: kvs.map((kv) => ({ ...kv, key: kv.key.slice(root.length) })),
    more,
  }));
  return { ...answer, gets };
}
