import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import {
  allGather,
  allReduce,
  allReduceWeightedMean,
  type ProcessGroup,
} from '../../../src/training/distributed/ring.js';
import { nodeLost, trainingFailed } from '../../../src/training/errors.js';
import { randomStream } from '../../../src/utils/random.js';
import { ringOf } from './process-groups.js';

const random = randomStream(11).next;
const below = (limit: number) => Math.floor(limit * random());
const vector = (length: number) => Float32Array.from({ length }, () => 2 * random() - 1);

const bitsOf = (values: Float32Array) =>
  Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('hex');

describe('a ring', () => {
  it('returns the weighted mean on all ranks, with the same bits', async () => {
    for (let size = 1; size <= 8; size++) {
      const { rings, links } = await ringOf(size);
      // One ring performs many steps. Lengths include 0 and numbers below the number of members.
      for (const length of [0, 1, 2, size, size + 1, below(1000), 20_011]) {
        const vectors = rings.map(() => vector(length));
        const weights = rings.map((_, i) => (i === size - 1 ? 1 + below(32) : below(32)));
        // The values of a member with weight 0 are ignored, even if they are NaN.
        weights.forEach((weight, i) => {
          if (weight === 0) vectors[i]!.fill(Number.NaN);
        });
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        const expected = Float64Array.from({ length }, (_, at) =>
          vectors.reduce((sum, one, i) => sum + (weights[i]! > 0 ? (weights[i]! / total) * one[at]! : 0), 0),
        );
        const means = await Promise.all(
          rings.map((ring, i) => allReduceWeightedMean(ring, vectors[i]!, weights[i]!)),
        );
        for (const mean of means) {
          assert.equal(bitsOf(mean), bitsOf(means[0]!));
          mean.forEach((value, at) => {
            assert.ok(Math.abs(value - expected[at]!) < 1e-6, `${value} is not ${expected[at]}`);
          });
        }
      }
      await Promise.all(links.map((link) => link.shutdown()));
    }
  });

  it('sends 2 (N - 1) / N of the vector from each rank', async () => {
    for (const size of [2, 3, 5, 8]) {
      const { rings, links } = await ringOf(size);
      const length = 40_000;
      await Promise.all(rings.map((ring) => allReduce(ring, vector(length))));
      for (const { sent } of rings) {
        const least = ((2 * (size - 1)) / size) * 4 * length;
        assert.ok(sent >= least && sent < 1.01 * least, `${sent} of ${least}`);
      }
      const all = (of: (ring: ProcessGroup) => number) => rings.reduce((sum, ring) => sum + of(ring), 0);
      assert.equal(
        all(({ sent }) => sent),
        all(({ received }) => received),
      );
      await Promise.all(links.map((link) => link.shutdown()));
    }
  });

  it('gathers the values of all ranks in their order', async () => {
    for (let size = 1; size <= 5; size++) {
      const { rings, links } = await ringOf(size);
      const given = rings.map((_, i) => ({ name: `n${i}`, value: random() / 3, none: null }));
      for (const all of await Promise.all(rings.map((ring, i) => allGather(ring, given[i]))))
        assert.deepEqual(all, given);
      await Promise.all(links.map((link) => link.shutdown()));
    }
  });

  it('ends on all ranks if one leaves, and names it', async () => {
    const { rings, sockets } = await ringOf(4);
    const steps = rings.map(async (ring, i) => {
      for (let step = 0; ; step++) {
        if (i === 2 && step === 3) {
          sockets[i]!.next.destroy();
          sockets[i]!.previous.destroy();
        }
        await allReduce(ring, vector(5000));
      }
    });
    const ends = await Promise.allSettled(steps);
    for (const [i, end] of ends.entries()) {
      assert.ok(end.status === 'rejected' && (i === 2 || nodeLost.is(end.reason)), String(i));
      if (i !== 2) assert.match(end.reason.message, /node m2 was lost/);
    }
  });

  it('sends the reason to all ranks if one gives up', async () => {
    const { rings, links } = await ringOf(5);
    const waiting = rings.map((ring, i) => (i === 3 ? undefined : allReduce(ring, vector(100))));
    links[3]!.fail(trainingFailed('of a test'));
    for (const end of await Promise.allSettled(waiting.filter((one) => one !== undefined)))
      assert.ok(end.status === 'rejected' && trainingFailed.code === end.reason.code, JSON.stringify(end));
  });

  it('refuses damaged messages', async () => {
    const first = await ringOf(2);
    const came = once(first.sockets[1]!.previous, 'data');
    await Promise.all([first.rings[0]!.send(Buffer.from('gradients')), first.rings[1]!.receive()]);
    const [whole] = (await came) as [Buffer];
    await Promise.all(first.links.map((link) => link.shutdown()));
    for (const at of [0, 2, 6, 10, 15]) {
      const { rings, sockets } = await ringOf(2);
      const frame = Buffer.from(whole);
      frame[at]! ^= 4;
      sockets[0]!.next.write(frame);
      // The sender receives the error, too.
      for (const ring of rings) await assert.rejects(ring.receive(), /is damaged/);
    }
  });
});
