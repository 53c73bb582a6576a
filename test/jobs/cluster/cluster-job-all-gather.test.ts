import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { AllGather } from '../../../src/jobs/cluster/tasks.js';

test('a run continues with the values of all runs, repeatedly', async () => {
  const meetings = new AllGather();
  const { signal } = new AbortController();
  for (const words of [[1, 2], [3]]) {
    const met = meetings.wait<number>('run', signal);
    meetings.deliver('another', [9]);
    meetings.deliver('run', words);
    assert.deepEqual(await met, words);
  }
  meetings.deliver('run', [5]);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('a run that is cancelled before or during its wait stops waiting', {
  timeout: 10_000,
}, async () => {
  const meetings = new AllGather();
  const controller = new AbortController();
  const waiting = meetings.wait('run', controller.signal);
  const reason = new Error('enough');
  controller.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(meetings.wait('run', controller.signal), reason);
});
