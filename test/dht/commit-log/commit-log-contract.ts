import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CoordinationStore, firstKeyValue, type WatchSignal } from '../../../src/coordination/store.js';
import { collectionConflict, entryTooLarge, lockLost, logDamaged } from '../../../src/dht/index.js';
import { schemaKey, updateSchema } from '../../../src/dht/log/committer.js';
import { acquireLock } from '../../../src/dht/log/fenced-lock.js';
import { CommitLog, type CommittedEntry } from '../../../src/dht/log/log.js';
import type { OpenStore } from '../../coordination/kv-store-contract.js';
import { eventually } from '../../support/eventually.js';

const entry = (segment: string) => ({ segment, slots: 'AAAA' });

/** All entries after `seq`, read page by page. */
export async function entriesSince(log: CommitLog, seq: number, limit?: number): Promise<CommittedEntry[]> {
  const entries: CommittedEntry[] = [];
  for (;;) {
    const page = await log.readSince(seq + entries.length, limit);
    assert.equal(page.kind, 'entries');
    if (page.kind !== 'entries') return entries;
    entries.push(...page.entries);
    if (!page.more) return entries;
  }
}

async function commitMany(store: CoordinationStore, log: CommitLog, count: number): Promise<void> {
  for (let i = 0; i < count; i++)
    await log.commit(await acquireLock(store, `many/${i}`, 'n'), entry(`many-${i}`));
}

export function commitLogContract(open: OpenStore): void {
  test('commits of several nodes are numbered without a gap, each once', async (t) => {
    const node = await open(t);
    const acknowledged = await Promise.all(
      [0, 1, 2, 3].map(async (writer) => {
        const store = node();
        const log = new CommitLog(store);
        const seqs: [string, number][] = [];
        for (let i = 0; i < 8; i++) {
          const held = await acquireLock(store, `c/${writer}-${i % 3}`, `n${writer}`);
          seqs.push([`${writer}-${i}`, await log.commit(held, entry(`${writer}-${i}`))]);
        }
        return seqs;
      }),
    );
    const log = new CommitLog(node());
    const entries = await entriesSince(log, 0, 5);
    assert.deepEqual(
      entries.map(({ seq }) => seq),
      Array.from({ length: 32 }, (_, i) => i + 1),
    );
    const bySeq = new Map(entries.map(({ seq, segment }) => [seq, segment]));
    for (const [segment, seq] of acknowledged.flat()) assert.equal(bySeq.get(seq), segment);
    assert.deepEqual(await entriesSince(log, 30), entries.slice(30));
    assert.deepEqual(await log.readSince(32), { kind: 'entries', head: 32, entries: [], more: false });
  });

  test('a commit needs its lock and its collection', async (t) => {
    const node = await open(t);
    const store = node();
    const log = new CommitLog(store);
    const collection = (
      await updateSchema(store, { id: 'c', revision: 0 }, { grid: 'geohash', precision: 4 })
    ).current!;
    const conditions = { compare: [{ key: schemaKey('c'), modRevision: collection.revision }] };
    const held = await acquireLock(store, 'c/s', 'n1');
    assert.equal(await log.commit(held, entry('a'), conditions), 1);
    assert.equal(await log.commit(held, entry('a'), conditions), 1, 'a lock commits once');
    await assert.rejects(log.commit(held, entry('b'), conditions), { code: lockLost.code });

    const second = await acquireLock(store, 'c/s', 'n1');
    await updateSchema(store, collection, { grid: 'geohash', precision: 4, groups: ['10m'] });
    await assert.rejects(log.commit(second, entry('b'), conditions), { code: collectionConflict.code });
    await second.release();
    await assert.rejects(log.commit(second, entry('b')), { code: lockLost.code });
    const third = await acquireLock(store, 'c/s', 'n2');
    await assert.rejects(log.commit(second, entry('b')), { code: lockLost.code });
    await assert.rejects(log.commit(third, { segment: 'x', slots: 'A'.repeat(4096) }), {
      code: entryTooLarge.code,
    });
    assert.equal(await log.commit(third, entry('c')), 2);
    assert.deepEqual(
      (await entriesSince(log, 0)).map(({ segment, claim, fence }) => [segment, claim, fence]),
      [
        ['a', 'c/s', held.fence],
        ['c', 'c/s', third.fence],
      ],
    );
  });

  test('the log keeps some entries before its checkpoint; readers further behind load the checkpoint', async (t) => {
    const node = await open(t);
    const store = node();
    const log = new CommitLog(store, 2);
    assert.equal(await log.readCheckpoint(), undefined);
    await commitMany(store, log, 6);
    const moves = await Promise.all(
      ['m1', 'm2'].map((manifest) => log.moveCheckpoint(undefined, { seq: 4, manifest })),
    );
    assert.deepEqual(moves.toSorted(), [false, true]);
    const checkpoint = (await log.readCheckpoint())!;
    assert.equal(checkpoint.seq, 4);
    for (const seq of [0, 1])
      assert.deepEqual(await log.readSince(seq), { kind: 'checkpoint', head: 6, checkpoint });
    for (const seq of [2, 4, 5, 6]) assert.equal((await entriesSince(log, seq)).length, 6 - seq);
    assert.equal(await log.moveCheckpoint(checkpoint, { seq: 4, manifest: 'm3' }), false);
    assert.equal(await log.moveCheckpoint(checkpoint, { seq: 6, manifest: 'm3' }), true);
    assert.equal(await log.moveCheckpoint(checkpoint, { seq: 6, manifest: 'm4' }), false);
    assert.equal((await log.readCheckpoint())!.manifest, 'm3');
    assert.equal((await log.readSince(3)).kind, 'checkpoint');
    assert.equal((await entriesSince(log, 4)).length, 2);
    await log.trim(5);
    assert.equal((await log.readSince(4)).kind, 'checkpoint');
    assert.equal((await entriesSince(log, 5)).length, 1);
    await commitMany(node(), new CommitLog(node()), 1);
    assert.equal((await entriesSince(log, 6))[0]!.seq, 7);
  });

  test('a log that lacks commits is refused', async (t) => {
    const store = (await open(t))();
    const log = new CommitLog(store);
    await commitMany(store, log, 3);
    await assert.rejects(log.readSince(4), { code: logDamaged.code, message: /ends with commit 3/ });
    await store.transact({ success: [{ op: 'delete', key: 'log/0000000000000002' }] });
    await assert.rejects(log.readSince(0), { code: logDamaged.code, message: /entry 2 of 3 is missing/ });
    await store.transact({ success: [{ op: 'delete', key: 'log/0000000000000003' }] });
    await assert.rejects(log.readSince(2), { code: logDamaged.code });
  });

  test('a reader that follows the log sees each commit', async (t) => {
    const node = await open(t);
    const [writer, reader] = [node(), node()];
    const log = new CommitLog(reader);
    const seen: number[] = [];
    const read = async () => {
      for (const { seq } of await entriesSince(log, seen.length)) seen.push(seq);
    };
    const watch = log.watch(read, assert.ifError);
    await commitMany(writer, new CommitLog(writer), 20);
    await eventually('all commits', () => seen.length === 20);
    watch.close();
    assert.deepEqual(
      seen,
      Array.from({ length: 20 }, (_, i) => i + 1),
    );
  });
  test('a reader skips signals of commits that it has applied, and reads the commits of others', async (t) => {
    const node = await open(t);
    const [mine, theirs] = [node(), node()];
    const [log, other] = [new CommitLog(mine), new CommitLog(theirs)];
    const signals: WatchSignal[] = [];
    const watch = new CommitLog(mine).watch(async (signal) => {
      signals.push(signal);
    }, assert.ifError);
    const lastOf = async (seq: number) => {
      const { gets } = await mine.read([{ key: 'log/head' }]);
      const { modRevision } = firstKeyValue(gets[0]!)!;
      await eventually(`the signal of commit ${seq}`, () => signals.at(-1)!.revision === modRevision);
      return signals.at(-1)!;
    };
    await eventually('the watch has started', () => signals.length > 0);
    assert.equal(log.isKnown(signals[0]!, 0), false, 'something may have been missed before');
    const first = await log.commit(await acquireLock(mine, 'a', 'n'), entry('a'));
    const own = await lastOf(first);
    assert.deepEqual([log.isKnown(own, first), log.isKnown(own, first - 1)], [true, false]);
    const second = await other.commit(await acquireLock(theirs, 'b', 'n'), entry('b'));
    const foreign = await lastOf(second);
    assert.equal(log.isKnown(foreign, first), false);
    await log.readSince(first);
    assert.deepEqual([log.isKnown(foreign, second), log.isKnown(foreign, first)], [true, false]);
    watch.close();
  });
}
