/** What the first node of a cluster removes of old jobs. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { ClusterBoard } from '../../src/jobs/cluster-board.js';
import { Jobs } from '../../src/jobs/index.js';
import { JobDocuments } from '../../src/jobs/job-documents.js';
import { JobObjects } from '../../src/jobs/job-objects.js';
import { LostJobs } from '../../src/jobs/lost-jobs.js';
import { firstVersionAt, Storage, toArray } from '../../src/storage/index.js';
import { faultyObjects } from '../dht/faulty-stores.js';
import { sharedPlace } from '../dht/shared-place.js';
import { eventually } from '../support/eventually.js';

const DAY = 86_400_000;

test('an object that cannot be removed keeps no other job', async (t) => {
  const { folder, coordination, objects: store, stops } = await sharedPlace(t);
  const storage = await Storage.open(join(folder, 'a'), { reserve: 0 });
  const documents = new JobDocuments(coordination);
  const finished = Date.now() - 30 * DAY;
  const ids = ['aaaaaa', 'bbbbbb', 'cccccc'].map((end) => `${firstVersionAt(finished)}${end}`);
  const objects = new JobObjects(
    faultyObjects(store, (name) => (name.includes(ids[1]!) ? { kind: 'failed', outage: 0 } : undefined)),
  );
  for (const id of ids) {
    await new JobObjects(store).putAsked(id, { inputs: {} });
    const job = {
      ...{ id, process: 'fill', status: 'successful' as const, message: '' },
      ...{ created: finished, updated: finished, finished },
      tiles: { total: 0, done: 0, failed: 0, skipped: 0 },
    };
    const added = await documents.add({ home: 'a', job });
    assert.ok('revision' in added);
    await documents.end({ home: 'a', job, folder: `jobs/${id}/end` }, added.revision);
  }

  const failures: unknown[] = [];
  const onFailure = (error: unknown) => failures.push(error);
  const board = new ClusterBoard({
    ...{ catalogue: storage.catalogue, documents, objects, home: 'a', onFailure },
    work: ({ run }, inputs, context) => run(inputs, context),
    isWorkedOn: () => false,
    onTakenOver: () => undefined,
  });
  const jobs = await Jobs.open(storage, [], { board });
  const cluster = { self: 'a', nodes: [{ id: 'a' }], endClaimsOf: async () => undefined };
  const lost = new LostJobs({ jobs, board, documents, objects, cluster, processes: [], onFailure });
  stops.push(async () => {
    await lost.close();
    board.close();
    await jobs.close();
    await storage.close();
  });
  const left = async () => (await toArray(documents.all())).map(({ document }) => document.job.id);
  await eventually('the removal', async () => `${await left()}` === ids[1]);
  assert.deepEqual(
    (await toArray(store.list('jobs/'))).map(({ name }) => name.split('/')[1]),
    [ids[1]],
  );
  assert.match(String(failures[0]), /TW_STORAGE_UNAVAILABLE|outage/);
});
