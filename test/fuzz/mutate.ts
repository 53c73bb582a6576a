/** Mutations of bytes and text. The same random numbers make the same input. */

export type Random = () => number;

/** Numbers in [0, 1), by mulberry32. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const below = (random: Random, end: number) => Math.floor(random() * end);

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[below(random, from.length)] as T;
}

/** Values at which lengths, offsets and counts break. */
const EDGES = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff];

/** One to eight changes of a copy. Half of them lie within the first kilobyte, where formats keep their headers. */
export function mutateBytes(random: Random, seed: Uint8Array, other: Uint8Array): Uint8Array {
  let bytes = Buffer.from(seed);
  for (let left = 1 + below(random, 8); left > 0 && bytes.length > 0; left--) {
    const at = below(random, random() < 0.5 ? Math.min(bytes.length, 1024) : bytes.length);
    switch (below(random, 8)) {
      case 0:
        bytes[at] = bytes[at]! ^ (1 << below(random, 8));
        break;
      case 1:
        bytes[at] = below(random, 256);
        break;
      case 2: {
        const size = pick(random, [1, 2, 4]);
        if (at + size > bytes.length) break;
        const value = pick(random, EDGES) % 2 ** (8 * size);
        if (random() < 0.5) bytes.writeUIntLE(value, at, size);
        else bytes.writeUIntBE(value, at, size);
        break;
      }
      case 3:
        bytes = bytes.subarray(0, at);
        break;
      case 4:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + below(random, 64))]);
        break;
      case 5: {
        const part = bytes.subarray(at, at + 1 + below(random, 64));
        bytes = Buffer.concat([bytes.subarray(0, at), part, bytes.subarray(at)]);
        break;
      }
      case 6: {
        const from = below(random, other.length);
        Buffer.from(other.subarray(from, from + 1 + below(random, 256))).copy(bytes, at);
        break;
      }
      default:
        bytes.fill(below(random, 256), at, Math.min(bytes.length, at + 1 + below(random, 32)));
    }
  }
  return bytes;
}

/** Fragments that break parsers of text. */
const FRAGMENTS = [
  ...[
    '',
    '"',
    "'",
    '\\',
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    '<',
    '>',
    '&',
    ',',
    ';',
    '..',
    '%',
    '%00',
    '\0',
    '\r\n',
    '-',
    '=',
  ],
  ...[
    'null',
    'true',
    'NaN',
    '-1',
    '0',
    '1e400',
    '-0',
    '999999999999999999999',
    '0x10',
    '1.5',
    '\u00e9',
    '\ud800',
    '\u{1f4a9}',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    '../../etc/passwd',
    'file:///etc/passwd',
    '<!DOCTYPE x>',
    '&x;',
    '<!--',
    ']]>',
  ],
  ...[
    '2024-02-30T25:61:61Z',
    '0000-01-01',
    '+275760-09-13T00:00:00Z',
    'AND',
    'OR',
    'NOT',
    'LIKE',
    'POLYGON',
    'EMPTY',
    'INTERVAL',
  ],
];

/** One to six changes. `words`: fragments of the language. */
export function mutateText(random: Random, seed: string, words: readonly string[]): string {
  let text = seed;
  for (let left = 1 + below(random, 6); left > 0; left--) {
    const at = below(random, text.length + 1);
    const end = at + below(random, 24);
    const fragment = pick(random, random() < 0.5 && words.length > 0 ? words : FRAGMENTS);
    switch (below(random, 5)) {
      case 0:
        text = text.slice(0, at) + fragment + text.slice(at);
        break;
      case 1:
        text = text.slice(0, at) + fragment + text.slice(end);
        break;
      case 2:
        text = text.slice(0, at) + text.slice(end);
        break;
      case 3:
        text = text.slice(0, at) + text.slice(at, end).repeat(1 + below(random, 20)) + text.slice(end);
        break;
      default:
        text = text.slice(0, at) + fragment.repeat(1 + below(random, 200)) + text.slice(at);
    }
  }
  return text.slice(0, 100_000);
}

/** Replaces one to four values of JSON, or their keys, by others. */
export function mutateJson(random: Random, seed: unknown): unknown {
  let value = structuredClone(seed);
  for (let left = 1 + below(random, 4); left > 0; left--) value = mutateValue(random, value, 0);
  return value;
}

function mutateValue(random: Random, value: unknown, depth: number): unknown {
  const isContainer = typeof value === 'object' && value !== null;
  if (!isContainer || depth > 12 || random() < 0.15) return hostileValue(random, value);
  const keys = Object.keys(value);
  if (keys.length === 0) return hostileValue(random, value);
  const key = pick(random, keys);
  if (Array.isArray(value)) {
    const copy: unknown[] = [...value];
    copy[Number(key)] = mutateValue(random, copy[Number(key)], depth + 1);
    if (random() < 0.1) copy.push(...copy);
    return copy.slice(0, 5000);
  }
  const copy: Record<string, unknown> = { ...value };
  const change = random();
  if (change < 0.15) delete copy[key];
  else if (change < 0.3)
    Object.defineProperty(copy, pick(random, FRAGMENTS), { value: copy[key], enumerable: true });
  else copy[key] = mutateValue(random, copy[key], depth + 1);
  return copy;
}

function hostileValue(random: Random, value: unknown): unknown {
  switch (below(random, 8)) {
    case 0:
      return pick(random, FRAGMENTS);
    case 1:
      return pick(random, EDGES) * (random() < 0.5 ? -1 : 1);
    case 2:
      return random() * 10 ** below(random, 20);
    case 3:
      return null;
    case 4:
      return [];
    case 5:
      return {};
    case 6:
      return [value, value];
    default:
      if (typeof value === 'number') return value + (random() - 0.5);
      return (typeof value === 'string' ? value : 'x').repeat(1 + below(random, 50));
  }
}
