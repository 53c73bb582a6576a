/** Digests of plain data. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serialize } from 'node:v8';
import { sha256Digest } from '../../src/hyperspectral/hash.js';

test('a digest does not depend on how V8 stores an integer', () => {
  // A field that once had a fraction stores integers as doubles afterwards.
  const bands = [0.5, 450].map((wavelength) => ({ wavelength }));
  const [, asDouble] = bands;
  const asInteger = JSON.parse('{"wavelength": 450, "other": 1}');
  delete asInteger.other;
  assert.deepEqual(asDouble, asInteger);
  assert.notDeepEqual(serialize(asDouble), serialize(asInteger));
  assert.equal(sha256Digest(asDouble!), sha256Digest(asInteger));
});

test('a digest covers the values of typed arrays, including views of part of a buffer', () => {
  const all = Float64Array.from([1, 2, 3, 2, 3]);
  assert.notEqual(sha256Digest({ all }), sha256Digest({ all: all.with(4, 4) }));
  assert.equal(sha256Digest({ file: Buffer.from([1, 2]) }), sha256Digest({ file: Uint8Array.of(1, 2) }));
  assert.equal(sha256Digest({ part: all.subarray(1, 3) }), sha256Digest({ part: all.slice(3) }));
});
