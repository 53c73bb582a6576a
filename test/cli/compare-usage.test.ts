/** What nodes use: from counters that are looked at now and then to sums and curves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { spreadOf, turns, verdict, withUsage } from '../../src/cli/compare/index.js';
import { usageOf } from '../../src/cli/compare/usage.js';
import type { NodeUsage } from '../../src/client/index.js';

const node = (
  id: string,
  cpuSeconds: number,
  sentBytes?: number,
  { namespace = id, startedAt = 'first' } = {},
): NodeUsage => ({
  ...{ id, startedAt, cpuSeconds, memoryBytes: 1e6, includesChildren: true },
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

test('a node that starts again counts from its start, and its interface goes on', () => {
  const looks = [7, 9, 2, 3].map((cpu, at) => ({
    at,
    nodes: [node('a', cpu, 10 * at, { startedAt: cpu > 5 ? 'first' : 'second' })],
  }));
  const { cpuSeconds, sentBytes, trace } = usageOf(looks);
  assert.deepEqual({ cpuSeconds, sentBytes }, { cpuSeconds: 2 + 2 + 1, sentBytes: 30 });
  assert.deepEqual(
    trace.map(({ cores }) => cores),
    [2, 2, 1],
  );
});

test('a node that is missing at first or at last adds nothing of the time before, and is named', () => {
  const others = (at: number) => node('b', at, 0);
  const late = usageOf([
    { at: 0, nodes: [others(0)] },
    { at: 1, nodes: [others(1), node('a', 5000, 8e9)] },
    { at: 2, nodes: [others(2), node('a', 5003, 8e9 + 30)] },
  ]);
  assert.deepEqual([late.cpuSeconds, late.sentBytes, late.incomplete], [5, 30, ['a']]);
  const gone = usageOf([
    { at: 0, nodes: [others(0), node('a', 5000, 8e9)] },
    { at: 1, nodes: [others(1), node('a', 5003, 8e9 + 30)] },
    { at: 2, nodes: [others(2)] },
  ]);
  assert.deepEqual([gone.cpuSeconds, gone.sentBytes, gone.incomplete], [5, 30, ['a']]);
});

test('a counter that falls for a look adds nothing when it is back', () => {
  const looks = [5000, 5001, 5000.5, 5002].map((cpu, at) => ({ at, nodes: [node('a', cpu, 1000 * cpu)] }));
  const { cpuSeconds, sentBytes } = usageOf(looks);
  assert.deepEqual([cpuSeconds, sentBytes], [2, 2000]);
});

test('a last look is repeated until all nodes answer', async () => {
  let looks = 0;
  const read = async () => {
    looks++;
    // The second node does not answer after the work at first.
    return looks === 2 ? [node('a', looks)] : [node('a', looks), node('b', looks)];
  };
  const { usage } = await withUsage(read, 10_000, async () => undefined);
  assert.deepEqual([looks, usage.incomplete, usage.cpuSeconds], [3, [], 4]);
});

test('nodes that share their interfaces count these once, and their loopback', () => {
  const host = { namespace: 'host' };
  const at = (sent: number) => [node('a', 0, sent, host), node('b', 0, sent, host), node('c', 0, sent)];
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
