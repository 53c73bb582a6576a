/** How the cells of a scene are divided among the nodes of a cluster. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { geohash } from '../../src/grid/index.js';
import { makeOnOwners, type SceneTask } from '../../src/ingest/owners.js';
import type { ScenePlan } from '../../src/ingest/plan.js';
import { ScenePartClient, type ScenePartCluster } from '../../src/ingest/scene-parts.js';

const SLOTS = 16_384;

/** A cluster of the nodes a and b; b owns all slots. */
function clientOf(): ScenePartClient {
  const slots = Array.from({ length: SLOTS }, () => [{ node: 'b', state: 'available' }]);
  const nodes = ['a', 'b'].map((id) => ({ id, weight: 1 }));
  const cluster = {
    self: 'a',
    nodes,
    placement: { nodes, slots },
    prefixLengths: { geohash: 4, quadtile: 9 },
  };
  const job = { id: 'job000', log: () => undefined };
  return new ScenePartClient({ cluster, peers: {} } as unknown as ScenePartCluster, job, {});
}

test('a scene of very many cells in one slot is divided, and read by this node if the owner fails', async () => {
  const cells: string[] = [];
  const visit = (code: string) => {
    if (code.length === 8) cells.push(code);
    else for (const child of geohash.children(code)) visit(child);
  };
  for (const code of ['u26x0', 'u26x1', 'u26x2', 'u26x3', 'u26x4']) visit(code);
  const plan = { grid: geohash } as unknown as ScenePlan;
  const owners = clientOf().ownersFor({ source: {}, name: 'a', blocksOf: () => new Map([['0', 1]]) });
  const shares = owners.divide(plan, cells);
  assert.deepEqual([shares.own, [...shares.others]], [[], [['b', cells]]]);

  let read: string[] = [];
  const remote = {
    ...{ digest: undefined, plan: () => ({ requests: 0, bytes: 0 }) },
    owners: { ...owners, make: async () => undefined },
    fetch: async (_: ScenePlan, wanted: string[]): Promise<never> => {
      read = wanted;
      throw new Error('read');
    },
  };
  const made = makeOnOwners({} as never, { plan } as SceneTask, remote, shares, {});
  await assert.rejects(made, { message: 'read' });
  assert.deepEqual(read, cells);
});
