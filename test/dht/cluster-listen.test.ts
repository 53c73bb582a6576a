/** Nodes that talk to each other at addresses of their own, while the cluster changes its secret. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ListedNode } from '../../src/client/documents.js';
import { Signatures } from '../../src/dht/index.js';
import { Rendezvous } from '../../src/training/index.js';
import { tilewright } from '../support/command.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { freePort, get, isSettled, json, serve, until } from './server-processes.js';

test('nodes with addresses of their own and two secrets are one cluster', { skip: noEtcd }, async (t) => {
  const etcd = await EtcdCluster.start(t);
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const [old, next] = ['the secret of last year', 'the secret of this year'];
  const nodes = [];
  for (const secrets of [`${old},${next}`, `${next},${old}`]) {
    const ofNodes = `127.0.0.1:${await freePort()}`;
    const flags = ['--cluster-listen', ofNodes, '--secret', secrets];
    const server = serve(t, folder, await freePort(), etcd, flags);
    await until('it runs', async () => (await get(server, '/cluster/nodes')) !== undefined);
    nodes.push({ ...server, ofNodes });
  }
  const [a, b] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
  await until('every slot has two owners', () => isSettled(a));
  const listed = await get<{ nodes: ListedNode[] }>(b, '/cluster/nodes');
  assert.deepEqual(
    listed.nodes.map(({ url }) => url).sort(),
    nodes.map(({ ofNodes }) => `http://${ofNodes}`).sort(),
  );

  const scene = await writeTestScene(join(folder, 'scene.tif'));
  const ingest = ['ingest', scene, '--datetime', '2024-06-01', '--collection', 'c', '--server', a.url];
  const { scenes } = await json<{ scenes: { tiles: number }[] }>(...ingest);
  assert.ok(scenes[0]!.tiles > 0);
  await until('the other node finds the tiles', async () => {
    const found = await get<{ numberMatched: number }>(b, '/search?limit=1');
    return found.numberMatched === scenes[0]!.tiles;
  });
  // The leader of the job answers through the other node.
  const { jobs } = await get<{ jobs: { jobID: string }[] }>(a, '/jobs');
  for (const node of nodes) {
    const { status } = await get<{ status: string }>(node, `/jobs/${jobs[0]!.jobID}`);
    assert.equal(status, 'successful');
    await get(node, `/jobs/${jobs[0]!.jobID}/logs`);
  }

  // The connections of a distributed training; nobody waits for this one.
  const doors = new Rendezvous(new Signatures('a member', [next]));
  for (const { id: node, url } of listed.nodes)
    await assert.rejects(doors.connect({ node, url: url! }, 'door'), /it answered 404/);
  await assert.rejects(doors.connect({ node: listed.nodes[0]!.id, url: a.url }, 'door'), {
    code: 'TW_TRAIN_RING',
    message: /socket hang up|it answered 403/,
  });

  // A stranger, and a node that knows only a former secret.
  for (const { ofNodes } of nodes) assert.equal((await fetch(`http://${ofNodes}/search`)).status, 403);
  const place = ['--data', join(folder, 'late'), '--port', `${await freePort()}`, '--reserve', '0'];
  const shared = ['--etcd', etcd.urls.join(), '--store', `file://${join(folder, 'store')}`];
  const late = await tilewright('serve', ...place, ...shared, '--secret', 'the secret before those');
  assert.equal(late.code, 1, late.stderr);
  assert.match(late.stderr, /TW_DHT_REFUSED/);
});

test('wrong addresses and secrets are refused with a reason', async () => {
  for (const [flags, reason] of [
    [['--cluster-listen', '8081'], /must be a host and a port, such as/],
    [['--cluster-listen', '[::1]:70000', '--etcd', 'http://127.0.0.1:1'], /must be from 0 to 65535/],
    [['--cluster-listen', '127.0.0.1:8081'], /--cluster-listen needs --etcd/],
    [
      ['--cluster-listen', '0.0.0.0:8081', '--etcd', 'http://127.0.0.1:1', '--secret', 'x'.repeat(16)],
      /--cluster-listen 0.0.0.0:8081 needs --advertise/,
    ],
    [['--etcd', 'http://127.0.0.1:1', '--secret', `${'x'.repeat(16)},short`], /shorter than 16 characters/],
    [['--etcd', 'http://127.0.0.1:1', '--secret', 'a,b,c'], /more than two values/],
  ] as const) {
    const { code, stderr } = await tilewright('serve', '--store', 'file:///tmp/none', ...flags);
    assert.equal(code, 2, stderr);
    assert.match(stderr, reason);
  }
});
