/** LZW in the two forms that TIFFs have had. Another test reads what GDAL writes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeLzw } from '../../src/raster/codecs/lzw.js';

const [CLEAR, END] = [256, 257];

/** An encoder that looks strings up in a map. `isOld`: least significant bit first, and codes widen a code later. */
function encode(bytes: Uint8Array, isOld: boolean): Uint8Array {
  const bits: number[] = [];
  let table = new Map<string, number>();
  let width = 9;
  const put = (code: number) => {
    for (let i = 0; i < width; i++) bits.push((code >> (isOld ? i : width - 1 - i)) & 1);
  };
  const codeOf = (text: string) => (text.length === 1 ? text.charCodeAt(0) : table.get(text)!);
  put(CLEAR);
  let text = '';
  for (const byte of bytes) {
    const longer = text + String.fromCharCode(byte);
    if (longer.length === 1 || table.has(longer)) {
      text = longer;
      continue;
    }
    put(codeOf(text));
    table.set(longer, 258 + table.size);
    // The decoder is one entry behind.
    if (258 + table.size - (isOld ? 1 : 0) >= 1 << width) width++;
    text = String.fromCharCode(byte);
    if (table.size < 4094 - 258) continue;
    put(codeOf(text));
    put(CLEAR);
    table = new Map();
    width = 9;
    text = '';
  }
  if (text !== '') put(codeOf(text));
  put(END);
  const out = new Uint8Array(Math.ceil(bits.length / 8));
  for (const [i, bit] of bits.entries()) out[i >> 3]! |= bit << (isOld ? i & 7 : 7 - (i & 7));
  return out;
}

for (const isOld of [false, true])
  test(`LZW ${isOld ? 'of old files' : 'of TIFF 6.0'} decodes to the original bytes`, () => {
    const random = fc.uint8Array({ maxLength: 3000 });
    const repetitive = fc
      .array(fc.constantFrom(0, 1, 7), { maxLength: 20_000 })
      .map((values) => Uint8Array.from(values));
    fc.assert(
      fc.property(fc.oneof(random, repetitive), (bytes) => {
        const out = new Uint8Array(bytes.length);
        assert.equal(decodeLzw(encode(bytes, isOld), out), bytes.length);
        assert.deepEqual(out, bytes);
      }),
      { seed: 5, numRuns: 60 },
    );
  });
