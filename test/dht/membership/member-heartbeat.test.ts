/** Heartbeats of a node in the object store. */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { toArray } from '../../../src/async/index.js';
import { Heartbeat } from '../../../src/dht/membership.js';
import { messageOf } from '../../../src/errors.js';
import type { ObjectStore } from '../../../src/storage/index.js';
import { until } from '../cluster-members.js';
import { sharedStores } from '../shared-stores.js';

/** Longer than the interval between two heartbeats. */
const LATER = 30_000;

const heartbeats = async (objects: ObjectStore) =>
  (await toArray(objects.list('running/'))).map(({ name }) => name);

test('a node whose first heartbeat cannot be written writes none later', async (t) => {
  const { folder, objects } = await sharedStores(t);
  const inTheWay = join(folder, 'store', 'running');
  await writeFile(inTheWay, '');
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const failures: unknown[] = [];
  await assert.rejects(Heartbeat.start(objects, 'a', (error) => failures.push(error)));
  await rm(inTheWay);
  t.mock.timers.tick(LATER);
  t.mock.timers.reset();
  // Writes of the node itself are visible once a later write to the same store is.
  await objects.put('running/b/1', Buffer.alloc(0));
  await objects.put('running/b/2', Buffer.alloc(0));
  assert.deepEqual(await heartbeats(objects), ['running/b/1', 'running/b/2']);
  assert.deepEqual(failures.map(messageOf), []);
});

test('heartbeats that could not be removed are removed by the next one, and at the end', async (t) => {
  const { objects } = await sharedStores(t);
  let refusals = 0;
  const lossy: ObjectStore = Object.create(objects, {
    delete: {
      value: async (...args: Parameters<ObjectStore['delete']>) => {
        if (refusals > 0 && refusals-- > 0) throw new Error('the store refuses this');
        return objects.delete(...args);
      },
    },
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const failures: unknown[] = [];
  const sign = await Heartbeat.start(lossy, 'a', (error) => failures.push(error));
  const tick = async (isDone: () => boolean | Promise<boolean>) => {
    t.mock.timers.tick(LATER);
    t.mock.timers.reset();
    await until('the heartbeat is over', isDone);
  };
  const [first] = await heartbeats(objects);
  refusals = 1;
  await tick(() => failures.length === 1);
  assert.equal((await heartbeats(objects)).length, 2);
  assert.ok((await heartbeats(objects)).includes(first!));
  await sign.close();
  assert.deepEqual(await heartbeats(objects), []);
});
