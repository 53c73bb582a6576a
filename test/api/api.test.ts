/** The HTTP API of a node with real tiles; requests are injected into the routes. */
import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { fromArrayBuffer } from 'geotiff';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { ingest, testNode } from '../support/node.js';
import { parsePrometheus } from '../support/prometheus.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const DESCRIPTION = { collection: 'test', scale: 0.0001, maskBand: 5, precision: 6 };

let node: TilewrightNode;
let folder: string;
const cleanUp: (() => Promise<void>)[] = [];

before(async () => {
  folder = await tempFolder({ after: (work) => void cleanUp.push(work as () => Promise<void>) });
  node = await openNode({
    data: join(folder, 'data'),
    memory: 256e6,
    cores: 2,
    allowFolders: [await folderOfScenes()],
  });
  for (const [day, cloud] of [
    ['2024-06-01', 0],
    ['2024-06-11', 60],
  ] as const) {
    const path = await writeTestScene(join(folder, 'scenes', `${day}.tif`), { cloud, edge: 40 });
    const job = await post('/ingest', { href: path, datetime: `${day}T10:00:00Z`, ...DESCRIPTION });
    assert.equal(job.statusCode, 201, job.body);
    assert.equal((await ended(job.json().jobID)).status, 'successful');
  }
});

after(async () => {
  await node.close();
  for (const work of cleanUp) await work();
});

async function folderOfScenes(): Promise<string> {
  const scenes = join(folder, 'scenes');
  await mkdir(scenes);
  return scenes;
}

const get = (url: string, headers: Record<string, string> = {}) => node.server.inject({ url, headers });
const post = (url: string, payload: object, headers: Record<string, string> = {}) =>
  node.server.inject({ method: 'POST', url, payload, headers });

interface JobDocument {
  status: string;
  message: string;
  error: { code: string; message: string };
  results: { failed: { path: string; code: string }[] };
}

async function ended(id: string): Promise<JobDocument> {
  for (;;) {
    const job = (await get(`/jobs/${id}`)).json();
    if (job.status !== 'accepted' && job.status !== 'running') return job;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function items(query: string): Promise<{ id: string; properties: Record<string, unknown> }[]> {
  const answer = await get(`/search?limit=1000&${query}`);
  assert.equal(answer.statusCode, 200, answer.body);
  return answer.json().features;
}

test('errors name unknown parameters, and the allowed values of others', async () => {
  const unknown = async (answer: ReturnType<typeof get>) => {
    const { statusCode, body } = await answer;
    assert.equal(statusCode, 400);
    return JSON.parse(body).detail;
  };
  assert.match(await unknown(get('/search?colection=x')), /the query has the unknown parameter "colection"/);
  assert.match(await unknown(get('/collections/test/scenes?page=2')), /"page"/);
  assert.match(
    await unknown(post('/search', { maxClouds: 3 })),
    /the body has the unknown parameter "maxClouds"/,
  );
  assert.match(await unknown(post('/search', { maxCloud: 'much' })), /maxCloud must be number/);
  const train = (inputs: object) => unknown(post('/processes/train/execution', { inputs }));
  assert.match(
    await train({ model: 'ndvi', transfer: 'nearest' }),
    /: transfer must be equal to one of none, random, similar, probe$/,
  );
  assert.match(await unknown(post('/search', { limit: 0 })), /: limit must be at least 1$/);
  assert.match(await unknown(get('/search?limit=0')), /: querystring\/limit must be at least 1$/);
  assert.match(
    await unknown(post('/processes/verify/execution', { inputs: { a: 1 } })),
    /: the process has no input "a"; it has /,
  );
  const ingest = (options: object) => unknown(post('/ingest', { href: '/any.tif', ...options }));
  assert.match(await ingest({ precision: 30 }), /: precision must be at most 24$/);
  assert.match(
    await ingest({ collection: 'My Fields' }),
    /: collection "My Fields" is not allowed: 1 to 64 small letters, digits, - and \., beginning/,
  );
  assert.match(await train({ model: 'weather' }), /model must be equal to one of ndvi, ndmi, cloud-removal/);
});

test('every link of the landing page works', async () => {
  const landing = (await get('/')).json();
  assert.equal(landing.type, 'Catalog');
  assert.ok(landing.conformsTo.includes('https://api.stacspec.org/v1.0.0/core'));
  for (const { href, method = 'GET' } of landing.links as { href: string; method?: 'GET' | 'POST' }[]) {
    const url = new URL(href).pathname;
    const answer = await node.server.inject({ method, url, ...(method === 'POST' && { payload: {} }) });
    assert.equal(answer.statusCode, 200, `${method} ${url}`);
  }
});

test('the links that stac-browser lists as further resources have different titles', async () => {
  // stac-browser shows these relations as buttons, cards and forms, or has its own titles for them.
  const known = /^(self|root|parent|child|items|data|search|conformance|http:.*queryables)$/;
  for (const url of ['/', '/collections/test']) {
    const links = (await get(url)).json().links as { rel: string; title?: string }[];
    const titles = links
      .filter(({ rel }) => !known.test(rel))
      .map(({ rel, title }) => title ?? `${rel}: none`);
    assert.equal(new Set(titles).size, titles.length, String(titles));
    assert.ok(titles.length > 3 && titles.every((title) => !title.endsWith(': none')), String(titles));
  }
});

test('search accepts box, time, cloud and coverage, in the URL and in the body', async () => {
  const all = await items('');
  assert.ok(all.length > 10);
  assert.ok(String(all[0].properties.datetime) >= String(all.at(-1)?.properties.datetime), 'newest first');
  const clear = await items('maxCloud=10');
  assert.ok(clear.length > 0 && clear.length < all.length);
  assert.ok(clear.every((item) => Number(item.properties['eo:cloud_cover']) <= 10));
  const full = await items('minCoverage=99');
  assert.ok(full.length > 0 && full.every((item) => Number(item.properties.pixel_coverage) >= 99));
  const june1 = await items('datetime=2024-06-01T00:00:00Z/2024-06-02T00:00:00Z');
  assert.ok(june1.every((item) => String(item.properties.datetime).startsWith('2024-06-01')));
  const [west, south, east, north] = (all[0] as unknown as { bbox: number[] }).bbox;
  const inside = [west + 1e-4, south + 1e-4, east - 1e-4, north - 1e-4];
  const here = await items(`bbox=${inside.join(',')}`);
  assert.deepEqual(
    new Set(here.map((item) => item.properties.geocode)),
    new Set([all[0].properties.geocode]),
  );
  const body = await post('/search', { bbox: inside, maxCloud: 10, limit: 1000 });
  const url = await items(`bbox=${inside.join(',')}&maxCloud=10`);
  assert.deepEqual(
    body.json().features.map((item: { id: string }) => item.id),
    url.map((item) => item.id),
  );
});

test('pages add up to the complete list', async () => {
  const all = (await items('')).map((item) => item.id);
  const seen: string[] = [];
  let next: string | undefined = '/search?limit=3';
  while (next) {
    const page: {
      features: { id: string }[];
      links: { rel: string; href: string }[];
      numberMatched: number;
    } = (await get(next.replace(/^http:\/\/[^/]+/, ''))).json();
    assert.equal(page.numberMatched, all.length);
    seen.push(...page.features.map((item) => item.id));
    next = page.links.find((link) => link.rel === 'next')?.href;
  }
  assert.deepEqual(seen, all);
});

test('a tile file is a GeoTIFF, complete or in ranges, and its version is its ETag', async () => {
  const [item] = (await items('')) as unknown as { assets: Record<string, { href: string }> }[];
  const url = new URL(item.assets['10m'].href).pathname;
  const whole = await get(url);
  assert.equal(whole.statusCode, 200);
  const tiff = await fromArrayBuffer(new Uint8Array(whole.rawPayload).buffer as ArrayBuffer);
  assert.equal((await tiff.getImage()).getSamplesPerPixel(), 4);

  const part = await get(url, { range: 'bytes=10-19' });
  assert.equal(part.statusCode, 206);
  assert.equal(part.headers['content-range'], `bytes 10-19/${whole.rawPayload.length}`);
  assert.deepEqual(part.rawPayload, whole.rawPayload.subarray(10, 20));
  const tail = await get(url, { range: 'bytes=-5' });
  assert.deepEqual(tail.rawPayload, whole.rawPayload.subarray(-5));
  assert.equal((await get(url, { range: 'bytes=999999999-' })).statusCode, 416);
  assert.equal(
    (await get(url, { range: 'bytes=5-2' })).statusCode,
    200,
    'a range that is none is passed over',
  );

  const etag = String(whole.headers.etag);
  assert.equal((await get(url, { 'if-none-match': etag })).statusCode, 304);
  assert.equal((await get(url, { 'if-range': '"other"', range: 'bytes=0-1' })).statusCode, 200);
  const head = await node.server.inject({ method: 'HEAD', url });
  assert.equal(head.statusCode, 200);
  assert.equal(Number(head.headers['content-length']), whole.rawPayload.length);
  assert.equal(head.rawPayload.length, 0);
  // Ranges apply to GET only.
  const ranged = await node.server.inject({ method: 'HEAD', url, headers: { range: 'bytes=0-99' } });
  assert.equal(ranged.statusCode, 200);
  assert.equal(Number(ranged.headers['content-length']), whole.rawPayload.length);
});

test('requests for another version of a file, and errors of files, are not cached', async (t) => {
  const own = await testNode(t, join(await tempFolder(t), 'data'));
  const scene = join(folder, 'scenes', '2024-06-01.tif');
  await ingest(own, { href: scene, datetime: '2024-06-01T10:00:00Z', ...DESCRIPTION });
  const [item] = (await own.server.inject('/search')).json().features;
  const { pathname } = new URL(item.assets['10m'].href);
  const band = pathname.replace('.tif', `/${item.assets['10m']['eo:bands'][0].name}.tif`);
  const files = [pathname, band];
  const ask = (url: string, headers = {}) => own.server.inject({ url, headers });
  for (const url of files) {
    const { etag } = (await ask(url)).headers;
    assert.equal((await ask(url, { 'if-match': `"other", ${etag}` })).statusCode, 200);
    assert.equal((await ask(url, { 'if-match': '*' })).statusCode, 200);
    const other = await ask(url, { 'if-match': '"other"' });
    assert.deepEqual([other.statusCode, other.json().code], [412, 'TW_API_PRECONDITION']);
    const beyond = await ask(url, { range: 'bytes=999999999-' });
    assert.equal(beyond.statusCode, 416);
    for (const { headers } of [other, beyond])
      assert.deepEqual(
        [headers['cache-control'], headers.etag, headers['accept-ranges']],
        ['no-store', undefined, undefined],
      );
  }
});

test('a compressed body is refused by name', async () => {
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  const answer = await node.server.inject({
    ...{ method: 'POST', url: '/search', headers },
    payload: gzipSync('{}'),
  });
  assert.deepEqual([answer.statusCode, answer.json().code], [415, 'TW_API_CONTENT_ENCODING']);
});

test('a shared cache stores public answers only', async (t) => {
  const own = await tempFolder(t);
  const data = join(own, 'data');
  const scene = await writeTestScene(join(own, 'scene.tif'));
  const open = await testNode(t, data);
  await ingest(open, { href: scene, datetime: '2024-06-01T10:00:00Z', ...DESCRIPTION });
  const paths = async ({ server }: TilewrightNode, headers = {}) => {
    const [item] = (await server.inject({ url: '/search', headers })).json().features;
    const file = new URL(Object.values<{ href: string }>(item.assets)[0]!.href).pathname;
    return [file, `/preview/${item.id}.png`];
  };
  const kept = async ({ server }: TilewrightNode, url: string, headers = {}) =>
    (await server.inject({ url, headers })).headers['cache-control'];
  for (const path of await paths(open))
    assert.match(String(await kept(open, path)), /^public, max-age/, path);
  await open.close();
  const guarded = await openNode({ data, memory: 128e6, cores: 1, readToken: 'r' });
  atEnd(t, () => guarded.close());
  const headers = { authorization: 'Bearer r' };
  for (const path of await paths(guarded, headers))
    assert.match(String(await kept(guarded, path, headers)), /^private, max-age/, path);
});

test('errors are problem documents with a code', async () => {
  const cases: [string, number, string][] = [
    ['/nothing', 404, 'TW_API_NOT_FOUND'],
    ['/collections/none', 404, 'TW_API_NOT_FOUND'],
    ['/collections/test/items/none', 404, 'TW_API_NOT_FOUND'],
    ['/tiles/..%2f..%2fnode.json/x.tif', 404, 'TW_API_NOT_FOUND'],
    ['/search?bbox=1,2,3', 400, 'TW_QUERY_BBOX'],
    ['/search?datetime=2024-13-01T00:00:00Z', 400, 'TW_QUERY_DATETIME'],
    ['/search?cloud=3', 400, 'TW_API_BAD_REQUEST'],
    ['/search?limit=0', 400, 'TW_API_BAD_REQUEST'],
    ['/search?token=garbage', 400, 'TW_QUERY_TOKEN'],
    ['/jobs/none', 404, 'TW_JOB_NOT_FOUND'],
  ];
  for (const [url, status, code] of cases) {
    const answer = await get(url);
    assert.equal(answer.statusCode, status, `${url} ${answer.body}`);
    assert.match(String(answer.headers['content-type']), /application\/problem\+json/);
    assert.equal(answer.json().code, code, url);
  }
});

test('ingest reads only inside the allowed folders', async () => {
  const outside = await writeTestScene(join(folder, 'outside.tif'));
  const link = join(folder, 'scenes', 'link.tif');
  await symlink(outside, link);
  const broken = join(folder, 'scenes', 'broken.tif');
  await symlink(join(folder, 'nothing.tif'), broken);
  const folderLink = join(folder, 'scenes', 'folder');
  await symlink(folder, folderLink);
  const inward = join(folder, 'inward');
  await symlink(join(folder, 'scenes'), inward);
  for (const href of [
    outside,
    link,
    broken,
    `${broken}/`,
    `${broken}/x.tif`,
    join(folderLink, 'nothing.tif'),
    join(folder, 'nothing.tif'),
    join(folder, 'scenes', '..', 'outside.tif'),
    '/etc/passwd',
    'scenes/x.tif',
    `file://${outside}`,
  ]) {
    const answer = await post('/ingest', { href, datetime: '2024-06-01T10:00:00Z', ...DESCRIPTION });
    assert.equal(answer.statusCode, 403, href);
    assert.equal(answer.json().code, 'TW_API_OUTSIDE_FOLDER');
  }
  const missing = join(folder, 'scenes', 'missing.tif');
  const absent = await post('/ingest', { href: missing, ...DESCRIPTION });
  assert.deepEqual([absent.statusCode, absent.json().code], [400, 'TW_INGEST_NOT_RECOGNISED']);
  assert.match(absent.json().detail, /missing\.tif: this file or folder does not exist/);
  // The answer reveals nothing about folders outside of the allowed ones.
  for (const [path, code] of [
    [`${folder}/nowhere/../scenes/missing.tif`, 'TW_INGEST_NOT_RECOGNISED'],
    [`${folder}/data/../scenes/missing.tif`, 'TW_INGEST_NOT_RECOGNISED'],
    [join(inward, 'missing.tif'), 'TW_API_OUTSIDE_FOLDER'],
  ])
    assert.equal((await post('/ingest', { href: path, ...DESCRIPTION })).json().code, code, path);
  const owner = { authorization: `Bearer ${node.ownerSecret}` };
  const allowed = await post(
    '/ingest',
    { href: outside, datetime: '2024-06-01T10:00:00Z', ...DESCRIPTION },
    owner,
  );
  assert.equal(allowed.statusCode, 201, 'the user who runs the server may read everywhere');
  await ended(allowed.json().jobID);
});

test('without a token, only this machine gets answers, and pages of other origins may not write', async () => {
  assert.equal((await get('/health', { host: 'evil.example' })).json().code, 'TW_API_FOREIGN_HOST');
  const foreign = await post('/ingest', { href: 'x' }, { origin: 'https://evil.example' });
  assert.equal(foreign.json().code, 'TW_API_FOREIGN_ORIGIN');
  assert.equal(
    (await get('/search', { origin: 'https://map.example' })).headers['access-control-allow-origin'],
    undefined,
  );
  const preflight = async (method: string, url: string) =>
    (
      await node.server.inject({
        method: 'OPTIONS',
        url,
        headers: { origin: 'https://map.example', 'access-control-request-method': method },
      })
    ).headers['access-control-allow-methods'];
  assert.equal(await preflight('POST', '/search'), undefined);
  assert.equal(await preflight('POST', '/ingest'), undefined);
});

test('Prometheus metrics match the storage, and a single node is ready', async () => {
  const answer = await get('/metrics');
  assert.match(String(answer.headers['content-type']), /^text\/plain; version=0\.0\.4/);
  const { tiles } = (await get('/health')).json();
  assert.equal(parsePrometheus(answer.body).get('tilewright_tiles'), tiles);
  assert.deepEqual((await get('/ready')).json(), { status: 'ready', checks: { disk: 'ok' } });
});

test('the OpenAPI document describes the routes', async () => {
  const answer = await get('/openapi.json');
  assert.match(String(answer.headers['content-type']), /^application\/vnd\.oai\.openapi\+json;version=3\.0/);
  const { openapi, paths } = answer.json();
  assert.match(openapi, /^3\.0/);
  for (const path of [
    '/',
    '/search',
    '/collections/{id}/items',
    '/tiles/{itemId}/{group}.tif',
    '/ingest',
    '/health',
    '/jobs/{id}',
    '/models',
  ])
    assert.ok(paths[path], path);
});

test('an ingest without a result is a failed job with a reason for each input', async () => {
  const at = { datetime: '2024-06-01T10:00:00Z', ...DESCRIPTION };
  const broken = ['1', '2', '3', '4', '5'].map((n) => join(folder, 'scenes', `broken${n}.tif`));
  for (const path of broken) await writeFile(path, 'not a tiff');
  const { jobID } = (await post('/ingest', { href: broken, ...at })).json();
  const job = await ended(jobID);
  assert.equal(job.status, 'failed');
  assert.equal(job.error.code, 'TW_INGEST_ALL_FAILED');
  assert.match(job.error.message, /all 5 inputs failed: .*broken1.*\(also .*broken2.*broken3.* and 2 more\)/);
  assert.deepEqual(
    job.results.failed.map(({ path, code }) => [path, code]),
    broken.map((path) => [path, 'TW_RASTER_NOT_TIFF']),
  );
  assert.equal((await get(`/jobs/${jobID}/results`)).json().code, 'TW_INGEST_ALL_FAILED');

  const sound = join(folder, 'scenes', 'sound.tif');
  await writeTestScene(sound);
  const some = await post('/ingest', { href: [broken[0], sound], ...at, dryRun: true });
  const { status, message } = await ended(some.json().jobID);
  assert.deepEqual(
    [status, message.slice(0, 42)],
    ['successful', '1 scene checked, none ingested, 1 failed: '],
  );
});

test('the first held-out time of a training is an RFC 3339 time that exists', async () => {
  const filter = { collections: ['test'] };
  const asked = (validationFrom: string): [string, object][] => [
    ['/processes/train/execution', { inputs: { model: 'ndvi', filter, validationFrom, store: false } }],
    ['/training/check', { models: ['ndvi'], filter, validationFrom }],
    ['/training/place', { model: 'ndvi', filter, validationFrom }],
  ];
  const bad = [
    'NaN',
    '',
    '2023-07-01',
    '2023-07-07T10:60:00Z',
    '2023-02-30T00:00:00Z',
    '2023-07-07T10:06:22+02',
  ];
  for (const time of bad)
    for (const [path, body] of asked(time)) {
      const answer = await post(path, body);
      assert.equal(answer.statusCode, 400, `${path} ${time}: ${answer.body}`);
      assert.equal(answer.json().code, 'TW_QUERY_INSTANT');
    }
  for (const time of ['2016-12-31T23:59:60Z', '0001-01-01T00:00:00Z', '2023-07-07T10:06:22.123456+02:00'])
    assert.notEqual(
      (await post('/training/check', asked(time)[1]![1])).json().code,
      'TW_QUERY_INSTANT',
      time,
    );
});
