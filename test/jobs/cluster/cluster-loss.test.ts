/** Jobs of a cluster whose nodes die: three servers, etcd and a shared folder. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkDuration } from '../../support/duration.js';
import { noEtcd } from '../../support/etcd.js';
import {
  ended,
  get,
  isSettled,
  type Job,
  kill,
  type Models,
  nodeId,
  OPTIONS,
  resultsOf,
  type Server,
  Servers,
  startJob,
  until,
  writeScenes,
} from '../servers.js';

const idsOf = (items: { id: string }[]) => items.map(({ id }) => id).sort();

test('jobs survive the death of nodes', { skip: noEtcd }, async (t) => {
  const servers = await Servers.start(t);
  const [a, b, c] = servers.three;
  const nodes = await Promise.all([a, b, c].map(nodeId));
  for (const scenes of await writeScenes(servers.folder))
    await resultsOf(a, await startJob(a, 'ingest', { ...scenes, ...OPTIONS }));
  const training = { model: 'ndvi', mode: 'partitioned', epochs: 2, seed: 5 };
  const wanted = idsOf((await resultsOf<Models>(b, await startJob(a, 'train', training))).models);
  assert.ok(wanted.length >= 3);

  /** Long enough to be interrupted. */
  const long = { ...training, epochs: 25 };
  const isUnderWay = async (server: Server, id: string) => {
    const { status, tiles } = await get<Job>(server, `/jobs/${id}`);
    assert.ok(['accepted', 'running'].includes(status), `${id} is ${status}`);
    return tiles.total > 0;
  };

  const statusOf = (server: Server, id: string) =>
    get<{ started: string; finished: string }>(server, `/jobs/${id}`);

  await t.test('a job finishes although a node is killed during its work', async () => {
    const id = await startJob(a, 'train', long);
    await until('the job is running', () => isUnderWay(a, id));
    const { started } = await statusOf(a, id);
    await kill(c.process);
    const results = await resultsOf<Models & { seconds: number }>(b, id);
    assert.deepEqual(idsOf(results.models), wanted);
    const { lines } = await get<{ lines: { text: string }[] }>(b, `/jobs/${id}/logs`);
    assert.ok(
      lines.some(({ text }) => text.includes(`node ${nodes[2]}:`) && text.includes('given to other nodes')),
    );
    checkDuration(await statusOf(b, id), results, started);
  });

  await t.test('another node takes over the jobs of a killed node', async () => {
    const again = servers.serve(c.port);
    await until('the node is running again', () => isSettled(again));
    const id = await startJob(b, 'train', { ...long, seed: 6 });
    await until('the job is running', () => isUnderWay(a, id));
    const { started } = await statusOf(a, id);
    await kill(b.process);
    const results = await resultsOf<Models & { seconds: number }>(again, id);
    assert.deepEqual(idsOf(results.models), wanted);
    const { lines } = await get<{ lines: { text: string }[] }>(a, `/jobs/${id}/logs`);
    assert.ok(lines.some(({ text }) => text.includes('because') && text.includes(nodes[1]!)));
    const back = servers.serve(b.port);
    await until('it is running again', () => isSettled(back));
    assert.equal((await ended(back, id)).status, 'successful');
    checkDuration(await statusOf(back, id), results, started);
  });
});
