/** Exact messages for refused filters in CQL2. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCql2 } from '../../src/query/cql2/json.js';

const property = (name: string) => ({ property: name });
const op = (name: unknown, ...args: unknown[]) => ({ op: name, args });

test('text with a syntax error is answered with the position and what is expected there', () => {
  const wrong: [filter: string, position: number, expected: string, found: string][] = [
    ['eo:cloud_cover BETWEEN 1 AND', 29, 'a value', 'the end'],
    ['eo:cloud_cover IN (1, )', 23, 'a value', '")"'],
    ['eo:cloud_cover IN (1', 21, '")"', 'the end'],
    ['eo:cloud_cover = ()', 19, 'a property, NOT or "("', '")"'],
    ['S_INTERSECTS(, geometry)', 14, 'a property, a geometry or a time', '","'],
    ['S_INTERSECTS(geometry, )', 24, 'a property, a geometry or a time', '")"'],
    ['S_INTERSECTS(geometry, POINT(1 2)', 34, '")"', 'the end'],
    ['CASEI() = scene', 7, 'a text', '")"'],
    ['CASEI(scene', 12, '")"', 'the end'],
    ['scene LIKE', 11, 'a pattern in quotes', 'the end'],
    ['eo:cloud_cover = -', 19, 'a number', 'the end'],
    ['eo:cloud_cover = NULL', 18, 'a value', '"NULL"'],
    ['(eo:cloud_cover < 5) = TRUE', 22, 'AND, OR or the end', '"="'],
    ['(eo:cloud_cover < 5) + 1', 22, 'AND, OR or the end', '"+"'],
    ['(eo:cloud_cover < 5) ^ 1', 22, 'AND, OR or the end', '"^"'],
    ['eo:cloud_cover OR TRUE', 16, 'a comparison (=, <>, <, <=, >, >=, LIKE, BETWEEN, IN, IS NULL)', '"OR"'],
    ['NOT eo:cloud_cover', 19, 'a comparison (=, <>, <, <=, >, >=, LIKE, BETWEEN, IN, IS NULL)', 'the end'],
    ['eo:cloud_cover NOT = 5', 20, 'LIKE, BETWEEN or IN, or NOT before the comparison', '"="'],
    ['2 ^ 3 ^ 1 = 8', 7, 'brackets around one of the powers, such as (a ^ b) ^ c', '"^"'],
    ['TRUE NOT IN (1)', 6, 'AND, OR or the end', '"NOT"'],
    ['S_WITHIN(geometry, POINT(-+1 2))', 27, 'a number', '"+"'],
    ['S_WITHIN(geometry, POINT(1 2 3 4))', 32, '")"', '"4"'],
    ['S_WITHIN(geometry, GEOMETRYCOLLECTION(5))', 39, 'a geometry', '"5"'],
    [
      'S_WITHIN(geometry, GEOMETRYCOLLECTION(GEOMETRYCOLLECTION(POINT(1 2))))',
      39,
      'a geometry other than a collection',
      '"GEOMETRYCOLLECTION"',
    ],
    ["T_AFTER(datetime, INTERVAL('..' '..'))", 33, '","', '".."'],
    ["T_AFTER(datetime, INTERVAL('..', '..')", 39, '")"', 'the end'],
    ["T_AFTER(datetime, INTERVAL(NULL, '..'))", 28, "a time in quotes, '..' or a property", '"NULL"'],
    ["datetime > DATE('2020-01-01'", 29, '")"', 'the end'],
    ['datetime > DATE(2020)', 17, 'a time in quotes', '"2020"'],
    ["scene = 'a\\'", 9, 'a text that ends with a quote', 'one without an end'],
    ['scene = "', 9, 'a token of CQL2', '"""'],
    ['scene = 😀', 9, 'a token of CQL2', '"😀"'],
    ['eo:cloud_cover < -1e400', 19, 'a number up to 1.8e308, the largest of 64 bits', '"1e400"'],
  ];
  for (const [filter, position, expected, found] of wrong)
    assert.throws(
      () => readCql2(filter),
      {
        code: 'TW_QUERY_CQL2_SYNTAX',
        message: `the filter cannot be read at character ${position}: expected ${expected}, found ${found}`,
      },
      filter,
    );
});

test('invalid conditions are answered with their locations and the reason', () => {
  const wrong: [filter: unknown, where: string, why: string][] = [
    [
      'geometry = geometry',
      'at character 1',
      'geometry cannot be compared: use S_INTERSECTS or another spatial function',
    ],
    [
      'scene < geometry',
      'at character 1',
      'geometry cannot be compared: use S_INTERSECTS or another spatial function',
    ],
    [
      'scene = eo:cloud_cover',
      'at character 1',
      'scene is a text and eo:cloud_cover is a number, so they cannot be compared',
    ],
    [
      'created = CASEI(scene)',
      'at character 1',
      'created is a time and CASEI is a text, so they cannot be compared',
    ],
    [
      "1 < 'a'",
      'at character 1',
      '1 and "a" cannot be compared: use two texts, numbers, times, or truth values',
    ],
    [
      op('=', null, null),
      '',
      'null and null cannot be compared: use two texts, numbers, times, or truth values',
    ],
    [op('=', Infinity, 1), '', 'a number is compared with a number, not with a number beyond 1.8e308'],
    [op('=', property('scene')), '', '"=" takes 2 arguments, not 1'],
    [op('not', true, true), '', '"not" takes 1 argument, not 2'],
    [op('and'), '', '"and" has no arguments'],
    [op('or', true, op('not', op('not'))), 'at args[1].args[0]', '"not" takes 1 argument, not 0'],
    [op('and', true, 5), 'at args[1]', 'a condition is expected here'],
    [[], '', 'a condition is expected here'],
    [{ op: 'not', args: {} }, '', '"args" of "not" must be a list'],
    [op(5, 1), '', 'a condition is an object with the members "op" and "args"'],
    [property('scene'), '', 'a condition is an object with the members "op" and "args"'],
    [op('casei', property('scene')), '', 'CASEI is a value, not a condition: compare it with another value'],
    [op('+', 1, 2), '', '3 is a value, not a condition: compare it with another value'],
    [
      op('between', property('pixel_coverage'), [1, 2], 3),
      '',
      'pixel_coverage is compared with a number, not with [1,2]',
    ],
    [op('between', property('pixel_coverage'), [1, 2, 3]), '', '"between" takes 3 arguments, not 4'],
    [op('in', property('scene'), 'a'), '', '"in" takes a value and a list of values'],
    [op('in', property('scene'), ['a'], ['b']), '', '"in" takes 2 arguments, not 3'],
    [
      op('in', property('datetime'), [5]),
      '',
      "datetime is compared with a time such as TIMESTAMP('2024-06-01T00:00:00Z'), not with 5",
    ],
    [op('in', property('scene'), ['a', 5]), '', 'scene is compared with a text, not with 5'],
    [op('like', property('pixel_coverage'), '5'), '', 'LIKE needs a text; pixel_coverage is a number'],
    [op('like', property('geometry'), '5'), '', 'LIKE needs a text; geometry is a geometry'],
    [op('like', property('scene')), '', '"like" takes 2 arguments, not 1'],
    [
      op('t_after', property('created'), null),
      '',
      "created is compared with a time such as TIMESTAMP('2024-06-01T00:00:00Z'), not with null: use IS NULL to find missing values",
    ],
    [
      op('=', property('pixel_coverage'), 'z'.repeat(58)),
      '',
      `pixel_coverage is compared with a number, not with "${'z'.repeat(58)}"`,
    ],
    [
      op('=', property('pixel_coverage'), 'z'.repeat(59)),
      '',
      `pixel_coverage is compared with a number, not with "${'z'.repeat(59)}...`,
    ],
    [op('like', 5, '5'), '', 'LIKE needs a text, not 5'],
    [
      op('like', property('scene'), property('id')),
      '',
      'scene is compared with a pattern, which is a text or CASEI or ACCENTI of one, not with {"property":"id"}',
    ],
    [
      op('like', 'abc', op('casei', 'a', 'b')),
      '',
      '"abc" is compared with a pattern, which is a text or CASEI or ACCENTI of one, not with {"op":"casei","args":["a","b"]}',
    ],
    [
      op('like', property('scene'), op('casei', null)),
      '',
      'scene is compared with a pattern, which is a text or CASEI or ACCENTI of one, not with null',
    ],
    [op('=', op('casei', 'a', 'b'), 'a'), 'at args[0]', '"casei" takes a list of one text as "args"'],
    [op('=', { op: '+', args: 5 }, 1), 'at args[0]', '"+" takes a list of two numbers as "args"'],
    [op('=', op('accenti', 5), 'a'), 'at args[0]', 'ACCENTI takes a text, not 5'],
    [op('=', op('casei', property('created')), 'a'), 'at args[0]', 'CASEI takes a text, not created'],
    [
      op('<', op('*', 1, op('+', property('scene'), 1)), 1),
      'at args[0].args[1]',
      '"+" takes numbers, not scene',
    ],
    [op('<', op('*', op('casei', property('scene')), 1), 1), 'at args[0]', '"*" takes numbers, not CASEI'],
    [op('<', op('*', Infinity, 1), 1), 'at args[0]', '"*" takes numbers, not a number beyond 1.8e308'],
    [
      op('<', property(5 as never), 1),
      'at args[0]',
      'the name of a property is a text, in JSON {"property": "eo:cloud_cover"}',
    ],
    ['S_WITHIN(geometry, created)', 'at character 1', 'created is not a geometry: use the property geometry'],
    [
      op('s_within', property('geometry'), 'POINT(1 2)'),
      '',
      'a spatial function takes a property and a geometry',
    ],
    [
      op('s_within', property('geometry'), { bbox: '0,0,1,1' }),
      '',
      'a geometry is GeoJSON or {"bbox": [west, south, east, north]}',
    ],
    [op('isNull', { bbox: 5 }), '', 'a geometry is GeoJSON or {"bbox": [west, south, east, north]}'],
    [op('isNull', null), '', 'IS NULL takes a property, a value or a condition, not null'],
    [
      op('isNull', { x: 1 }),
      '',
      'IS NULL is compared with a time such as TIMESTAMP(\'2024-06-01T00:00:00Z\'), not with {"x":1}',
    ],
    [
      op('isNull', { interval: [5, 6] }),
      '',
      'an interval is compared with an interval of two times, not with [5,6]',
    ],
    [
      'T_AFTER(datetime, -5)',
      'at character 1',
      "datetime is compared with a time such as TIMESTAMP('2024-06-01T00:00:00Z'), not with -5",
    ],
    [
      'T_AFTER(5, datetime)',
      'at character 1',
      "datetime is compared with a time such as TIMESTAMP('2024-06-01T00:00:00Z'), not with 5",
    ],
    [
      op('t_after', 5, 6),
      '',
      "an interval is compared with a time such as TIMESTAMP('2024-06-01T00:00:00Z'), not with 5",
    ],
    ['T_AFTER(scene, created)', 'at character 1', 'scene is not a time'],
    [
      op('t_after', property('created'), { interval: ['2020-01-01'] }),
      '',
      'created is compared with a time such as TIMESTAMP(\'2024-06-01T00:00:00Z\'), not with {"interval":["2020-01-01"]}',
    ],
    [
      op('t_after', property('created'), { interval: ['2020-01-01', ''] }),
      '',
      'created is compared with an interval of two times, not with ["2020-01-01",""]',
    ],
    [
      op('t_after', property('created'), { interval: ['2020-01-01/2021-01-01', '..'] }),
      '',
      'created is compared with an interval of two times, not with ["2020-01-01/2021-01-01",".."]',
    ],
    [
      op('t_after', property('created'), { interval: [property('datetime'), null] }),
      '',
      'an interval has two ends, each a time, a property or "..", not null',
    ],
    [
      op('=', property('created'), '2020-01-01/2020-02-01'),
      '',
      'created is compared with a time such as TIMESTAMP(\'2024-06-01T00:00:00Z\'), not with "2020-01-01/2020-02-01"',
    ],
    [
      op('=', property('created'), { timestamp: '2020-01-01T00:00:00Z/..' }),
      '',
      'created is compared with a time such as TIMESTAMP(\'2024-06-01T00:00:00Z\'), not with {"timestamp":"2020-01-01T00:00:00Z/.."}',
    ],
    [
      op('=', property('created'), { date: 20200101 }),
      '',
      'created is compared with a time such as TIMESTAMP(\'2024-06-01T00:00:00Z\'), not with {"date":20200101}',
    ],
    [
      op('=', property('created'), { date: '2020-01-01T00:00:00Z' }),
      '',
      'created is compared with a time such as TIMESTAMP(\'2024-06-01T00:00:00Z\'), not with {"date":"2020-01-01T00:00:00Z"}',
    ],
    [
      op('=', property('created'), { interval: ['2020-01-01', '2020-01-02'] }),
      '',
      'created is compared with a time, not with {"interval":["2020-01-01","2020-01-02"]}',
    ],
    [
      op('=', property('created'), { interval: ['2020-01-01', '..'] }),
      '',
      'created is compared with a time, not with {"interval":["2020-01-01",".."]}',
    ],
    [
      op('=', property('scene'), null),
      '',
      'scene is compared with a text, not with null: use IS NULL to find missing values',
    ],
    [
      op('=', property('scene'), -Infinity),
      '',
      'scene is compared with a text, not with a number beyond 1.8e308',
    ],
    [
      op('=', property('scene'), Array(30).fill(1)),
      '',
      `scene is compared with a text, not with [${'1,'.repeat(29)}1...`,
    ],
  ];
  for (const [filter, where, why] of wrong)
    assert.throws(
      () => readCql2(filter),
      {
        code: 'TW_QUERY_CQL2',
        message: `the filter cannot be used${where && ` (${where})`}: ${why}`,
      },
      JSON.stringify(filter),
    );
});

test('unsupported parts of CQL2 are named with their locations', () => {
  const wrong: [filter: unknown, where: string, what: string][] = [
    ['A_EQUALS(scene, id)', 'at character 1', 'the array function A_EQUALS'],
    ['TRUE AND S_AREA_OVERLAPS(geometry, geometry)', 'at character 10', 'the function "s_area_overlaps"'],
    ['scene = [1]', 'at character 9', 'an array'],
    ["scene LIKE CASEI(UPPER('a'))", 'at character 18', 'the function UPPER in a pattern'],
    [op('=', op('a_count', 1), 1), 'at args[0]', 'the array function "a_count"'],
    [op('=', op('alpha_first', 1), 1), 'at args[0]', 'the function "alpha_first"'],
    [op('=', op('AND', true), 1), 'at args[0]', 'the condition "AND" as a value of a comparison'],
    [op('like', property('scene'), op('upper', 'a')), '', 'the function "upper" in a pattern'],
    [
      op('s_within', { type: 'Point', coordinates: [1, 2] }, { bbox: [0, 0, 1, 1] }),
      '',
      'a spatial function of two given geometries, without the property geometry',
    ],
  ];
  for (const [filter, where, what] of wrong)
    assert.throws(
      () => readCql2(filter),
      {
        code: 'TW_QUERY_CQL2_UNSUPPORTED',
        message: `the filter uses ${what}${where && ` (${where})`}, which is not supported: compare properties, literals, and CASEI, ACCENTI or arithmetic of these`,
      },
      JSON.stringify(filter),
    );
});

test('a name that is not a property is answered with its location', () => {
  const wrong: [filter: unknown, name: string, where: string][] = [
    ['"a""b" = 5', 'a"b', ' (at character 1)'],
    ['scene = a AND TRUE', 'a', ' (at character 9)'],
    [op('and', true, op('not', op('=', 1, property('x')))), 'x', ' (at args[1].args[0].args[1])'],
    [op('in', property('scene'), ['a', property('x')]), 'x', ' (at args[1][1])'],
    [op('like', property('x'), 'a'), 'x', ' (at args[0])'],
    [op('between', 1, 2, property('x')), 'x', ' (at args[2])'],
    [op('isNull', property('x')), 'x', ' (at args[0])'],
    [op('isNull', { interval: ['..', property('x')] }), 'x', ' (at args[0].interval[1])'],
    [op('s_within', property('x'), { bbox: [0, 0, 1, 1] }), 'x', ' (at args[0])'],
    [op('t_after', { interval: [property('x'), '..'] }, '2020-01-01'), 'x', ' (at args[0].interval[0])'],
    [op('=', op('+', 1, op('casei', property('x'))), 1), 'x', ' (at args[0].args[1].args[0])'],
  ];
  for (const [filter, name, where] of wrong)
    assert.throws(
      () => readCql2(filter),
      ({ code, message }: { code: string; message: string }) =>
        code === 'TW_QUERY_UNKNOWN_PROPERTY' &&
        message.startsWith(`there is no property "${name}"${where}: use one of id, collection, `),
      JSON.stringify(filter),
    );
});

test('a filter in another language than filter-lang is refused', () => {
  const filter = op('=', property('scene'), 'a');
  assert.deepEqual(readCql2(filter, 'cql2-json'), { op: '=', property: 'scene', value: 'a' });
  assert.deepEqual(readCql2(JSON.stringify(filter), 'cql2-json'), readCql2("scene = 'a'", 'cql2-text'));
  assert.throws(() => readCql2(filter, 'cql2-text'), {
    code: 'TW_QUERY_CQL2',
    message: 'the filter cannot be used: filter-lang is cql2-text, but the filter is not a text',
  });
  assert.throws(() => readCql2("scene = 'a'", 'cql2-json'), {
    code: 'TW_QUERY_CQL2',
    message: /^the filter cannot be used: it is not JSON: /,
  });
  assert.throws(() => readCql2(JSON.stringify(op('not')), 'cql2-json'), {
    message: /takes 1 argument, not 0/,
  });
  assert.throws(() => readCql2(filter, 'cql'), {
    code: 'TW_QUERY_FILTER_LANG',
    message: 'filter-lang "cql" is not known: omit it, or use cql2-text or cql2-json',
  });
});
