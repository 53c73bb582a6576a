import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { SLOTS } from '../../../src/dht/index.js';
import { DEFAULT_PREFIX_LENGTHS, slotOf, slotOfScene } from '../../../src/dht/slots.js';
import { geohash, gridByName } from '../../../src/grid/index.js';
import { cells } from '../../query/tiles.js';

test('slots are the first 14 bits of SHA-1, as computed by sha1sum', () => {
  assert.equal(slotOf('geohash', '9q8yy', 4), 14173);
  assert.equal(slotOf('quadtile', '023010211332', 9), 16093);
  assert.equal(slotOfScene('sentinel-2-l2a', 'S2A_20240601T103000_T10SEG_R065'), 4294);
});

test('every prefix falls into the slot of its digest', () => {
  fc.assert(
    fc.property(cells, fc.integer({ min: 1, max: 9 }), ({ grid, geocode }, length) => {
      const digest = createHash('sha1')
        .update(`${grid}/${geocode.slice(0, length)}`)
        .digest();
      let bits = '';
      for (const byte of digest) bits += byte.toString(2).padStart(8, '0');
      assert.equal(slotOf(grid, geocode, length), Number.parseInt(bits.slice(0, 14), 2));
    }),
    { seed: 42 },
  );
});

test('a cell shares its slot with its neighbours and all cells below its prefix', () => {
  for (const child of geohash.children('9q8y')) {
    assert.equal(slotOf('geohash', child, 4), slotOf('geohash', '9q8y', 4));
    assert.equal(slotOf('geohash', `${child}zzz`, 4), slotOf('geohash', '9q8y', 4));
  }
  // The prefix determines the slot, not the end of the geocode, which is the same for these.
  const ends = [...'0123456789'].map((first) => slotOf('geohash', `${first}q8yy`, 4));
  assert.equal(new Set(ends).size, 10);
});

test('a geocode as long as the prefix, and a shorter one, have their own slots', () => {
  const lengths = [1, 2, 3, 4].map((length) => slotOf('geohash', '9q8y'.slice(0, length), 4));
  assert.equal(new Set(lengths).size, 4);
  assert.equal(lengths[3], slotOf('geohash', '9q8yy', 4));
});

test('the slots of a country are nearly as even as random assignment', () => {
  const counts = new Uint32Array(SLOTS);
  for (const prefix of geohash.cover({ west: -120, south: 30, east: -80, north: 49 }, 4))
    counts[slotOf('geohash', prefix, DEFAULT_PREFIX_LENGTHS.geohash)]!++;
  const mean = counts.reduce((a, b) => a + b, 0) / SLOTS;
  const variance = counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / SLOTS;
  // For a Poisson distribution both are equal.
  assert.ok(Math.abs(variance / mean - 1) < 0.05, `${variance} of ${mean}`);
});

test('the default prefixes are lengths of geocodes', () => {
  for (const [name, length] of Object.entries(DEFAULT_PREFIX_LENGTHS)) {
    const { minPrecision, maxPrecision } = gridByName(name);
    assert.ok(length >= minPrecision && length <= maxPrecision);
  }
});
