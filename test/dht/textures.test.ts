/** Textures of the cells of several nodes: the same textures and clusters as on a single node, wherever the cells are. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { toArray } from '../../src/async/index.js';
import { geohash } from '../../src/grid/index.js';
import { Storage } from '../../src/storage/index.js';
import type { TextureResults } from '../../src/training/index.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import {
  PLANTED,
  PLANTED_FLAGS,
  PLANTED_PRECISION,
  PLANTED_STEP,
  plantedIn,
  writePlantedScene,
} from '../support/planted-scene.js';
import { tempFolder } from '../support/temp.js';
import { ended, freePort, get, isSettled, json, type Server, serve, until } from './server-processes.js';

async function ownerOf(server: Server, geocode: string): Promise<string> {
  const { owners } = await get<{ owners: { node: string }[] }>(server, `/cluster/locate/geohash/${geocode}`);
  return owners[0]!.node;
}

/** A scene in a cell of each node: complete cells, and west of them cells with too few pixels for a texture. */
async function writeScenes(folder: string, nodes: Server[]): Promise<string[]> {
  const scenes = new Map<string, string>();
  for (let x = 10; scenes.size < nodes.length; x += 0.6) {
    const cell = geohash.encode(x, 50, PLANTED_PRECISION);
    const owner = await ownerOf(nodes[0]!, cell);
    if (scenes.has(owner)) continue;
    const { west, north } = geohash.bounds(cell);
    const path = join(folder, `scene-${scenes.size}.tif`);
    const origin = { x: west - 5 * PLANTED_STEP, y: north };
    scenes.set(owner, await writePlantedScene(path, { width: 340, height: 170, origin }));
  }
  return [...scenes.values()];
}

test('three nodes find the same clusters as one, and each computes its own cells', {
  skip: noEtcd,
}, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const ports = [await freePort(), await freePort(), await freePort(), await freePort()];
  const [alone, ...nodes] = ports.map((port, i) => serve(t, folder, port, i > 0 ? etcd : undefined)) as [
    Server,
    ...Server[],
  ];
  for (const server of nodes) await until(`${server.url} settled`, () => isSettled(server));
  const paths = await writeScenes(folder, nodes);
  const flags = ['--datetime', '2024-06-01T10:00:00Z', ...PLANTED_FLAGS];
  for (const { url } of [alone, nodes[0]!]) await json('ingest', ...paths, ...flags, '--server', url);

  const textures = ({ url }: Server) =>
    json<TextureResults & { job: string; seconds: number; warnings: string[] }>('texture', '--server', url);
  const expected = await textures(alone);
  const found = await textures(nodes[1]!);
  const { seconds: _, job, warnings, ...work } = found;
  assert.deepEqual({ ...expected, ...work }, expected);
  const skippedOf = (lines: string[]) =>
    lines.flatMap((line) => /skipped (\S+) of planted/.exec(line)?.[1] ?? []).sort();
  assert.deepEqual(skippedOf(warnings), skippedOf(expected.warnings));
  const [{ places, clusters }] = expected.collections as [TextureResults['collections'][number]];
  assert.equal(places, expected.textures);
  const planted = clusters.map(({ places }) => new Set(places.map(plantedIn)));
  assert.ok(planted.every(({ size }) => size === 1));
  assert.equal(new Set(planted.flatMap((textures) => [...textures])).size, PLANTED.length);
  const all = clusters.flatMap(({ places }) => places);
  const owners = new Set(await Promise.all(all.map((place) => ownerOf(nodes[2]!, place))));
  assert.equal(owners.size, nodes.length);

  // Each node reports which of its cells it has skipped.
  const log = await get<{ lines: { text: string }[] }>(nodes[1]!, `/jobs/${job}/logs`);
  const workers = new Set<string>();
  for (const { text } of log.lines) {
    const [, node, place] = /^node (\S+): skipped (\S+) of planted: fewer than/.exec(text) ?? [];
    if (!place) continue;
    assert.equal(node, await ownerOf(nodes[2]!, place), text);
    workers.add(node!);
  }
  assert.deepEqual(workers, owners);

  // All nodes know the result of one.
  const again = await textures(nodes[2]!);
  assert.deepEqual([again.textures, again.unchanged], [0, expected.textures]);
  assert.deepEqual(again.collections, expected.collections);
  const known = await Promise.all(
    [alone, ...nodes].map(async ({ process }, i) => {
      await ended(process, 'SIGTERM');
      const storage = await Storage.open(join(folder, `node-${ports[i]}`));
      const { createdAt: _, ...clustering } = (await storage.textures.getClustering('planted'))!;
      const values = (await toArray(storage.textures.list('planted'))).map(({ geocode, values }) => [
        geocode,
        values,
      ]);
      await storage.close();
      return { clustering, values };
    }),
  );
  for (const one of known) assert.deepEqual(one, known[0]);
});
