/** Three servers, etcd and a shared folder, started as an operator starts them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { resultsOf, startJob } from '../jobs/servers.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { freePort, get, isSettled, type Server, serve, until } from './server-processes.js';

interface Page {
  numberMatched: number;
  partial?: boolean;
  features: { id: string; assets: Record<string, { href: string }> }[];
}

/** All items that a node finds, in small pages. */
async function walk(server: Server): Promise<{ ids: string[]; partial: boolean; hrefs: string[] }> {
  const ids: string[] = [];
  const hrefs: string[] = [];
  let partial = false;
  for (let path = '/search?limit=15'; path !== ''; ) {
    const page = await get<Page & { links: { rel: string; href: string }[] }>(server, path);
    partial ||= page.partial === true;
    ids.push(...page.features.map(({ id }) => id));
    hrefs.push(...page.features.map(({ assets }) => assets['10m']!.href));
    const next = page.links.find(({ rel }) => rel === 'next');
    path = next ? next.href.slice(server.url.length) : '';
  }
  return { ids, partial, hrefs };
}

async function ingest(server: Server, path: string, datetime: string): Promise<number> {
  const scene = { href: path, datetime, collection: 'made-up', precision: 6 };
  return (await resultsOf<{ tiles: number }>(server, await startJob(server, 'ingest', scene))).tiles;
}

const count = async (server: Server) => (await get<Page>(server, '/search?limit=1')).numberMatched;

const cellOf = (id: string) => id.slice(id.lastIndexOf('_g') + 2);

/** The server that does not own a cell; two of the three own it. */
async function foreignTo(servers: Server[], geocode: string): Promise<Server> {
  const { owners } = await get<{ owners: { node: string }[] }>(
    servers[0]!,
    `/cluster/locate/geohash/${geocode}`,
  );
  for (const server of servers) {
    const { node } = await get<{ node: string }>(server, '/health');
    if (!owners.some((owner) => owner.node === node)) return server;
  }
  throw new Error(`all nodes own ${geocode}`);
}

const remove = ({ url }: Server, path: string) => fetch(url + path, { method: 'DELETE' });

/** A read that sees the effect of the request with this answer. */
const at = ({ headers }: Response) => ({
  headers: { 'tilewright-seq': headers.get('tilewright-seq')! },
});

test('any node accepts scenes and answers for all, but no unsigned message; answers stay complete when one node dies', {
  skip: noEtcd,
}, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const ports = [await freePort(), await freePort(), await freePort()];
  const servers = ports.map((port) => serve(t, folder, port, etcd));
  const [a, b, c] = servers as [Server, Server, Server];
  for (const server of servers) await until(`${server.url} settled`, () => isSettled(server));

  for (const { url } of servers) {
    assert.equal((await fetch(`${url}/ready`)).status, 200);
    assert.match(await (await fetch(`${url}/metrics`)).text(), /^tilewright_members 3$/m);
  }

  let tiles = 0;
  for (const [i, server] of servers.entries()) {
    const path = await writeTestScene(join(folder, `scene-${i}.tif`), { seed: i + 1, x: 500_000 + 3000 * i });
    tiles += await ingest(server, path, `2024-06-0${i + 1}T10:00:00Z`);
  }
  const first = await walk(a);
  assert.equal(first.ids.length, tiles);
  for (const server of servers) {
    await until('all commits applied', async () => (await count(server)) === tiles);
    const { ids, partial, hrefs } = await walk(server);
    assert.deepEqual(ids, first.ids);
    assert.equal(partial, false);
    const file = await (await fetch(hrefs[0]!)).arrayBuffer();
    assert.deepEqual(file, await (await fetch(first.hrefs[0]!)).arrayBuffer());
  }

  b.process.kill('SIGKILL');
  await until('the others answer completely', async () => {
    const found = await Promise.all([walk(a), walk(c)]);
    return found.every(({ ids, partial }) => ids.join() === first.ids.join() && !partial);
  });
  const path = await writeTestScene(join(folder, 'late.tif'), { seed: 9 });
  tiles += await ingest(c, path, '2024-06-09T10:00:00Z');
  assert.equal((await walk(c)).ids.length, tiles);

  const again = serve(t, folder, ports[1]!, etcd);
  await until('the node is running again', async () => (await count(again)) === tiles);
  assert.deepEqual((await walk(again)).ids, (await walk(a)).ids);

  const geocode = cellOf(first.ids[0]!);
  await resultsOf(c, await startJob(c, 'split', { filter: { geocode }, precision: 7 }));
  // The first node has given slots away, and keeps them for a while.
  const held = async ({ url }: Server) =>
    ((await (await fetch(`${url}/health`)).json()) as { tiles: number }).tiles;
  await until('only owners have tiles', async () => {
    // Nothing changes for about a minute.
    await sleep(2000);
    const counts = await Promise.all([a, again, c].map(held));
    return counts.reduce((sum, tiles) => sum + tiles, 0) === 2 * (await count(a));
  });
  const path1 = `/collections/made-up/items/${first.ids[1]}`;
  const removed = await remove(await foreignTo([a, again, c], cellOf(first.ids[1]!)), path1);
  assert.equal(removed.status, 204);
  for (const { url } of [a, again, c]) assert.equal((await fetch(url + path1, at(removed))).status, 404);
  const answer = await remove(await foreignTo([a, again, c], geocode), '/collections/made-up');
  assert.equal(answer.status, 204);
  for (const { url } of [a, again, c]) {
    const left = (await (await fetch(`${url}/search`, at(answer))).json()) as Page;
    assert.equal(left.numberMatched, 0);
  }

  const unsigned = await fetch(`${c.url}/cluster/internal/ask`, {
    method: 'POST',
    headers: { 'content-type': 'application/vnd.tilewright.node+json' },
    body: '{}',
  });
  assert.equal(unsigned.status, 401);
  assert.equal(((await unsigned.json()) as { code: string }).code, 'TW_DHT_FOREIGN_NODE');

  for (const server of [a, again, c]) {
    const closed = once(server.process, 'close');
    server.process.kill('SIGTERM');
    const [exit] = (await closed) as [number | null];
    assert.equal(exit, 0, server.url);
  }
});
