import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trainingTable } from '../../src/cli/training-table.js';
import type { TrainResults } from '../../src/training/index.js';

const model = (collection: string, geocode: string, mse: number) =>
  ({
    ...{ collection, geocode, model: 'ndvi', seconds: 1.25 },
    metrics: { validation: { mse, r2: 1 - mse } },
    baseline: { linear: { mse: 0.15 }, mean: { mse: 0.2 } },
  }) as unknown as TrainResults['models'][number];

test('models that are worse than the mean are marked, and collections are named if there are several', () => {
  assert.deepEqual(trainingTable([], false), []);
  const good = trainingTable([model('a', 'u26xy', 0.1)], false).join('\n');
  assert.doesNotMatch(good, /\*|collection/);
  assert.match(good, /place +MSE +R2.*seconds\nu26xy +1\.00e-1 +0\.900/);
  const both = trainingTable([model('a', 'u26xy', 0.1), model('b', 'u26xy', 0.3)], true).join('\n');
  assert.match(both, /^collection +place +model/);
  assert.match(both, /a +u26xy +ndvi +1\.00e-1 +0/);
  assert.match(both, /b +u26xy +ndvi +3\.00e-1 \*.*\n\* worse than the mean of the training/);
});
