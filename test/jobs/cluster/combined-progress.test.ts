import assert from 'node:assert/strict';
import { test } from 'node:test';
import { combinedProgress } from '../../../src/jobs/cluster/tasks.js';

test('the combined progress of runs is weighted by the work that they do not skip', () => {
  assert.deepEqual(combinedProgress([{ total: 3, done: 1 }, { total: 2 }]), {}, 'counts tell it themselves');
  assert.deepEqual(combinedProgress([{ share: 0.5 }]), {}, 'nothing is known of the work yet');
  assert.deepEqual(combinedProgress([{ total: 20, skipped: 16, share: 0.25 }]), { share: 0.25 });
  const others = { total: 10, skipped: 4, done: 2, failed: 1 };
  assert.deepEqual(combinedProgress([{ total: 2, share: 0.5 }, others]), { share: (1 + 3) / 8 });
  assert.deepEqual(combinedProgress([{ total: 4, skipped: 4, share: 0 }]), {}, 'there is nothing to do');
});
