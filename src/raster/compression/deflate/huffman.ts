/** Prefix codes of DEFLATE (RFC 1951, 3.2.2), for up to 512 symbols that occur less than 2 ** 23 times in total. */

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

/**
 * Number of symbols for each code length. A Huffman code by Moffat and Katajainen 1995, In-Place Calculation of
 * Minimum-Redundancy Codes: `nodes` holds first the counts of the symbols, then, from the left, those of inner nodes, then the
 * parents of these, then their depths; the last inner node is the root.
 */
function symbolsByLength(keys: Uint32Array, limit: number): Uint32Array {
  const size = keys.length;
  const nodes = keys.map((key) => key >>> SYMBOL_BITS);
  let leaf = 0;
  let inner = 0;
  for (let next = 0; next < size - 1; next++) {
    let count = 0;
    for (let child = 0; child < 2; child++) {
      if (leaf >= size || (inner < next && nodes[inner]! < nodes[leaf]!)) {
        count += nodes[inner]!;
        nodes[inner++] = next;
      } else {
        count += nodes[leaf++]!;
      }
    }
    nodes[next] = count;
  }
  nodes[size - 2] = 0;
  for (let node = size - 3; node >= 0; node--) nodes[node] = nodes[nodes[node]!]! + 1;

  const symbols = new Uint32Array(limit + 1);
  let node = size - 2;
  for (let depth = 0, places = 1; places > 0; depth++) {
    let split = 0;
    for (; node >= 0 && nodes[node] === depth; node--) split++;
    symbols[Math.min(depth, limit)]! += places - split;
    places = 2 * split;
  }
  limitLengths(symbols, limit);
  return symbols;
}

/**
 * Codes that were shortened to the limit are too many. Until they fit, one of the limit's length is placed beside a shorter
 * code, which becomes one bit longer (as in gen_bitlen of zlib). The result is close to optimal.
 */
function limitLengths(symbols: Uint32Array, limit: number): void {
  let taken = 0;
  for (let length = 1; length <= limit; length++) taken += symbols[length]! * 2 ** (limit - length);
  for (; taken > 2 ** limit; taken--) {
    let shorter = limit - 1;
    while (symbols[shorter] === 0) shorter--;
    symbols[shorter]!--;
    symbols[shorter + 1]! += 2;
    symbols[limit]!--;
  }
}

/** The codes of these lengths, numbered in order of length, then symbol; the first bit to be sent is the lowest. */
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
