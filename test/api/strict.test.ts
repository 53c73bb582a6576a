/** Requests that are nearly valid are refused with a reason. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { openNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { finished, start } from '../support/command.js';
import { ingest, testNode } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const OPTIONS = {
  collection: 'test',
  datetime: '2024-06-01T10:00:00Z',
  scale: 0.0001,
  maskBand: 5,
  precision: 6,
};

async function withTiles(t: TestContext) {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  assert.ok((await ingest(node, { href: scene, ...OPTIONS })).tiles > 2);
  const asOwner = { authorization: `Bearer ${node.ownerSecret}` };
  const refused = async (request: object, code: string, status = 400) => {
    const answer = await node.server.inject({ headers: asOwner, ...request });
    const what = `${JSON.stringify(request).slice(0, 200)} -> ${answer.body}`;
    assert.equal(answer.statusCode, status, what);
    assert.match(String(answer.headers['content-type']), /^application\/problem\+json/);
    assert.equal(answer.json().code, code, what);
    return answer;
  };
  return { node, asOwner, refused, folder };
}

test('a path reports the methods that it supports', async (t) => {
  const { refused, node } = await withTiles(t);
  const cases: [method: string, url: string, allow: string][] = [
    ['PUT', '/search?limit=1', 'GET, HEAD, OPTIONS, POST'],
    ['PATCH', '/collections/test', 'DELETE, GET, HEAD, OPTIONS'],
    ['DELETE', '/tiles/a/b.tif', 'GET, HEAD, OPTIONS'],
    ['GET', '/timeseries', 'OPTIONS, POST'],
    ['GET', '/jobs/1/retry', 'OPTIONS, POST'],
  ];
  for (const [method, url, allow] of cases)
    assert.equal((await refused({ method, url }, 'TW_API_METHOD', 405)).headers['allow'], allow);
  await refused({ method: 'PUT', url: '/no/where' }, 'TW_API_NOT_FOUND', 404);
  const { statusCode, json } = await node.server.inject('/collections/test/items?collections=test&limit=1');
  assert.deepEqual([statusCode, json().numberReturned], [200, 1], 'pystac-client names the collection twice');
  await refused({ url: '/collections/test/items?collections=other' }, 'TW_API_BAD_REQUEST');
  await refused({ method: 'DELETE', url: '/tiles/a/b/c/d.tif' }, 'TW_API_NOT_FOUND', 404);
  assert.equal((await node.server.inject({ method: 'OPTIONS', url: '/search' })).statusCode, 204);
});

test('JSON is not converted, values in a URL are', async (t) => {
  const { refused, node } = await withTiles(t);
  const bodies = [
    { bbox: [null, 0, 20, 60] },
    { bbox: ['10', '40', '20', '60'] },
    { limit: '5' },
    { recurse: 'true', geocode: 'u2' },
    { minCloud: '5' },
    { ids: 1 },
    { datetime: 2024 },
    { collections: null },
  ];
  for (const payload of bodies)
    await refused({ method: 'POST', url: '/search', payload }, 'TW_API_BAD_REQUEST');
  const inputs = { model: 'ndvi', epochs: '3' };
  await refused(
    { method: 'POST', url: '/processes/train/execution', payload: { inputs } },
    'TW_API_BAD_REQUEST',
  );
  const found = await node.server.inject('/search?limit=1&recurse=true&geocode=u&minCoverage=0');
  assert.equal(found.statusCode, 200, found.body);
  assert.ok(found.json().numberMatched > 2);
});

test('a JSON number that is too large does not become infinity', async (t) => {
  const { refused } = await withTiles(t);
  const headers = { 'content-type': 'application/json' };
  const post = (url: string, payload: string) =>
    refused({ method: 'POST', url, headers, payload }, 'TW_API_BAD_REQUEST');
  await post('/search', '{"limit": 1e400}');
  await post('/search', '{"query": {"eo:cloud_cover": {"lte": -1e400}}}');
});

/** Inputs that each process that takes a filter needs beside it. */
const BESIDE_FILTER = {
  train: { model: 'ndvi' },
  predict: { model: 'ndvi' },
  split: { precision: 6 },
  fill: {},
  coalesce: { to: 's' },
  tensor: { bands: ['red'] },
};

test('JSON that is nested too deep is refused, wherever in a filter it is', async (t) => {
  const { refused } = await withTiles(t);
  const post = (code: string, url: string, payload: string, more = {}) => {
    const headers = { 'content-type': 'application/json', ...more };
    return refused({ method: 'POST', url, headers, payload }, code);
  };
  for (const [levels, code] of [
    [400, 'TW_QUERY_TOO_COMPLEX'],
    [36_000, 'TW_API_TOO_DEEP'],
  ] as const) {
    const operators = nested(levels / 2, '{"op":"not","args":[', ']}', 'true');
    const lists = nested(levels);
    const filters = [
      `{"filter":${operators}}`,
      `{"filter":{"op":"=","args":[{"property":"scene"},"x"],"unread":${lists}}}`,
      `{"intersects":{"type":"Point","coordinates":[0,0],"unread":${lists}}}`,
      `{"query":{"eo:cloud_cover":{"lte":${lists}}}}`,
    ];
    for (const filter of filters) {
      await post(code, '/search', filter);
      for (const [process, inputs] of Object.entries(BESIDE_FILTER)) {
        const given = JSON.stringify({ inputs: { ...inputs, filter: 0 } }).replace(
          '"filter":0',
          `"filter":${filter}`,
        );
        await post(code, `/processes/${process}/execution`, given);
        await post(code, `/processes/${process}/execution`, given, { 'idempotency-key': process });
      }
    }
  }
});

/** As text: what makes JSON would itself go too deep. */
const nested = (levels: number, open = '[', close = ']', inside = '') =>
  `${open.repeat(levels)}${inside}${close.repeat(levels)}`;

test('JSON that is nested too deep is refused, wherever in a body it is', async (t) => {
  const { refused, node, asOwner } = await withTiles(t);
  const headers = { ...asOwner, 'content-type': 'application/json' };
  const series = (geometry: string) => `{"expression":"b1","geometry":${geometry}}`;
  const labels = (geometry: string) =>
    `{"inputs":{"filter":{"collections":["test"]},"labels":{"features":[{"code":1,"geometry":${geometry}}]}}}`;
  for (const levels of [600, 4000, 5000, 450_000])
    for (const geometry of [
      `{"type":"Polygon","coordinates":${nested(levels)}}`,
      `{"type":"Point","coordinates":[15,48],"unread":${nested(levels)}}`,
    ])
      for (const [url, payload] of [
        ['/spectra', `{"geometry":${geometry}}`],
        ['/timeseries', series(geometry)],
        ['/processes/analyse-classify/execution', labels(geometry)],
      ] as const)
        await refused({ method: 'POST', url, headers, payload }, 'TW_API_TOO_DEEP');
  const ask = (url: string, payload: string) => node.server.inject({ method: 'POST', url, headers, payload });
  const point = `{"type":"Point","coordinates":[15,48],"unread":${nested(480)}}`;
  const flat = await ask('/timeseries', series(point));
  assert.equal(flat.statusCode, 200, flat.body);
  const text = `${'['.repeat(1000)}\\"${'{'.repeat(1000)}\\\\`;
  assert.equal((await ask('/search', `{"ids":["${text}"],"limit":1}`)).statusCode, 200, 'brackets in texts');
  const wide = await ask(
    '/search',
    `{"ids":[${'"a",'.repeat(900)}"b"],"collections":["test"],"unread":[${'[],'.repeat(9000)}1]}`,
  );
  assert.equal(wide.json().code, 'TW_API_BAD_REQUEST', 'lists beside each other');
  const many = `{"type":"Polygon","coordinates":[[[${'[["x"]],'.repeat(1e5)}0]]]}`;
  for (const url of ['/spectra', '/timeseries']) {
    const payload = url === '/spectra' ? `{"geometry":${many}}` : series(many);
    const { body } = await refused({ method: 'POST', url, headers, payload }, 'TW_IMAGERY_REGION');
    assert.ok(body.length < 1000, body.slice(0, 2000));
  }
});

test('a process refuses a wrong filter, and inputs out of bounds, when it is asked', async (t) => {
  const { refused } = await withTiles(t);
  const start = (process: string, inputs: object, code: string) =>
    refused({ method: 'POST', url: `/processes/${process}/execution`, payload: { inputs } }, code);
  for (const [process, inputs] of Object.entries(BESIDE_FILTER)) {
    await start(process, { ...inputs, filter: { datetime: '1900' } }, 'TW_QUERY_DATETIME');
    await start(process, { ...inputs, filter: { geocode: 'a!' } }, 'TW_QUERY_GEOCODE');
    await start(process, { ...inputs, filter: { geocode: 'u'.repeat(10_000) } }, 'TW_API_BAD_REQUEST');
  }
  await start('predict', { model: 'n'.repeat(300) }, 'TW_API_BAD_REQUEST');
  for (const seed of [-1, 2 ** 32, 2 ** 53, 1e300, 0.5])
    await start('train', { model: 'ndvi', seed }, 'TW_API_BAD_REQUEST');
  for (const placeMemory of [999_999, 1e30])
    await start('train', { model: 'ndvi', mode: 'contained', placeMemory }, 'TW_API_BAD_REQUEST');
  const most = { model: 'ndvi', seed: 2 ** 32 - 1, filter: { collections: ['none'] } };
  await assert.rejects(start('train', most, 'TW_API_BAD_REQUEST'));
});

test('an invalid host is refused, and links use the host that was checked', async (t) => {
  const { node, folder } = await withTiles(t);
  // With a token it may be reached by any name.
  const named = await openNode({ data: join(folder, 'named'), memory: 1e8, cores: 1, token: 'secret' });
  atEnd(t, () => named.close());
  for (const host of ['localhost:99999', 'a b', 'a%zz', '[::1'])
    for (const url of ['/', '/search?limit=1', '/jobs?limit=1']) {
      const headers = { host, authorization: 'Bearer secret' };
      const answer = await named.server.inject({ url, headers });
      assert.equal(answer.statusCode, 400, `${host} ${url} ${answer.body}`);
      assert.equal(answer.json().code, 'TW_API_BAD_REQUEST');
    }
  const { port } = new URL(await node.listen('127.0.0.1', 0));
  const socket = connect(Number(port), '127.0.0.1');
  atEnd(t, () => socket.destroy());
  socket.write(
    `GET http://evil.example/search?limit=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
  );
  const answer = await text(socket);
  assert.match(answer, /^HTTP\/1.1 200/);
  assert.doesNotMatch(answer, /evil/);
});

test('a paging token must be one that the server issued', async (t) => {
  const { refused, node, asOwner } = await withTiles(t);
  for (let i = 0; i < 2; i++)
    await node.server.inject({
      method: 'POST',
      url: '/processes/verify/execution',
      headers: asOwner,
      payload: {},
    });
  const { links } = (await node.server.inject('/jobs?limit=1')).json();
  const { href } = links.find(({ rel }: { rel: string }) => rel === 'next');
  const token = new URL(href).searchParams.get('token');
  assert.equal((await node.server.inject(`/jobs?token=${token}`)).json().jobs.length, 2);
  for (const forged of ['zzzzzzzzz', '0', '../..', '', token?.replace(/.$/, '_')])
    await refused({ url: `/jobs?token=${forged}` }, 'TW_API_TOKEN');
  await refused({ url: '/jobs?token=a&token=b' }, 'TW_API_BAD_REQUEST');
  await refused({ url: '/collections/test/scenes?token=%2e%2e%2f' }, 'TW_API_TOKEN');
  await refused({ url: '/search?token=abc' }, 'TW_QUERY_TOKEN');
});

test('an Item stays GeoJSON whichever members are removed', async (t) => {
  const { node } = await withTiles(t);
  const first = async (request: object) => (await node.server.inject(request)).json().features[0];
  for (const fields of ['-type', '-type,-assets', 'id,-type'])
    assert.equal((await first({ url: `/search?limit=1&fields=${fields}` })).type, 'Feature', fields);
  const payload = { limit: 1, fields: { exclude: ['type', 'bbox'] } };
  const item = await first({ method: 'POST', url: '/search', payload });
  assert.deepEqual([item.type, 'bbox' in item], ['Feature', false]);
});

test('numbers beyond all lines of a log are refused', async (t) => {
  const { node, refused, asOwner } = await withTiles(t);
  const url = '/processes/verify/execution';
  const { jobID } = (await node.server.inject({ method: 'POST', url, headers: asOwner, payload: {} })).json();
  for (const after of ['1e99', '-1', '0.5', 'NaN', 'Infinity'])
    for (const what of ['events', 'logs'])
      await refused({ url: `/jobs/${jobID}/${what}?after=${after}` }, 'TW_API_BAD_REQUEST');
});

test('options that no scene can have are refused before a job is started', async (t) => {
  const { refused, node, folder } = await withTiles(t);
  const before = (await node.server.inject('/jobs')).json().jobs.length;
  const long = 'x'.repeat(10_000);
  const odd = [
    'scale=0',
    'scale=NaN',
    'scale=Infinity',
    'offset=-Infinity',
    'nodata=NaN',
    'scale=',
    'precision=0',
    'precision=99',
    'maskBand=0',
    'platform=',
    `platform=${long}`,
    `datetime=${long}`,
    'bands=red%3Dx',
    'bands=red',
    `bands=${'r'.repeat(100)}%3D1`,
    'grid=hexagons',
    'collection=A_B',
    'dryRun=perhaps',
  ];
  for (const query of odd) {
    const url = `/ingest?filename=a.tif&${query}${query.startsWith('dryRun') ? '' : '&dryRun=true'}`;
    const headers = { 'content-type': 'application/octet-stream' };
    await refused({ method: 'POST', url, headers, payload: 'II*' }, 'TW_API_BAD_REQUEST');
  }
  for (const options of [{ scale: 0 }, { scale: '1' }, { platform: long }, { bands: { red: 1.5 } }])
    await refused(
      { method: 'POST', url: '/ingest', payload: { href: folder, ...options } },
      'TW_API_BAD_REQUEST',
    );
  assert.equal((await node.server.inject('/jobs')).json().jobs.length, before);
});

test('errors of clients are not logged as errors', async (t) => {
  const folder = await tempFolder(t);
  const server = start([
    'serve',
    '--data',
    join(folder, 'data'),
    '--port',
    '0',
    '--format',
    'json',
    '--max-upload',
    '1MB',
  ]);
  const ended = finished(server);
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [string];
  const { url } = JSON.parse(first);
  const json = { 'content-type': 'application/json' };
  const file = { 'content-type': 'application/octet-stream' };
  await writeFile(join(folder, 'none.tif'), 'none');
  const requests: [path: string, status: number, request?: RequestInit][] = [
    ['/nowhere', 404],
    ['/search', 405, { method: 'DELETE' }],
    ['/search?limit=x', 400],
    ['/collections/%ff', 400],
    [`/collections/${'x'.repeat(600)}`, 414],
    ['/search', 400, { method: 'POST', headers: json, body: '{' }],
    ['/search', 415, { method: 'POST', headers: { 'content-type': 'a/b' }, body: 'x' }],
    ['/ingest?filename=a.tif', 413, { method: 'POST', headers: file, body: 'x'.repeat(2_000_000) }],
    ['/ingest', 403, { method: 'POST', headers: json, body: JSON.stringify({ href: folder }) }],
  ];
  for (const [path, status, request] of requests)
    assert.equal((await fetch(url + path, request)).status, status, path);
  server.kill('SIGTERM');
  const lines = (await ended).stderr.split('\n').filter((line) => line.startsWith('{'));
  const entries = lines.map((line) => JSON.parse(line) as { level: number; code?: string });
  assert.deepEqual(
    entries.filter(({ level }) => level >= 50),
    [],
  );
  assert.equal(entries.filter(({ code }) => code?.startsWith('TW_')).length, requests.length);
});
