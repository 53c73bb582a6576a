/** The limits of filters in CQL2: the largest accepted one, and the next larger one, which is refused with its size. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseFilter } from '../../src/query/index.js';

const property = (name: string) => ({ property: name });
const nested = (levels: number, around: (inner: unknown) => unknown, innermost: unknown) => {
  let json = innermost;
  for (let i = 0; i < levels; i++) json = around(json);
  return json;
};
const op = (name: string, ...args: unknown[]) => ({ op: name, args });

/** Creates a filter of a size. */
type Make = (size: number) => unknown;

const limits: [what: string, most: number, make: Make][] = [
  ['characters', 500_000, (size) => `${' '.repeat(size - 4)}TRUE`],
  ['levels of brackets', 100, (size) => `${'('.repeat(size)}TRUE${')'.repeat(size)}`],
  ['levels of brackets', 100, (size) => `${'NOT '.repeat(size)}TRUE`],
  ['levels of brackets', 100, (size) => `${'CASEI('.repeat(size)}scene${')'.repeat(size)} = 'a'`],
  ['levels of operators', 100, (size) => nested(size, (inner) => op('not', inner), true)],
  ['levels of operators', 100, (size) => nested(size, (inner) => op('and', true, inner), true)],
  [
    'levels of operators',
    100,
    (size) =>
      op(
        '=',
        nested(size, (inner) => op('casei', inner), property('scene')),
        'a',
      ),
  ],
  [
    'levels of operators',
    100,
    (size) =>
      op(
        'like',
        property('scene'),
        nested(size, (inner) => op('casei', inner), 'a%'),
      ),
  ],
  ['levels of operators', 100, (size) => `eo:cloud_cover < pixel_coverage${' + 1'.repeat(size)}`],
  [
    'levels of IS NULL around conditions',
    3,
    (size) => `${'('.repeat(size)}eo:cloud_cover < 1${') IS NULL'.repeat(size)}`,
  ],
  ['characters in a text', 10_000, (size) => `scene = '${'a'.repeat(size)}'`],
  ['characters in a text', 10_000, (size) => op('in', property('scene'), ['a', 'b'.repeat(size)])],
  ['characters in its patterns', 1000, (size) => `scene LIKE '${'a'.repeat(size)}'`],
  // Folding doubles the number of characters.
  [
    'characters in its patterns',
    1000,
    (size) => `'a' LIKE CASEI('${'ß'.repeat(size / 2)}${'a'.repeat(size % 2)}')`,
  ],
  // A matched literal is not a condition of the filter, but has caused work.
  [
    'characters in its patterns',
    1000,
    (size) => `'a' LIKE '${'b'.repeat(400)}' OR 'b' LIKE '${'c'.repeat(size - 400)}'`,
  ],
  ['conditions', 100, (size) => Array.from({ length: size }, (_, i) => `eo:cloud_cover = ${i}`).join(' OR ')],
  [
    'values in its lists',
    10_000,
    (size) =>
      op(
        'in',
        property('pixel_coverage'),
        Array.from({ length: size }, (_, i) => i),
      ),
  ],
];

test('a filter at a limit is accepted, and one beyond it is refused with its size', () => {
  for (const [what, most, make] of limits) {
    assert.doesNotThrow(() => parseFilter({ filter: make(most) }), what);
    assert.throws(() => parseFilter({ filter: make(most + 1) }), {
      code: 'TW_QUERY_TOO_COMPLEX',
      message: `the filter has ${most + 1} ${what}, more than ${most}: simplify it, or split the search`,
    });
  }
});

test('levels side by side do not add up', () => {
  const alike = (part: string, count: number) => Array.from({ length: count }, () => part).join(' OR ');
  for (const filter of [
    alike('((NOT TRUE))', 90),
    alike(`${'('.repeat(60)}eo:cloud_cover < 1${')'.repeat(60)}`, 3),
    alike(`${'('.repeat(3)}eo:cloud_cover < 1${') IS NULL'.repeat(3)}`, 3),
    `CASEI(ACCENTI(scene)) = CASEI('a') AND ${alike("CASEI(scene) = 'b'", 60)}`,
  ])
    assert.doesNotThrow(() => parseFilter({ filter }), filter.slice(0, 80));
});
