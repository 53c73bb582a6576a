import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { JobArtifacts } from '../../../src/jobs/cluster/registry.js';
import { openObjectStore } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { tempFolder } from '../../support/temp.js';

test('a node that takes a job over has the inputs that its first leader prepared', async (t) => {
  const store = await openObjectStore(pathToFileURL(await tempFolder(t)).href);
  atEnd(t, () => store.close?.());
  const objects = new JobArtifacts(store);
  const job = { id: 'a', process: 'train', created: 1, inputs: { model: 'ndvi' } };
  await objects.putInputs(job);
  assert.deepEqual(await objects.inputs('a'), job);
  const prepared = { model: 'ndvi', validationFrom: '2024-06-01T00:00:00.000Z' };
  assert.deepEqual(await objects.putPrepared('a', prepared), prepared);
  assert.deepEqual(await objects.inputs('a'), { ...job, given: prepared });
  // A second leader that has prepared other inputs in the meantime uses those of the first.
  const late = { ...prepared, validationFrom: '2025-01-01T00:00:00.000Z' };
  assert.deepEqual(await objects.putPrepared('a', late), prepared);
  await objects.remove('a');
  assert.equal(await objects.inputs('a'), undefined);
});
