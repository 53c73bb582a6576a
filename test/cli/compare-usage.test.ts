/** From counters that are sampled to sums and curves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { concurrentJobs, runOrder } from '../../src/cli/compare/runs.js';
import { measureUsage, usageFromSamples } from '../../src/cli/compare/usage.js';
import type { NodeUsageDocument } from '../../src/client/index.js';

const node = (
  id: string,
  cpuSeconds: number,
  sentBytes?: number,
  { namespace = id, startedAt = 'first' } = {},
): NodeUsageDocument => ({
  ...{ id, startedAt, cpuSeconds, memoryBytes: 1e6, includesChildren: true },
  ...(sentBytes !== undefined && { network: { namespace, sentBytes, loopbackBytes: 1000 * sentBytes } }),
});

test('sums do not depend on how often the counters are sampled', () => {
  const growth = fc.array(fc.record({ cpu: fc.nat(100), sent: fc.nat(100), isSeen: fc.boolean() }), {
    minLength: 1,
  });
  fc.assert(
    fc.property(growth, fc.nat(1000), (steps, start) => {
      const samples = [{ at: 0, nodes: [node('a', start, start), node('b', 0, 0)] }];
      let [cpu, sent] = [start, start];
      steps.forEach((step, i) => {
        cpu += step.cpu;
        sent += step.sent;
        const isLast = i === steps.length - 1;
        // The node may be missing in every sample except the last one.
        const seen = step.isSeen || isLast ? [node('a', cpu, sent)] : [];
        samples.push({ at: i + 1, nodes: [...seen, node('b', 2 * (i + 1), 0)] });
      });
      const usage = usageFromSamples(samples);
      assert.equal(usage.cpuSeconds, cpu - start + 2 * steps.length);
      assert.equal(usage.sentBytes, sent - start);
      assert.equal(usage.seconds, steps.length);
      assert.deepEqual(
        usage.nodes.map(({ id, cpuSeconds, sentBytes }) => [id, cpuSeconds, sentBytes]),
        [
          ['a', cpu - start, sent - start],
          ['b', 2 * steps.length, 0],
        ],
      );
    }),
  );
});

test('a restarted node counts from its start, and its interface continues', () => {
  const samples = [7, 9, 2, 3].map((cpu, at) => ({
    at,
    nodes: [node('a', cpu, 10 * at, { startedAt: cpu > 5 ? 'first' : 'second' })],
  }));
  const { cpuSeconds, sentBytes, trace } = usageFromSamples(samples);
  assert.deepEqual({ cpuSeconds, sentBytes }, { cpuSeconds: 2 + 2 + 1, sentBytes: 30 });
  assert.deepEqual(
    trace.map(({ cores }) => cores),
    [2, 2, 1],
  );
});

test('a node that is missing in the first or last sample adds nothing from before, and is listed', () => {
  const others = (at: number) => node('b', at, 0);
  const late = usageFromSamples([
    { at: 0, nodes: [others(0)] },
    { at: 1, nodes: [others(1), node('a', 5000, 8e9)] },
    { at: 2, nodes: [others(2), node('a', 5003, 8e9 + 30)] },
  ]);
  assert.deepEqual([late.cpuSeconds, late.sentBytes, late.incomplete], [5, 30, ['a']]);
  const gone = usageFromSamples([
    { at: 0, nodes: [others(0), node('a', 5000, 8e9)] },
    { at: 1, nodes: [others(1), node('a', 5003, 8e9 + 30)] },
    { at: 2, nodes: [others(2)] },
  ]);
  assert.deepEqual([gone.cpuSeconds, gone.sentBytes, gone.incomplete], [5, 30, ['a']]);
});

test('a counter that falls in one sample adds nothing when it rises back', () => {
  const samples = [5000, 5001, 5000.5, 5002].map((cpu, at) => ({ at, nodes: [node('a', cpu, 1000 * cpu)] }));
  const { cpuSeconds, sentBytes } = usageFromSamples(samples);
  assert.deepEqual([cpuSeconds, sentBytes], [2, 2000]);
});

test('the last sample is repeated until all nodes answer', async () => {
  let samples = 0;
  const read = async () => {
    samples++;
    // The second node does not answer the first request after the work.
    return samples === 2 ? [node('a', samples)] : [node('a', samples), node('b', samples)];
  };
  const { usage } = await measureUsage(read, 10_000, async () => undefined);
  assert.deepEqual([samples, usage.incomplete, usage.cpuSeconds], [3, [], 4]);
});

test('nodes that share their interfaces count these once, and their loopback', () => {
  const host = { namespace: 'host' };
  const at = (sent: number) => [node('a', 0, sent, host), node('b', 0, sent, host), node('c', 0, sent)];
  const usage = usageFromSamples([
    { at: 0, nodes: at(10) },
    { at: 2, nodes: at(14) },
  ]);
  assert.equal(usage.sentBytes, 4 + 4000 + 4);
  assert.deepEqual(
    usage.nodes.map(({ sentBytes }) => sentBytes),
    [undefined, undefined, 4],
  );
});

test('the work is measured from before its start to after its end, and its error is thrown', async () => {
  let cpu = 0;
  const read = async () => [node('a', cpu++)];
  const { result, usage } = await measureUsage(read, 1000, async () => 'done');
  assert.deepEqual([result, usage.cpuSeconds, usage.sentBytes], ['done', 1, undefined]);
  const failing = measureUsage(read, 1000, async () => {
    throw new Error('the job has failed');
  });
  await assert.rejects(failing, /the job has failed/);
});

test('a sample that fails is left out', async () => {
  let samples = 0;
  const read = async () => {
    if (++samples === 2) throw new Error('no answer');
    return [node('a', samples)];
  };
  const { usage } = await measureUsage(read, 5, async () => {
    while (samples < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  });
  assert.equal(usage.cpuSeconds, samples - 1);
});

test('every mode trains once with every seed, in an order that is reversed for every second seed', () => {
  assert.deepEqual(
    runOrder(['partitioned', 'distributed'], [1, 2]).map(({ mode, seed }) => `${mode[0]}${seed}`),
    ['p1', 'd1', 'd2', 'p2'],
  );
});

test('jobs that ran at the same time as a run are listed', () => {
  const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;
  const job = (jobID: string, started?: number, finished?: number) => ({
    jobID,
    ...(started !== undefined && { started: at(started) }),
    ...(finished !== undefined && { finished: at(finished) }),
  });
  const jobs = [
    job('before', 1, 9),
    job('into', 5, 12),
    job('own', 10, 20),
    job('within', 12, 14),
    job('out of', 19, 30),
    job('still', 15),
    job('after', 21, 22),
    job('waiting'),
  ];
  assert.deepEqual(concurrentJobs(jobs, 'own'), ['into', 'within', 'out of', 'still']);
  assert.deepEqual(concurrentJobs(jobs, 'absent'), []);
});
