import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SLOTS, SlotSet } from '../../../src/dht/slots.js';

const slots = fc.uniqueArray(fc.nat(SLOTS - 1), { maxLength: 300 });

test('a set of slots is restored from its text, which is short', () => {
  fc.assert(
    fc.property(slots, (some) => {
      const set = new SlotSet(some);
      const sorted = some.toSorted((a, b) => a - b);
      assert.deepEqual([...set], sorted);
      assert.equal(set.size, sorted.length);
      assert.deepEqual([...SlotSet.fromText(set.toText())], sorted);
      assert.ok(set.toText().length < 3000);
    }),
    { seed: 42 },
  );
  const every = new SlotSet(Array.from({ length: SLOTS }, (_, slot) => slot));
  assert.equal(SlotSet.fromText(every.toText()).size, SLOTS);
});

test('a text that does not list slots is refused', () => {
  for (const text of ['x', '1,', '16384', '-1', '1.5', 'z', 'zAAAA', 'z!', '1 ,b'])
    assert.throws(() => SlotSet.fromText(text), { code: 'TW_DHT_BAD_SLOTS' }, text);
});
