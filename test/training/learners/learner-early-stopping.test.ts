import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bestEpoch, hasStalled } from '../../../src/training/training-loop.js';

const lossesOf = (...selection: (number | undefined)[]) =>
  selection.map((loss, i) => ({
    ...{ epoch: i + 1, train: 1, validation: 1 },
    ...(loss !== undefined && { selection: loss }),
  }));

describe('bestEpoch', () => {
  it('is the epoch with the lowest selection loss, the earliest of equals', () => {
    assert.equal(bestEpoch(lossesOf(3, 1, 2, 1)), 2);
    assert.equal(bestEpoch(lossesOf(3, 2, 1)), 3);
    assert.equal(bestEpoch(lossesOf(1)), 1);
  });

  it('is 0 if no epoch is better than the start', () => {
    assert.equal(bestEpoch(lossesOf(3, 1, 2), 1), 0);
    assert.equal(bestEpoch(lossesOf(3, 0.9, 2), 1), 2);
    assert.equal(hasStalled(lossesOf(3, 3), 1, 2), true);
  });

  it('is the last epoch without selection patches', () => {
    assert.equal(bestEpoch(lossesOf(undefined, undefined)), 2);
  });
});

describe('hasStalled', () => {
  it('is true if the selection loss has not improved for that number of epochs', () => {
    assert.equal(hasStalled(lossesOf(3, 1, 2), 9, 2), false);
    assert.equal(hasStalled(lossesOf(3, 1, 2, 2), 9, 2), true);
    assert.equal(hasStalled(lossesOf(3, 1, 2, 0.5), 9, 2), false);
  });

  it('is false without a patience, and without selection patches', () => {
    assert.equal(hasStalled(lossesOf(1, 2, 3, 4)), false);
    assert.equal(hasStalled(lossesOf(undefined, undefined), undefined, 1), false);
    assert.equal(hasStalled([], 9, 1), false);
  });
});
