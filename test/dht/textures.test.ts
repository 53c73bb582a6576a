/** Textures of the places of several nodes: those of one node, and the same clusters, wherever places lie. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TextureResults } from '../../src/training/index.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { PLANTED_FLAGS, writePlantedScene } from '../support/planted-scene.js';
import { tempFolder } from '../support/temp.js';
import { freePort, isSettled, json, serve, until } from './real-nodes.js';

test('three nodes find the clusters that one finds, and each computes what lies there', {
  skip: noEtcd,
}, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const alone = serve(t, folder, await freePort());
  const ports = [await freePort(), await freePort(), await freePort()];
  const nodes = ports.map((port) => serve(t, folder, port, etcd));
  for (const server of nodes) await until(`${server.url} settled`, () => isSettled(server));
  const path = await writePlantedScene(join(folder, 'scene.tif'));
  const flags = ['--datetime', '2024-06-01T10:00:00Z', ...PLANTED_FLAGS];
  for (const { url } of [alone, nodes[0]!]) await json('ingest', path, ...flags, '--server', url);

  const textures = ({ url }: { url: string }) => json<TextureResults>('texture', '--server', url);
  const expected = await textures(alone);
  const found = await textures(nodes[1]!);
  assert.deepEqual(found.collections, expected.collections);
  assert.equal(found.textures, expected.textures);
  // What one has made, all know.
  const again = await textures(nodes[2]!);
  assert.deepEqual([again.textures, again.unchanged], [0, expected.textures]);
  assert.deepEqual(again.collections, expected.collections);
});
