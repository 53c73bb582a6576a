/** Nodes that serve over real etcd while commits arrive continuously. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { openNode, type TilewrightNode } from '../../../src/node.js';
import { COLLECTION, cellsOf, writeScene } from '../../storage/sample-scenes.js';
import { atEnd } from '../../support/at-end.js';
import { EtcdCluster, noEtcd } from '../../support/etcd.js';
import { tempFolder } from '../../support/temp.js';

const TIMEOUT_MS = 60_000;
const READS = 30;
const COMMITS = 12;

interface Served {
  node: TilewrightNode;
  url: string;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' ? address!.port : 0;
}

/** Nodes of which each slot has one owner, so that most searches need all of them. */
async function openNodes(t: TestContext, count: number): Promise<Served[]> {
  const nodes: Served[] = [];
  // Registered before the resources that it needs, so that it runs after them.
  atEnd(t, async () => {
    for (const { node } of nodes) await node.close();
  });
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  for (let i = 0; i < count; i++) {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const place = { store: pathToFileURL(join(folder, 'store')).href, etcd: etcd.urls, name: 'as-of' };
    const cluster = { ...place, advertise: url, zone: `${i}`, weight: 1, owners: 1, secrets: ['shared'] };
    const node = await openNode({ data: join(folder, `${i}`), memory: 1e8, cores: 1, reserve: 0, cluster });
    nodes.push({ node, url });
    await node.listen('127.0.0.1', port);
  }
  for (const startedAt = performance.now(); !(await areSettled(nodes)); await sleep(100))
    assert.ok(performance.now() - startedAt < TIMEOUT_MS, 'each node owns its share');
  return nodes;
}

async function areSettled(nodes: Served[]): Promise<boolean> {
  const placements = await Promise.all(
    nodes.map(async ({ url }) => {
      const answer = await fetch(`${url}/cluster/placement`);
      return (await answer.json()) as { slots: { node: string; state: string }[][] };
    }),
  );
  return placements.every(({ slots }) => {
    const owners = new Set(slots.flat().map(({ node }) => node));
    return slots.every(([one]) => one?.state === 'available') && owners.size === nodes.length;
  });
}

interface Page {
  partial?: boolean;
  numberMatched: number;
  features: { id: string; properties: { datetime: string } }[];
}

interface Counts {
  partial?: boolean;
  aggregations: [{ value: number }];
}

/** Every scene of a page has all tiles of one delivery and no others. */
function assertWhole({ numberMatched, features }: Page): void {
  assert.equal(numberMatched, features.length);
  const found = new Map<string, string[]>();
  for (const { id, properties } of features) {
    const [, scene, cell] = /_(scene-\d+)_g(\w+)$/.exec(id)!;
    const delivery = `${scene} of ${properties.datetime}`;
    found.set(delivery, [...(found.get(delivery) ?? []), cell!]);
  }
  const scenes = [...found.keys()].map((delivery) => delivery.split(' ')[0]);
  assert.equal(new Set(scenes).size, scenes.length, `two deliveries of a scene: ${[...found.keys()]}`);
  for (const [delivery, cells] of found) assert.deepEqual(cells.sort(), cellsOf(DELIVERY).sort(), delivery);
}

/** The number of a delivery that has all cells, as every 256th after it has. */
const DELIVERY = 228;

test('every node shows a scene completely or not at all, while scenes are added, replaced and deleted', {
  skip: noEtcd,
}, async (t) => {
  const nodes = await openNodes(t, 3);
  const [writer, ...readers] = nodes as [Served, ...Served[]];
  await writeScene(writer.node.storage, 'scene-0', DELIVERY);
  let isOver = false;
  let commits = 0;
  const write = async () => {
    const { storage } = writer.node;
    for (let k = 1; !isOver; k++) {
      await writeScene(storage, `scene-${k % 4}`, DELIVERY + 256 * k);
      if (k % 5 === 0) await storage.collections.deleteScene(COLLECTION.id, `scene-${k % 4}`);
      commits++;
    }
  };
  const seen = new Set<string>();
  const read = async ({ url }: Served) => {
    for (let i = 0; i < READS || commits < COMMITS; ) {
      const answer = await fetch(`${url}/search?limit=1000`);
      assert.equal(answer.status, 200);
      const page = (await answer.json()) as Page;
      // On a machine that is busy with other work, nodes may wait for each other for too long.
      if (page.partial) continue;
      assertWhole(page);
      for (const { properties } of page.features) seen.add(properties.datetime);
      const counted = await fetch(`${url}/aggregate?aggregations=total_count`);
      const { aggregations, partial } = (await counted.json()) as Counts;
      assert.ok(partial || aggregations[0].value % cellsOf(DELIVERY).length === 0);
      i++;
      // All nodes are in one process.
      await sleep(100);
    }
  };
  const writing = write();
  try {
    await Promise.all(readers.map(read));
  } finally {
    isOver = true;
    await writing;
  }
  assert.ok(seen.size > 2, `${seen.size} deliveries were seen, of ${commits} commits`);
});

test('a client that writes through one node reads its write through another with the number of the commit', {
  skip: noEtcd,
}, async (t) => {
  const [a, b] = (await openNodes(t, 2)) as [Served, Served];
  const scenes = Array.from({ length: 8 }, (_, i) => `scene-${i}`);
  for (const scene of scenes) await writeScene(a.node.storage, scene, DELIVERY);
  const cells = cellsOf(DELIVERY);
  for (const [i, scene] of scenes.entries()) {
    const path = `/collections/${COLLECTION.id}/scenes/${scene}`;
    const gone = await fetch(a.url + path, { method: 'DELETE' });
    assert.equal(gone.status, 204);
    const seq = gone.headers.get('tilewright-seq')!;
    const answer = await fetch(`${b.url}/search`, { headers: { 'tilewright-seq': seq } });
    const { numberMatched } = (await answer.json()) as Page;
    assert.equal(numberMatched, cells.length * (scenes.length - i - 1));
    assert.ok(Number(answer.headers.get('tilewright-seq')) >= Number(seq));
  }

  const never = await fetch(`${b.url}/search`, { headers: { 'tilewright-seq': '1000000' } });
  assert.equal(never.status, 503);
  assert.equal(never.headers.get('retry-after'), '1');
  assert.equal(((await never.json()) as { code: string }).code, 'TW_API_NOT_APPLIED');
  const wrong = await fetch(`${b.url}/search`, { headers: { 'tilewright-seq': 'now' } });
  assert.equal(wrong.status, 400);
});
