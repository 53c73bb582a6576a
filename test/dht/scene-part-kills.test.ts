/** Nodes that are killed while they read parts of a remote scene. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { remoteCatalog } from '../support/remote-catalog.js';
import { tempFolder } from '../support/temp.js';
import {
  ended,
  filesOfScenes,
  freePort,
  get,
  isSettled,
  type Server,
  serve,
  until,
} from './server-processes.js';

/** 20 x 13 cells of the region, all of which are in the scenes. */
const CELLS = 260;

test('a scene becomes visible as a whole if an owner or the leader is killed', {
  skip: noEtcd,
}, async (t) => {
  const { api, server: archive, items } = await remoteCatalog(t, { ids: ['a', 'b'], pixel: 50 });
  const later = items.pop()!;
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const flags = ['--allow-host', archive.host, '--grace', '60'];
  const ports = [await freePort(), await freePort(), await freePort()];
  const [leader, owner, other] = ports.map((port) => serve(t, folder, port, etcd, flags)) as [
    Server,
    Server,
    Server,
  ];
  for (const node of [leader, owner, other]) await until(`${node.url} settled`, () => isSettled(node));

  // Pixels take long, so that the nodes are killed while they read.
  let pixelRequests = 0;
  archive.fault = async ({ url, headers }) => {
    if (!url!.endsWith('.tif') || headers.range?.startsWith('bytes=0-')) return false;
    pixelRequests++;
    await sleep(2000);
    return false;
  };
  const start = async () => {
    pixelRequests = 0;
    const answer = await fetch(`${leader.url}/ingest`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ stac: { url: api }, bbox: [15.02, 47.3, 15.85, 47.82], precision: 5 }),
    });
    assert.equal(answer.status, 201);
    return ((await answer.json()) as { jobID: string }).jobID;
  };
  const counts = new Set<number>();
  const tilesOn = async (day: string) => {
    const { numberMatched } = await get<{ numberMatched: number }>(
      other,
      `/search?datetime=${day}T10:00:00Z&limit=1`,
    );
    counts.add(numberMatched);
    return numberMatched;
  };
  const endOf = async (id: string, day: string) => {
    let status = '';
    await until('the job has ended', async () => {
      await tilesOn(day);
      ({ status } = await get<{ status: string }>(other, `/jobs/${id}`));
      return status === 'successful' || status === 'failed';
    });
    assert.equal(status, 'successful');
    assert.equal(await tilesOn(day), CELLS);
  };

  const first = await start();
  await until('the nodes read', async () => pixelRequests >= 6);
  await ended(owner.process, 'SIGKILL');
  await endOf(first, '2024-06-01');
  const { lines } = await get<{ lines: { text: string }[] }>(leader, `/jobs/${first}/logs`);
  assert.ok(
    lines.some(({ text }) => /node \S+ cannot read its \d+ cells, so this node reads them/.test(text)),
  );

  items.push(later);
  const second = await start();
  await until('the nodes read', async () => pixelRequests >= 4);
  await ended(leader.process, 'SIGKILL');
  const again = serve(t, folder, ports[0]!, etcd, flags);
  await until('the leader is back', () => isReachable(again));
  await endOf(second, '2024-06-02');

  assert.deepEqual([...counts].sort(), [0, CELLS]);
  for (const port of [ports[0]!, ports[2]!])
    assert.deepEqual(await filesOfScenes(join(folder, `node-${port}`)), []);
});

const isReachable = async ({ url }: Server) => (await fetch(`${url}/health`)).ok;
