/** Drains, their undoing, rebalances and statistics, on two real servers with one owner for each slot. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ListedNode, RebalanceDocument } from '../../src/client/documents.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { parsePrometheus } from '../support/prometheus.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { ended, freePort, get, json, type Server, serve, until } from './server-processes.js';

/** The nodes as a server lists them, without the offsets of clocks, which each server measures by itself. */
async function nodesOf(server: Server) {
  const { nodes } = await get<{ nodes: ListedNode[] }>(server, '/cluster/nodes');
  return nodes.map(({ clockOffset: _, ...node }) => node);
}

async function metrics({ url }: Server) {
  return parsePrometheus(await (await fetch(`${url}/metrics`)).text());
}

test('nodes hold bytes in proportion to their weights, and a drained node rejoins only on request', {
  skip: noEtcd,
}, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const ports = [await freePort(), await freePort()];
  const start = (port: number) => serve(t, folder, port, etcd, ['--owners', '1']);
  // The first node of a cluster owns all slots and keeps those that it hands over for a while. `b` is the first, so that `a` has to load
  // the slots of `b` later.
  const b = start(ports[1]!);
  await until('the first is ready', async () => (await fetch(`${b.url}/ready`)).ok);
  const a = start(ports[0]!);
  const settled = async () => {
    const nodes = await nodesOf(a);
    return nodes.length === 2 && nodes.every(({ states }) => states!.initializing + states!.leaving === 0);
  };
  await until(
    'both own slots',
    async () => (await settled()) && (await nodesOf(a)).every(({ slots }) => slots > 0),
  );
  for (const [i, x] of [300_000, 500_000, 700_000].entries()) {
    const path = await writeTestScene(join(folder, `s${i}.tif`), {
      seed: i + 1,
      x,
      width: 9000,
      height: 100,
      pixel: 20,
    });
    const facts = [
      '--datetime',
      `2024-06-0${i + 1}T10:00:00Z`,
      '--collection',
      'made-up',
      '--precision',
      '5',
    ];
    await json('ingest', path, ...facts, '--server', [a, b][i % 2]!.url);
  }

  // The list, the metrics and the plan report the same.
  const nodes = await nodesOf(a);
  const total = nodes.reduce((sum, { bytes }) => sum + bytes!, 0);
  assert.ok(total > 0);
  for (const { share } of nodes) assert.ok(Math.abs(share! - 0.5) < 0.01);
  const before = await json<RebalanceDocument>('node', 'rebalance', '--dry-run', '--server', a.url);
  assert.equal(before.dryRun, true);
  assert.deepEqual(
    before.nodes.map(({ before }) => before.bytes),
    nodes.map(({ bytes }) => bytes),
  );
  assert.deepEqual(await nodesOf(b), nodes);

  const done = await json<RebalanceDocument>('node', 'rebalance', '--server', b.url);
  assert.deepEqual({ ...done, dryRun: true }, before);
  assert.equal(done.moved.bytes, done.least);
  assert.ok(done.deviation.after <= done.deviation.before);
  await until('rebalanced', settled);
  assert.deepEqual(
    (await nodesOf(a)).map(({ bytes }) => bytes),
    done.nodes.map(({ after }) => after.bytes),
  );
  const again = await json<RebalanceDocument>('node', 'rebalance', '--dry-run', '--server', a.url);
  assert.equal(again.moved.slots, 0);
  const sums = await Promise.all(
    [a, b].map(async (server) => {
      const samples = await metrics(server);
      assert.equal(samples.get('tilewright_members'), 2);
      assert.equal(samples.get('tilewright_replica_lag'), 0);
      assert.equal(samples.get('tilewright_coordination_up'), 1);
      assert.equal(samples.get('tilewright_log_entries'), samples.get('tilewright_commit_applied'));
      assert.equal(
        samples.get('tilewright_commit_seconds_bucket{le="+Inf"}'),
        samples.get('tilewright_commit_seconds_count'),
      );
      assert.ok([...samples.keys()].some((name) => name.startsWith('tilewright_peer_errors_total{node="')));
      for (const call of [
        'store_request_duration_seconds_count{operation="put"}',
        'etcd_request_duration_seconds_count{operation="transact"}',
      ])
        assert.ok(samples.get(`tilewright_${call}`)! > 0, call);
      assert.ok(samples.get('tilewright_rebalance_slots_total')! > 0);
      const ready = await get<{ checks: object }>(server, '/ready');
      assert.deepEqual(ready.checks, { disk: 'ok', store: 'ok', etcd: 'ok' });
      return samples.get('tilewright_slot_bytes')!;
    }),
  );
  // A slot that was handed over is kept for a while.
  assert.ok(sums[0]! + sums[1]! >= total, `${sums} of ${total}`);

  const [first] = await nodesOf(b);
  const drained = (await nodesOf(a)).find(({ url }) => url === b.url)!;
  assert.ok(first);
  await json('node', 'drain', drained.id, '--server', a.url);
  const isEmpty = async () => {
    const now = (await nodesOf(a)).find(({ id }) => id === drained.id)!;
    return now.draining && now.share === 0 && now.states!.available + now.states!.initializing === 0;
  };
  await until(
    'drained',
    async () => (await isEmpty()) && (await get<{ numberMatched: number }>(a, '/search')).numberMatched > 0,
  );
  await ended(b.process, 'SIGTERM');
  const back = start(ports[1]!);
  await until('restarted', async () => (await fetch(`${back.url}/ready`)).ok);
  assert.equal(await isEmpty(), true);
  await json('node', 'join', drained.id, '--server', back.url);
  await until('it owns slots again', async () => {
    const now = (await nodesOf(a)).find(({ id }) => id === drained.id)!;
    // During the handover of a slot, both nodes count its bytes.
    return !now.draining && now.states!.available > 8000 && now.states!.available < 8400 && (await settled());
  });
  // The other node has loaded the slots of the drained one.
  assert.ok((await metrics(a)).get('tilewright_rebalance_bytes_total')! > 0);
  const [one, other] = (await nodesOf(a)).map(({ bytes }) => bytes!) as [number, number];
  assert.equal(one + other, total);
  // Its slots were chosen by their bytes.
  assert.ok(
    Math.abs(one - other) <= Math.abs(done.nodes[0]!.after.bytes - done.nodes[1]!.after.bytes) + total / 4,
  );
});
