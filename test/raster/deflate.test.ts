import assert from 'node:assert/strict';
import { test } from 'node:test';
import { constants, deflateSync, inflateSync } from 'node:zlib';
import fc from 'fast-check';
import { deflate, deflateWithPredictor } from '../../src/raster/codecs/deflate.js';
import { UNSIGNED_BY_SIZE, viewPixels } from '../../src/raster/pixels/data-types.js';
import { pixels, random } from './images.js';

/** Typical output of a predictor, and unusual data. */
const KINDS: Record<string, (next: () => number, at: number, before: number) => number> = {
  noise: (next) => next() * 256,
  'equally frequent': (_, at) => at,
  'few values': (next) => [0, 1, 1, 255][Math.floor(next() * 4)]!,
  'one value': () => 77,
  'nothing but zeros': () => 0,
  'runs of zeros': (next, _, before) => {
    if (before === 0) return next() < 0.01 ? 1 + next() * 255 : 0;
    return next() < 0.2 ? 0 : 1 + next() * 255;
  },
  'short runs of zeros': (next, _, before) => {
    if (before === 0) return next() < 0.1 ? 1 + next() * 255 : 0;
    return next() < 0.5 ? 0 : 1 + next() * 3;
  },
  'runs of any value': (next, _, before) => (next() < 0.02 ? next() * 256 : before),
  'differences of 16 bits': (next, at) => {
    const difference = Math.floor((next() - 0.5) * 40);
    return at % 2 === 0 ? difference : next() * 40 < 20 ? 0 : 255;
  },
};

function bytesOf(kind: string, size: number, seed: number): Uint8Array {
  const next = random(seed);
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at++) bytes[at] = Math.floor(KINDS[kind]!(next, at, bytes[at - 1] ?? 0));
  return bytes;
}

function assertReadBack(bytes: Uint8Array): void {
  const stream = deflate(bytes);
  assert.deepEqual([...stream.subarray(0, 2)], [0x78, 0x01]);
  const found = inflateSync(stream);
  assert.equal(Buffer.compare(found, bytes), 0, `${bytes.length} bytes became ${found.length} others`);
}

test('zlib decodes streams of every kind and length', () => {
  const anyKind = fc.constantFrom(...Object.keys(KINDS));
  fc.assert(
    fc.property(anyKind, fc.integer({ min: 0, max: 5000 }), fc.integer(), (kind, size, seed) => {
      assertReadBack(bytesOf(kind, size, seed));
    }),
    { seed: 42, numRuns: 500 },
  );
  for (const kind of Object.keys(KINDS)) {
    for (let size = 0; size <= 600; size++) assertReadBack(bytesOf(kind, size, size));
  }
});

test('zlib decodes streams of several blocks', () => {
  for (const kind of Object.keys(KINDS)) {
    for (const size of [2 ** 18 - 1, 2 ** 18, 2 ** 18 + 1, 600_000]) assertReadBack(bytesOf(kind, size, 7));
  }
  assertReadBack(bytesOf('noise', 2_500_000, 7));
});

test('codes that would be too long are shortened', () => {
  const parts: Uint8Array[] = [];
  for (let byte = 1, count = 1, before = 1; byte < 25; byte++) {
    parts.push(new Uint8Array(count).fill(byte));
    [before, count] = [count, count + before];
  }
  const bytes = Buffer.concat(parts);
  const next = random(3);
  for (let at = bytes.length - 1; at > 0; at--) {
    const other = Math.floor(next() * (at + 1));
    [bytes[at], bytes[other]] = [bytes[other]!, bytes[at]!];
  }
  assertReadBack(bytes);
});

test('a stream does not change when others are written', () => {
  const bytes = bytesOf('differences of 16 bits', 10_000, 1);
  const stream = deflate(bytes);
  deflate(bytesOf('noise', 20_000, 2));
  assert.equal(Buffer.compare(inflateSync(stream), bytes), 0);
});

const someRows = fc.record({
  size: fc.constantFrom(1, 2, 4),
  width: fc.integer({ min: 1, max: 600 }),
  height: fc.integer({ min: 1, max: 300 }),
  beyondRight: fc.integer({ min: 0, max: 40 }),
  beyondBelow: fc.integer({ min: 0, max: 200 }),
  aside: fc.integer({ min: 0, max: 9 }),
  seed: fc.integer({ min: 1, max: 1000 }),
});

/** A rectangle of an image, the size it is filled up to, and the bytes of its differences. */
function differencesOf({ size, width, height, beyondRight, beyondBelow, aside, seed }: SomeRows) {
  const type = UNSIGNED_BY_SIZE[size]!;
  const stride = width + aside;
  const values = pixels(type, stride, height, seed, 0) as Uint16Array;
  const rows = { pixels: values, start: aside, stride, width, height };
  rows.start = Math.min(aside, values.length - (height - 1) * stride - width);
  const outWidth = Math.ceil((width + beyondRight) / 16) * 16;
  const outHeight = height + beyondBelow;
  const bytes = new Uint8Array(outWidth * outHeight * size);
  const out = viewPixels(type, bytes.buffer, 0, outWidth * outHeight);
  for (let row = 0; row < height; row++)
    for (let i = 0; i < width; i++) {
      const at = rows.start + row * stride + i;
      out[row * outWidth + i] = values[at]! - (i > 0 ? values[at - 1]! : 0);
    }
  return { rows, outWidth, outHeight, bytes };
}
type SomeRows = typeof someRows extends fc.Arbitrary<infer T> ? T : never;

/** A second copy of the module, which checks for SIMD again. */
async function importAgain(): Promise<typeof import('../../src/raster/codecs/deflate.js')> {
  return await import(`../../src/raster/codecs/deflate.js?${'again'}`);
}

test('differences are taken along rows, with or without SIMD', async () => {
  const engine = (globalThis as unknown as { WebAssembly: { validate: () => boolean } }).WebAssembly;
  const { validate } = engine;
  engine.validate = () => false;
  const plain = await importAgain();
  engine.validate = validate;
  let unlike = 0;
  fc.assert(
    fc.property(someRows, (some) => {
      const { rows, outWidth, outHeight, bytes } = differencesOf(some);
      const fast = deflateWithPredictor(rows, outWidth, outHeight);
      const slow = plain.deflateWithPredictor(rows, outWidth, outHeight);
      if (!fast.equals(slow)) unlike++;
      for (const stream of [fast, slow]) {
        const found = inflateSync(stream);
        const at = found.findIndex((byte, i) => byte !== bytes[i]);
        assert.ok(at < 0, `byte ${at} is ${found[at]}, not ${bytes[at]}`);
        assert.equal(found.length, bytes.length);
      }
    }),
    { seed: 42, numRuns: 100 },
  );
  assert.ok(unlike > 90, 'the two were not written by different means');
});

test('streams are not larger than those of zlib with run lengths', () => {
  const rle = { level: 1, strategy: constants.Z_RLE, memLevel: 9 };
  for (const size of [1, 2, 4] as const) {
    const shape = { size, width: 512, height: 512, beyondRight: 0, beyondBelow: 0, aside: 0, seed: 5 };
    const { rows, outWidth, outHeight, bytes } = differencesOf(shape);
    const ratio = deflateWithPredictor(rows, outWidth, outHeight).length / deflateSync(bytes, rle).length;
    assert.ok(ratio < 1.03, `${ratio} times as large for ${size} bytes a pixel`);
  }
  for (const kind of Object.keys(KINDS).filter((name) => name.includes('zeros') || name.includes('16'))) {
    const bytes = bytesOf(kind, 2 ** 19, 5);
    const [found, wanted] = [deflate(bytes).length, deflateSync(bytes, rle).length];
    assert.ok(found < wanted * 1.03 + 2000, `${kind}: ${found} bytes, not ${wanted}`);
  }
});
