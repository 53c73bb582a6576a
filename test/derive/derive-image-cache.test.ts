import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ImageCache } from '../../src/derive/cut-tile.js';
import { allocatePixels } from '../../src/raster/index.js';

const BYTES = 200;
const step = fc.record({
  key: fc.integer({ min: 0, max: 12 }).map(String),
  type: fc.constantFrom('uint8' as const, 'int16' as const, 'float32' as const, 'float64' as const),
  length: fc.integer({ min: 0, max: 60 }),
  pause: fc.constantFrom(0, 0, 0, 3000, 11_000),
});

test('an image is the last one stored under its key, or missing', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let now = 0;
      const cache = new ImageCache(BYTES, () => now);
      const all = new Map<string, { values: number[]; type: unknown }>();
      for (const [n, { key, type, length, pause }] of steps.entries()) {
        now += pause;
        const pixels = allocatePixels(type, length).fill((n % 100) + 1);
        cache.set(key, pixels);
        all.set(key, { values: [...pixels], type: pixels.constructor });
        if (length > 0 && pixels.byteLength <= BYTES) assert.ok(cache.get(key), 'the last one is there');
        for (const [known, { values, type }] of all) {
          const found = cache.get(known);
          if (!found) continue;
          assert.equal(found.constructor, type);
          assert.deepEqual([...found], values);
        }
      }
    }),
    { seed: 42, numRuns: 500 },
  );
});

test('after ten seconds without a use of an image, writing restarts at the beginning', () => {
  let now = 0;
  const cache = new ImageCache(BYTES, () => now);
  const keep = (key: string) => {
    cache.set(key, allocatePixels('uint8', 80));
    return cache.get(key)!.byteOffset;
  };
  assert.deepEqual([keep('a'), keep('b'), keep('c')], [0, 80, 0]);
  assert.equal(cache.get('a'), undefined);
  now = 11_000;
  assert.ok(cache.get('b'));
  assert.equal(keep('d'), 80);
  now = 30_000;
  assert.equal(keep('e'), 0);
  assert.equal(cache.get('d'), undefined);
});
