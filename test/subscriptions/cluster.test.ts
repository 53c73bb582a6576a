/** Two nodes and etcd: one node runs the rounds, the other one continues when it dies, and no round runs twice. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ended, freePort, get, isSettled, type Server, serve, until } from '../dht/server-processes.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { COLLECTION, remoteCatalog } from '../support/remote-catalog.js';
import { tempFolder } from '../support/temp.js';

interface Subscription {
  lastRound?: {
    job?: string;
    status: string;
    started: string;
    finished?: string;
    result?: { ingested: number };
  };
}

/** Only the node that runs the scheduler has this figure. */
const leads = async ({ url }: Server) =>
  /^tilewright_subscription_oldest_success_seconds /m.test(await (await fetch(`${url}/metrics`)).text());

test('another node runs the rounds when the leading one is killed, and no round runs twice', {
  skip: noEtcd,
}, async (t) => {
  const { api, server: archive, items } = await remoteCatalog(t, { ids: ['a', 'b'] });
  const late = items.pop()!;
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const flags = ['--allow-host', archive.host, '--grace', '4'];
  const nodes = [await freePort(), await freePort()].map((port) => serve(t, folder, port, etcd, flags));
  for (const node of nodes) await until(`${node.url} settled`, () => isSettled(node));

  const inputs = {
    stac: { url: api, collections: [COLLECTION], assets: ['red', 'scl'] },
    bbox: [15.03, 47.75, 15.12, 47.8],
    precision: 5,
  };
  const create = async ({ url }: Server, name: string) => {
    const { status } = await fetch(`${url}/subscriptions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, every: '1h', inputs }),
    });
    assert.equal(status, 201);
  };
  const read = (node: Server, name = 'berlin') => get<Subscription>(node, `/subscriptions/${name}`);
  await create(nodes[1]!, 'berlin');
  await until(
    'the first round has ended',
    async () => (await read(nodes[0]!)).lastRound?.finished !== undefined,
  );
  const first = await read(nodes[1]!);
  assert.deepEqual(first, {
    ...(await read(nodes[0]!)),
    links: (first as unknown as { links: unknown }).links,
  });
  assert.equal(first.lastRound?.result?.ingested, 1);
  await until('one node leads', async () => (await Promise.all(nodes.map(leads))).includes(true));
  const [leader, other] = (await leads(nodes[0]!)) ? [nodes[0]!, nodes[1]!] : [nodes[1]!, nodes[0]!];
  assert.equal(await leads(other), false);

  items.push({ ...late, properties: { ...(late.properties as object), datetime: new Date().toISOString() } });
  await ended(leader.process, 'SIGKILL');
  // Its first round is due at once, and no node leads until the lease of the dead one has expired.
  await create(other, 'vienna');
  await until(
    'its round has ended',
    async () => (await read(other, 'vienna')).lastRound?.finished !== undefined,
  );
  assert.ok(await leads(other));
  const second = await read(other, 'vienna');
  assert.equal(second.lastRound?.status, 'successful');
  assert.equal(second.lastRound?.result?.ingested, 1);
  const { jobs } = await get<{ jobs: { jobID: string }[] }>(other, '/jobs');
  assert.deepEqual(
    jobs.map(({ jobID }) => jobID).sort(),
    [first.lastRound?.job, second.lastRound?.job].sort(),
  );
});
