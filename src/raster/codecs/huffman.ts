/** Prefix codes of DEFLATE (RFC 1951, 3.2.2), for up to 512 symbols that occur less than 2 ** 23 times in total, and Adler-32. */
import { loadWasmKernel } from '../../utils/wasm-loader.js';

/**
 * The length of each symbol's code in bits, at most `limit`; 0 for symbols that do not occur. At least two symbols get a code,
 * because some decoders require it.
 */
export function codeLengths(counts: Uint32Array, limit: number): Uint8Array {
  const lengths = new Uint8Array(counts.length);
  const keys = sortedKeys(counts);
  if (keys.length < 2) {
    const only = keys.length === 1 ? symbolOf(keys[0]!) : 0;
    lengths[only] = 1;
    lengths[only === 0 ? 1 : 0] = 1;
    return lengths;
  }
  const symbols = symbolsByLength(keys, limit);
  for (let length = limit, at = 0; length > 0; length--) {
    for (const end = at + symbols[length]!; at < end; at++) lengths[symbolOf(keys[at]!)] = length;
  }
  return lengths;
}

const SYMBOL_BITS = 9;
const symbolOf = (key: number) => key % 2 ** SYMBOL_BITS;

/** Symbols that occur, the rarest first, each with its count in the higher bits. */
function sortedKeys(counts: Uint32Array): Uint32Array {
  const keys = new Uint32Array(counts.length);
  let size = 0;
  for (let symbol = 0; symbol < counts.length; symbol++) {
    if (counts[symbol]! > 0) keys[size++] = counts[symbol]! * 2 ** SYMBOL_BITS + symbol;
  }
  return keys.subarray(0, size).sort();
}

/** Number of symbols for each code length of a Huffman code; lengths above `limit` become `limit`. */
function symbolsByLength(keys: Uint32Array, limit: number): Uint32Array {
  // The symbols, the rarest first, then the inner nodes in the order in which they are made, which is that of their counts.
  const size = keys.length;
  const counts = new Uint32Array(2 * size - 1);
  const parents = new Uint32Array(2 * size - 1);
  for (let i = 0; i < size; i++) counts[i] = keys[i]! >>> SYMBOL_BITS;
  let leaf = 0;
  let inner = size;
  for (let node = size; node < counts.length; node++) {
    for (let child = 0; child < 2; child++) {
      const isLeaf = leaf < size && (inner === node || counts[leaf]! <= counts[inner]!);
      const rarest = isLeaf ? leaf++ : inner++;
      counts[node]! += counts[rarest]!;
      parents[rarest] = node;
    }
  }
  const depths = new Uint32Array(counts.length);
  const symbols = new Uint32Array(limit + 1);
  for (let node = counts.length - 2; node >= 0; node--) {
    depths[node] = depths[parents[node]!]! + 1;
    if (node < size) symbols[Math.min(depths[node]!, limit)]!++;
  }
  limitLengths(symbols, limit);
  return symbols;
}

/**
 * Repairs a code that is over-subscribed because longer codes were shortened to `limit` bits. As in gen_bitlen of zlib, each
 * step makes a code of fewer than `limit` bits one bit longer, and moves a code of `limit` bits beside it. The steps end when
 * the Kraft sum allows all codes. The result is close to optimal.
 */
function limitLengths(symbols: Uint32Array, limit: number): void {
  // In units of 2 ** -limit.
  let kraftSum = 0;
  for (let length = 1; length <= limit; length++) kraftSum += symbols[length]! * 2 ** (limit - length);
  for (; kraftSum > 2 ** limit; kraftSum--) {
    let shorter = limit - 1;
    while (symbols[shorter] === 0) shorter--;
    symbols[shorter]!--;
    symbols[shorter + 1]! += 2;
    symbols[limit]!--;
  }
}

/** The codes for these lengths: numbered by length, then by symbol. The lowest bit of a code is sent first. */
export function canonicalCodes(lengths: Uint8Array): Uint32Array {
  const next = new Uint32Array(17);
  for (const length of lengths) if (length > 0) next[length + 1]!++;
  for (let length = 1; length < next.length; length++) next[length] = (next[length]! + next[length - 1]!) * 2;
  const codes = new Uint32Array(lengths.length);
  for (let symbol = 0; symbol < lengths.length; symbol++) {
    const length = lengths[symbol]!;
    if (length > 0) codes[symbol] = reversed(next[length]!++, length);
  }
  return codes;
}

function reversed(code: number, length: number): number {
  let result = 0;
  for (let i = 0; i < length; i++, code >>= 1) result = (result << 1) | (code & 1);
  return result;
}

/**
 * Adler-32 (RFC 1950), the checksum of a zlib stream. The checksum of `length` bytes at `from`, continued from `sums` (1 at the start of a
 * stream). A 32-bit integer.
 */
export type Adler32 = (sums: number, from: number, length: number) => number;

/** The checksum by adler32.wat, over the memory of another kernel. */
export function createAdler32({ memory }: { memory: object }): Adler32 {
  const kernel = loadWasmKernel<{ adler: Adler32 }>(new URL('./adler32.wasm', import.meta.url), {
    kernel: { memory },
  });
  if (!kernel) throw new Error('WebAssembly SIMD is not supported');
  return kernel.adler;
}
