import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Bbox } from '../../src/grid/index.js';
import { readCql2Json, readCql2Text } from '../../src/query/cql2/json.js';
import type { NumberExpression, TextExpression } from '../../src/query/filter.js';
import { or } from '../../src/query/filter.js';
import { spatialRelations } from '../../src/query/geometry.js';
import { and, type Filter, toCql2Json } from '../../src/query/index.js';
import type { ComparisonOp } from '../../src/query/operators.js';
import { printCql2 } from './print-cql2.js';
import { relates } from './spatial-oracle.js';
import { cloud, filters, minute } from './trees.js';

/** A tree as the constructors make it: chains are flat, empty lists are false. */
function normal(filter: Filter): Filter {
  if (filter.op === 'not' || filter.op === 'isUnknown') return { op: filter.op, arg: normal(filter.arg) };
  if (filter.op === 'and') return and(filter.args.map(normal));
  if (filter.op === 'or') return or(filter.args.map(normal));
  return filter.op === 'in' && 'values' in filter && filter.values.length === 0 ? or([]) : filter;
}

/** A copy without the unusual prototypes of generated objects. */
const plain = (filter: Filter): Filter => JSON.parse(JSON.stringify(normal(filter)));

const runs = { seed: 42, numRuns: 500 };

test('a filter is unchanged after conversion to CQL2 JSON and back', () => {
  fc.assert(
    fc.property(filters, (filter) => {
      const json = JSON.parse(JSON.stringify(toCql2Json(filter)));
      assert.deepEqual(readCql2Json(json), plain(filter));
    }),
    runs,
  );
});

test('a filter is unchanged after conversion to CQL2 text and back', () => {
  fc.assert(
    fc.property(filters, fc.boolean(), (filter, lower) => {
      const text = printCql2(filter, lower);
      assert.deepEqual(readCql2Text(text), plain(filter), text);
    }),
    runs,
  );
});

const coverage: NumberExpression = { property: 'pixel_coverage' };
const times = (a: NumberExpression, b: NumberExpression): NumberExpression => ({ op: '*', args: [a, b] });
const minus = (a: NumberExpression, b: NumberExpression): NumberExpression => ({ op: '-', args: [a, b] });
const number = (sign: ComparisonOp, a: NumberExpression, b: NumberExpression): Filter => ({
  op: 'compare',
  kind: 'number',
  sign,
  args: [a, b],
});

const scene: TextExpression = { property: 'scene' };
const folded = (op: 'casei' | 'accenti', arg: TextExpression): TextExpression => ({ op, arg });
const text = (sign: ComparisonOp, a: TextExpression, b: TextExpression): Filter => ({
  op: 'compare',
  kind: 'text',
  sign,
  args: [a, b],
});

test('handwritten text', () => {
  const same: [string, Filter][] = [
    ['eo:cloud_cover<=10', cloud('<=', 10)],
    ['"eo:cloud_cover" <= 1e1', cloud('<=', 10)],
    ['properties.eo:cloud_cover <= +10.', cloud('<=', 10)],
    ['10 >= eo:cloud_cover', cloud('<=', 10)],
    ['(((eo:cloud_cover < .5)))', cloud('<', 0.5)],
    ['eo:cloud_cover < .25E+1', cloud('<', 2.5)],
    ['eo:cloud_cover < 12.75e-1', cloud('<', 1.275)],
    ['\teo:cloud_cover\n<\r\n1', cloud('<', 1)],
    [
      'eo:cloud_cover BETWEEN -1 AND 5 or eo:cloud_cover=7',
      or([and([cloud('>=', -1), cloud('<=', 5)]), cloud('=', 7)]),
    ],
    [
      'not eo:cloud_cover < 1 and eo:cloud_cover < 2',
      and([{ op: 'not', arg: cloud('<', 1) }, cloud('<', 2)]),
    ],
    [
      'NOT (eo:cloud_cover < 1 AND eo:cloud_cover < 2)',
      { op: 'not', arg: and([cloud('<', 1), cloud('<', 2)]) },
    ],
    [
      'eo:cloud_cover<1 OR eo:cloud_cover<2 AND eo:cloud_cover<3',
      or([cloud('<', 1), and([cloud('<', 2), cloud('<', 3)])]),
    ],
    ["scene = 'O''Brien'", { op: '=', property: 'scene', value: "O'Brien" }],
    ["scene = 'O\\'Brien'", { op: '=', property: 'scene', value: "O'Brien" }],
    ["scene = 'a\\\\''b'", { op: '=', property: 'scene', value: "a\\\\'b" }],
    ["scene LIKE '50\\%%'", { op: 'like', property: 'scene', pattern: '50\\%%' }],
    [
      "platform NOT IN ('a', 'b')",
      { op: 'not', arg: { op: 'in', property: 'platform', values: ['a', 'b'] } },
    ],
    ['platform IS NOT NULL', { op: 'not', arg: { op: 'isNull', property: 'platform' } }],
    [
      "datetime >= TIMESTAMP('2021-04-08T04:39:23Z')",
      { op: '>=', property: 'datetime', period: [minute, minute] },
    ],
    ["datetime >= '2021-04-08T04:39:23Z'", { op: '>=', property: 'datetime', period: [minute, minute] }],
    [
      "datetime = DATE('2021-04-08')",
      { op: '=', property: 'datetime', period: [Date.UTC(2021, 3, 8), Date.UTC(2021, 3, 9) - 1] },
    ],
    [
      "T_INTERSECTS(datetime, INTERVAL('2021-04-08T04:39:23Z', '..'))",
      { op: 't_intersects', property: 'datetime', period: [minute, null] },
    ],
    [
      "T_DURING(INTERVAL('..','2021-04-08T04:39:23Z'), created)",
      { op: 't_contains', property: 'created', period: [null, minute] },
    ],
    ['S_INTERSECTS(geometry, BBOX(1,2,3,4))', { op: 's_intersects', shape: { bbox: [1, 2, 3, 4] } }],
    [
      'S_WITHIN(geometry, MULTILINESTRING((1 2, 3 4), (5 6, 7 8)))',
      {
        op: 's_within',
        shape: {
          type: 'MultiLineString',
          coordinates: [
            [
              [1, 2],
              [3, 4],
            ],
            [
              [5, 6],
              [7, 8],
            ],
          ],
        },
      },
    ],
    [
      'S_WITHIN(geometry, GEOMETRYCOLLECTION(POINT(1 2), MULTIPOINT(3 4, 5 6)))',
      {
        op: 's_within',
        shape: {
          type: 'GeometryCollection',
          geometries: [
            { type: 'Point', coordinates: [1, 2] },
            {
              type: 'MultiPoint',
              coordinates: [
                [3, 4],
                [5, 6],
              ],
            },
          ],
        },
      },
    ],
    ["'Scene 1' LIKE 'Scene%'", and([])],
    ["'Scene 1' LIKE 'scene%'", or([])],
    ['S_WITHIN(POINT(1 -2), geometry)', { op: 's_contains', shape: { type: 'Point', coordinates: [1, -2] } }],
    [
      'S_CROSSES(geometry, LINESTRING Z (0 0 5, 1 1 5))',
      {
        op: 's_crosses',
        shape: {
          type: 'LineString',
          coordinates: [
            [0, 0],
            [1, 1],
          ],
        },
      },
    ],
    [
      'S_DISJOINT(geometry, GEOMETRYCOLLECTION(POINT(1 2), MULTIPOINT((3 4), 5 6)))',
      {
        op: 's_disjoint',
        shape: {
          type: 'GeometryCollection',
          geometries: [
            { type: 'Point', coordinates: [1, 2] },
            {
              type: 'MultiPoint',
              coordinates: [
                [3, 4],
                [5, 6],
              ],
            },
          ],
        },
      },
    ],
    ['-pixel_coverage ^ 2 = 4', number('=', { op: '^', args: [times(-1, coverage), 2] }, 4)],
    ['pixel_coverage - 1 - 2 < 5', number('<', minus(minus(coverage, 1), 2), 5)],
    ['5 >= pixel_coverage-(2*3 - 1)', number('<=', minus(coverage, 5), 5)],
    ['"pixel_coverage"*2+-3 <> 1', number('<>', { op: '+', args: [times(coverage, 2), -3] }, 1)],
    ['eo:cloud_cover < 2 * (3 + 7 div 2) - 2 ^ 3', cloud('<', 4)],
    ['eo:cloud_cover BETWEEN 10 % 4 AND (3 + 2)', and([cloud('>=', 2), cloud('<=', 5)])],
    [
      'eo:cloud_cover IN (1, pixel_coverage)',
      or([cloud('=', 1), number('=', { property: 'eo:cloud_cover' }, coverage)]),
    ],
    ['1 / 0 = 1', number('=', { op: '/', args: [1, 0] }, 1)],
    ["scene = CASEI('LC08')", { op: '=', property: 'scene', value: 'lc08' }],
    [
      "accenti(Casei(scene)) IN (ACCENTI(CASEI('ÄÉ')), 'x')",
      or(['ae', 'x'].map((value) => text('=', folded('accenti', folded('casei', scene)), value))),
    ],
    ["CASEI(scene) LIKE CASEI('A\\%_B%')", { op: 'match', text: folded('casei', scene), pattern: 'a\\%_b%' }],
    ['scene < platform', text('<', scene, { property: 'platform' })],
    [
      'created = datetime',
      { op: 'compare', kind: 'time', sign: '=', args: [{ property: 'created' }, { property: 'datetime' }] },
    ],
    [
      "T_DURING(INTERVAL(start_datetime,\"end_datetime\"),INTERVAL('..','2021-04-08'))",
      {
        op: 'periods',
        relation: 't_during',
        args: [
          { interval: [{ property: 'start_datetime' }, { property: 'end_datetime' }] },
          { interval: [null, Date.UTC(2021, 3, 9) - 1] },
        ],
      },
    ],
    [
      "T_MEETS(INTERVAL('2021-04-08', created), datetime)",
      {
        op: 'periods',
        relation: 't_meets',
        args: [{ interval: [Date.UTC(2021, 3, 8), { property: 'created' }] }, { property: 'datetime' }],
      },
    ],
    ['(eo:cloud_cover < 5) IS NULL', { op: 'isUnknown', arg: cloud('<', 5) }],
    ['CASEI(platform) IS NULL', { op: 'isNull', property: 'platform' }],
    [
      'pixel_coverage / 2 IS NULL',
      {
        op: 'isUnknown',
        arg: number('=', { op: '/', args: [coverage, 2] }, { op: '/', args: [coverage, 2] }),
      },
    ],
    ["scene = 'a\nb'", { op: '=', property: 'scene', value: 'a\nb' }],
    ["'2021-04-08' = DATE('2021-04-08')", and([])],
    ["DATE('2021-04-08') < '2021-04-09'", and([])],
    ["DATE('2021-04-08') >= '2021-04-09'", or([])],
    ["TIMESTAMP('2021-04-08T04:39:23Z') > '2021-04-08T04:39:22Z'", and([])],
    ["'a' < 'b' AND 2 <> 3 AND 2 <= 2", and([])],
    ["'2' = '2.0' OR 2 >= 3", or([])],
    ['TRUE', and([])],
    ['NOT false', { op: 'not', arg: or([]) }],
  ];
  for (const [text, filter] of same) assert.deepEqual(readCql2Text(text), filter, text);
});

test('a literal may stand on either side of a comparison', () => {
  const turned: [ComparisonOp, ComparisonOp][] = [
    ['=', '='],
    ['<>', '<>'],
    ['<', '>'],
    ['<=', '>='],
  ];
  for (const [sign, other] of [...turned, ...turned.map(([a, b]): [ComparisonOp, ComparisonOp] => [b, a])])
    for (const [property, literal] of [
      ['pixel_coverage', '5'],
      ['scene', "'a'"],
      ['created', "DATE('2021-04-08')"],
      ['CASEI(scene)', "'a'"],
      ['pixel_coverage * 2', '5'],
    ])
      assert.deepEqual(
        readCql2Text(`${literal} ${sign} ${property}`),
        readCql2Text(`${property} ${other} ${literal}`),
      );
});

test('both bounds of "between" may be in one list, as in drafts of CQL2', () => {
  const property = { property: 'eo:cloud_cover' };
  for (const args of [
    [property, 1, 5],
    [property, [1, 5]],
  ])
    assert.deepEqual(readCql2Json({ op: 'between', args }), and([cloud('>=', 1), cloud('<=', 5)]));
});

test('a cell and itself are related as two equal rectangles are', () => {
  const cell: Bbox = [0, 0, 11.25, 5.625];
  for (const op of Object.keys(spatialRelations)) {
    const expected = relates(op, cell, { bbox: cell }) ? and([]) : or([]);
    assert.deepEqual(readCql2Text(`${op}(geometry, geometry)`), expected, op);
  }
});
