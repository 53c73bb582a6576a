import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalCodes, codeLengths } from '../../src/raster/codecs/huffman.js';

const someCounts = fc
  .array(
    fc.oneof(
      fc.constant(0),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 0, max: 18 }).map((bits) => 2 ** bits),
    ),
    { minLength: 2, maxLength: 286 },
  )
  .map((counts) => Uint32Array.from(counts));

const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0);
const bitsOf = (counts: Uint32Array, lengths: ArrayLike<number>) =>
  sum(counts.map((count, symbol) => count * lengths[symbol]!));

/** The fewest bits of any code with lengths up to `limit`: package-merge, by Larmore and Hirschberg 1990. */
function fewestBits(counts: Uint32Array, limit: number): number {
  const leaves = [...counts].filter((count) => count > 0).sort((a, b) => a - b);
  let packages: number[] = [];
  for (let level = 0; level < limit; level++) {
    const merged = [...leaves, ...packages].sort((a, b) => a - b);
    packages = merged.flatMap((value, i) => (i % 2 === 1 ? [value + merged[i - 1]!] : []));
  }
  return sum(packages.slice(0, leaves.length - 1));
}

test('code lengths form a complete code within the limit with few bits', () => {
  fc.assert(
    fc.property(someCounts, fc.constantFrom(9, 10, 13, 15), (counts, limit) => {
      const lengths = codeLengths(counts, limit);
      const used = [...counts.keys()].filter((symbol) => counts[symbol]! > 0);
      assert.ok(lengths.every((length) => length <= limit));
      assert.ok(used.every((symbol) => lengths[symbol]! > 0));
      assert.equal(lengths.filter((length) => length > 0).length, Math.max(2, used.length));
      assert.equal(sum([...lengths].map((length) => (length === 0 ? 0 : 2 ** -length))), 1);
      if (used.length < 2) return;
      const [found, wanted, unlimited] = [
        bitsOf(counts, lengths),
        fewestBits(counts, limit),
        fewestBits(counts, 40),
      ];
      if (wanted === unlimited) assert.equal(found, wanted);
      assert.ok(found <= wanted * 1.02, `${found} bits, not ${wanted}`);
    }),
    { seed: 42, numRuns: 300 },
  );
});

test('the example of RFC 1951 has its codes', () => {
  const codes = canonicalCodes(Uint8Array.from([3, 3, 3, 3, 3, 2, 4, 4]));
  // 010 011 100 101 110 00 1110 1111, the first bit lowest.
  assert.deepEqual([...codes], [0b010, 0b110, 0b001, 0b101, 0b011, 0b00, 0b0111, 0b1111]);
});
