import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toArray } from '../../src/async/index.js';
import { IdempotencyKeys, KEY_TTL_MS, MAX_KEYS } from '../../src/jobs/records.js';
import { Catalogue } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';

test('keys are known for a day, even to the next process, and their number is limited', async (t) => {
  const catalogue = await Catalogue.open(await tempFolder(t));
  atEnd(t, () => catalogue.close());
  const requests = await IdempotencyKeys.open(catalogue);
  await catalogue.write(requests.add({ key: 'a', digest: '1' }, 'job1', 1000));
  await catalogue.write(requests.add({ key: 'b', digest: '2' }, 'job2', 2000));
  const again = await IdempotencyKeys.open(catalogue);
  for (const known of [requests, again]) {
    assert.equal(known.find({ key: 'a', digest: '1' }, 999 + KEY_TTL_MS), 'job1');
    assert.equal(known.find({ key: 'a', digest: '1' }, 1000 + KEY_TTL_MS), undefined);
    assert.throws(() => known.find({ key: 'a', digest: '2' }, 2000), { code: 'TW_JOB_KEY_REUSED' });
    assert.equal(known.find({ key: 'c', digest: '1' }, 2000), undefined);
  }
  await catalogue.write(again.add({ key: 'c', digest: '3' }, 'job3', 1500 + KEY_TTL_MS));
  assert.equal((await toArray(catalogue.requests.keys())).length, 2, 'what is too old goes');
  const changes = [];
  for (let n = 0; n < MAX_KEYS; n++)
    changes.push(...again.add({ key: `many${n}`, digest: '' }, 'job', 1600 + KEY_TTL_MS));
  await catalogue.write(changes);
  assert.equal((await toArray(catalogue.requests.keys())).length, MAX_KEYS);
});
