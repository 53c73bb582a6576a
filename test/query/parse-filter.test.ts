import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { TilewrightError } from '../../src/errors.js';
import {
  and,
  defaultToRawSource,
  type FilterParams,
  parseDatetime,
  parseFilter,
  writeDatetime,
} from '../../src/query/index.js';

test('every parameter becomes its part of the filter', () => {
  const text: FilterParams = {
    ids: 'x,y',
    collections: 'naip, nlcd',
    bbox: '-122.6,37.6,-122.3,37.9',
    geocode: '9Q8YY',
    recurse: true,
    datetime: '2018-07-10T00:00:00Z/..',
    minCloud: '0',
    maxCloud: '20.5',
    minCoverage: '100',
    source: 'cloud-free',
    platform: 'landsat-8',
  };
  assert.deepEqual(parseFilter(text), {
    op: 'and',
    args: [
      { op: 'in', property: 'id', values: ['x', 'y'] },
      { op: 'in', property: 'collection', values: ['naip', 'nlcd'] },
      { op: 's_intersects', shape: { bbox: [-122.6, 37.6, -122.3, 37.9] } },
      { op: 'like', property: 'geocode', pattern: '9q8yy%' },
      { op: 't_intersects', property: 'datetime', period: [Date.UTC(2018, 6, 10), null] },
      { op: '>=', property: 'eo:cloud_cover', value: 0 },
      { op: '<=', property: 'eo:cloud_cover', value: 20.5 },
      { op: '>=', property: 'pixel_coverage', value: 100 },
      { op: '=', property: 'source', value: 'cloud-free' },
      { op: '=', property: 'platform', value: 'landsat-8' },
    ],
  });
  assert.deepEqual(parseFilter({}), and([]));
  assert.deepEqual(parseFilter({ filter: "source = 'raw'", maxCloud: 3, query: { id: { eq: 'x' } } }), {
    op: 'and',
    args: [
      { op: '<=', property: 'eo:cloud_cover', value: 3 },
      { op: '=', property: 'source', value: 'raw' },
      { op: '=', property: 'id', value: 'x' },
    ],
  });
});

test('bounding boxes', () => {
  const box = (bbox: string | number[]) => parseFilter({ bbox });
  const expected = (bbox: number[]) => ({ op: 's_intersects', shape: { bbox } });
  assert.deepEqual(box('170,-20,-170,-10'), expected([170, -20, -170, -10]));
  assert.deepEqual(box('1,2,-5,3,4,5'), expected([1, 2, 3, 4]));
  assert.deepEqual(box(' -1e1, .5 ,+3.,4'), expected([-10, 0.5, 3, 4]));
  assert.deepEqual(box([0, 0, 0, 0]), expected([0, 0, 0, 0]));
  for (const bbox of [
    '',
    '1,2,3',
    '1,2,3,4,5',
    '1,2,3,4,5,6,7',
    '1,2,3,',
    '1,2,3,x',
    '1,2,0x3,4',
    '1,3,2,2',
    '181,0,182,1',
    '0,-91,1,0',
    '0,0,Infinity,1',
    '0,0,9,1,1,1',
  ]) {
    assert.throws(() => parseFilter({ bbox }), { code: 'TW_QUERY_BBOX' }, bbox);
  }
});

test('the message for a latitude beyond 90 has the order, and the swapped box if it is valid', () => {
  const cases: [params: FilterParams, message: RegExp][] = [
    [
      { bbox: '-33.9,151.2,-33.7,151.4' },
      /longitude comes first, so perhaps 151\.2,-33\.9,151\.4,-33\.7 is meant/,
    ],
    [{ bbox: [47, 114, 0, 48, 115, 9] }, /so perhaps 114,47,0,115,48,9 is meant/],
    [{ bbox: '95,114,96,115' }, /latitude beyond 90; longitude comes first: use/],
    [{ intersects: { type: 'Point', coordinates: [48, 114] } }, /so perhaps 114,48 is meant/],
    [{ intersects: { type: 'Point', coordinates: [148, 114] } }, /longitude comes first\. Give/],
    [{ filter: 'S_INTERSECTS(geometry, POINT(48 114))' }, /so perhaps 114,48 is meant/],
  ];
  for (const [params, message] of cases) assert.throws(() => parseFilter(params), { message });
});

test('instants and intervals', () => {
  const at = (text: string) => Date.parse(text);
  const noon = at('1985-04-12T12:00:00Z');
  const equal: [string, number][] = [
    ['1985-04-12T12:00:00Z', noon],
    ['1985-04-12t12:00:00z', noon],
    ['1985-04-12T12:00:00.000Z', noon],
    ['1985-04-12T13:00:00+01:00', noon],
    ['1985-04-12T03:30:00-08:30', noon],
    ['1985-04-12T12:00:00-00:00', noon],
    ['1985-04-12T12:00:00.52Z', noon + 520],
    ['1985-04-12T12:00:00.0129999Z', noon + 12],
    ['2020-02-29T23:59:59Z', at('2020-02-29T23:59:59Z')],
    ['1990-12-31T23:59:60Z', at('1991-01-01T00:00:00Z')],
    ['0001-01-01T00:00:00Z', at('0001-01-01T00:00:00Z')],
  ];
  for (const [text, time] of equal) {
    assert.deepEqual(parseDatetime(text), { start: time, end: time }, text);
    for (const open of ['..', '']) {
      assert.deepEqual(parseDatetime(`${text}/${open}`), { start: time }, text);
      assert.deepEqual(parseDatetime(`${open}/${text}`), { end: time }, text);
    }
  }
  assert.deepEqual(parseDatetime('1985-04-12T12:00:00Z/1985-04-12T13:00:00Z'), {
    start: noon,
    end: noon + 3_600_000,
  });
  assert.deepEqual(parseDatetime('1985-04-12T12:00:00Z/1985-04-12T13:00:00+01:00'), {
    start: noon,
    end: noon,
  });
});

test('invalid datetimes', () => {
  const wrong = [
    '',
    '/',
    '..',
    '../..',
    '../',
    '/..',
    '1985-04-12T12:00:00Z/1985-04-12T13:00:00Z/1985-04-12T14:00:00Z',
    '1985-04-12T12:00:00Z/1985-04-12T11:00:00Z',
    '1985-04-12T12:00:00',
    '1985-04-12T12:00Z',
    '1985-04-12 12:00:00Z',
    '1985-04-12T12:00:00+0100',
    '1985-04-12T12:00:00+24:00',
    '1985-04-12T12:00:00.Z',
    '1985-04-12T12:00:00,5Z',
    '1985-13-12T12:00:00Z',
    '1985-00-12T12:00:00Z',
    '1985-12-32T12:00:00Z',
    '2019-02-29T12:00:00Z',
    '1985-12-01T24:00:00Z',
    '1985-12-01T00:60:00Z',
    '1985-12-01T00:00:61Z',
    '85-12-01T00:00:00Z',
    '21985-12-01T00:00:00Z',
    '1985',
    'yesterday',
    ' 1985-04-12T12:00:00Z',
  ];
  for (const text of wrong) {
    assert.throws(() => parseDatetime(text), { code: 'TW_QUERY_DATETIME' }, text);
    assert.throws(() => parseDatetime(text, { dates: 'days' }), { code: 'TW_QUERY_DATETIME' }, text);
  }
});

test('plain dates are entire days, if accepted', () => {
  const first = Date.UTC(2018, 6, 10);
  const day = 86_400_000;
  const parse = (datetime: string) => {
    const filter = parseFilter({ datetime }, { periods: true });
    return 'period' in filter && filter.period;
  };
  assert.deepEqual(parse('2018-07-10'), [first, first + day - 1]);
  assert.deepEqual(parse('2018-07-10/2018-07-11'), [first, first + 2 * day - 1]);
  assert.deepEqual(parse('../2018-07-10'), [null, first + day - 1]);
  assert.deepEqual(parse('2018-07-10/2018-07-10T06:00:00Z'), [first, first + day / 4]);
  assert.throws(() => parse('2018-02-30'), { code: 'TW_QUERY_DATETIME' });
});

test('months and years are entire periods, if accepted', () => {
  const parse = (text: string) => writeDatetime(parseDatetime(text, { dates: 'periods' }));
  const cases: [given: string, range: string][] = [
    ['2023-07', '2023-07-01T00:00:00Z/2023-07-31T23:59:59.999Z'],
    ['2024-02', '2024-02-01T00:00:00Z/2024-02-29T23:59:59.999Z'],
    ['2023-12', '2023-12-01T00:00:00Z/2023-12-31T23:59:59.999Z'],
    ['2023', '2023-01-01T00:00:00Z/2023-12-31T23:59:59.999Z'],
    ['2023-07/2023-09', '2023-07-01T00:00:00Z/2023-09-30T23:59:59.999Z'],
    ['2022/2023-02-03', '2022-01-01T00:00:00Z/2023-02-03T23:59:59.999Z'],
    ['../2023', '../2023-12-31T23:59:59.999Z'],
    ['2023-07/', '2023-07-01T00:00:00Z/..'],
  ];
  for (const [given, range] of cases) {
    assert.equal(parse(given), range);
    // If they are not accepted, the message has a form that is accepted.
    const message = new RegExp(`: write ${range.replaceAll('.', '\\.')}$`);
    assert.throws(() => parseDatetime(given), { code: 'TW_QUERY_DATETIME', message });
    assert.deepEqual(parseDatetime(range), parseDatetime(given, { dates: 'periods' }));
    assert.deepEqual(parseFilter({ datetime: given }, { periods: true }), parseFilter({ datetime: range }));
  }
  for (const wrong of ['2023-13', '2023-00', '2023-1', '23', '20230', '2023-07-', '2023-08/2023-07'])
    assert.throws(() => parse(wrong), { code: 'TW_QUERY_DATETIME' }, wrong);
});

test('any written time is read back', () => {
  const from = Date.UTC(1, 0, 1) - 1900 * 365.2425 * 86_400_000;
  fc.assert(
    fc.property(
      fc.integer({ min: from, max: Date.UTC(9999, 11, 31) }),
      fc.integer({ min: -1439, max: 1439 }),
      (time, zone) => {
        const text = new Date(time).toISOString();
        assert.deepEqual(parseDatetime(text), { start: time, end: time });
        const two = (n: number) => String(n).padStart(2, '0');
        const minutes = Math.abs(zone);
        const local = new Date(time + zone * 60_000).toISOString().slice(0, -1);
        if (!/^\d{4}-/.test(local)) return;
        const shifted = `${local}${zone < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
        assert.equal(parseDatetime(shifted).start, time);
      },
    ),
    { seed: 42, numRuns: 300 },
  );
});

test('invalid percentages, geocodes, sources and lists', () => {
  for (const percent of ['', '-1', '100.1', 'NaN', '20%', '0x10']) {
    for (const name of ['minCloud', 'maxCloud', 'minCoverage'] as const) {
      assert.throws(() => parseFilter({ [name]: percent }), { code: 'TW_QUERY_PERCENT' }, percent);
    }
  }
  for (const geocode of ['', 'a', '9q8yy9q8yy', '9q8-y'])
    assert.throws(() => parseFilter({ geocode }), { code: 'TW_QUERY_GEOCODE' });
  assert.deepEqual(parseFilter({ geocode: '012301230123' }), {
    op: '=',
    property: 'geocode',
    value: '012301230123',
  });
  const alone = { code: 'TW_QUERY_GEOCODE', message: /^--recurse needs --geocode/ };
  assert.throws(() => parseFilter({ recurse: true }), alone);
  for (const source of ['', 'RAW', 'toString'])
    assert.throws(() => parseFilter({ source }), { code: 'TW_QUERY_SOURCE' });
  for (const list of ['', ',', 'a,', 'a,,b']) {
    assert.throws(() => parseFilter({ ids: list }), { code: 'TW_QUERY_LIST' });
    assert.throws(() => parseFilter({ collections: list }), { code: 'TW_QUERY_LIST' });
  }
});

test('a message has the parameter, the given value and a valid example', () => {
  const failing: [FilterParams, string][] = [
    [{ bbox: 'here' }, 'bbox'],
    [{ datetime: 'here' }, 'datetime'],
    [{ maxCloud: 'here' }, 'max-cloud'],
    [{ geocode: 'here!' }, 'geocode'],
    [{ source: 'here' }, 'source'],
    [{ ids: 'here,' }, 'ids'],
  ];
  for (const [text, parameter] of failing) {
    assert.throws(
      () => parseFilter(text),
      (error: TilewrightError) =>
        error.status === 400 &&
        error.message.startsWith(`${parameter} "here`) &&
        error.message.includes('for example'),
    );
  }
});

test('only raw tiles match unless a filter refers to the source in any way', () => {
  const raw = { op: '=', property: 'source', value: 'raw' };
  assert.deepEqual(defaultToRawSource(parseFilter({})), raw);
  for (const params of [
    { source: 'filled' },
    { filter: "NOT (platform = 'x' OR source IN ('raw', 'filled'))" },
  ]) {
    const filter = parseFilter(params);
    assert.deepEqual(defaultToRawSource(filter), filter);
  }
});
