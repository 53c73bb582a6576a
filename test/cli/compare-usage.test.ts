/** What nodes use: from counters that are looked at now and then to sums and curves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { spreadOf, turns, verdict, withUsage } from '../../src/cli/compare/index.js';
import { usageOf } from '../../src/cli/compare/usage.js';
import type { NodeUsage } from '../../src/client/index.js';

const node = (id: string, cpuSeconds: number, sentBytes?: number, namespace = id): NodeUsage => ({
  ...{ id, cpuSeconds, memoryBytes: 1e6 },
  ...(sentBytes !== undefined && { network: { namespace, sentBytes, loopbackBytes: 1000 * sentBytes } }),
});

test('sums do not depend on how often counters are looked at', () => {
  const growth = fc.array(fc.record({ cpu: fc.nat(100), sent: fc.nat(100), isSeen: fc.boolean() }), {
    minLength: 1,
  });
  fc.assert(
    fc.property(growth, fc.nat(1000), (steps, start) => {
      const looks = [{ at: 0, nodes: [node('a', start, start), node('b', 0, 0)] }];
      let [cpu, sent] = [start, start];
      steps.forEach((step, i) => {
        cpu += step.cpu;
        sent += step.sent;
        const isLast = i === steps.length - 1;
        // A node may miss a look, but for the last one.
        const seen = step.isSeen || isLast ? [node('a', cpu, sent)] : [];
        looks.push({ at: i + 1, nodes: [...seen, node('b', 2 * (i + 1), 0)] });
      });
      const usage = usageOf(looks);
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

test('a node that starts again counts from its start', () => {
  const looks = [7, 9, 2, 3].map((cpu, at) => ({ at, nodes: [node('a', cpu, 10 * cpu)] }));
  const { cpuSeconds, sentBytes, trace } = usageOf(looks);
  assert.deepEqual({ cpuSeconds, sentBytes }, { cpuSeconds: 2 + 2 + 1, sentBytes: 10 * (2 + 2 + 1) });
  assert.deepEqual(
    trace.map(({ cores }) => cores),
    [2, 2, 1],
  );
});

test('nodes that share their interfaces count these once, and their loopback', () => {
  const at = (sent: number) => [node('a', 0, sent, 'host'), node('b', 0, sent, 'host'), node('c', 0, sent)];
  const usage = usageOf([
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
  const { result, usage } = await withUsage(read, 1000, async () => 'done');
  assert.deepEqual([result, usage.cpuSeconds, usage.sentBytes], ['done', 1, undefined]);
  const failing = withUsage(read, 1000, async () => {
    throw new Error('the job has failed');
  });
  await assert.rejects(failing, /the job has failed/);
});

test('a look that fails is left out', async () => {
  let looks = 0;
  const read = async () => {
    if (++looks === 2) throw new Error('no answer');
    return [node('a', looks)];
  };
  const { usage } = await withUsage(read, 5, async () => {
    while (looks < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  });
  assert.equal(usage.cpuSeconds, looks - 1);
});

test('every mode trains once with every seed, in turn the other way round', () => {
  assert.deepEqual(
    turns(['partitioned', 'distributed'], [1, 2]).map(({ mode, seed }) => `${mode[0]}${seed}`),
    ['p1', 'd1', 'd2', 'p2'],
  );
});

test('a verdict needs three runs and ranges that do not touch', () => {
  const low = spreadOf([1, 2, 3]);
  assert.equal(verdict(low, spreadOf([4, 5, 6])), 'less');
  assert.equal(verdict(spreadOf([4, 5, 6]), low), 'more');
  assert.equal(verdict(low, spreadOf([3, 4, 5])), 'within the spread');
  assert.equal(verdict(low, spreadOf([4, 5])), 'too few runs');
});
