/** The metrics that parts of a node count as they work, without a node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  type CoordinationStore,
  coordinationUnavailable,
  measuredKvStore,
} from '../../src/coordination/index.js';
import { NodeMetrics, Snapshot } from '../../src/metrics/index.js';
import { measuredStore, type ObjectStore, storeNotFound } from '../../src/storage/index.js';
import { parsePrometheus } from '../support/prometheus.js';

const samplesOf = async (metrics: NodeMetrics) => parsePrometheus(await metrics.text());

/** Fails as the name of the object says. */
function faultyStore(): ObjectStore {
  const answer = async (name: string) => {
    if (name === 'missing') throw storeNotFound(name, 'the test');
    if (name === 'broken') throw new Error('no connection');
    return Buffer.alloc(1);
  };
  async function* list(prefix: string) {
    for (let i = 0; i < 3; i++) yield { name: `${prefix}${i}`, bytes: 1, modified: 0 };
  }
  return { url: 'test:', get: answer, list } as unknown as ObjectStore;
}

test('nodes of one process count by themselves', async () => {
  const [one, other] = [new NodeMetrics(), new NodeMetrics()];
  one.ingest.pixels.inc(5);
  assert.equal((await samplesOf(one)).get('tilewright_ingest_pixels_total'), 5);
  assert.equal((await samplesOf(other)).get('tilewright_ingest_pixels_total'), 0);
});

test('calls are measured; answers and aborted calls are not errors', async () => {
  const metrics = new NodeMetrics();
  const { store: calls, etcd } = metrics.cluster({ hasEtcd: true });
  const store = measuredStore(faultyStore(), calls);
  await store.get('there');
  await assert.rejects(store.get('missing'), { code: 'TW_STORE_NOT_FOUND' });
  await assert.rejects(store.get('broken'), /no connection/);
  await assert.rejects(store.get('broken', { signal: AbortSignal.abort() }));
  const names: string[] = [];
  for await (const { name } of store.list('a/')) names.push(name);
  assert.deepEqual(names, ['a/0', 'a/1', 'a/2']);
  const coordination = measuredKvStore(
    {
      read: async () => {
        throw coordinationUnavailable('a read', 'etcd', 'test');
      },
    } as unknown as CoordinationStore,
    etcd!,
  );
  await assert.rejects(coordination.read([]));

  const samples = await samplesOf(metrics);
  const count = (callee: string, operation: string) =>
    samples.get(`tilewright_${callee}_request_duration_seconds_count{operation="${operation}"}`);
  const errors = (callee: string, operation: string) =>
    samples.get(`tilewright_${callee}_errors_total{operation="${operation}"}`);
  assert.deepEqual([count('store', 'get'), errors('store', 'get')], [4, 1]);
  assert.deepEqual([count('store', 'list'), errors('store', 'list')], [1, 0]);
  assert.deepEqual([count('etcd', 'read'), errors('etcd', 'read')], [1, 1]);
  // Series exist before the first call.
  assert.deepEqual([count('store', 'put'), errors('store', 'put')], [0, 0]);
});

test('the process is measured from the start until the end of the node', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const metrics = new NodeMetrics();
  const collections = async () => {
    collectGarbage();
    // Observers are called in a later turn.
    await sleep(50);
    const samples = await samplesOf(metrics);
    return samples.get('nodejs_gc_duration_seconds_count{kind="major"}') ?? 0;
  };
  assert.equal(await collections(), 0);
  metrics.start();
  const counted = await collections();
  assert.ok(counted > 0);
  const samples = await samplesOf(metrics);
  for (const name of [
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'process_open_fds',
    'nodejs_heap_size_used_bytes',
    'tilewright_event_loop_delay_seconds{quantile="0.99"}',
  ])
    assert.ok(samples.has(name), name);
  metrics.close();
  assert.equal(await collections(), counted);
  // The timer of the delay has stopped: nothing has been measured since the last scrape.
  assert.equal((await samplesOf(metrics)).get('tilewright_event_loop_delay_seconds{quantile="1"}'), 0);
});

test('a metric without any set of labels has no value', async () => {
  const snapshot = new Snapshot();
  snapshot.gauge('clock_offset_seconds', 'By node.', []);
  snapshot.counter('peer_errors_total', 'By node.', []);
  snapshot.gauge('members', 'Nodes.', 0);
  assert.deepEqual([...parsePrometheus(await snapshot.text())], [['tilewright_members', 0]]);
});
