/** The query extension, and spatial parameters. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { and } from '../../src/query/index.js';
import { parseFilter } from '../../src/query/parameters.js';
import { cloud, minute } from './trees.js';

test('the query extension is equivalent to CQL2', () => {
  const filter = (query: unknown) => parseFilter({ query });
  assert.deepEqual(filter({ 'eo:cloud_cover': { gte: 1, lt: 10 } }), and([cloud('>=', 1), cloud('<', 10)]));
  assert.deepEqual(filter('{"eo:cloud_cover": {"eq": 3}}'), cloud('=', 3));
  assert.deepEqual(filter('{"eo:cloud_cover": {"eq": "3"}}'), cloud('=', 3));
  assert.deepEqual(filter({ 'properties.scene': { startsWith: 'a_' } }), {
    op: 'like',
    property: 'scene',
    pattern: 'a\\_%',
  });
  assert.deepEqual(filter({ platform: { in: ['a', 'b'] } }), {
    op: 'in',
    property: 'platform',
    values: ['a', 'b'],
  });
  assert.deepEqual(filter({ datetime: { gt: '2021-04-08T04:39:23Z' } }), {
    op: '>',
    property: 'datetime',
    period: [minute, minute],
  });
  for (const query of ['{', '5', 5, [], { scene: 5 }, { scene: { is: 5 } }, { scene: { contains: 5 } }])
    assert.throws(() => filter(query), { code: 'TW_QUERY_QUERY' }, JSON.stringify(query));
  assert.throws(() => filter({ cloud: { eq: 5 } }), { code: 'TW_QUERY_UNKNOWN_PROPERTY' });
  assert.throws(() => filter({ scene: { eq: 5 } }), { code: 'TW_QUERY_CQL2' });
});

test('bbox and intersects exclude each other, and a geometry is checked', () => {
  const point = { type: 'Point', coordinates: [1, 2] };
  assert.throws(() => parseFilter({ bbox: '0,0,1,1', intersects: point }), {
    code: 'TW_QUERY_BBOX_AND_INTERSECTS',
  });
  assert.deepEqual(parseFilter({ intersects: JSON.stringify(point) }), { op: 's_intersects', shape: point });
  for (const intersects of [
    '{',
    5,
    {},
    { type: 'Circle', coordinates: [1, 2] },
    { type: 'Point' },
    { type: 'Point', coordinates: ['1', 2] },
    { type: 'Point', coordinates: [1] },
    { type: 'LineString', coordinates: [[1, 2]] },
    {
      type: 'Polygon',
      coordinates: [
        [
          [1, 2],
          [1, 2],
        ],
      ],
    },
    { type: 'MultiPolygon', coordinates: [] },
    { type: 'GeometryCollection', geometries: [] },
    { type: 'GeometryCollection', geometries: [{ type: 'GeometryCollection', geometries: [point] }] },
  ])
    assert.throws(
      () => parseFilter({ intersects }),
      { code: 'TW_QUERY_GEOMETRY' },
      JSON.stringify(intersects),
    );
});
