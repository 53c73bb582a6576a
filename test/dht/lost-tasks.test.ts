/** A job that makes tiles on all nodes, while one of them dies. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { resultsOf, startJob } from '../jobs/servers.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { ended, freePort, get, isSettled, type Server, serve, until } from './server-processes.js';

interface Job {
  jobID: string;
  status: string;
  message?: string;
  tiles: { done: number };
}

const jobOf = (server: Server, id: string) => get<Job>(server, `/jobs/${id}`);

/** The ids of all tiles, as a node reports them. */
async function allTiles(server: Server): Promise<string[]> {
  const ids: string[] = [];
  for (let path = '/search?limit=1000'; path !== ''; ) {
    const page = await get<{
      partial?: boolean;
      features: { id: string }[];
      links: { rel: string; href: string }[];
    }>(server, path);
    assert.ok(!page.partial);
    ids.push(...page.features.map(({ id }) => id));
    path = page.links.find(({ rel }) => rel === 'next')?.href.slice(server.url.length) ?? '';
  }
  return ids.sort();
}

/** The server that works on a tile first. */
async function firstOwner(servers: Server[], id: string): Promise<Server> {
  const geocode = id.slice(id.lastIndexOf('_g') + 2);
  const { owners } = await get<{ owners: { node: string }[] }>(
    servers[0]!,
    `/cluster/locate/geohash/${geocode}`,
  );
  for (const server of servers)
    if ((await get<{ node: string }>(server, '/health')).node === owners[0]!.node) return server;
  throw new Error(`nobody owns ${geocode}`);
}

test('the tasks of a dead node are done by others, and all tiles are made once', {
  skip: noEtcd,
}, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const alone = await testNode(t, join(folder, 'alone'), { cores: 1 });
  const ports = [await freePort(), await freePort(), await freePort()];
  const [a, b, c] = ports.map((port) => serve(t, folder, port, etcd)) as [Server, Server, Server];
  for (const server of [a, b, c]) await until(`${server.url} settled`, () => isSettled(server));
  const path = await writeTestScene(join(folder, 'scene.tif'), { width: 260, height: 260 });
  const scene = { href: path, datetime: '2024-06-01T10:00:00Z', collection: 'c', precision: 6 };
  await resultsOf(a, await startJob(a, 'ingest', scene));
  await ingest(alone, scene);

  const victim = await firstOwner([a, b, c], (await allTiles(a))[0]!);
  const [asked, other] = [a, b, c].filter((server) => server !== victim) as [Server, Server];
  const job = await startJob(asked, 'split', { precision: 7 }, { prefer: 'respond-async' });
  let { status, tiles } = await jobOf(asked, job);
  for (; tiles.done === 0; { status, tiles } = await jobOf(asked, job)) {
    assert.ok(status === 'accepted' || status === 'running', 'it must not end before the node dies');
    await sleep(50);
  }
  await ended(victim.process, 'SIGKILL');
  await resultsOf(asked, job);

  await runJob(alone, 'split', { precision: 7 });
  const expected = (await tilesOf(alone)).map(({ id }) => id).sort();
  assert.ok(expected.length > 300);
  for (const server of [asked, other]) assert.deepEqual(await allTiles(server), expected);
});
