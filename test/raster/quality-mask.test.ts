import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  applyQualityLookup,
  cloudCoverPercent,
  convexHull,
  coveragePercent,
  initialMask,
  Mask,
  maskHistogram,
  type PixelCorner,
} from '../../src/raster/index.js';

test('the first quality band with information decides', () => {
  const table = new Uint8Array(65536).fill(Mask.clear);
  table[8] = Mask.cloud;
  table[9] = Mask.notAssessed;
  const mask = initialMask(Uint8Array.of(1, 1, 1, 0, 1), 5);
  assert.deepEqual([...mask], [255, 255, 255, Mask.nodata, 255]);
  applyQualityLookup(Uint16Array.of(0, 8, 9, 8, 8), Uint8Array.of(1, 1, 1, 1, 0), table, mask);
  assert.deepEqual([...mask], [Mask.clear, Mask.cloud, 255, Mask.nodata, 255]);
  applyQualityLookup(
    Uint8Array.of(1, 1, 1, 1, 1),
    new Uint8Array(5).fill(1),
    new Uint8Array(256).fill(Mask.snow),
    mask,
  );
  assert.deepEqual([...mask], [Mask.clear, Mask.cloud, Mask.snow, Mask.nodata, Mask.snow]);
  const known = new Uint8Array(5).fill(1);
  const refused = (message: RegExp) => ({ code: 'TW_RASTER_INVALID_IMAGE', message });
  assert.throws(
    () => applyQualityLookup(mask, known, table, mask),
    refused(/5 pixels from 5 and a table of 65536/),
  );
  const short = table.subarray(0, 256);
  assert.throws(
    () => applyQualityLookup(mask.subarray(1), known, short, mask),
    refused(/5 pixels from 4 and .* 256/),
  );
});

test('coverage and cloud cover', () => {
  const mask = Uint8Array.of(0, 0, 1, 2, 2, 3, 4, 255);
  assert.equal(coveragePercent(maskHistogram(mask)), 75);
  assert.equal(cloudCoverPercent(maskHistogram(mask)), 40);
  assert.equal(cloudCoverPercent(maskHistogram(Uint8Array.of(0, 255, 255))), null);
  assert.equal(coveragePercent(maskHistogram(new Uint8Array(0))), 0);
});

test('masks and histograms agree with a plain implementation', () => {
  const table = Uint8Array.from({ length: 256 }, (_, code) => (code * 7) % 5 || Mask.notAssessed);
  const wideTable = Uint8Array.from({ length: 65536 }, (_, code) => table[code >>> 8]!);
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 3 }),
      fc.array(
        fc.record({
          run: fc.integer({ min: 1, max: 9 }),
          code: fc.integer({ min: 0, max: 255 }),
          valid: fc.integer({ min: 0, max: 1 }),
          known: fc.integer({ min: 0, max: 1 }),
        }),
        { maxLength: 20 },
      ),
      (start, runs) => {
        const pixels = runs.flatMap(({ run, ...pixel }) => Array.from({ length: run }, () => pixel));
        const bytes = (values: number[]) => {
          const at = new Uint8Array(values.length + start).subarray(start);
          at.set(values);
          return at;
        };
        const mask = initialMask(bytes(pixels.map(({ valid }) => valid)), pixels.length);
        assert.deepEqual(
          [...mask],
          pixels.map(({ valid }) => valid * 255),
        );
        const known = bytes(pixels.map((pixel) => pixel.known));
        const codes = pixels.map(({ code }) => code);
        const wideMask = mask.slice();
        applyQualityLookup(bytes(codes), known, table, mask);
        applyQualityLookup(
          Uint16Array.from(codes, (code) => 256 * code + 9),
          known,
          wideTable,
          wideMask,
        );
        assert.deepEqual(wideMask, mask);
        const wanted = pixels.map((p) => (!p.valid ? 0 : p.known ? table[p.code] : 255));
        assert.deepEqual([...mask], wanted);
        const counts = maskHistogram(bytes(wanted));
        assert.deepEqual(
          [...counts],
          Array.from(counts, (_, code) => wanted.filter((w) => w === code).length),
        );
      },
    ),
    { seed: 42, numRuns: 300 },
  );
});

/** Twice the signed area of a triangle; x to the right, y down. */
const area = (a: PixelCorner, b: PixelCorner, c: PixelCorner) =>
  (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);

test('the hull is the smallest convex ring around all valid pixels', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 12 }),
      fc.infiniteStream(fc.integer({ min: 0, max: 5 })),
      (width, height, stream) => {
        const mask = Uint8Array.from([...stream.take(width * height)], (value) => (value === 0 ? 1 : 0));
        const corners: PixelCorner[] = [];
        for (let i = 0; i < mask.length; i++) {
          if (!mask[i]) continue;
          const x = i % width;
          const y = Math.floor(i / width);
          corners.push([x, y], [x + 1, y], [x, y + 1], [x + 1, y + 1]);
        }
        const ring = convexHull(mask, width, height);
        if (corners.length === 0) {
          assert.equal(ring, null);
          return;
        }
        assert.ok(ring);
        assert.deepEqual(ring[0], ring.at(-1));
        const keys = new Set(corners.map(String));
        for (let i = 0; i + 1 < ring.length; i++) {
          assert.ok(keys.has(String(ring[i])), 'only corners of valid pixels');
          // Strictly convex, and counter-clockwise with north up.
          assert.ok(area(ring[i]!, ring[i + 1]!, ring[(i + 2) % (ring.length - 1)]!) < 0);
          for (const corner of corners) assert.ok(area(ring[i]!, ring[i + 1]!, corner) <= 0);
        }
      },
    ),
    { seed: 42, numRuns: 300 },
  );
});
