import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomStream, streamSeed } from '../../src/utils/random.js';

const SEEDS = 60;
const STREAMS = 24;
const NUMBERS = 50;

test('streams of any seeds do not overlap and are not correlated', () => {
  const seen = new Map<string, string>();
  const first: number[][] = [];
  for (let seed = 0; seed < SEEDS; seed++)
    for (let stream = 0; stream < STREAMS; stream++) {
      const { next } = randomStream(streamSeed(seed, stream));
      const numbers = Array.from({ length: NUMBERS }, next);
      for (const [i, number] of numbers.slice(1).entries()) {
        const pair = `${numbers[i]} ${number}`;
        assert.equal(seen.get(pair), undefined, `${pair} in seed ${seed}, stream ${stream}`);
        seen.set(pair, `seed ${seed}, stream ${stream}`);
      }
      first.push(numbers);
    }
  // Correlations of 50 numbers have a standard deviation of 0.14.
  for (const [i, a] of first.entries()) {
    const b = first[(i + 1) % first.length];
    const mean = a.reduce((sum, value, k) => sum + (value - 0.5) * (b[k] - 0.5), 0) / NUMBERS;
    assert.ok(Math.abs(12 * mean) < 0.75, `streams ${i} and ${i + 1}: ${12 * mean}`);
  }
});

test('a stream depends on its seed and number only', () => {
  assert.equal(streamSeed(7, 3), streamSeed(7, 3));
  assert.notEqual(streamSeed(1, 1), streamSeed(2, 0));
});
