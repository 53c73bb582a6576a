import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SceneShares } from '../../src/ingest/job/scene-shares.js';

test('scenes weigh by their cells, and those without a known number as the mean', () => {
  const shares = new SceneShares();
  assert.equal(shares.overall(0), 0);
  assert.equal(shares.overall(2), 0);
  const [small, large] = [shares.add(), shares.add()];
  shares.setShare(small, 1);
  assert.equal(shares.overall(0), 0.5);
  shares.setCells(small, 10);
  shares.setCells(large, 90);
  assert.equal(shares.overall(0), 0.1);
  assert.equal(shares.overall(1), 10 / 150);
  shares.add();
  assert.equal(shares.overall(0), 10 / 150);
  shares.setShare(large, 1);
  assert.equal(shares.overall(0), 100 / 150);
});
