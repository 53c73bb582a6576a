/** The sizes of slots that a replica reports, compared with a sum over all records. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { toArray } from '../../../src/async/index.js';
import { rebalance, targetFractions } from '../../../src/dht/index.js';
import { ClusterLockManager } from '../../../src/dht/log/locks.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import { emptyPlacement } from '../../../src/dht/placement.js';
import { addNode, diffPlacements } from '../../../src/dht/placement-changes.js';
import { Replica } from '../../../src/dht/replica.js';
import { DEFAULT_PREFIX_LENGTHS as prefixLengths, SLOTS, slotOf } from '../../../src/dht/slots.js';
import { Storage } from '../../../src/storage/index.js';
import { COLLECTION, cellsOf, writeDerived, writeScene } from '../../storage/sample-scenes.js';
import { sharedStores } from '../shared-stores.js';
import { node, skewedBytes } from './placements.js';

async function naive(storage: Storage): Promise<number[]> {
  const sums = new Array<number>(SLOTS).fill(0);
  for (const { grid, geocode, groups } of await toArray(storage.catalogue.tiles.values()))
    for (const { bytes } of groups) sums[slotOf(grid, geocode, prefixLengths[grid])]! += bytes;
  return sums;
}

test('the sizes of slots follow scenes that are added, replaced and deleted, and slots that are loaded and dropped', async (t) => {
  const { folder, objects, coordination, stops } = await sharedStores(t);
  const dir = join(folder, 'a');
  const storage = await Storage.open(dir, { reserve: 0 });
  const log = new CommitLog(coordination);
  const replica = await Replica.open({ storage, objects, log, cluster: 'c', prefixLengths });
  storage.enterCluster(
    new ClusterLockManager({ storage, coordination, log, objects, replica, prefixLengths, ownerLabel: 'a' }),
    objects,
  );
  replica.start();
  stops.push(async () => {
    await replica.close();
    await storage.close();
  });
  const slots = [...new Set([1, 2, 3, 4].flatMap(cellsOf).map((cell) => slotOf('geohash', cell, 4)))];
  await replica.loadSlots(slots);
  await writeScene(storage, 'scene-0', 1);
  const same = async () => assert.deepEqual(Array.from(await replica.bytesBySlot()), await naive(storage));
  await Promise.all([writeScene(storage, 's1', 2), writeScene(storage, 's2', 3)]);
  await same();
  assert.ok((await naive(storage)).some((bytes) => bytes > 0));
  for (const work of [
    () => writeScene(storage, 's1', 4),
    () => writeScene(storage, 's1', 7),
    () => writeDerived(storage, 1),
    () => writeDerived(storage, 4),
    () => replica.dropSlots(slots.slice(0, 2)),
    () => writeScene(storage, 's2', 5),
    () => storage.collections.deleteScene(COLLECTION.id, 's1'),
    () => replica.loadSlots(slots),
    () => storage.collections.delete(COLLECTION.id),
  ]) {
    await work();
    await same();
  }
  assert.equal(
    (await naive(storage)).reduce((a, b) => a + b, 0),
    0,
  );
});

test('a rebalance moves only the bytes that its result requires', () => {
  fc.assert(
    fc.property(
      fc.nat(1000),
      fc.integer({ min: 1, max: 3 }),
      fc.array(fc.constantFrom(1, 2, 4), { minLength: 2, maxLength: 8 }),
      (seed, owners, weights) => {
        const bytes = skewedBytes(seed);
        const before = weights.reduce(
          (placement, weight, i) => addNode(placement, node(`n${i}`, { weight })),
          emptyPlacement(prefixLengths, owners),
        );
        const moves = diffPlacements(before, rebalance(before, bytes), bytes);
        // No node receives bytes that it also gives away, so the number of moved bytes is minimal.
        assert.ok(moves.moved.bytes <= 1.001 * moves.least, `${moves.moved.bytes} for ${moves.least}`);
        assert.ok(moves.deviation.after < Math.max(1, moves.deviation.before));
        const shares = [...targetFractions(before).values()];
        assert.ok(Math.abs(shares.reduce((a, b) => a + b, 0) - 1) < 1e-6);
        const total = moves.nodes.reduce((sum, { after }) => sum + after.bytes, 0);
        for (const { after, share } of moves.nodes) assert.ok(Math.abs(after.bytes / total - share) < 0.01);
        for (const { before, after, takes, gives } of moves.nodes)
          assert.equal(before.bytes + takes.bytes - gives.bytes, after.bytes);
      },
    ),
    { seed: 42, numRuns: 6 },
  );
});
