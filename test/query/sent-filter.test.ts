/** Filters on their way to another node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Filter } from '../../src/query/filter/filter.js';
import { checkSentFilter } from '../../src/query/filter/sent-filter.js';
import { type FilterParams, parseFilter } from '../../src/query/index.js';

const POLYGON = {
  type: 'Polygon',
  coordinates: [
    [
      [0, 0],
      [1, 0],
      [1, 1],
      [0, 0],
    ],
  ],
};

const sent = (filter: Filter): unknown => JSON.parse(JSON.stringify(filter));

test('every filter that can be asked for can be sent', () => {
  const params: FilterParams[] = [
    {},
    { ids: ['a', 'b'], collections: 'fields', source: 'raw', platform: 'sentinel-2a' },
    { bbox: [170, -10, -170, 10], datetime: '../2024-01-01T00:00:00Z', minCloud: 1, maxCloud: 5 },
    { intersects: POLYGON, minCoverage: 3, geocode: 'u2e', recurse: true, datetime: '2024-01-01T00:00:00Z' },
    { query: { 'eo:cloud_cover': { lte: 10, in: [1, 2] }, scene: { startsWith: 'a', neq: 'b' } } },
    ...[
      "NOT (id = 'a' OR scene LIKE 'x%' OR platform IS NULL)",
      "created < TIMESTAMP('2024-01-01T00:00:00Z') AND datetime = DATE('2024-01-01')",
      "T_DURING(datetime, INTERVAL('..', '2024-01-01'))",
      'pixel_coverage BETWEEN 1 AND 2 AND "grid:code" IN (\'GEOHASH-u2\')',
      'S_WITHIN(geometry, BBOX(0, 0, 1, 1)) OR S_DISJOINT(geometry, GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(1 2, 3 4)))',
      `${"id = 'a' AND (id = 'b' OR (".repeat(49)}S_WITHIN(geometry, MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0))))${'))'.repeat(49)}`,
    ].map((filter) => ({ filter })),
  ];
  for (const one of params)
    assert.equal(checkSentFilter(sent(parseFilter(one))), undefined, JSON.stringify(one));
});
