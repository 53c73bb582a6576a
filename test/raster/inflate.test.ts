import assert from 'node:assert/strict';
import { buffer as collect } from 'node:stream/consumers';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { constants, createDeflate, deflateRawSync, deflateSync, inflateSync } from 'node:zlib';
import fc from 'fast-check';
import { deflate } from '../../src/raster/codecs/deflate.js';
import { inflate, inflatePrefix } from '../../src/raster/codecs/inflate.js';
import { random } from './images.js';

/** Output limit from which our own decoder is used instead of zlib, bytes. */
const LEAST = 2 ** 14;

type Make = (out: Uint8Array, next: () => number) => void;
const each =
  (value: (next: () => number, at: number) => number): Make =>
  (out, next) => {
    for (let at = 0; at < out.length; at++) out[at] = value(next, at);
  };

/** Repeats what was `distance` bytes before, mostly, so that matches of every length and distance come up. */
const repeats =
  (farthest: number): Make =>
  (out, next) => {
    for (let at = 0; at < out.length; ) {
      const distance = 1 + Math.floor(next() * farthest);
      if (next() < 0.3 || distance > at) {
        out[at++] = next() * 256;
        continue;
      }
      const length = Math.min(out.length - at, 3 + Math.floor(next() * (next() < 0.5 ? 10 : 400)));
      for (let i = 0; i < length; i++, at++) out[at] = out[at - distance];
    }
  };

const KINDS: Record<string, Make> = {
  noise: each((next) => next() * 256),
  'one value': each(() => 77),
  'few values': each((next) => [0, 1, 2, 255][Math.floor(next() * 4)]),
  'differences of 16 bits': each((next, at) => (at % 2 ? (next() < 0.5 ? 0 : 255) : (next() - 0.5) * 60)),
  'rare values': each((next) => Math.floor(-Math.log2(next() + 1e-6) * 9)),
  'near repeats': repeats(20),
  'far repeats': repeats(32_768),
};

const someBytes = fc
  .record({
    kind: fc.constantFrom(...Object.keys(KINDS)),
    size: fc.oneof(fc.integer({ min: 0, max: 600 }), fc.integer({ min: 0, max: 120_000 })),
    seed: fc.integer({ min: 1, max: 1e9 }),
  })
  .map(({ kind, size, seed }) => {
    const bytes = new Uint8Array(size);
    KINDS[kind](bytes, random(seed));
    return bytes;
  });

const someOptions = fc.record({
  level: fc.integer({ min: 0, max: 9 }),
  memLevel: fc.integer({ min: 1, max: 9 }),
  windowBits: fc.integer({ min: 9, max: 15 }),
  strategy: fc.constantFrom(
    constants.Z_DEFAULT_STRATEGY,
    constants.Z_FILTERED,
    constants.Z_HUFFMAN_ONLY,
    constants.Z_RLE,
    constants.Z_FIXED,
  ),
});

const from = (stream: Uint8Array) => (into: Uint8Array) => into.set(stream.subarray(0, into.length));

function inflated(stream: Uint8Array, limit: number): Uint8Array {
  return inflate(stream.length, Math.max(limit, LEAST), from(stream));
}

function assertSame(found: Uint8Array | undefined, bytes: Uint8Array, what = 'bytes'): void {
  assert.ok(found && Buffer.compare(found, bytes) === 0, `${what} became others`);
}

test('streams of zlib at all levels, and our own, are decoded', () => {
  fc.assert(
    fc.property(someBytes, someOptions, (bytes, options) => {
      assertSame(inflated(deflateSync(bytes, options), bytes.length), bytes, JSON.stringify(options));
      assertSame(inflated(deflate(bytes), bytes.length), bytes, 'our own');
    }),
    { seed: 42, numRuns: 400 },
  );
});

test('bytes after a stream are ignored', () => {
  const bytes = new Uint8Array(30_000).fill(5);
  const stream = Buffer.concat([deflateSync(bytes), Buffer.from('more')]);
  assertSame(inflated(stream, bytes.length), bytes);
});

test('a stream may have exactly the size of its limit, but not more', () => {
  for (const level of [0, 1, 6]) {
    const bytes = new Uint8Array(70_000);
    KINDS['near repeats'](bytes, random(9));
    const stream = deflateSync(bytes, { level });
    assertSame(inflate(stream.length, bytes.length, from(stream)), bytes);
    for (const limit of [LEAST, 65_536, bytes.length - 1])
      assert.throws(() => inflate(stream.length, limit, from(stream)), /more than/);
  }
});

test('a block may end just beyond the requested bytes', async () => {
  const bytes = new Uint8Array(LEAST + 70_000);
  KINDS['noise'](bytes, random(5));
  for (let over = -4; over <= 12; over++) {
    // Huffman codes for the first bytes, then stored blocks.
    const first = LEAST + over;
    const stream = await deflatedInParts(bytes, first);
    assertSame(inflatePrefix(stream.length, LEAST, from(stream)), bytes.subarray(0, LEAST), `${over} beyond`);
    assertSame(inflate(stream.length, bytes.length, from(stream)), bytes);
    const short = deflateSync(bytes.subarray(0, first), { strategy: constants.Z_HUFFMAN_ONLY });
    if (over > 0)
      assert.throws(() => inflate(short.length, LEAST, from(short)), /more than/, `${over} beyond`);
    else assertSame(inflate(short.length, LEAST, from(short)), bytes.subarray(0, first));
  }
});

/** Codes for the first bytes, and the others as they are. */
async function deflatedInParts(bytes: Uint8Array, first: number): Promise<Buffer> {
  const deflater = createDeflate({ strategy: constants.Z_FIXED });
  const stream = collect(deflater);
  deflater.write(bytes.subarray(0, first));
  await new Promise<void>((resolve) => deflater.flush(constants.Z_BLOCK, resolve));
  await promisify(deflater.params.bind(deflater))(0, constants.Z_DEFAULT_STRATEGY);
  deflater.end(bytes.subarray(first));
  return stream;
}

test('blocks that are too small or too large for the kernel are decoded', () => {
  const small = Buffer.from('a few bytes');
  const stream = deflateSync(small);
  assertSame(inflate(stream.length, small.length, from(stream)), small);
  const large = new Uint8Array(2 ** 24 + 8).fill(3);
  const other = deflateSync(large);
  assertSame(inflate(other.length, large.length, from(other)), large);
  assertSame(inflatePrefix(other.length, large.length - 4, from(other)), large.subarray(4));
});

test('the start of a stream yields the first bytes, or undefined if it is too short', () => {
  fc.assert(
    fc.property(someBytes, someOptions, fc.double(UNIT), (bytes, options, share) => {
      const stream = deflateSync(bytes, options);
      const wanted = 1 + Math.round(bytes.length * share);
      const start = (length: number) => {
        // Bytes after the part must not count.
        assert.throws(() => inflate(stream.length, LEAST + bytes.length, noise));
        return inflatePrefix(length, wanted, from(stream));
      };
      const whole = start(stream.length);
      if (wanted > bytes.length) return assert.equal(whole, undefined);
      assertSame(whole, bytes.subarray(0, wanted));
      // Towards the shortest part that is enough.
      for (let [tooShort, enough] = [0, stream.length]; enough - tooShort > 1; ) {
        const length = Math.floor((tooShort + enough) / 2);
        const found = start(length);
        if (found) assertSame(found, bytes.subarray(0, wanted), `${length} of ${stream.length} bytes`);
        if (found) enough = length;
        else tooShort = length;
      }
    }),
    { seed: 42, numRuns: 150 },
  );
});
const noise = (into: Uint8Array) => KINDS['noise'](into, random(into.length + 1));
const UNIT = { min: 0, max: 1, noNaN: true };

/** The output of zlib for a stream; undefined if it refuses the stream. */
function byZlib(stream: Uint8Array, limit: number): Uint8Array | undefined {
  try {
    return inflateSync(stream, { maxOutputLength: limit });
  } catch {
    return undefined;
  }
}

test('damaged streams are refused exactly if zlib refuses them, and no other memory is written', () => {
  const limit = 40_000;
  const big = new Uint8Array(200_000);
  const { buffer } = inflated(deflateSync(big), big.length);
  const seen = new Map<string, number>();
  const change = fc.tuple(fc.oneof(fc.nat(40), fc.nat(1e6)), fc.nat(255));
  fc.assert(
    fc.property(
      someBytes,
      someOptions,
      fc.array(change, { minLength: 1, maxLength: 4 }),
      fc.option(fc.double(UNIT)),
      (bytes, options, changes, cut) => {
        const stream = Buffer.from(deflateSync(bytes, options));
        for (const [at, value] of changes) stream[at % stream.length] = value;
        const damaged = stream.subarray(0, cut === null ? stream.length : Math.round(stream.length * cut));
        // The output ends before this: all that comes after must stay.
        const after = new Uint8Array(buffer, 0x6000 + damaged.length + 1024 + 16 + limit + 1024, 4096).fill(
          0xa5,
        );
        const wanted = byZlib(damaged, limit);
        let found: Uint8Array | undefined;
        try {
          found = inflate(damaged.length, limit, from(damaged));
        } catch (error) {
          const { message, name } = error as Error;
          assert.equal(name, 'Error', message);
          seen.set(message, (seen.get(message) ?? 0) + 1);
        }
        if (wanted) assertSame(found, wanted);
        else assert.equal(found, undefined, 'zlib refuses it');
        assert.ok(after.every((byte) => byte === 0xa5));
      },
    ),
    { seed: 42, numRuns: 800 },
  );
  assert.ok(seen.size >= 10, [...seen.keys()].join('; '));
});

/** Numbers as DEFLATE encodes them: each with the given number of bits, lowest bit first. */
function bitStream(...numbers: [number: number, bits: number][]): Buffer {
  const bits = numbers.flatMap(([number, count]) =>
    Array.from({ length: count }, (_, i) => (number >> i) & 1),
  );
  const bytes = Buffer.alloc(Math.ceil(bits.length / 8));
  for (const [i, bit] of bits.entries()) bytes[i >> 3] |= bit << (i & 7);
  return Buffer.concat([Buffer.from([0x78, 0x01]), bytes]);
}

/** A block with dynamic codes and these numbers of literals and distances, followed by the given bits. */
const dynamic = (literals: number, distances: number, ...rest: [number, number][]) =>
  bitStream([1, 1], [2, 2], [literals - 257, 5], [distances - 1, 5], ...rest);

test('each fault of a stream is reported', () => {
  const faults: [stream: Buffer, message: RegExp][] = [
    [bitStream([1, 1], [3, 2]), /unknown type/],
    [bitStream([1, 1], [0, 2], [0, 5], [5, 16], [5, 16]), /two lengths/],
    [bitStream([1, 1], [0, 2], [0, 5], [5, 16], [0xfffa, 16], [1, 8]), /end early/],
    [dynamic(288, 1, [15, 4], [0, 30], [0, 30]), /code lengths are invalid/],
    [dynamic(257, 32, [15, 4], [0, 30], [0, 30]), /code lengths are invalid/],
    // All lengths of the code of lengths are 1.
    [dynamic(257, 1, [15, 4], ...Array<[number, number]>(19).fill([1, 3])), /code lengths are invalid/],
    // The first symbol repeats the previous length, but it has no predecessor.
    [dynamic(257, 1, [0, 4], [1, 3], [1, 3], [0, 3], [0, 3], [0, 30]), /code lengths are invalid/],
    // With the fixed codes: a length, then distance 5 at the start; the symbols 286 and distance 30.
    [bitStream([1, 1], [1, 2], [0b1000000, 7], [0b00100, 5], [0, 30]), /before its start/],
    [bitStream([1, 1], [1, 2], [0b01100011, 8], [0, 30]), /not a code/],
    [bitStream([1, 1], [1, 2], [0b00001100, 8], [0b1000000, 7], [0b01111, 5], [0, 30]), /not a code/],
    [Buffer.from([0x79, 0x01, 3, 0, 0, 0, 0, 1]), /does not begin/],
    [Buffer.from([0x78, 0x20 + 27, 3, 0, 0, 0, 0, 1]), /does not begin|dictionary/],
    [Buffer.from([0x78]), /end early/],
    [Buffer.from([0x78, 0x01, 3, 0, 0, 0, 1]), /end early/],
    [Buffer.from([0x78, 0x01, 3, 0, 0, 0, 0, 2]), /checksum/],
  ];
  for (const [stream, message] of faults) {
    assert.throws(() => inflated(stream, LEAST), message, stream.toString('hex'));
    assert.equal(byZlib(stream, LEAST), undefined, stream.toString('hex'));
  }
});

test('a stream of many blocks, stored, fixed and with codes of their own', () => {
  const parts: Buffer[] = [];
  const streams: Buffer[] = [Buffer.from([0x78, 0x01])];
  for (const [i, kind] of ['noise', 'few values', 'near repeats', 'rare values', 'one value'].entries()) {
    for (const options of [{ level: 0 }, { strategy: constants.Z_FIXED }, { level: 9 }]) {
      const bytes = Buffer.alloc(3000 + i);
      KINDS[kind](bytes, random(i + 1));
      parts.push(bytes);
      streams.push(deflateRawSync(bytes, { ...options, finishFlush: constants.Z_FULL_FLUSH }));
    }
  }
  const whole = Buffer.concat(parts);
  const checksum = deflateSync(whole).subarray(-4);
  // The last block: an empty one with fixed codes.
  const stream = Buffer.concat([...streams, Buffer.from([3, 0]), checksum]);
  assertSame(byZlib(stream, whole.length), whole, 'the test');
  assertSame(inflated(stream, whole.length), whole);
});

/** A second copy of the module, which checks for SIMD again. */
async function importAgain(): Promise<typeof import('../../src/raster/codecs/inflate.js')> {
  return await import(`../../src/raster/codecs/inflate.js?${'again'}`);
}

test('without SIMD zlib decodes the same, and both verify the checksums of complete streams', async () => {
  const engine = (globalThis as unknown as { WebAssembly: { validate: () => boolean } }).WebAssembly;
  const { validate } = engine;
  engine.validate = () => false;
  const plain = await importAgain();
  engine.validate = validate;
  const bytes = new Uint8Array(50_000);
  KINDS['differences of 16 bits'](bytes, random(2));
  const stream = deflate(bytes);
  assertSame(plain.inflate(stream.length, bytes.length, from(stream)), bytes);
  assertSame(plain.inflatePrefix(stream.length, 20_000, from(stream)), bytes.subarray(0, 20_000));
  assert.equal(plain.inflatePrefix(200, 20_000, from(stream)), undefined);
  assert.throws(() => plain.inflate(stream.length, 40_000, from(stream)));

  for (const decode of [inflatePrefix, plain.inflatePrefix])
    for (const size of [40, 3000, 50_000]) {
      const whole = bytes.subarray(0, size);
      const sound = deflate(whole);
      assertSame(decode(sound.length, size, from(sound), true), whole);
      assert.equal(decode(sound.length, size + 1, from(sound), true), undefined);
      for (const at of [1, 2, 3, 4]) {
        const damaged = Buffer.from(sound);
        damaged[sound.length - at]! ^= 1;
        assert.throws(() => decode(damaged.length, size, from(damaged), true), /check/);
      }
    }
});
