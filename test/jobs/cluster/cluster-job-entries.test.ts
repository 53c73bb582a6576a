/** The entries of jobs in a real coordination store. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { toArray } from '../../../src/async/index.js';
import { type CoordinationStore, LevelStore } from '../../../src/coordination/index.js';
import type { Transaction } from '../../../src/coordination/store.js';
import { JobEntries, type JobEntry } from '../../../src/jobs/cluster/entries.js';
import { KEY_TTL_MS, keyHash } from '../../../src/jobs/records.js';
import { firstVersionAt } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { tempFolder } from '../../support/temp.js';

async function open(t: TestContext): Promise<JobEntries> {
  const store = await LevelStore.open(join(await tempFolder(t), 'coordination'));
  atEnd(t, () => store.close());
  return new JobEntries(store);
}

const documentOf = (id: string, home: string): JobEntry => ({
  home,
  job: {
    id,
    process: 'fill',
    status: 'accepted',
    created: 1,
    updated: 1,
    tiles: { total: 0, done: 0, failed: 0, skipped: 0 },
    message: '',
  },
});

test('one of several concurrent requests with the same key starts a job', async (t) => {
  const documents = await open(t);
  const request = { key: 'once', digest: 'a' };
  const added = await Promise.all(
    ['j1', 'j2', 'j3'].map((id) => documents.create(documentOf(id, 'n1'), request)),
  );
  const known = await documents.jobOfRequest(request);
  assert.equal(added.filter((one) => 'revision' in one).length, 1);
  for (const one of added) if ('known' in one) assert.equal(one.known, known);
  assert.deepEqual(
    (await documents.live()).map(({ entry }) => entry.job.id),
    [known],
  );
  const other = { key: 'once', digest: 'b' };
  await assert.rejects(documents.create(documentOf('j4', 'n1'), other), { code: 'TW_JOB_KEY_REUSED' });
  assert.equal(await documents.jobOfRequest({ key: 'twice', digest: 'a' }), undefined);
});

test('only the node that knows the last state of a job can change it', async (t) => {
  const documents = await open(t);
  const added = await documents.create(documentOf('j1', 'n1'));
  assert.ok('revision' in added);
  const { revision } = added;
  const taken = await documents.update(documentOf('j1', 'n2'), revision);
  assert.ok(taken.set);
  const late = await documents.update(documentOf('j1', 'n1'), revision);
  assert.deepEqual([late.set, late.current?.entry.home], [false, 'n2']);
  assert.equal(await documents.end(documentOf('j1', 'n1'), revision), false);
  assert.ok((await documents.get('j1'))?.isLive);

  const ended = { ...documentOf('j1', 'n2'), folder: 'jobs/j1/x' };
  assert.ok(await documents.end(ended, taken.current!.revision));
  assert.deepEqual(await documents.live(), []);
  await documents.updateEnded('j1', (document) => ({
    ...document,
    job: { ...document.job, retriedBy: 'j2' },
  }));
  const stored = (await documents.get('j1'))!;
  assert.equal(stored.isLive, false);
  assert.equal(stored.entry.job.retriedBy, 'j2');
  assert.deepEqual(
    (await toArray(documents.all())).map(({ entry }) => entry.folder),
    ['jobs/j1/x'],
  );
  await documents.delete('j1');
  assert.equal(await documents.get('j1'), undefined);
});

test('a key that is reused while another node removes it as expired starts one job', async (t) => {
  const store = await LevelStore.open(join(await tempFolder(t), 'coordination'));
  atEnd(t, () => store.close());
  const key = `jobs/requests/${keyHash('once')}`;
  const value = JSON.stringify({ job: 'j0', digest: 'a', since: Date.now() - KEY_TTL_MS });
  await store.transact({ success: [{ op: 'put', key, value }] });
  const cleaner = new JobEntries(store);
  // Removes expired keys between the read and the transaction of the other node.
  const interrupted: CoordinationStore = Object.create(store, {
    transact: {
      value: async (transaction: Transaction) => {
        if (transaction.compare) await cleaner.expireRequests();
        return store.transact(transaction);
      },
    },
  });
  const documents = new JobEntries(interrupted);
  const request = { key: 'once', digest: 'a' };
  const added = await documents.create(documentOf('j1', 'n1'), request);
  assert.ok('revision' in added);
  assert.equal((await documents.get('j1'))?.revision, added.revision);
  assert.deepEqual(await documents.create(documentOf('j2', 'n1'), request), { known: 'j1' });
  assert.equal(await documents.get('j2'), undefined);
});

test('ended jobs are read backwards, in parts of later ids first, from before any job on', async (t) => {
  const entries = await open(t);
  const HOUR = 3_600_000;
  const now = Date.now();
  // Also ids of a clock that is fast.
  const ages = fc.uniqueArray(fc.double({ min: -2, max: 9 * 24, noNaN: true }), { maxLength: 30 });
  let round = 0;
  await fc.assert(
    fc.asyncProperty(ages, fc.option(fc.nat(30)), async (ages, chosen) => {
      round++;
      const ids = ages
        .map((age, i) => `${firstVersionAt(Math.round(now - age * HOUR))}${round}x${i}`)
        .sort()
        .reverse();
      for (const id of ids) await entries.restore(documentOf(id, 'n1'));
      const before = chosen === null ? undefined : (ids[chosen] ?? '~');
      const parts = await toArray(entries.endedBackwards(before));
      const found = parts.flatMap((part) =>
        part
          .map(({ entry }) => entry.job.id)
          .sort()
          .reverse(),
      );
      assert.deepEqual(
        found,
        ids.filter((id) => before === undefined || id < before),
      );
      for (const id of ids) await entries.delete(id);
    }),
    { seed: 5, numRuns: 40 },
  );
});
