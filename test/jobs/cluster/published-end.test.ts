/** The end of a job is published while the stores fail. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { toArray } from '../../../src/async/index.js';
import { entrySummaryOf, JobEntries } from '../../../src/jobs/cluster/entries.js';
import { ClusterJobRegistry, JobArtifacts } from '../../../src/jobs/cluster/registry.js';
import { type JobRecord, newVersion, Storage } from '../../../src/storage/index.js';
import { faultyObjects } from '../../coordination/faulty-stores.js';
import { sharedStores } from '../../dht/shared-stores.js';

test('an end that is published at the second attempt leaves nothing of the first in the object store', async (t) => {
  const { folder, coordination, objects, stops } = await sharedStores(t);
  const storage = await Storage.open(join(folder, 'a'), { reserve: 0 });
  stops.push(() => storage.close());
  let isAway = true;
  const faulty = faultyObjects(objects, (name) => {
    if (!isAway || !name.endsWith('/log.ndjson')) return undefined;
    isAway = false;
    return { kind: 'failed', outage: 0 };
  });
  const entries = new JobEntries(coordination);
  const failures: unknown[] = [];
  const registry = new ClusterJobRegistry({
    catalogue: storage.catalogue,
    entries,
    artifacts: new JobArtifacts(faulty),
    self: 'a',
    work: ({ run }, inputs, context) => run(inputs, context),
    isWorkedOn: () => false,
    onTakenOver: () => {},
    onFailure: (error) => failures.push(error),
  });
  const job: JobRecord = {
    id: newVersion(),
    process: 'p',
    status: 'successful',
    created: 1,
    updated: 2,
    finished: 2,
    ...{ message: '', inputs: {}, lines: 0, tiles: { total: 0, done: 0, failed: 0, skipped: 0 } },
  };
  await entries.create({ home: 'a', job: { ...entrySummaryOf(job), status: 'running' } });
  await registry.publishLate(job, (await entries.get(job.id))!);
  assert.equal(failures.length, 1);
  const { entry, isLive } = (await entries.get(job.id))!;
  assert.ok(!isLive);
  const names = (await toArray(objects.list(`jobs/${job.id}/`))).map(({ name }) => name);
  assert.deepEqual(names.sort(), [`${entry.folder}/log.ndjson`, `${entry.folder}/record.json`]);
});
