/** Invalid and oversized CQL2 filters, and random text and JSON. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TilewrightError } from '../../src/errors.js';
import { readCql2, readCql2Text } from '../../src/query/cql2/json.js';
import { parseFilter } from '../../src/query/parameters.js';

const runs = { seed: 42, numRuns: 500 };

test('invalid text is refused with the position and what is expected there', () => {
  const wrong: [string, number, RegExp][] = [
    ['', 1, /expected a property, NOT or "\(", found the end/],
    ['eo:cloud_cover', 15, /expected a comparison/],
    ['eo:cloud_cover <', 17, /expected a value, found the end/],
    ['eo:cloud_cover < < 5', 18, /expected a value, found "<"/],
    ['eo:cloud_cover < 5 5', 20, /expected AND, OR or the end, found "5"/],
    ['(eo:cloud_cover < 5', 20, /expected "\)"/],
    ['eo:cloud_cover < 5)', 19, /expected AND, OR or the end/],
    ["scene = 'open", 9, /ends with a quote/],
    ['scene = § 5', 9, /expected a token of CQL2, found "§"/],
    ['eo:cloud_cover IS 5', 19, /expected NULL/],
    ['eo:cloud_cover NOT 5', 20, /expected LIKE, BETWEEN or IN/],
    ['eo:cloud_cover BETWEEN 1 OR 2', 26, /expected AND/],
    ['eo:cloud_cover IN ()', 20, /expected a value, found "\)"/],
    ['eo:cloud_cover = 2 ^ ', 22, /expected a number, found the end/],
    [`scene § '${'x'.repeat(60)}'`, 7, /found "§"/],
    [`eo:cloud_cover ${'x'.repeat(41)}`, 16, /found "x{40}\.\.\."/],
    [`eo:cloud_cover ${'x'.repeat(40)}`, 16, /found "x{40}"/],
    ['eo:cloud_cover IN 1', 19, /expected "\("/],
    ['scene LIKE 5', 12, /pattern in quotes/],
    ['scene LIKE platform', 12, /pattern in quotes/],
    ['eo:cloud_cover < 1e400', 18, /a number up to 1.8e308.*found "1e400"/],
    [
      'eo:cloud_cover = 2 ^ 3 ^ 2',
      24,
      /expected brackets around one of the powers, such as \(a \^ b\) \^ c, found "\^"/,
    ],
    ['(eo:cloud_cover + 1)', 21, /expected a comparison/],
    ['eo:cloud_cover + 1 AND TRUE', 20, /expected a comparison/],
    ['eo:cloud_cover < (1', 20, /expected "\)"/],
    ["T_AFTER(INTERVAL(5, '..'), datetime)", 18, /a time in quotes, '\.\.' or a property/],
    ['AND eo:cloud_cover < 5', 1, /expected a property/],
    ['S_INTERSECTS(geometry)', 22, /expected ","/],
    ['S_INTERSECTS(geometry, POINT(1,2))', 31, /expected a number/],
    ['S_INTERSECTS(geometry, POLYGON((1 2, 3 4))', 43, /expected "\)"/],
    ['S_INTERSECTS(geometry, POINT EMPTY)', 30, /expected "\)", found "EMPTY"/],
    ["datetime = TIMESTAMP '2020-01-01T00:00:00Z'", 22, /expected AND, OR or the end/],
    ['datetime = TIMESTAMP(2020)', 22, /time in quotes/],
  ];
  for (const [text, position, message] of wrong) {
    assert.throws(
      () => readCql2Text(text),
      (error: TilewrightError) =>
        error.code === 'TW_QUERY_CQL2_SYNTAX' &&
        error.message.includes(`at character ${position}:`) &&
        message.test(error.message),
      `${text} ${(() => {
        try {
          readCql2Text(text);
          return 'is read';
        } catch (error) {
          return String(error);
        }
      })()}`,
    );
  }
});

test('invalid conditions are refused with their names and locations', () => {
  const wrong: [unknown, string, RegExp][] = [
    [
      'cloud < 5',
      'TW_QUERY_UNKNOWN_PROPERTY',
      /"cloud" \(at character 1\): use one of id, collection, geometry/,
    ],
    ['eo:cloud_cover < 5 AND proj:epsg = 4326', 'TW_QUERY_NOT_QUERYABLE', /"proj:epsg".*at character 24/],
    ['properties.license = 1', 'TW_QUERY_NOT_QUERYABLE', /use one of id/],
    ["eo:cloud_cover < 'x'", 'TW_QUERY_CQL2', /eo:cloud_cover is compared with a number, not with "x"/],
    ['scene = 5', 'TW_QUERY_CQL2', /scene is compared with a text/],
    ['scene = TRUE', 'TW_QUERY_CQL2', /scene is compared with a text, not with true/],
    ["eo:cloud_cover LIKE '5'", 'TW_QUERY_CQL2', /LIKE needs a text; eo:cloud_cover is a number/],
    ["5 LIKE '5'", 'TW_QUERY_CQL2', /LIKE needs a text, not 5/],
    ['geometry = 5', 'TW_QUERY_CQL2', /spatial function/],
    ["1 = 'a'", 'TW_QUERY_CQL2', /1 and "a" cannot be compared/],
    ['eo:cloud_cover < scene', 'TW_QUERY_CQL2', /eo:cloud_cover is a number and scene is a text/],
    ['eo:cloud_cover + 1 = scene', 'TW_QUERY_CQL2', /the result of "\+" is a number and scene is a text/],
    ['scene = datetime + 1', 'TW_QUERY_CQL2', /at character 18.*"\+" takes numbers, not datetime/],
    ["eo:cloud_cover * 'a' = 1", 'TW_QUERY_CQL2', /"\*" takes numbers, not "a"/],
    ['CASEI(5) = scene', 'TW_QUERY_CQL2', /CASEI takes a text, not 5/],
    ['CASEI(eo:cloud_cover) = scene', 'TW_QUERY_CQL2', /CASEI takes a text, not eo:cloud_cover/],
    ['CASEI(scene) > 5', 'TW_QUERY_CQL2', /CASEI is compared with a text, not with 5/],
    ['FALSE = (scene IS NULL)', 'TW_QUERY_CQL2_UNSUPPORTED', /the condition "isNull" as a value/],
    ['avg(eo:cloud_cover) > 5', 'TW_QUERY_CQL2_UNSUPPORTED', /the function avg \(at character 1\)/],
    ['eo:cloud_cover > (2 + avg(1))', 'TW_QUERY_CQL2_UNSUPPORTED', /the function avg \(at character 23\)/],
    ["scene LIKE TRIM('a')", 'TW_QUERY_CQL2_UNSUPPORTED', /the function TRIM in a pattern/],
    ["A_CONTAINS(scene, ('a', 'b'))", 'TW_QUERY_CQL2_UNSUPPORTED', /the array function A_CONTAINS/],
    [
      'S_TOUCHES(POINT(1 2), POINT(1 2))',
      'TW_QUERY_CQL2_UNSUPPORTED',
      /two given geometries, without the property geometry/,
    ],
    [
      "T_DURING(INTERVAL(NOW(), '..'), datetime)",
      'TW_QUERY_CQL2_UNSUPPORTED',
      /the function NOW in an interval/,
    ],
    ["T_DURING(INTERVAL(scene, '..'), datetime)", 'TW_QUERY_CQL2', /scene is not a time/],
    [
      "T_DURING(INTERVAL(created, '2020-13-01'), datetime)",
      'TW_QUERY_DATETIME',
      /does not exist: "2020-13-01"/,
    ],
    [
      { op: 't_during', args: [{ property: 'datetime' }, { interval: [{ property: 'created' }, 5] }] },
      'TW_QUERY_CQL2',
      /two ends, each a time, a property or "\.\.", not 5/,
    ],
    [{ op: '=', args: [{ property: 'scene' }, null] }, 'TW_QUERY_CQL2', /not with null: use IS NULL to find/],
    [
      { op: '<', args: [{ property: 'eo:cloud_cover' }, 1e308 * 10] },
      'TW_QUERY_CQL2',
      /not with a number beyond 1.8e308/,
    ],
    [{ op: 'isNull', args: [{ op: 'Foo', args: [] }] }, 'TW_QUERY_CQL2_UNSUPPORTED', /the function "Foo"/],
    [{ op: 'casei', args: [{ property: 'scene' }] }, 'TW_QUERY_CQL2', /CASEI is a value, not a condition/],
    [
      { op: '=', args: [{ op: '+', args: [1] }, 1] },
      'TW_QUERY_CQL2',
      /"\+" takes a list of two numbers as "args"/,
    ],
    ['S_INTERSECTS(scene, POINT(1 2))', 'TW_QUERY_CQL2', /scene is not a geometry/],
    ['S_INTERSECTS(geometry, 5)', 'TW_QUERY_CQL2', /takes a property and a geometry/],
    ['S_INTERSECTS(geometry, POINT(181 2))', 'TW_QUERY_GEOMETRY', /beyond 180/],
    ['S_INTERSECTS(geometry, POLYGON((0 0, 1 0, 1 1, 0 1)))', 'TW_QUERY_GEOMETRY', /does not end/],
    ['S_INTERSECTS(geometry, BBOX(0,0,1))', 'TW_QUERY_BBOX', /3 numbers/],
    ["T_AFTER(scene, DATE('2020-01-01'))", 'TW_QUERY_CQL2', /scene is not a time/],
    ["T_AFTER(datetime, INTERVAL('2020-01-02','2020-01-01'))", 'TW_QUERY_DATETIME', /ends before it starts/],
    ["datetime > INTERVAL('2020-01-01','2020-01-02')", 'TW_QUERY_CQL2', /compared with a time/],
    ["datetime > TIMESTAMP('2020-13-01T00:00:00Z')", 'TW_QUERY_DATETIME', /2020-13-01/],
    ['S_DWITHIN(geometry, POINT(1 2))', 'TW_QUERY_CQL2_UNSUPPORTED', /s_dwithin/],
    [5, 'TW_QUERY_CQL2', /a condition is expected here/],
    [null, 'TW_QUERY_CQL2', /a condition is expected here/],
    [[], 'TW_QUERY_CQL2', /a condition is expected here/],
    [{ op: '=', args: 5 }, 'TW_QUERY_CQL2', /"args" of "=" must be a list/],
    [`eo:cloud_cover = '${'z'.repeat(90)}'`, 'TW_QUERY_CQL2', /not with "z{59}\.\.\.$|not with "z{59}\.\.\./],
    [`eo:cloud_cover = '${'z'.repeat(58)}'`, 'TW_QUERY_CQL2', /not with "z{58}"/],
    ['geometry > POINT(1 2)', 'TW_QUERY_CQL2', /spatial function/],
    ['CA_TEST(scene) = 5', 'TW_QUERY_CQL2_UNSUPPORTED', /the function CA_TEST/],
    ["scene LIKE CASEI(TRIM('a'))", 'TW_QUERY_CQL2_UNSUPPORTED', /the function TRIM in a pattern/],
    [
      { op: 's_intersects', args: [{ property: 'geometry' }, { bbox: [0, 0, '1', 1] }] },
      'TW_QUERY_CQL2',
      /a geometry is GeoJSON or/,
    ],
    [
      { op: 't_after', args: [{ property: 'datetime' }, { interval: ['2020-01-01', ''] }] },
      'TW_QUERY_CQL2',
      /an interval of two times|two ends/,
    ],
    [
      { op: 't_after', args: [{ property: 'datetime' }, { interval: ['2020-01-01/2021-01-01', '..'] }] },
      'TW_QUERY_CQL2',
      /an interval of two times|two ends/,
    ],
    [{ op: 'isNull', args: [{ date: 'x' }] }, 'TW_QUERY_CQL2', /IS NULL/],
    [{ op: 'isNull', args: [[5]] }, 'TW_QUERY_CQL2', /IS NULL takes a property/],
    [
      { op: 'between', args: [{ property: 'eo:cloud_cover' }, 5] },
      'TW_QUERY_CQL2',
      /takes 3 arguments, not 2/,
    ],
    [{ op: 'not', args: [] }, 'TW_QUERY_CQL2', /takes 1 argument, not 0/],
    [{}, 'TW_QUERY_CQL2', /"op" and "args"/],
    [{ op: 'and', args: [] }, 'TW_QUERY_CQL2', /no arguments/],
    [{ op: 'and', args: [{ op: 'x', args: [] }] }, 'TW_QUERY_CQL2_UNSUPPORTED', /"x" \(at args\[0\]\)/],
    [{ op: '<', args: [{ property: 'eo:cloud_cover' }] }, 'TW_QUERY_CQL2', /takes 2 arguments, not 1/],
    [{ op: '<', args: [{ property: 5 }, 5] }, 'TW_QUERY_CQL2', /the name of a property is a text/],
    [{ op: 'in', args: [{ property: 'id' }, []] }, 'TW_QUERY_CQL2', /list of values/],
    [{ op: '=', args: [{ property: 'toString' }, 5] }, 'TW_QUERY_UNKNOWN_PROPERTY', /at args\[0\]/],
  ];
  for (const [filter, code, message] of wrong)
    assert.throws(() => readCql2(filter), { code, message }, JSON.stringify(filter));
  assert.throws(() => readCql2('{', 'cql2-json'), { code: 'TW_QUERY_CQL2', message: /not JSON/ });
  assert.throws(() => readCql2('', 'sql'), { code: 'TW_QUERY_FILTER_LANG' });
  assert.throws(() => readCql2({}, 'cql2-text'), { code: 'TW_QUERY_CQL2' });
});

test('filters that are too deep, too long or too large are refused', () => {
  const refused = (filter: unknown, what: string) =>
    assert.throws(() => parseFilter({ filter }), { code: 'TW_QUERY_TOO_COMPLEX', message: new RegExp(what) });
  refused(`${'('.repeat(200_000)}`, 'levels');
  refused(`${'NOT '.repeat(100_000)}TRUE`, 'levels');
  let deep: unknown = true;
  for (let i = 0; i < 50_000; i++) deep = { op: 'not', args: [deep] };
  refused(deep, 'levels');
  const times = (count: number) =>
    Array.from({ length: count }, (_, i) => `TIMESTAMP('${new Date(i * 1e6).toISOString()}')`).join();
  refused(`created IN (${times(10_001)})`, 'values in its lists');
  assert.doesNotThrow(() => parseFilter({ filter: `created IN (${times(10_000)})` }));
  const ring = Array.from({ length: 10_000 }, (_, i) => [i / 100, Math.sin(i)]);
  const polygon = { type: 'Polygon', coordinates: [[...ring, ring[0]]] };
  refused({ op: 's_intersects', args: [{ property: 'geometry' }, polygon] }, 'points');
  assert.throws(() => parseFilter({ intersects: polygon }), { code: 'TW_QUERY_TOO_COMPLEX' });
  refused({ op: 'in', args: [{ property: 'id' }, Array.from({ length: 10_001 }, String)] }, 'values');
  refused(`scene LIKE '${'%a'.repeat(600)}'`, 'patterns');
  refused(`CASEI(scene) LIKE '${'%a'.repeat(600)}'`, 'patterns');
  refused(`'${'a'.repeat(5000)}' LIKE '%${'a'.repeat(1000)}'`, 'characters in its patterns');
  refused(`'a' LIKE CASEI('${'ß'.repeat(501)}')`, 'characters in its patterns');
  refused(Array.from({ length: 5 }, () => `'a' LIKE '${'%a'.repeat(101)}'`).join(' OR '), 'patterns');
  const long = 'a'.repeat(10_001);
  for (const text of [
    `scene = '${long}'`,
    `'${long}' LIKE 'a%'`,
    `'a' = '${long}'`,
    `scene IN ('a', '${long}')`,
    `CASEI(scene) = CASEI('${long}')`,
    `ACCENTI('e${'\u0316\u0301'.repeat(5000)}') = scene`,
  ])
    refused(text, 'characters in a text');
  refused({ op: '=', args: [{ property: 'scene' }, long] }, 'characters in a text');
  assert.throws(() => parseFilter({ query: { scene: { eq: long } } }), { code: 'TW_QUERY_TOO_COMPLEX' });
  assert.doesNotThrow(() => parseFilter({ filter: `scene = '${long.slice(1)}'` }));
  refused(`${'CASEI('.repeat(200)}scene${')'.repeat(200)} = 'a'`, 'levels');
  refused(`eo:cloud_cover < pixel_coverage${' + 1'.repeat(100_000)}`, 'levels');
  refused(`eo:cloud_cover < ${'('.repeat(100_000)}`, 'levels');
  const sum = `eo:cloud_cover < pixel_coverage${' + 1'.repeat(50)}`;
  refused(Array.from({ length: 5 }, () => sum).join(' OR '), 'functions and operators');
});

test('any text and any JSON is a filter or an error with a code', () => {
  const words = fc.constantFrom(
    ...[
      '(',
      ')',
      ',',
      '=',
      '<>',
      '<',
      "'a'",
      "'",
      '"',
      '5',
      '-',
      '.',
      'AND',
      'OR',
      'NOT',
      'IN',
      'LIKE',
      'IS',
      'NULL',
    ],
    ...[
      'BETWEEN',
      'eo:cloud_cover',
      'scene',
      'datetime',
      'geometry',
      'S_INTERSECTS',
      'T_AFTER',
      'POINT',
      'POLYGON',
    ],
    ...[
      'BBOX',
      'DATE',
      'INTERVAL',
      'TIMESTAMP',
      'TRUE',
      'A_EQUALS',
      'CASEI',
      '+',
      '^',
      'DIV',
      '..',
      '[',
      '\\',
      '\u{1f600}',
      '\0',
    ],
  );
  const json = fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue({ maxDepth: 1 }),
      fc.constantFrom({ property: 'scene' }, { property: 'geometry' }, { timestamp: '2020-01-01T00:00:00Z' }),
      fc.record({
        op: fc.constantFrom(
          'and',
          'or',
          'not',
          '=',
          'in',
          'like',
          'between',
          's_within',
          't_during',
          'isNull',
          'casei',
          '+',
          'x',
        ),
        args: fc.oneof(fc.array(tie('node'), { maxLength: 3 }), tie('node')),
      }),
    ),
  })).node;
  const ends = (filter: unknown) => {
    try {
      readCql2(filter);
    } catch (error) {
      assert.ok(error instanceof TilewrightError && error.status === 400, String(error));
    }
  };
  fc.assert(
    fc.property(fc.array(words, { maxLength: 12 }), (some) => ends(some.join(' '))),
    { ...runs, numRuns: 3000 },
  );
  fc.assert(fc.property(fc.string(), ends), runs);
  fc.assert(fc.property(json, ends), { ...runs, numRuns: 2000 });
});
