/** Patterns of LIKE, the size of filters, and their properties. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { NumberExpression, TextExpression } from '../../src/query/filter.js';
import {
  and,
  checkNesting,
  checkSize,
  defaultToRawSource,
  type Filter,
  or,
  referencedProperties,
  references,
} from '../../src/query/filter.js';
import { LikePattern, likePrefix, literalPattern } from '../../src/query/operators.js';

/** A pattern as a regular expression. */
const regexOf = (pattern: string) =>
  new RegExp(
    `^${Array.from(pattern.matchAll(/\\(.)|./gsu), ([whole, escaped]) => {
      if (whole === '%') return '.*';
      if (whole === '_') return '.';
      return (escaped ?? whole).replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    }).join('')}$`,
    'su',
  );

const letters = fc.constantFrom('a', 'b', '%', '_', '\\', '😀', '.');

test('a pattern matches the same texts as the equivalent regular expression', () => {
  const text = fc.array(letters, { maxLength: 7 }).map((all) => all.join(''));
  const pattern = fc
    .array(fc.oneof(letters, fc.constantFrom('%', '_', '\\%', '\\_', '\\\\', 'a')), { maxLength: 7 })
    .map((all) => all.join(''));
  fc.assert(
    fc.property(pattern, fc.array(text, { minLength: 8, maxLength: 8 }), (one, texts) => {
      if (/(^|[^\\])(\\\\)*\\$/.test(one)) return;
      const [like, regex] = [new LikePattern(one), regexOf(one)];
      const matches = (whole: string) => like.matches(whole);
      for (const each of [
        ...texts,
        one,
        one.replaceAll('%', 'ab'),
        one.replaceAll('%', '').replaceAll('_', 'b'),
      ])
        assert.equal(matches(each), regex.test(each), `${one} and ${each}`);
      // A text that is matched in two parts.
      for (const [i, first] of texts.entries()) {
        const second = texts[(i + 1) % texts.length]!;
        const end = like.isEnd(like.after(like.after(like.start, first), second));
        assert.equal(end, matches(first + second), `${one} and ${first} ${second}`);
      }
      const { prefix, isAll } = likePrefix(one);
      for (const each of texts) {
        if (matches(each)) assert.ok(each.startsWith(prefix), `${one} and ${each}`);
        if (isAll) assert.equal(matches(each), each.startsWith(prefix), `${one} and ${each}`);
      }
      for (const each of texts) {
        const literal = new LikePattern(literalPattern(each));
        for (const other of texts) assert.equal(literal.matches(other), other === each);
      }
    }),
    { seed: 42, numRuns: 300 },
  );
});

test('the prefix of a pattern is the text before its first wildcard', () => {
  assert.deepEqual(likePrefix('abc%'), { prefix: 'abc', isAll: true });
  assert.deepEqual(likePrefix('%'), { prefix: '', isAll: true });
  assert.deepEqual(likePrefix('abc'), { prefix: 'abc', isAll: false });
  assert.deepEqual(likePrefix('ab_'), { prefix: 'ab', isAll: false });
  assert.deepEqual(likePrefix('a%b'), { prefix: 'a', isAll: false });
  assert.deepEqual(likePrefix('a%%'), { prefix: 'a', isAll: false });
  assert.deepEqual(likePrefix('a\\%%'), { prefix: 'a%', isAll: true });
  assert.deepEqual(likePrefix(''), { prefix: '', isAll: false });
});

const is = (value: string): Filter => ({ op: '=', property: 'scene', value });
const raw: Filter = { op: '=', property: 'source', value: 'raw' };

test('filters of one kind are flattened, and a single one is unchanged', () => {
  const [a, b, c] = [is('a'), is('b'), is('c')];
  assert.deepEqual(and([and([a, b]), c]), { op: 'and', args: [a, b, c] });
  assert.deepEqual(or([or([a, b]), c]), { op: 'or', args: [a, b, c] });
  assert.deepEqual(and([or([a, b]), c]), { op: 'and', args: [{ op: 'or', args: [a, b] }, c] });
  assert.equal(and([a]), a);
  assert.equal(or([b]), b);
  assert.deepEqual(and([]), { op: 'and', args: [] });
});

test('a filter refers to the properties of all its conditions at any depth', () => {
  const name = { property: 'platform' } as const;
  const conditions: [Filter, string[]][] = [
    [raw, ['source']],
    [{ op: 'match', text: { op: 'casei', arg: name }, pattern: 'a' }, ['platform']],
    [
      {
        op: 'compare',
        is: '<',
        args: [{ property: 'pixel_coverage' }, { property: 'eo:cloud_cover' }],
      } as never,
      ['pixel_coverage', 'eo:cloud_cover'],
    ],
    [
      {
        op: 'periods',
        relation: 't_after',
        args: [
          { interval: [{ property: 'start_datetime' }, null] },
          { interval: [5, { property: 'datetime' }] },
        ],
      },
      ['start_datetime', 'datetime'],
    ],
    [{ op: 's_intersects', shape: { type: 'Point', coordinates: [1, 2] } }, ['geometry']],
  ];
  for (const [condition, names] of conditions) {
    assert.deepEqual(referencedProperties(condition as never), names);
    for (const filter of [
      condition,
      and([is('a'), condition]),
      or([is('a'), condition]),
      { op: 'not', arg: condition } as Filter,
      { op: 'isUnknown', arg: or([condition, is('b')]) } as Filter,
    ]) {
      for (const one of names) assert.ok(references(filter, one as never), JSON.stringify(filter));
      assert.ok(!references(filter, 'created'));
    }
  }
  const derived: Filter = { op: 'not', arg: raw };
  assert.equal(defaultToRawSource(derived), derived);
  assert.deepEqual(defaultToRawSource(is('a')), and([is('a'), raw]));
});

test('a filter beyond each limit is refused', () => {
  const limits: [string, (size: number) => Filter, number][] = [
    ['conditions', (size) => or(Array.from({ length: size }, (_, i) => is(`${i}`))), 100],
    [
      'points in its geometries',
      (size) =>
        and([
          { op: 's_within', shape: { bbox: [0, 0, 1, 1] } },
          {
            op: 's_within',
            shape: {
              type: 'GeometryCollection',
              geometries: [
                { type: 'Point', coordinates: [1, 2] },
                { type: 'MultiPoint', coordinates: Array(size - 5).fill([1, 2]) },
              ],
            },
          },
        ]),
      10_000,
    ],
    [
      'values in its lists',
      (size) =>
        and([
          { op: 'in', property: 'id', values: ['x'] },
          { op: 'in', property: 'id', values: Array(size - 1).fill('x') },
        ]),
      10_000,
    ],
    [
      'characters in its patterns',
      (size) =>
        and([
          { op: 'like', property: 'id', pattern: 'x'.repeat(size - 5) },
          { op: 'match', text: { op: 'casei', arg: { property: 'id' } }, pattern: 'abcde' },
        ]),
      1000,
    ],
  ];
  const folded = (count: number): TextExpression =>
    count === 0 ? { property: 'id' } : { op: 'casei', arg: folded(count - 1) };
  const added = (count: number): NumberExpression =>
    count === 0
      ? { property: 'eo:cloud_cover' }
      : { op: '+', args: count % 2 ? [added(count - 1), 1] : [1, added(count - 1)] };
  limits.push([
    'functions and operators in its expressions',
    (size) =>
      and([
        { op: 'match', text: folded(50), pattern: 'a' },
        { op: 'compare', args: [added(size - 80), added(30)] } as unknown as Filter,
      ]),
    200,
  ]);
  for (const [what, make, most] of limits) {
    const largest = make(most);
    for (const wrap of [
      (filter: Filter) => filter,
      (filter: Filter): Filter => ({ op: 'not', arg: filter }),
      (filter: Filter): Filter => ({ op: 'isUnknown', arg: filter }),
    ]) {
      assert.deepEqual(checkSize(wrap(largest)), wrap(largest));
      assert.throws(() => checkSize(wrap(make(most + 1))), {
        code: 'TW_QUERY_TOO_COMPLEX',
        message: new RegExp(`${most + 1} ${what}|${what}.*${most + 1}`, 's'),
      });
    }
  }
});

test('JSON that is nested too deeply is refused', () => {
  const nested = (levels: number): unknown =>
    levels === 0 ? 1 : levels % 2 ? [nested(levels - 1)] : { a: nested(levels - 1) };
  checkNesting(nested(219));
  checkNesting(null);
  checkNesting({ a: null, b: [1, 'x'] });
  checkNesting(nested(220));
  assert.throws(() => checkNesting(nested(221)), {
    code: 'TW_QUERY_TOO_COMPLEX',
    message:
      'the filter has 221 levels of objects and lists, more than 220: simplify it, or split the search',
  });
});
