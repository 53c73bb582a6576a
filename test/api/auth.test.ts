/** Tokens and their scopes, rate limits, request ids. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { RateLimit } from '../../src/api/plugins/auth.js';
import { openNode } from '../../src/node.js';
import { process as processOf } from '../jobs/process.js';
import { atEnd } from '../support/at-end.js';
import { MAIN } from '../support/command.js';
import { tempFolder } from '../support/temp.js';
import { jobServer } from './job-server.js';

interface Access {
  token?: string;
  readToken?: string;
  rateLimit?: number;
  cors?: string[];
}

async function asking(t: TestContext, access: Access) {
  const { server } = await jobServer(t, await tempFolder(t), [processOf(async () => 'done')], access);
  const ask = (method: 'GET' | 'POST', url: string, token?: string, more: Record<string, string> = {}) =>
    server.inject({
      method,
      url,
      headers: { host: 'tiles.example', ...(token && { authorization: `Bearer ${token}` }), ...more },
      ...(method === 'POST' && { payload: {} }),
    });
  const status = async (method: 'GET' | 'POST', url: string, token?: string) =>
    (await ask(method, url, token)).statusCode;
  return { ask, status };
}

const READ = ['GET', '/jobs'] as const;
const SEARCH = ['POST', '/search'] as const;
const WRITE = ['POST', '/processes/fill/execution'] as const;

test('each scope allows what it names', async (t) => {
  // Read and write token of the server; token of the request; status of a read and of a write.
  const cases: [
    readToken: string | undefined,
    token: string | undefined,
    given: string | undefined,
    number,
    number,
  ][] = [
    ['r', 'w', undefined, 401, 401],
    ['r', 'w', 'r', 200, 403],
    ['r', 'w', 'w', 200, 201],
    ['r', 'w', 'wr', 401, 401],
    ['r', 'w', 'owner', 200, 201],
    [undefined, 'w', undefined, 200, 401],
    [undefined, 'w', 'w', 200, 201],
    ['r', undefined, undefined, 401, 401],
    ['r', undefined, 'r', 200, 403],
    ['r', undefined, 'owner', 200, 201],
  ];
  for (const [readToken, token, given, read, write] of cases) {
    const { status } = await asking(t, { ...(readToken && { readToken }), ...(token && { token }) });
    const what = JSON.stringify([readToken, token, given]);
    assert.equal(await status(...READ, given), read, what);
    assert.equal(await status(...SEARCH, given), read, what);
    assert.equal(await status(...WRITE, given), write, what);
  }
});

test('the state of a server is open, and what it says of the store is not', async (t) => {
  const { ask } = await asking(t, { token: 'w', readToken: 'r' });
  const health = async (token?: string) => Object.keys((await ask('GET', '/health', token)).json());
  assert.deepEqual(await health(), ['status']);
  assert.deepEqual(await health('wrong'), ['status']);
  for (const token of ['r', 'w', 'owner'])
    assert.deepEqual((await health(token)).slice(0, 4), ['status', 'node', 'version', 'collections']);
});

test('a refusal says what is missing', async (t) => {
  const { ask } = await asking(t, { token: 'w', readToken: 'r' });
  const challenge = async (...args: Parameters<typeof ask>) =>
    String((await ask(...args)).headers['www-authenticate']);
  assert.equal(await challenge(...WRITE), 'Bearer realm="tilewright"');
  assert.match(await challenge(...WRITE, 'x'), /error="invalid_token"/);
  assert.match(await challenge(...WRITE, 'r'), /error="insufficient_scope", scope="write"/);
  assert.equal((await ask(...WRITE, 'r')).json().code, 'TW_API_INSUFFICIENT_SCOPE');
  assert.equal((await ask(...READ)).json().code, 'TW_API_UNAUTHORIZED');
  assert.equal((await ask(...READ)).headers['access-control-allow-origin'], '*', 'pages may see why');
});

test('only pages of the allowed origins may read, and caches keep their answers apart', async (t) => {
  const [ours, other] = ['https://map.example', 'https://other.example'];
  // Tokens, --cors, and the allowed origin for a page of ours, a page of others, and a program.
  const cases: [Access, cors: string[] | undefined, (string | undefined)[]][] = [
    [{}, undefined, [undefined, undefined, undefined]],
    [{}, ['*'], ['*', '*', '*']],
    [{}, [ours], [ours, undefined, undefined]],
    [{ token: 'w' }, undefined, ['*', '*', '*']],
    [{ readToken: 'r' }, [ours, 'http://localhost:3000'], [ours, undefined, undefined]],
    [{ token: 'w', readToken: 'r' }, [], [undefined, undefined, undefined]],
  ];
  for (const [access, cors, expected] of cases) {
    const { ask } = await asking(t, { ...access, ...(cors && { cors }) });
    for (const [i, origin] of [ours, other, undefined].entries()) {
      const host = { host: 'localhost', ...(origin && { origin }), 'accept-encoding': 'gzip' };
      const { headers } = await ask('GET', '/jobs', undefined, host);
      assert.equal(
        headers['access-control-allow-origin'],
        expected[i],
        JSON.stringify([access, cors, origin]),
      );
      const isApart = cors !== undefined && cors.length > 0 && !cors.includes('*');
      assert.equal(/origin/.test(String(headers.vary)), isApart, String(headers.vary));
    }
  }
});

test('caches that clients share keep no answer that needs a token', async (t) => {
  for (const [readToken, expected] of [
    [undefined, undefined],
    ['r', 'private'],
  ] as const) {
    const { ask } = await asking(t, { token: 'w', ...(readToken && { readToken }) });
    assert.equal((await ask('GET', '/jobs', 'w')).headers['cache-control'], expected);
  }
});

test('a page of another origin may send the token of a read', async (t) => {
  const { server } = await jobServer(t, await tempFolder(t), [], { readToken: 'r' });
  const answer = await server.inject({
    method: 'OPTIONS',
    url: '/jobs',
    headers: { host: 'tiles.example', origin: 'https://map.example', 'access-control-request-method': 'GET' },
  });
  assert.equal(answer.statusCode, 204);
  assert.match(String(answer.headers['access-control-allow-headers']), /authorization.*last-event-id/);
});

test('a page of another origin may send POST requests that only read, and sees the headers of ranges', async (t) => {
  const { server } = await jobServer(t, await tempFolder(t), [], { readToken: 'r' });
  const mayPost = async (url: string) => {
    const headers = {
      host: 'tiles.example',
      origin: 'https://map.example',
      'access-control-request-method': 'POST',
    };
    return (
      'access-control-allow-methods' in (await server.inject({ method: 'OPTIONS', url, headers })).headers
    );
  };
  for (const path of ['/search', '/similar', '/training/place', '/training/check'])
    assert.equal(await mayPost(path), true, path);
  assert.equal(await mayPost('/processes/train/execution'), false);
  const { headers } = await server.inject({ url: '/jobs', headers: { authorization: 'Bearer r' } });
  assert.match(String(headers['access-control-expose-headers']), /content-range/);
});

test('a client over the rate limit gets Retry-After; the user of the server is not limited', async (t) => {
  const { ask } = await asking(t, { token: 'w', rateLimit: 0.01 });
  const answer = await ask(...READ, 'w');
  assert.deepEqual([answer.statusCode, answer.json().code], [429, 'TW_API_RATE_LIMIT']);
  assert.ok(Number(answer.headers['retry-after']) >= 90);
  assert.equal((await ask(...READ, 'owner')).statusCode, 200);
});

test('a bucket allows a burst and then a fixed rate', () => {
  const limit = new RateLimit(10);
  let passed = 0;
  for (let i = 0; i < 100; i++) if (limit.take('a', 0) === 0) passed++;
  assert.equal(passed, 50);
  assert.ok(Math.abs(limit.take('a', 0) - 0.1) < 1e-9);
  assert.equal(limit.take('b', 0), 0, 'another client has its own');
  assert.equal(limit.take('a', 101), 0);
  assert.equal(new RateLimit(0).take('a'), 0);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 2000 }), { maxLength: 200 }), (gaps) => {
      const one = new RateLimit(7);
      let now = 0;
      let passes = 0;
      for (const gap of gaps) {
        now += gap;
        const wait = one.take('a', now);
        if (wait === 0) passes++;
        else assert.ok(wait <= 1 / 7 + 1e-9);
        assert.ok(passes <= 35 + (7 * now) / 1000 + 1e-6);
      }
    }),
    { seed: 42 },
  );
});

test('a valid request id is kept, and is in answers and problems', async (t) => {
  const { ask } = await asking(t, { token: 'w' });
  const given = await ask('GET', '/nothing', undefined, { 'x-request-id': 'abc-1/2' });
  assert.equal(given.headers['x-request-id'], 'abc-1/2');
  assert.equal(given.json().requestId, 'abc-1/2');
  const made = await ask('GET', '/jobs', undefined, { 'x-request-id': 'no blanks' });
  assert.match(String(made.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  const early = await ask('GET', '/collections/%ff', undefined, { 'x-request-id': 'early' });
  assert.deepEqual([early.headers['x-request-id'], early.json().requestId], ['early', 'early']);
});

test('a server that others can reach needs a token of either scope; flags come from the environment too', async (t) => {
  const folder = await tempFolder(t);
  const open = (access: Access) =>
    openNode({
      data: join(folder, Object.keys(access).join('-') || 'none'),
      memory: 128e6,
      cores: 1,
      ...access,
    });
  const bare = await open({});
  atEnd(t, () => bare.close());
  await assert.rejects(bare.listen('0.0.0.0', 0), { code: 'TW_API_OPEN_BIND' });
  const guarded = await open({ readToken: 'r' });
  atEnd(t, () => guarded.close());
  const { port } = new URL(await guarded.listen('0.0.0.0', 0));
  assert.equal((await fetch(`http://127.0.0.1:${port}/jobs`)).status, 401);
  const headers = { authorization: 'Bearer r' };
  assert.equal((await fetch(`http://127.0.0.1:${port}/jobs`, { headers })).status, 200);
  const { stderr } = spawnSync(
    process.execPath,
    [MAIN, 'serve', '--data', join(folder, 'env'), '--port', '0'],
    {
      env: { ...process.env, TILEWRIGHT_HOST: '0.0.0.0', TILEWRIGHT_RATE_LIMIT: 'many' },
      encoding: 'utf8',
    },
  );
  assert.match(stderr, /TILEWRIGHT_RATE_LIMIT|rate-limit/);
});

test('a server with a token requires it for writes only', async (t) => {
  const data = await tempFolder(t);
  const guarded = await openNode({ data, memory: 256e6, cores: 1, token: 'right' });
  atEnd(t, () => guarded.close());
  const execute = (authorization?: string) =>
    guarded.server.inject({
      method: 'POST',
      url: '/processes/verify/execution',
      payload: {},
      headers: { host: 'tiles.example', ...(authorization && { authorization }) },
    });
  assert.equal((await execute()).statusCode, 401);
  assert.equal((await execute('Bearer wrong')).json().code, 'TW_API_UNAUTHORIZED');
  assert.equal((await execute('Bearer right')).statusCode, 201);
  assert.equal(
    (await guarded.server.inject({ url: '/search', headers: { host: 'tiles.example' } })).statusCode,
    200,
  );
});
