/** The STAC API of a node with real tiles; requests are injected into the routes. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { runRequest } from '../support/run-job.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

interface Item {
  id: string;
  bbox: [number, number, number, number];
  properties: Record<string, string | number>;
}

interface ItemCollection {
  features: Item[];
  numberMatched: number;
  links: { rel: string; href: string; body?: object }[];
}

let node: TilewrightNode;
let all: Item[];
const cleanUp: (() => Promise<void>)[] = [];

before(async () => {
  const folder = await tempFolder({ after: (work) => void cleanUp.push(work as () => Promise<void>) });
  node = await openNode({
    data: join(folder, 'data'),
    memory: 256e6,
    cores: 2,
    allowFolders: [folder],
    cors: ['*'],
  });
  for (const [day, cloud, platform] of [
    ['2024-06-01', 0, 'one'],
    ['2024-07-11', 60, 'two'],
  ] as const) {
    const href = await writeTestScene(join(folder, `${day}.tif`), { cloud, edge: 40 });
    const description = { collection: 'test', scale: 0.0001, maskBand: 5, precision: 6, platform };
    const job = await post('/ingest', { href, datetime: `${day}T10:00:00Z`, ...description });
    await ended(job.json().jobID);
  }
  all = await items({});
});

after(async () => {
  await node.close();
  for (const work of cleanUp) await work();
});

type Params = Record<string, string>;

const get = (path: string, params: Params = {}, headers: Record<string, string> = {}) =>
  node.server.inject({ url: `${path}?${new URLSearchParams(params)}`, headers });
const post = (url: string, payload: object | string) =>
  node.server.inject({ method: 'POST', url, payload, headers: { 'content-type': 'application/json' } });

async function ended(id: string): Promise<void> {
  for (;;) {
    const job = (await get(`/jobs/${id}`)).json();
    if (job.status === 'successful') return;
    assert.ok(job.status === 'accepted' || job.status === 'running', JSON.stringify(job));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function items(params: Params, path = '/search'): Promise<Item[]> {
  const answer = await get(path, { limit: '1000', ...params });
  assert.equal(answer.statusCode, 200, answer.body);
  return answer.json<ItemCollection>().features;
}

const idsOf = (some: Item[]) => some.map(({ id }) => id);

test('what an ingest warns of is in the results of the job and on the Items', async (t) => {
  const href = await writeTestScene(join(await tempFolder(t), 'warned.tif'));
  const allowed = await openNode({ data: join(await tempFolder(t), 'data'), memory: 256e6, cores: 1 });
  t.after(() => allowed.close());
  const { id, results } = await runRequest<{ warnings: string[] }>(allowed, '/ingest', {
    ...{ href, collection: 'warned', datetime: '2024-06-01T10:00:00Z', precision: 6 },
    cloudTest: true,
  });
  assert.match(results.warnings.join(), /cloud is not assessed: the tests need bands named/);
  const log = (await allowed.server.inject(`/jobs/${id}/logs`)).body;
  for (const warning of results.warnings) assert.ok(log.includes(JSON.stringify(warning).slice(1, -1)));
  const { features } = (await allowed.server.inject('/search?collections=warned')).json<ItemCollection>();
  assert.ok(features.length > 0);
  for (const { properties } of features)
    assert.match(String(properties['warnings']), /cloud is not assessed: the tests need bands named/);
});

test('a filter means the same as CQL2 text, CQL2 JSON and query, and on every route', async () => {
  const expected = idsOf(
    all.filter(({ properties: p }) => Number(p['eo:cloud_cover']) < 20 && Number(p.pixel_coverage) > 50),
  );
  assert.ok(expected.length > 0 && expected.length < all.length);
  const text = 'eo:cloud_cover < 20 AND pixel_coverage > 50';
  const json = {
    op: 'and',
    args: [
      { op: '<', args: [{ property: 'eo:cloud_cover' }, 20] },
      { op: '>', args: [{ property: 'pixel_coverage' }, 50] },
    ],
  };
  const query = { 'eo:cloud_cover': { lt: 20 }, pixel_coverage: { gt: 50 } };
  assert.deepEqual(idsOf(await items({ filter: text })), expected);
  assert.deepEqual(idsOf(await items({ filter: text }, '/collections/test/items')), expected);
  assert.deepEqual(
    idsOf(await items({ filter: JSON.stringify(json), 'filter-lang': 'cql2-json' })),
    expected,
  );
  assert.deepEqual(idsOf(await items({ query: JSON.stringify(query) })), expected);
  for (const body of [
    { filter: json },
    { filter: text, 'filter-lang': 'cql2-text' },
    { filter: text },
    { query },
  ]) {
    const answer = (await post('/search', { ...body, limit: 1000 })).json<ItemCollection>();
    assert.deepEqual(idsOf(answer.features), expected, JSON.stringify(body));
  }
});

test('each class of CQL2 that the server claims is answered', async () => {
  const count = async (filter: string) => idsOf(await items({ filter })).length;
  const timeOf = ({ properties: p }: Item) => String(p['datetime'] ?? p['start_datetime']);
  const last = timeOf(all[0]!);
  const newest = all.filter((item) => timeOf(item) === last).length;
  const [first] = all as [Item];
  const claims: Record<string, [filter: string, found: number]> = {
    'case-insensitive-comparison': [`CASEI(id) = CASEI('${first.id.toUpperCase()}')`, 1],
    'accent-insensitive-comparison': [`ACCENTI(id) LIKE ACCENTI('${first.id.replace('e', 'é')}%')`, 1],
    arithmetic: ['2 * pixel_coverage - pixel_coverage >= pixel_coverage', all.length],
    'temporal-functions': [`T_INTERSECTS(INTERVAL(datetime, datetime), INTERVAL('${last}', '..'))`, newest],
  };
  const { conformsTo } = (await get('/conformance')).json<{ conformsTo: string[] }>();
  for (const [name, [filter, found]] of Object.entries(claims)) {
    assert.ok(conformsTo.includes(`http://www.opengis.net/spec/cql2/1.0/conf/${name}`), name);
    assert.equal(await count(filter), found, filter);
  }
  for (const name of ['functions', 'array-functions'])
    assert.ok(!conformsTo.some((uri) => uri.endsWith(`/cql2/1.0/conf/${name}`)), name);
});

test('intersects accepts a geometry in the URL and in the body', async () => {
  const [west, south, east, north] = all[0]!.bbox;
  const intersects = { type: 'Point', coordinates: [(west + east) / 2, (south + north) / 2] };
  const expected = idsOf(
    all.filter(({ properties }) => properties['geocode'] === all[0]!.properties['geocode']),
  );
  assert.deepEqual(idsOf(await items({ intersects: JSON.stringify(intersects) })), expected);
  const answer = await post('/search', { intersects, limit: 1000 });
  assert.deepEqual(idsOf(answer.json<ItemCollection>().features), expected);
});

test('sortby works in the URL and in the body, and pages follow the order', async () => {
  const covers = all.map(({ properties }) => Number(properties['pixel_coverage'])).sort((a, b) => a - b);
  const ascending = await items({ sortby: '+pixel_coverage' });
  assert.deepEqual(
    ascending.map(({ properties }) => properties['pixel_coverage']),
    covers,
  );
  assert.deepEqual(idsOf(await items({ sortby: 'properties.pixel_coverage' })), idsOf(ascending));
  const sortby = [{ field: 'properties.pixel_coverage', direction: 'asc' }];
  let page = (await post('/search', { sortby, limit: 4 })).json<ItemCollection>();
  const walked = [...page.features];
  for (;;) {
    const next = page.links.find(({ rel }) => rel === 'next');
    if (!next) break;
    page = (await post('/search', next.body!)).json<ItemCollection>();
    walked.push(...page.features);
  }
  assert.deepEqual(idsOf(walked), idsOf(ascending));
  assert.equal(page.numberMatched, all.length);
});

test('fields selects the members of Items', async () => {
  const keys = async (fields: string) => Object.keys((await items({ fields, limit: '1' }))[0]!).sort();
  const item = async (fields: object) =>
    (await post('/search', { fields, limit: 1 })).json<ItemCollection>().features[0] as unknown as Record<
      string,
      Record<string, unknown>
    >;
  const minimal = ['collection', 'id', 'stac_version', 'type'];
  const usual = [...minimal, 'assets', 'bbox', 'geometry', 'links', 'properties'].sort();
  assert.deepEqual(await keys(''), usual);
  assert.deepEqual(await keys('id'), minimal);
  assert.deepEqual(await keys('+geometry,-geometry'), [...minimal, 'geometry'].sort());
  assert.deepEqual(
    await keys('-geometry,-links'),
    usual.filter((key) => key !== 'geometry' && key !== 'links'),
  );
  assert.deepEqual(Object.keys((await item({}))['properties']!), ['datetime']);
  assert.deepEqual(Object.keys((await item({ include: ['properties.eo:cloud_cover'] }))['properties']!), [
    'eo:cloud_cover',
  ]);
  assert.deepEqual(
    Object.keys((await item({ include: ['platform'], exclude: ['properties'] }))['properties']!),
    ['platform'],
  );
  const without = await item({ exclude: ['geometry', 'properties.platform', 'absent.x'] });
  assert.ok(!('geometry' in without) && !('platform' in without['properties']!));
  assert.ok('scene' in without['properties']! && 'assets' in without);
});

test('queryables are the properties of filters, with their known values', async () => {
  for (const path of ['/queryables', '/collections/test/queryables']) {
    const answer = await get(path);
    assert.match(String(answer.headers['content-type']), /^application\/schema\+json/);
    const { properties, additionalProperties, $id } = answer.json();
    assert.equal(additionalProperties, false);
    assert.ok($id.endsWith(path));
    assert.deepEqual(properties.collection.enum, ['test']);
    for (const name of Object.keys(properties)) {
      const filtered = await get('/search', { filter: `${name} IS NULL` });
      assert.equal(filtered.statusCode, 200, name);
    }
  }
});

interface Aggregation {
  name: string;
  value?: unknown;
  overflow?: number;
  buckets?: { key: string; frequency: number; from?: number; to?: number }[];
}

async function aggregations(params: Params, path = '/aggregate'): Promise<Record<string, Aggregation>> {
  const answer = await get(path, params);
  assert.equal(answer.statusCode, 200, answer.body);
  const { type, aggregations: list } = answer.json<{ type: string; aggregations: Aggregation[] }>();
  assert.equal(type, 'AggregationCollection');
  return Object.fromEntries(list.map((one) => [one.name, one]));
}

const counts = ({ buckets = [] }: Aggregation) =>
  Object.fromEntries(
    buckets.filter(({ frequency }) => frequency > 0).map(({ key, frequency }) => [key, frequency]),
  );

function tally(keys: string[]): Record<string, number> {
  const found: Record<string, number> = {};
  for (const key of keys) found[key] = (found[key] ?? 0) + 1;
  return found;
}

test('aggregations count what a search finds', async () => {
  const names = (await get('/aggregations')).json<{ aggregations: { name: string }[] }>().aggregations;
  const everything = names.map(({ name }) => name).join(',');
  for (const filter of ['TRUE', "platform = 'two'", 'eo:cloud_cover > 10', 'FALSE']) {
    const found = await items({ filter });
    const result = await aggregations({
      aggregations: everything,
      filter,
      datetime_frequency_interval: 'month',
      grid_geohash_frequency_precision: '5',
    });
    const values = (name: string) => found.map(({ properties }) => properties[name]);
    assert.equal(result['total_count']!.value, found.length);
    const times = values('datetime').sort();
    assert.equal(result['datetime_min']!.value, times[0] ?? null);
    assert.equal(result['datetime_max']!.value, times.at(-1) ?? null);
    assert.deepEqual(counts(result['collection_frequency']!), tally(found.map(() => 'test')));
    assert.deepEqual(counts(result['platform_frequency']!), tally(values('platform').map(String)));
    assert.deepEqual(
      counts(result['datetime_frequency']!),
      tally(times.map((time) => `${String(time).slice(0, 7)}-01T00:00:00.000Z`)),
    );
    assert.deepEqual(
      counts(result['grid_geohash_frequency']!),
      tally(values('geocode').map((geocode) => String(geocode).slice(0, 5))),
    );
    for (const [name, property] of [
      ['cloud_cover_frequency', 'eo:cloud_cover'],
      ['pixel_coverage_frequency', 'pixel_coverage'],
    ] as const) {
      const known = values(property)
        .filter((value) => value !== undefined)
        .map(Number);
      const { buckets = [], overflow } = result[name]!;
      assert.equal(overflow, found.length - known.length);
      for (const { from = 0, to = 0, frequency } of buckets) {
        const inside = known.filter(
          (value) => value >= from && (value < to || (to === 100 && value === 100)),
        );
        assert.equal(frequency, inside.length, `${name} ${from}`);
      }
    }
  }
  assert.deepEqual(
    await aggregations({ aggregations: 'total_count' }, '/collections/test/aggregate'),
    await aggregations({ aggregations: 'total_count', collections: 'test' }),
  );
  const body = { aggregations: ['total_count'], filter: { op: 'isNull', args: [{ property: 'platform' }] } };
  assert.equal((await post('/aggregate', body)).json().aggregations[0].value, 0);
  assert.equal((await post('/collections/test/aggregate', {})).json().aggregations.length, 0);
  const precise = await aggregations({
    aggregations: 'grid_geohash_frequency',
    grid_geohash_frequency_precision: '9',
  });
  assert.equal(precise['grid_geohash_frequency']!.overflow, all.length);
});

test('each mistake is a problem document with its code', async () => {
  const far = Array.from({ length: 12_000 }, (_, i) => [i / 100, Math.sin(i)]);
  // As text: what makes JSON would itself go too deep.
  const deep = (operators: number) =>
    `{"filter":${'{"op":"not","args":['.repeat(operators)}true${']}'.repeat(operators)}}`;
  const token = (await get('/search', { limit: '1' }))
    .json()
    .links.find(({ rel }: { rel: string }) => rel === 'next');
  const stolen = new URL(token.href).searchParams.get('token')!;
  const forged = Buffer.from('["x",[],0,"a","b"]').toString('base64url');
  const cases: [string, Params | object | string, string, RegExp][] = [
    ['GET', { filter: 'eo:cloud_cover < ' }, 'TW_QUERY_CQL2_SYNTAX', /character 18: expected a value/],
    ['GET', { filter: 'cloud < 3' }, 'TW_QUERY_UNKNOWN_PROPERTY', /no property "cloud".*use one of id/],
    ['GET', { filter: 'proj:epsg = 4326' }, 'TW_QUERY_NOT_QUERYABLE', /"proj:epsg".*use one of id/],
    ['GET', { filter: "scene = 'x'", 'filter-crs': 'EPSG:3857' }, 'TW_QUERY_FILTER_LANG', /CRS84/],
    ['GET', { filter: "scene = 'x'", 'filter-lang': 'sql' }, 'TW_QUERY_FILTER_LANG', /cql2-text/],
    ['GET', { filter: "UPPER(scene) = 'X'" }, 'TW_QUERY_CQL2_UNSUPPORTED', /the function UPPER/],
    ['GET', { datetime: '2024-02-01T00:00:00Z/2024-01-01T00:00:00Z' }, 'TW_QUERY_DATETIME', /ends before/],
    ['GET', { token: 'garbage' }, 'TW_QUERY_TOKEN', /does not come from a search/],
    ['GET', { token: forged }, 'TW_QUERY_TOKEN_OTHER_SEARCH', /another filter or order/],
    ['GET', { token: stolen, filter: 'pixel_coverage > 1' }, 'TW_QUERY_TOKEN_OTHER_SEARCH', /another/],
    ['GET', { token: stolen, sortby: 'id' }, 'TW_QUERY_TOKEN_OTHER_SEARCH', /another/],
    ['GET', { sortby: 'license' }, 'TW_QUERY_SORT', /"license".*datetime/],
    ['POST', { sortby: [{ field: 5 }] }, 'TW_QUERY_SORT', /field/],
    ['POST', { sortby: [{ field: 'id', direction: 'up' }] }, 'TW_QUERY_SORT', /up/],
    [
      'GET',
      { bbox: '0,0,1,1', intersects: '{"type":"Point","coordinates":[0,0]}' },
      'TW_QUERY_BBOX_AND_INTERSECTS',
      /both/,
    ],
    [
      'POST',
      { intersects: { type: 'Point', coordinates: ['x'] } },
      'TW_QUERY_GEOMETRY',
      /two or three numbers/,
    ],
    [
      'POST',
      { intersects: { type: 'LineString', coordinates: far } },
      'TW_QUERY_TOO_COMPLEX',
      /12000 points/,
    ],
    ['POST', deep(200), 'TW_QUERY_TOO_COMPLEX', /levels/],
    ['POST', deep(20_000), 'TW_API_TOO_DEEP', /levels/],
    ['POST', { filter: '('.repeat(50_000) }, 'TW_QUERY_TOO_COMPLEX', /levels/],
    ['POST', { filter: { op: 'and', args: 5 } }, 'TW_QUERY_CQL2', /must be a list/],
    ['POST', { query: { platform: { is: 5 } } }, 'TW_QUERY_QUERY', /"is"/],
    ['GET', { limit: '0' }, 'TW_API_BAD_REQUEST', /limit/],
    ['GET', { limit: '-1' }, 'TW_API_BAD_REQUEST', /limit/],
    ['GET', { cloudy: 'yes' }, 'TW_API_BAD_REQUEST', /cloudy/],
    ['POST', { fields: { include: 5 } }, 'TW_API_BAD_REQUEST', /fields.include/],
    ['/aggregate', { aggregations: 'total' }, 'TW_QUERY_AGGREGATION', /"total".*total_count/],
    [
      '/aggregate',
      { aggregations: 'datetime_frequency', datetime_frequency_interval: 'week' },
      'TW_QUERY_AGGREGATION',
      /day/,
    ],
    [
      '/aggregate',
      { aggregations: 'grid_geohash_frequency', grid_geohash_frequency_precision: '10' },
      'TW_QUERY_AGGREGATION',
      /1 to 9/,
    ],
    ['/collections/none/aggregate', {}, 'TW_API_NOT_FOUND', /none/],
    ['/collections/none/queryables', {}, 'TW_API_NOT_FOUND', /none/],
  ];
  for (const [how, params, code, detail] of cases) {
    const path = how.startsWith('/') ? how : '/search';
    const answer = how === 'POST' ? await post(path, params) : await get(path, params as Params);
    const shown = `${how} ${JSON.stringify(params).slice(0, 100)} ${answer.body.slice(0, 300)}`;
    assert.equal(answer.statusCode, code === 'TW_API_NOT_FOUND' ? 404 : 400, shown);
    assert.match(String(answer.headers['content-type']), /^application\/problem\+json/);
    assert.equal(answer.json().code, code, shown);
    assert.match(answer.json().detail, detail);
  }
  assert.equal((await get('/search', { limit: '20000' })).statusCode, 200, 'more than the most is clamped');
});

test('a forged position in a paging token does not bypass checks', async () => {
  const next = (await get('/search', { limit: '1' }))
    .json()
    .links.find(({ rel }: { rel: string }) => rel === 'next');
  const token = new URL(next.href).searchParams.get('token')!;
  const [digest] = JSON.parse(Buffer.from(token, 'base64url').toString());
  const made = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  assert.deepEqual(await items({ token: made([digest, [], -1e15, '', '']) }), []);
  for (const value of [
    [digest, [1], 0, '', ''],
    [digest, [], null, '', ''],
    [digest, [], 0, {}, ''],
    { digest },
  ])
    assert.equal((await get('/search', { token: made(value) })).json().code, 'TW_QUERY_TOKEN');
});

test('pages of other origins may read, with a body too, and can read errors', async () => {
  const preflight = (method: string, url: string) =>
    node.server.inject({
      method: 'OPTIONS',
      url,
      headers: {
        origin: 'https://map.example',
        'access-control-request-method': method,
        'access-control-request-headers': 'content-type',
      },
    });
  for (const [method, url] of [
    ['POST', '/search'],
    ['POST', '/aggregate'],
    ['POST', '/collections/test/aggregate'],
    ['GET', '/queryables'],
  ]) {
    const { headers, statusCode } = await preflight(method!, url!);
    assert.equal(statusCode, 204);
    assert.equal(headers['access-control-allow-origin'], '*');
    assert.match(String(headers['access-control-allow-methods']), /POST/);
    assert.match(String(headers['access-control-allow-headers']), /content-type/);
  }
  for (const url of ['/ingest', '/processes/train/execution', '/collections/test/items'])
    assert.equal((await preflight('POST', url)).headers['access-control-allow-methods'], undefined);
  const refused = await get('/search', { filter: '(' }, { origin: 'https://map.example' });
  assert.equal(refused.headers['access-control-allow-origin'], '*');
});
