/** Subscriptions of a real server, whose archive is a STAC API of this test. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { LOOKBACK_MS } from '../../src/subscriptions/rounds.js';
import { ended, freePort, get, type Server, serve, until } from '../dht/server-processes.js';
import { finished, MAIN, start } from '../support/command.js';
import { COLLECTION, type RemoteCatalog, remoteCatalog } from '../support/remote-catalog.js';
import { tempFolder } from '../support/temp.js';

interface Subscription {
  id: string;
  state: string;
  every: string;
  inputs: { stac: { url: string } };
  nextRun: string | null;
  lastSuccess?: string;
  lastRound?: {
    job?: string;
    status: string;
    started: string;
    finished?: string;
    result?: { ingested: number; unchanged: number; failed: number; tiles: number };
    error?: { code: string; message: string };
  };
}

const hasJq = spawnSync('jq', ['--version']).status === 0;

/** About a quarter of the scenes. */
const REGION = [15.03, 47.75, 15.12, 47.8];

async function setUp(t: TestContext, ids: string[]) {
  const catalog = await remoteCatalog(t, { ids });
  const folder = await tempFolder(t);
  const port = await freePort();
  const flags = ['--allow-host', catalog.server.host];
  const startServer = async (more = flags) => {
    const server = serve(t, folder, port, undefined, more);
    await until('the server answers', async () => (await fetch(`${server.url}/health`)).ok);
    return server;
  };
  const search = { url: catalog.api, collections: [COLLECTION], assets: ['red', 'scl'] };
  const inputs = (stac: object = {}) => ({ stac: { ...search, ...stac }, bbox: REGION, precision: 5 });
  return { catalog, startServer, inputs, data: join(folder, `node-${port}`) };
}

async function send<T>({ url }: Server, method: string, path: string, body?: object) {
  const answer = await fetch(url + path, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: (text === '' ? null : JSON.parse(text)) as T & { code?: string } };
}

const read = (server: Server, id: string) => get<Subscription>(server, `/subscriptions/${id}`);

/** Waits for the end of the round that follows the round `before`. */
async function roundAfter(server: Server, id: string, before?: string): Promise<Subscription> {
  let found: Subscription | undefined;
  await until('the round has ended', async () => {
    found = await read(server, id);
    const { lastRound } = found;
    return lastRound?.finished !== undefined && lastRound.started !== before;
  });
  return found!;
}

/** Makes an Item of now, which an archive has just published. */
function publish({ items }: RemoteCatalog, item: Record<string, unknown>, time = new Date()): void {
  items.push({ ...item, properties: { ...(item.properties as object), datetime: time.toISOString() } });
}

test('a new Item is ingested by the next round, and a killed server continues', async (t) => {
  const { catalog, startServer, inputs } = await setUp(t, ['a', 'b', 'c']);
  const { items, server: archive } = catalog;
  const [, second, third] = items.splice(0, 3, items[0]!) as [
    unknown,
    Record<string, unknown>,
    Record<string, unknown>,
  ];
  const server = await startServer();
  const request = { name: 'berlin', every: '6h', inputs: inputs({ datetime: '2024-01/..' }) };
  const created = await send<Subscription>(server, 'POST', '/subscriptions', request);
  assert.equal(created.status, 201);
  const first = await roundAfter(server, 'berlin');
  assert.equal(first.lastRound?.status, 'successful');
  const { ingested, unchanged, failed, tiles } = first.lastRound?.result ?? {};
  assert.deepEqual([ingested, unchanged, failed], [1, 0, 0]);
  assert.equal(first.lastSuccess, first.lastRound?.started);
  assert.equal((await get<{ numberMatched: number }>(server, '/search?limit=1')).numberMatched, tiles);
  const metrics = async () => (await fetch(`${server.url}/metrics`)).text();
  await until('the scheduler has recorded the end', async () =>
    /^tilewright_subscription_rounds_total\{state="successful"\} 1$/m.test(await metrics()),
  );
  assert.match(await metrics(), /^tilewright_subscription_oldest_success_seconds \d/m);

  publish(catalog, second);
  archive.requests.length = 0;
  const run = await send<{ jobID: string; processID: string }>(server, 'POST', '/subscriptions/berlin/run');
  assert.deepEqual([run.status, run.body.processID], [201, 'ingest']);
  const next = await roundAfter(server, 'berlin', first.lastRound?.started);
  assert.equal(next.lastRound?.job, run.body.jobID);
  assert.deepEqual(next.lastRound?.result?.ingested, 1);
  assert.equal(next.lastRound?.result?.unchanged, 0, 'the old Item is before the searched dates');
  const asked = JSON.parse(archive.requests.find(({ method }) => method === 'POST')!.body);
  const [from, to] = String(asked.datetime).split('/');
  assert.deepEqual([Date.parse(from!), to], [Date.parse(first.lastSuccess!) - LOOKBACK_MS, '..']);

  publish(catalog, third);
  let isHeld = () => {};
  const held = new Promise<void>((resolve) => {
    isHeld = resolve;
  });
  archive.fault = ({ url = '' }) => {
    if (!url.startsWith('/c/')) return false;
    isHeld();
    return true;
  };
  const { jobID } = (await send<{ jobID: string }>(server, 'POST', '/subscriptions/berlin/run')).body;
  await held;
  assert.equal(
    (await send(server, 'POST', '/subscriptions/berlin/run')).body.code,
    'TW_SUBSCRIPTION_RUNNING',
  );
  await ended(server.process, 'SIGKILL');
  archive.fault = undefined;
  const again = await startServer();
  const last = await roundAfter(again, 'berlin', next.lastRound?.started);
  assert.equal(last.lastRound?.job, jobID);
  assert.deepEqual(last.lastRound?.result, {
    ingested: 1,
    unchanged: 1,
    failed: 0,
    tiles: next.lastRound?.result?.tiles,
  });
  assert.equal((await get<{ jobs: unknown[] }>(again, '/jobs')).jobs.length, 3);
  assert.equal(last.nextRun, first.nextRun);
});

test('subscriptions are paused, resumed, changed and removed, and a failed round shows its error', async (t) => {
  const { catalog, startServer, inputs } = await setUp(t, ['a']);
  const server = await startServer();
  catalog.server.fault = (_request, response) => {
    response.writeHead(403, { 'content-type': 'text/plain' }).end('closed');
    return true;
  };
  const request = { every: '90m', inputs: inputs() };
  const { id } = (await send<Subscription>(server, 'POST', '/subscriptions', request)).body;
  assert.match(id, /^sentinel-2-l2a-[0-9a-f]{6}$/);
  const failed = await roundAfter(server, id);
  assert.deepEqual(
    [failed.lastRound?.status, failed.lastRound?.error?.code],
    ['failed', 'TW_REMOTE_REFUSED'],
  );
  assert.match(failed.lastRound?.error?.message ?? '', /403/);
  assert.deepEqual([failed.state, failed.lastSuccess], ['active', undefined]);
  const change = (body: object) => send<Subscription>(server, 'PATCH', `/subscriptions/${id}`, body);
  const paused = (await change({ state: 'paused' })).body;
  assert.deepEqual([paused.state, paused.nextRun], ['paused', null]);
  catalog.server.fault = undefined;
  await send(server, 'POST', `/subscriptions/${id}/run`);
  assert.equal((await roundAfter(server, id, failed.lastRound?.started)).lastRound?.result?.ingested, 1);
  const resumed = (await change({ state: 'active', every: '1h' })).body;
  assert.deepEqual([resumed.state, resumed.every], ['active', '1h']);
  assert.ok(Date.parse(resumed.nextRun!) > Date.now());
  const { subscriptions } = await get<{ subscriptions: Subscription[] }>(server, '/subscriptions');
  assert.deepEqual(
    subscriptions.map((one) => one.id),
    [id],
  );
  assert.equal((await send(server, 'DELETE', `/subscriptions/${id}`)).status, 204);
  assert.equal((await send(server, 'DELETE', `/subscriptions/${id}`)).body.code, 'TW_SUBSCRIPTION_NOT_FOUND');
  assert.ok((await get<{ numberMatched: number }>(server, '/search?limit=1')).numberMatched > 0);
});

test('the documented commands create saved subscriptions again', { skip: !hasJq }, async (t) => {
  const { startServer, inputs, catalog } = await setUp(t, []);
  const server = await startServer();
  const saved = [
    { name: 'berlin', every: '6h', inputs: { ...inputs({ datetime: '2024-05/..' }), collection: 'berlin' } },
    { name: 'all', every: '1d', inputs: { stac: { url: catalog.api, all: true } } },
  ];
  for (const one of saved) assert.equal((await send(server, 'POST', '/subscriptions', one)).status, 201);
  const page = await readFile(
    new URL('../../../docs/how-to/back-up-and-restore.md', import.meta.url),
    'utf8',
  );
  const block = /```sh\n(tilewright subscriptions [^`]*)```/.exec(page)![1]!;
  const commands = block.replaceAll('http://127.0.0.1:8080', server.url);
  const [save, ...create] = commands.split('\n');
  const folder = await tempFolder(t);
  const run = (text: string) =>
    promisify(execFile)('sh', ['-ec', `tilewright() { node ${MAIN} "$@"; }\n${text}`], { cwd: folder });
  await run(save!);
  for (const { name } of saved) await send(server, 'DELETE', `/subscriptions/${name}`);
  await run(create.join('\n'));
  for (const { name, every, inputs } of saved) {
    const found = await read(server, name);
    assert.deepEqual([found.id, found.every, found.inputs], [name, every, inputs]);
  }
});

test('what can never be searched is refused at once, and stored addresses show no secrets', async (t) => {
  const { catalog, startServer, inputs } = await setUp(t, []);
  const server = await startServer([
    ...['--allow-host', catalog.server.host],
    '--token',
    'word',
    '--read-token',
    'reads',
  ]);
  const ask = async (method: string, path: string, body?: object, token = 'word') => {
    const answer = await fetch(server.url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: await answer.json() };
  };
  const good = { every: '1d', inputs: inputs() };
  const cases: [body: object, code: string][] = [
    [{ ...good, inputs: inputs({ url: 'https://elsewhere.example/stac' }) }, 'TW_REMOTE_HOST_NOT_ALLOWED'],
    [{ ...good, inputs: inputs({ url: 'ftp://elsewhere.example/stac' }) }, 'TW_REMOTE_BAD_URL'],
    [{ ...good, inputs: inputs({ datetime: '2024-13' }) }, 'TW_QUERY_DATETIME'],
    [{ ...good, inputs: { ...inputs(), bbox: [1, 95, 2, 99] } }, 'TW_QUERY_BBOX'],
    [{ ...good, every: '59s' }, 'TW_SUBSCRIPTION_EVERY'],
    [{ ...good, every: '31d' }, 'TW_SUBSCRIPTION_EVERY'],
    [{ ...good, name: 'Berlin' }, 'TW_API_BAD_REQUEST'],
    [{ ...good, name: '../x' }, 'TW_API_BAD_REQUEST'],
    [{ every: '1d', inputs: { bbox: REGION } }, 'TW_API_BAD_REQUEST'],
    [{ ...good, inputs: { ...inputs(), paths: ['/etc/passwd'] } }, 'TW_API_BAD_REQUEST'],
    [{ ...good, inputs: { ...inputs(), dryRun: true } }, 'TW_API_BAD_REQUEST'],
    [{ inputs: inputs() }, 'TW_API_BAD_REQUEST'],
  ];
  for (const [body, code] of cases)
    assert.equal((await ask('POST', '/subscriptions', body)).body.code, code, JSON.stringify(body));
  assert.equal((await ask('POST', '/subscriptions', good, 'reads')).status, 403);
  assert.equal((await ask('POST', '/subscriptions', good, 'other')).status, 401);
  assert.deepEqual((await ask('GET', '/subscriptions', undefined, 'reads')).body.subscriptions, []);
  assert.deepEqual(catalog.server.requests, []);

  const signed = { ...good, name: 'signed', inputs: inputs({ url: `${catalog.api}?token=hidden` }) };
  const { body } = await ask('POST', '/subscriptions', signed);
  assert.equal(body.inputs.stac.url, catalog.api);
  assert.equal((await ask('POST', '/subscriptions', signed)).body.code, 'TW_SUBSCRIPTION_EXISTS');
  assert.equal(
    (await ask('PATCH', '/subscriptions/signed', { every: '1s' })).body.code,
    'TW_SUBSCRIPTION_EVERY',
  );
  assert.equal(
    (await ask('PATCH', '/subscriptions/signed', { state: 'off' })).body.code,
    'TW_API_BAD_REQUEST',
  );
  for (const [method, path] of [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['POST', '/run'],
  ] as const)
    assert.equal(
      (await ask(method, `/subscriptions/none${path}`, method === 'PATCH' ? { every: '1d' } : undefined)).body
        .code,
      'TW_SUBSCRIPTION_NOT_FOUND',
    );
});

test('the commands subscribe and subscriptions work with and without a server', async (t) => {
  const { catalog, startServer, data } = await setUp(t, ['a']);
  const search = [
    ...[
      '--from-stac',
      catalog.api,
      '--collection',
      COLLECTION,
      '--bbox',
      REGION.join(),
      '--datetime',
      '2024-06/..',
    ],
    ...['--max-cloud', '40', '--bands', 'red,scl', '--into', 'mine', '--precision', '5'],
  ];
  const allow = ['--allow-host', catalog.server.host];
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await finished(start([...args, '--data', data]));
    return {
      code,
      stderr,
      stdout: stdout.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').replace(/\b0[0-9a-z]{14,}\b/g, 'JOB'),
    };
  };
  const shown = `${catalog.api} collections ${COLLECTION} bbox ${REGION.join()} datetime 2024-06/.. max-cloud 40 bands red,scl into mine`;
  // Without a server, the flags allow hosts.
  assert.match((await run('subscribe', ...search, '--every', '6h')).stderr, /TW_REMOTE_BAD_URL/);
  const created = await run('subscribe', ...search, '--every', '6h', '--name', 'berlin', ...allow);
  assert.equal(created.code, 0, created.stderr);
  assert.equal(created.stdout, `subscription berlin: active, every 6h\n${shown}\nnext round TIME\n`);
  const local = await run('subscriptions', 'berlin', '--run', ...allow);
  assert.equal(local.code, 0, local.stderr);
  assert.match(local.stdout, /^job JOB: ingest, successful, 1 scene ingested\n/);
  const list = await run('subscriptions');
  assert.match(list.stdout, /^subscription +state +every +last round +next round +result +search\n/);
  assert.match(
    list.stdout,
    /\nberlin +active +6h +TIME +TIME +successful: 1 scene ingested with \d+ tiles, 0 unchanged +http:/,
  );
  for (const [flags, message] of [
    [['--every', '1s'], /--every "1s" is not a time .*TW_SUBSCRIPTION_EVERY/],
    [[], /required option '--every <time>'/],
    [['--every', '6h', '--datetime', 'soon'], /TW_QUERY_DATETIME/],
  ] as const) {
    const refused = await run('subscribe', ...search, ...allow, ...flags);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, message);
  }
  assert.equal((await run('subscriptions', '--run')).code, 2);
  assert.equal((await run('subscriptions', 'berlin', '--run', '--remove')).code, 2);
  assert.equal((await run('subscriptions', 'none')).code, 1);

  await startServer(allow);
  const paused = await run('subscriptions', 'berlin', '--pause');
  assert.match(
    paused.stdout,
    /^subscription berlin: paused, every 6h\n.*\nlast round TIME, successful: .* \(job JOB\)\n$/,
  );
  const again = await run('subscriptions', 'berlin', '--run');
  assert.equal(again.code, 0, again.stderr);
  assert.match(again.stderr, /^job \w+ is a round of berlin\n/);
  const resumed = await run('subscriptions', 'berlin', '--resume', '--format', 'json');
  assert.equal(JSON.parse(resumed.stdout).state, 'active');
  assert.equal((await run('subscriptions', 'berlin', '--remove')).stdout, 'subscription berlin removed\n');
  assert.equal(
    (await run('subscriptions', '--format', 'json')).stdout.replace(/\s/g, ''),
    '{"subscriptions":[]}',
  );
});
