/** Exact messages for refused parameters, and the schemas of requests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readGeometry } from '../../src/query/geometry.js';
import {
  checkFilter,
  type FilterParams,
  filterBody,
  filterQuery,
  parseBbox,
  parseDatetime,
  parseFilter,
  parseInstant,
  writeDatetime,
} from '../../src/query/index.js';
import { checkBbox, parseNumber } from '../../src/query/values.js';
import { requestAjv } from '../../src/utils/json-schema.js';

test('a refused box is answered with the reason', () => {
  const wrong: [bbox: string, why: string][] = [
    ['1,2,x,4', 'has a part that is not a number'],
    ['1,2,3', 'has 3 numbers'],
    ['1,2,3,4,5', 'has 5 numbers'],
    ['1,2,9,3,4,8', 'has its lower height above its upper one'],
    ['0,-90.1,1,0', 'has a latitude beyond 90; longitude comes first, so perhaps -90.1,0,0,1 is meant'],
    ['0,0,1,90.1', 'has a latitude beyond 90; longitude comes first, so perhaps 0,0,90.1,1 is meant'],
    ['-180.1,0,1,1', 'has a longitude beyond 180'],
    ['0,0,180.1,1', 'has a longitude beyond 180'],
    ['0,2,1,1', 'has its south above its north'],
    ['0,180,1,91', 'has a latitude beyond 90; longitude comes first, so perhaps 180,0,91,1 is meant'],
    ['0,180.1,1,91', 'has a latitude beyond 90; longitude comes first'],
  ];
  const right = 'use west,south,east,north in degrees, for example -122.6,37.6,-122.3,37.9';
  for (const [bbox, why] of wrong) {
    const error = { code: 'TW_QUERY_BBOX', message: `bbox "${bbox}" ${why}: ${right}` };
    assert.throws(() => parseBbox(bbox), error);
    if (!bbox.includes('x')) assert.throws(() => checkBbox(bbox.split(',').map(Number)), error);
  }
  assert.deepEqual(parseBbox('-180,-90,180,90'), [-180, -90, 180, 90]);
  assert.deepEqual(parseBbox('180,-90,-180,90'), [180, -90, -180, 90]);
  assert.deepEqual(parseBbox('1,2,5,3,4,5'), [1, 2, 3, 4]);
});

test('a refused datetime is answered with the reason', () => {
  const wrong: [datetime: string, why: string, dates?: 'days' | 'periods'][] = [
    ['2020-01-01T00:00:00Z/../..', 'has more than two ends'],
    ['../..', 'is open at both ends'],
    ['2020-01-02T00:00:00Z/2020-01-01T00:00:00Z', 'ends before it starts'],
    ['2020-01-01T25:00:00Z', 'has a part out of its range in "2020-01-01T25:00:00Z"'],
    ['../2020-02-30T00:00:00Z', 'has a part out of its range in "2020-02-30T00:00:00Z"'],
    ['now/..', 'has an end that is not an RFC 3339 time with a zone: "now"'],
    [
      '2024-6-1',
      'has an end that is not a day (2024-06-01) or an RFC 3339 time with a zone: "2024-6-1"',
      'days',
    ],
    [
      '2024-6-1',
      'has an end that is not a year (2024), a month (2024-06), a day (2024-06-01) or an RFC 3339 time with a zone: "2024-6-1"',
      'periods',
    ],
    ['2020-02-30', 'has a date that does not exist: "2020-02-30"'],
  ];
  const right =
    'use an instant or an interval, for example 2018-07-10T00:00:00Z/2018-07-31T23:59:59Z or 2018-07-10T00:00:00Z/..';
  for (const [datetime, why, dates] of wrong)
    assert.throws(() => parseDatetime(datetime, dates && { dates }), {
      code: 'TW_QUERY_DATETIME',
      message: `datetime "${datetime}" ${why}: ${right}`,
    });
  const written: [datetime: string, why: string, range: string, dates?: 'days'][] = [
    ['2020-01-02', 'has no time in "2020-01-02"', '2020-01-02T00:00:00Z/2020-01-02T23:59:59.999Z'],
    ['../2020-03', 'has no time in "2020-03"', '../2020-03-31T23:59:59.999Z'],
    ['2020', 'has no day in "2020"', '2020-01-01T00:00:00Z/2020-12-31T23:59:59.999Z', 'days'],
  ];
  for (const [datetime, why, range, dates] of written)
    assert.throws(() => parseDatetime(datetime, dates && { dates }), {
      code: 'TW_QUERY_DATETIME',
      message: `datetime "${datetime}" ${why}: write ${range}`,
    });
  assert.equal(writeDatetime({}), '../..');
  assert.equal(writeDatetime({ start: 5, end: 1000 }), '1970-01-01T00:00:00.005Z/1970-01-01T00:00:01Z');
});

test('a plain date is refused unless periods are accepted', () => {
  assert.throws(() => parseFilter({ datetime: '2020-01-02' }), { code: 'TW_QUERY_DATETIME' });
  assert.deepEqual(parseFilter({ datetime: '2020-01-02' }, { periods: true }), {
    op: 't_intersects',
    property: 'datetime',
    period: [Date.UTC(2020, 0, 2), Date.UTC(2020, 0, 3) - 1],
  });
});

test('numbers are plain decimals', () => {
  for (const text of ['5', '-5.25', '+.5', '5.', '1e10', '1E+05', '12.5e-10', ' 5\n', '0'])
    assert.equal(parseNumber(text), Number(text), text);
  for (const text of [
    '',
    ' ',
    '.',
    'e5',
    '1e',
    '1e+',
    '1e5.5',
    '1e x5',
    '0x10',
    '1_000',
    'Infinity',
    '5 5',
    '--5',
  ])
    assert.ok(Number.isNaN(parseNumber(text)), text);
});

test('an instant needs a time with a zone; other texts are refused with the name of the parameter', () => {
  assert.equal(parseInstant('2024-06-01T02:00:00.5+02:00', 'from'), Date.UTC(2024, 5, 1) + 500);
  assert.equal(parseInstant('2024-05-31t23:30:00-00:30', 'from'), Date.UTC(2024, 5, 1));
  for (const text of ['2024-06-01', '2024-06-01T00:00:00', '2024-06-31T00:00:00Z', '..', ''])
    assert.throws(() => parseInstant(text, 'validationFrom'), {
      code: 'TW_QUERY_INSTANT',
      message: `validationFrom "${text}" is not an RFC 3339 time with a zone: use one such as 2024-06-01T00:00:00Z`,
    });
});

const ring = [
  [0, 0],
  [1, 0],
  [1, 1],
  [0, 0],
];

test('geometries keep their points, without heights', () => {
  const shapes: [given: object, read?: object][] = [
    [{ type: 'Point', coordinates: [180, -90] }],
    [
      { type: 'Point', coordinates: [1, 2, 3] },
      { type: 'Point', coordinates: [1, 2] },
    ],
    [
      { type: 'Point', coordinates: [-180, 90, 3, 4], bbox: [0, 0, 1, 1] },
      { type: 'Point', coordinates: [-180, 90] },
    ],
    [{ type: 'MultiPoint', coordinates: [[1, 2]] }],
    [{ type: 'LineString', coordinates: ring.slice(0, 2) }],
    [{ type: 'MultiLineString', coordinates: [ring, ring.slice(1)] }],
    [{ type: 'Polygon', coordinates: [ring, ring] }],
    [{ type: 'MultiPolygon', coordinates: [[ring], [ring, ring]] }],
    [
      {
        type: 'GeometryCollection',
        geometries: [
          { type: 'Point', coordinates: [1, 2] },
          { type: 'Polygon', coordinates: [ring] },
        ],
      },
    ],
  ];
  for (const [given, read = given] of shapes) assert.deepEqual(readGeometry(given), read);
});

test('a refused geometry is answered with the reason', () => {
  const point = 'a point is not two or three numbers';
  const list = 'a list of coordinates is missing';
  const open = 'the ring of a polygon does not end at the point where it starts';
  const wrong: [geometry: unknown, why: string][] = [
    [null, 'the type is missing'],
    [{ coordinates: [1, 2] }, 'the type is missing'],
    [{ type: 'Circle' }, 'the type is "Circle"'],
    [{ type: 'Point' }, point],
    [{ type: 'Point', coordinates: [1] }, point],
    [{ type: 'Point', coordinates: [1, 2, 3, 4, 5] }, point],
    [{ type: 'Point', coordinates: [1, null] }, point],
    [{ type: 'Point', coordinates: [Infinity, 1] }, point],
    [{ type: 'Point', coordinates: { length: 2 } }, point],
    [
      { type: 'Point', coordinates: [1, 91] },
      'the point 1,91 lies beyond 90 degrees of latitude; longitude comes first, so perhaps 91,1 is meant',
    ],
    [
      { type: 'Point', coordinates: [95, -91] },
      'the point 95,-91 lies beyond 90 degrees of latitude; longitude comes first',
    ],
    [{ type: 'Point', coordinates: [-181, 1] }, 'the point -181,1 lies beyond 180 degrees of longitude'],
    [{ type: 'MultiPoint', coordinates: [] }, list],
    [{ type: 'MultiPoint', coordinates: '1 2' }, list],
    [{ type: 'LineString', coordinates: [[1, 2]] }, 'a line has less than two points'],
    [{ type: 'MultiLineString', coordinates: [ring, [[1, 2]]] }, 'a line has less than two points'],
    [{ type: 'Polygon', coordinates: [ring.slice(1)] }, 'the ring of a polygon has less than four points'],
    [{ type: 'Polygon', coordinates: [[...ring.slice(0, 3), [0, 1]]] }, open],
    [{ type: 'Polygon', coordinates: [[...ring.slice(0, 3), [1, 0]]] }, open],
    [{ type: 'MultiPolygon', coordinates: [[ring], []] }, list],
    [{ type: 'GeometryCollection' }, 'the collection has no list of geometries'],
    [{ type: 'GeometryCollection', geometries: [] }, 'the collection has no list of geometries'],
    [
      { type: 'GeometryCollection', geometries: [{ type: 'GeometryCollection', geometries: [] }] },
      'a collection lies in another one',
    ],
  ];
  for (const [geometry, why] of wrong)
    assert.throws(
      () => readGeometry(geometry),
      {
        code: 'TW_QUERY_GEOMETRY',
        message: `the geometry cannot be used: ${why}. Use a GeoJSON geometry (or WKT in CQL2 text) in degrees, for example {"type": "Point", "coordinates": [-122.4, 37.8]}`,
      },
      JSON.stringify(geometry),
    );
  assert.throws(() => parseFilter({ intersects: '{' }), {
    code: 'TW_QUERY_GEOMETRY',
    message:
      /^the geometry cannot be used: intersects: it is not JSON: expected a name in double quotes, or } at line 1, column 2, found the end\. /,
  });
});

test('refused names, sources, percentages and reference systems are in the message', () => {
  const crs = 'http://www.opengis.net/def/crs/OGC/1.3/CRS84';
  const list = 'has an empty name: separate names by single commas, for example naip,nlcd';
  const wrong: [params: FilterParams, code: string, message: string][] = [
    [{ ids: 'a,,b' }, 'LIST', `ids "a,,b" ${list}`],
    [{ ids: ['a', ' '] }, 'LIST', `ids "a, " ${list}`],
    [{ collections: ',' }, 'LIST', `collections "," ${list}`],
    [
      { source: 'new' },
      'SOURCE',
      'source "new" is not known: use one of raw, split, filled, coalesced, predicted, cloud-free, pca, mnf, anomaly, match, unmix, classify, indices, smooth, resample, continuum, cluster, for example raw',
    ],
    ...(
      [
        ['minCloud', 'min-cloud'],
        ['maxCloud', 'max-cloud'],
        ['minCoverage', 'min-coverage'],
      ] as const
    ).map(([name, flag]): [FilterParams, string, string] => [
      { [name]: 100.5 },
      'PERCENT',
      `${flag} "100.5" is not a percentage: use a number from 0 to 100, for example 20`,
    ]),
    [
      { 'filter-crs': 'EPSG:4326' },
      'FILTER_LANG',
      `filter-crs "EPSG:4326" is not known: omit it, or use ${crs}`,
    ],
    [
      { filter: 'TRUE', 'filter-lang': 'sql' },
      'FILTER_LANG',
      'filter-lang "sql" is not known: omit it, or use cql2-text or cql2-json',
    ],
  ];
  for (const [params, code, message] of wrong)
    assert.throws(() => parseFilter(params), { code: `TW_QUERY_${code}`, message });
  assert.deepEqual(
    parseFilter({ filter: "scene = 'a'", 'filter-crs': crs, 'filter-lang': 'cql2-text' }),
    parseFilter({ filter: "scene = 'a'" }),
  );
});

test('the filter of a process is checked, and is optional', () => {
  for (const inputs of [{}, { filter: {} }, { filter: { collections: ['naip'] } }]) checkFilter(inputs);
  assert.throws(() => checkFilter({ filter: { maxCloud: 101 } }), { code: 'TW_QUERY_PERCENT' });
});

test('every comparison of the query extension is one of CQL2', () => {
  const same: [query: object, cql2: string][] = [
    [{ pixel_coverage: { eq: 5 } }, 'pixel_coverage = 5'],
    [{ pixel_coverage: { neq: '5' } }, 'pixel_coverage <> 5'],
    [{ pixel_coverage: { lt: '5e0' } }, 'pixel_coverage < 5'],
    [{ pixel_coverage: { lte: 5 } }, 'pixel_coverage <= 5'],
    [{ pixel_coverage: { gt: 5 } }, 'pixel_coverage > 5'],
    [{ pixel_coverage: { gte: 5 } }, 'pixel_coverage >= 5'],
    [{ pixel_coverage: { in: [1, '2'] } }, 'pixel_coverage IN (1, 2)'],
    [{ scene: { startsWith: '5%' } }, "scene LIKE '5\\%%'"],
    [{ scene: { endsWith: 'a_' } }, "scene LIKE '%a\\_'"],
    [{ scene: { contains: 'a' } }, "scene LIKE '%a%'"],
    [{ scene: { eq: '5' }, id: { in: ['5', 'a'] } }, "scene = '5' AND id IN ('5', 'a')"],
    [{}, 'TRUE'],
  ];
  for (const [query, filter] of same)
    assert.deepEqual(parseFilter({ query }), parseFilter({ filter }), filter);
  const wrong: [query: unknown, why: string][] = [
    ['{', 'it is not JSON: expected a name in double quotes, or } at line 1, column 2, found the end'],
    ['5', 'it is not an object'],
    [[], 'it is not an object'],
    [{ scene: 5 }, '"scene" has no object of comparisons'],
    [
      { scene: { toString: 5 } },
      '"toString" is not a comparison (these are eq, neq, lt, lte, gt, gte, startsWith, endsWith, contains, in)',
    ],
    [{ scene: { startsWith: 5 } }, 'startsWith, endsWith and contains take a text'],
  ];
  for (const [query, why] of wrong)
    assert.throws(() => parseFilter({ query }), {
      code: 'TW_QUERY_QUERY',
      message: `query cannot be used: ${why}. For example {"eo:cloud_cover": {"lte": 10}}`,
    });
  assert.throws(() => parseFilter({ query: { pixel_coverage: { lt: 'x' } } }), {
    code: 'TW_QUERY_CQL2',
    message: 'the filter cannot be used: pixel_coverage is compared with a number, not with "x"',
  });
});

test('the schemas of requests accept each parameter in its form only', () => {
  const long = 'x'.repeat(1000);
  const words = ['geocode', 'datetime', 'source', 'platform', 'filter-lang', 'filter-crs'];
  const numbers = ['minCloud', 'maxCloud', 'minCoverage'];
  const fits = (properties: object) => {
    const validate = requestAjv(false).compile({ type: 'object', properties, additionalProperties: false });
    return (name: string, value: unknown) => validate({ [name]: value });
  };
  const [inBody, inUrl] = [fits(filterBody), fits(filterQuery)];
  for (const [fit, cases] of [
    [
      inBody,
      [
        ...words.map((name) => [name, [long], [`${long}x`, 5, [long]]]),
        ...numbers.map((name) => [name, [5, 0.5], ['5', null, [5]]]),
        ...['ids', 'collections'].map((name) => [name, ['a', ['a', 'b'], []], [5, [5], { a: 'b' }]]),
        ['bbox', [[1, 2, 3, 4]], ['1,2,3,4', [1, 2, 3, '4'], 5]],
        ['recurse', [true, false], ['true', 1]],
        ...['intersects', 'filter', 'query'].map((name) => [name, ['a', { a: 5 }], []]),
        ['other', [], ['a']],
      ],
    ],
    [
      inUrl,
      [
        ...words.map((name) => [name, [long], [`${long}x`]]),
        ...['ids', 'collections', 'bbox', 'intersects', 'filter', 'query'].map((name) => [
          name,
          ['a', `${long}x`],
          [['a'], { a: 5 }],
        ]),
      ],
    ],
  ] as [typeof inBody, [name: string, fitting: unknown[], others: unknown[]][]][])
    for (const [name, fitting, others] of cases) {
      for (const value of fitting) assert.ok(fit(name, value), `${name} ${JSON.stringify(value)}`);
      for (const value of others) assert.ok(!fit(name, value), `${name} ${JSON.stringify(value)}`);
    }
});
