/** A commit is made once or not at all, and its writer learns which, even if transactions are lost or arrive late. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  compareAndSet,
  coordinationUnavailable,
  LevelStore,
  outcomeUnknown,
} from '../../../src/coordination/index.js';
import { lockHeld, lockLost } from '../../../src/dht/index.js';
import { deleteSchema, updateSchema } from '../../../src/dht/log/committer.js';
import { acquireLock, listLocks } from '../../../src/dht/log/fenced-lock.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import { PLACEMENT_KEY } from '../../../src/dht/placement-store.js';
import { type Fate, LossyStore } from '../../coordination/lossy-store.js';
import { atEnd } from '../../support/at-end.js';
import { tempFolder } from '../../support/temp.js';
import { entriesSince } from './commit-log-contract.js';

const fates = fc.array(
  fc.constantFrom<Fate>('answered', 'answered', 'unsent', 'unanswered', 'late', 'late'),
  { maxLength: 12 },
);

test('commits over an unreliable network', async (t) => {
  const store = await LevelStore.open(join(await tempFolder(t), 'coordination'));
  atEnd(t, () => store.close());
  let base = 0;
  let segments = 0;
  const property = fc.asyncProperty(fc.array(fates, { minLength: 3, maxLength: 3 }), async (networks) => {
    const [acknowledged, refused, open] = [new Map<string, number>(), new Set<string>(), new Set<string>()];
    const write = async (network: Fate[], writer: number) => {
      const lossy = new LossyStore(store, network);
      const log = new CommitLog(lossy);
      for (const name of ['c/all', `c/${writer}`, 'c/all']) {
        const segment = `${writer} ${base} ${segments++}`;
        const outcome = await commitOnce(log, lossy, name, segment);
        if (typeof outcome === 'number') acknowledged.set(segment, outcome);
        else if (outcome === 'refused') refused.add(segment);
        else if (outcome === 'open') open.add(segment);
      }
      await lossy.deliver(Infinity);
    };
    await Promise.all(networks.map(write));

    const entries = await entriesSince(new CommitLog(store), base);
    base += entries.length;
    const found = new Map(entries.map(({ segment, seq }) => [segment, seq]));
    assert.equal(found.size, entries.length, 'no commit is there twice');
    for (const [segment, seq] of acknowledged) assert.equal(found.get(segment), seq);
    for (const segment of refused) assert.ok(!found.has(segment), `${segment} was refused`);
    const left = (await listLocks(store, 'c/')).filter(({ done }) => done === undefined);
    assert.deepEqual(left, [], 'no claim is left without its holder');
    for (const segment of found.keys()) assert.ok(acknowledged.has(segment) || open.has(segment));
  });
  await fc.assert(property, { seed: 42, numRuns: 50 });
});

/** The number of the commit, `refused` if nothing was committed, `open` if that is unknown, `busy` without a lock. */
async function commitOnce(
  log: CommitLog,
  store: LossyStore,
  name: string,
  segment: string,
): Promise<number | 'refused' | 'open' | 'busy'> {
  try {
    const held = await acquireLock(store, name, 'n');
    try {
      return await tryTwice(() => log.commit(held, { segment, slots: '' }, undefined, 0));
    } finally {
      await held.release();
    }
  } catch (error) {
    if (lockHeld.is(error)) return 'busy';
    if (lockLost.is(error) || coordinationUnavailable.is(error)) return 'refused';
    if (outcomeUnknown.is(error)) return 'open';
    throw error;
  }
}

/** Like a caller that checks the outcome of its commit. */
async function tryTwice<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!outcomeUnknown.is(error)) throw error;
    return await work();
  }
}

test('a sent key is set although the answer was lost', async (t) => {
  const store = await LevelStore.open(join(await tempFolder(t), 'coordination'));
  atEnd(t, () => store.close());
  const over = (...network: Fate[]) => new LossyStore(store, network);
  const networks: Fate[][] = [['unanswered'], ['unsent'], ['late', 'unsent'], ['late', 'late', 'unanswered']];
  let revision = 0;
  for (const [i, network] of networks.entries()) {
    const { set, current } = await compareAndSet(over(...network), {
      key: PLACEMENT_KEY,
      value: `${i}`,
      revision: revision,
    });
    assert.deepEqual([set, current?.value], [true, `${i}`]);
    revision = current!.modRevision;
    const held = await acquireLock(over(...network), 'c/s', 'n');
    assert.equal((await listLocks(store, 'c/'))[0]!.fence, held.fence);
    await held.release();
    const collection = (
      await updateSchema(store, { id: 'c', revision: 0 }, { grid: 'geohash', precision: 4 })
    ).current!;
    assert.equal(await deleteSchema(over(...network), collection), true);
  }
});

test('a commit whose answer was lost is found although its lock was replaced in the meantime', async (t) => {
  const store = await LevelStore.open(join(await tempFolder(t), 'coordination'));
  atEnd(t, () => store.close());
  const log = new CommitLog(new LossyStore(store, ['unanswered']));
  const held = await acquireLock(store, 'c/s', 'n1');
  const commit = () => log.commit(held, { segment: 'a', slots: '' }, undefined, 0);
  await assert.rejects(commit(), { code: outcomeUnknown.code });
  const next = await acquireLock(store, 'c/s', 'n2');
  const other = new CommitLog(store, 0);
  assert.equal(await other.commit(next, { segment: 'b', slots: '' }), 2);
  assert.equal(await commit(), 1);

  await acquireLock(store, 'c/s', 'n3');
  const lost = new CommitLog(new LossyStore(store, ['unanswered']));
  const third = await acquireLock(store, 'c/t', 'n1');
  const commitThird = () => lost.commit(third, { segment: 'c', slots: '' }, undefined, 0);
  await assert.rejects(commitThird(), { code: outcomeUnknown.code });
  await acquireLock(store, 'c/t', 'n4');
  await other.moveCheckpoint(undefined, { seq: 3, manifest: 'm' });
  await assert.rejects(commitThird(), { code: outcomeUnknown.code, message: /its entry is gone/ });
});
