/** OGC clients add `?f=json` and slashes at the end to addresses. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { nodeWithTiles } from './node-with-tiles.js';

async function withTiles(t: TestContext) {
  const node = await nodeWithTiles(t);
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const { jobID } = (
    await node.server.inject({ method: 'POST', url: '/processes/verify/execution', payload: {}, headers })
  ).json();
  const get = (url: string) => node.server.inject({ url, headers });
  const [item] = (await get('/search?limit=1')).json().features;
  const paths = [
    ...['/', '/conformance', '/collections', '/collections/test', '/queryables', '/search'],
    ...['/collections/test/items', `/collections/test/items/${item.id}`, '/collections/test/queryables'],
    ...['/aggregations', '/aggregate?aggregations=total_count', '/collections/test/aggregations'],
    ...['/collections/test/scenes', '/processes', '/processes/verify', '/jobs', `/jobs/${jobID}`],
    ...[`/jobs/${jobID}/logs`, '/models', '/xyz/test/tilejson.json', '/health', '/openapi.json'],
  ];
  const withParameter = (path: string, parameter: string) =>
    `${path}${path.includes('?') ? '&' : '?'}${parameter}`;
  return { node, get, paths, withParameter };
}

test('f=json changes nothing, and errors for other formats list the available ones', async (t) => {
  const { get, paths, withParameter } = await withTiles(t);
  for (const path of paths) {
    const given = await get(withParameter(path, 'f=json'));
    assert.equal(given.statusCode, 200, `${path} ${given.body}`);
    assert.match(String(given.headers['content-type']), /json/);
    const keysOf = (document: object) => Object.keys(document).sort();
    assert.deepEqual(keysOf(given.json()), keysOf((await get(path)).json()), path);
    for (const format of ['html', '', 'json&f=html']) {
      const refused = await get(withParameter(path, `f=${format}`));
      assert.equal(refused.statusCode, 400, path);
      assert.equal(refused.json().code, 'TW_API_BAD_REQUEST');
      assert.match(refused.json().detail, /\/f must be/);
    }
    assert.match((await get(withParameter(path, 'f=html'))).json().detail, /must be json$/);
  }
});

test('links of a page keep the format, those of map tiles do not', async (t) => {
  const { get, node } = await withTiles(t);
  const { links } = (await get('/search?limit=1&f=json')).json();
  const next = new URL(links.find(({ rel }: { rel: string }) => rel === 'next').href);
  assert.equal(next.searchParams.get('f'), 'json');
  assert.equal((await get(next.pathname + next.search)).json().numberReturned, 1);
  assert.ok(!(await get('/xyz/test/tilejson.json?f=json')).json().tiles[0].includes('f='));
  const posted = await node.server.inject({ method: 'POST', url: '/search?f=json', payload: { limit: 1 } });
  assert.equal(posted.json().numberReturned, 1);
  assert.equal(
    (await node.server.inject({ method: 'POST', url: '/search?f=xml', payload: {} })).statusCode,
    400,
  );
  // This route refuses options in its address.
  const ingested = await node.server.inject({
    method: 'POST',
    url: '/ingest?f=json',
    payload: { href: '/a.tif' },
  });
  assert.equal(ingested.json().code, 'TW_API_OUTSIDE_FOLDER');
});

test('operations of STAC and OGC refuse parameters that they do not know', async (t) => {
  const { get } = await withTiles(t);
  for (const path of ['/', '/conformance', '/collections/test', '/queryables', '/processes', '/jobs']) {
    const refused = await get(`${path}?limti=1`);
    assert.equal(refused.statusCode, 400, path);
    assert.match(refused.json().detail, /unknown parameter "limti"/);
  }
  const searched = await get('/collections?q=test&limit=1');
  assert.equal(searched.statusCode, 200, 'pystac-client filters the answer itself');
});

test('a slash at the end of a path changes nothing', async (t) => {
  const { get, node, paths } = await withTiles(t);
  for (const path of paths.slice(1)) {
    const [name, query = ''] = path.split('?');
    const { statusCode, body } = await get(`${name}/${query && `?${query}`}`);
    assert.equal(statusCode, 200, `${path} ${body}`);
  }
  const put = await node.server.inject({ method: 'PUT', url: '/search/' });
  assert.deepEqual([put.statusCode, put.headers.allow], [405, 'GET, HEAD, OPTIONS, POST']);
  const asked = await node.server.inject({
    ...{ method: 'OPTIONS', url: '/search/' },
    headers: { origin: 'https://map.example', 'access-control-request-method': 'POST' },
  });
  assert.match(String(asked.headers['access-control-allow-methods']), /POST/);
  // The relative links of these pages need the path without a slash.
  for (const [path, to] of [
    ['/map/', '../map'],
    ['/map/?a=b', '../map?a=b'],
    ['/docs/', '../docs'],
  ]) {
    const { statusCode, headers } = await get(path!);
    assert.deepEqual([statusCode, headers.location], [308, to]);
  }
  assert.equal((await get('/collections//test')).statusCode, 404);
});
