/** Limits in the OpenAPI document, requests beyond them, and labels of metrics. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { publishedSchema } from '../../src/api/schemas/builders.js';
import { filterQuery } from '../../src/query/index.js';
import { BBOX_PATTERN, DATETIME_PATTERNS, parseBbox, parseDatetime } from '../../src/query/values.js';
import { documented } from '../../src/utils/json-schema.js';
import { nodeWithTiles } from './node-with-tiles.js';

test('the document has the limits that parsers check, and requests are validated without them', () => {
  const schema = documented({ type: 'array', minItems: 1 }, { maxItems: 2, minItems: undefined });
  assert.deepEqual(publishedSchema({ properties: { list: schema } }), {
    properties: { list: { type: 'array', maxItems: 2 } },
  });
  assert.deepEqual(publishedSchema(filterQuery.maxCloud), { type: 'number', minimum: 0, maximum: 100 });
});

test('patterns in the document match what the parsers accept', () => {
  const accepts = (parse: () => unknown) => {
    try {
      parse();
      return true;
    } catch {
      // The parser refuses the text.
      return false;
    }
  };
  const times = [
    ...[
      '2024-06-01T10:00:00Z',
      '2024-06-01t10:00:00.5+02:00',
      '2024-06-01T10:00:00Z/..',
      '../2024-06-01T10:00:00Z',
    ],
    ...['2024-06-01T10:00:00Z/', '/2024-06-01T10:00:00Z', '2024-06-01T23:59:60Z'],
    ...[
      '',
      '..',
      '../..',
      '/',
      '2024',
      '2024-06',
      '2024-06-01',
      '2024-13-01T00:00:00Z',
      '2024-06-01T24:00:00Z',
    ],
    ...['2024-06-01T10:00:00', '2024-06-01T10:00:00Z/../..', 'x', '2024-6-1T10:00:00Z', '2024-06-01/2024-07'],
  ];
  for (const text of times) {
    const plain = new RegExp(DATETIME_PATTERNS.none).test(text);
    const withPeriods = new RegExp(DATETIME_PATTERNS.periods).test(text);
    assert.equal(
      plain,
      accepts(() => parseDatetime(text)),
      text,
    );
    assert.equal(
      withPeriods,
      accepts(() => parseDatetime(text, { dates: 'periods' })),
      text,
    );
  }
  const boxes = [
    '1,2,3,4',
    '-180,-90,180,90',
    '170.5,0,-170.25,1',
    '0,0,-5,1,1,9',
    '1,2,3',
    '',
    '1,91,2,92',
    '181,0,182,1',
    'a,b,c,d',
  ];
  for (const text of boxes)
    assert.equal(
      new RegExp(BBOX_PATTERN).test(text),
      accepts(() => parseBbox(text)),
      text,
    );
});

test('parameters that have no effect are checked too', async (t) => {
  const node = await nodeWithTiles(t);
  const cases: [url: string, code: string][] = [
    ['/xyz/test/tilejson.json?maxCloud=101', 'TW_QUERY_PERCENT'],
    ['/xyz/test/tilejson.json?datetime=yesterday', 'TW_QUERY_DATETIME'],
    ['/search?filter-lang=sql', 'TW_QUERY_FILTER_LANG'],
    ['/aggregate?datetime_frequency_interval=week', 'TW_QUERY_AGGREGATION'],
    ['/aggregate?grid_geohash_frequency_precision=99', 'TW_QUERY_AGGREGATION'],
    ['/collections/test/aggregate?collections=other', 'TW_API_BAD_REQUEST'],
    ['/cluster/locate/geohash/AAA', 'TW_GEOCODE_INVALID'],
    ['/cluster/locate/hexagon/u2', 'TW_API_BAD_REQUEST'],
  ];
  for (const [url, code] of cases) {
    const answer = await node.server.inject(url);
    assert.deepEqual([answer.statusCode, answer.json().code], [400, code], url);
  }
  for (const url of ['/collections/test/aggregate?collections=test', '/cluster/locate/geohash/u2d8j'])
    assert.equal((await node.server.inject(url)).statusCode, 200, url);
});

test('requests without a route and unusual methods add one series each to the metrics', async (t) => {
  const node = await nodeWithTiles(t);
  for (const method of ['PROPFIND', 'MKCOL', 'LOCK', 'TRACE'])
    for (const url of ['/no/where', `/${method}`]) await node.server.inject({ method: method as 'GET', url });
  const { body } = await node.server.inject('/metrics');
  const series = body.split('\n').filter((line) => /_count\{.*route="none"/.test(line));
  assert.deepEqual(
    series.map((line) => /method="(\w+)"/.exec(line)?.[1]),
    ['other'],
    series.join('\n'),
  );
});
