import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SceneShares } from '../../src/ingest/job.js';

test('scenes are weighted by their cells, and those without a known number by the mean', () => {
  const shares = new SceneShares();
  assert.equal(shares.overall(0), 0);
  assert.equal(shares.overall(2), 0);
  const [small, large] = [shares.add(), shares.add()];
  shares.setCells(small, 10);
  shares.setCells(large, 90);
  shares.setShare(small, 1);
  assert.equal(shares.overall(1), 10 / 150);
  assert.equal(shares.overall(0), 0.1);
  shares.setShare(large, 1);
  shares.add();
  assert.equal(shares.overall(0), 100 / 150);
  shares.setShare(2, 0.5);
  assert.equal(shares.overall(0), 125 / 150);
});

/** So many scenes that a step that looks at all of them would take minutes in all. */
const MANY_SCENES = 20_000;

test('progress never decreases, and ends at exactly 1', () => {
  const shares = new SceneShares();
  const places = Array.from({ length: MANY_SCENES }, () => shares.add());
  let before = 0;
  for (const place of places) {
    shares.setCells(place, 1 + (place % 700));
    for (const share of [0.1, 0.7, 0.3, 1]) {
      shares.setShare(place, share);
      const now = shares.overall(0);
      assert.ok(now >= before && now <= 1, `${now} after ${before}`);
      before = now;
    }
  }
  assert.equal(before, 1);
});

test('cells of scenes in progress count by the share of their scene', () => {
  const shares = new SceneShares();
  const [a, b] = [shares.add(), shares.add()];
  shares.setCells(a, 80);
  shares.setShare(a, 0.79);
  assert.equal(shares.cellsDone, 63);
  shares.setCells(b, 20);
  shares.setShare(b, 0.5);
  assert.equal(shares.cellsDone, 73);
  shares.setShare(a, 1);
  shares.setShare(b, 1);
  assert.equal(shares.cellsDone, 100);
});
