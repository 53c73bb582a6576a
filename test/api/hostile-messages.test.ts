/** Messages that are signed with the secret of the cluster but that no node would send. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readdir } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { HANDSHAKE_PATH, MESSAGE_TYPE, OWNER_QUERY_PATH, Signatures } from '../../src/dht/index.js';
import { ALL_GATHER_PATH, CANCEL_TASK_PATH, TASK_PATH } from '../../src/jobs/index.js';
import { type NodeConfig, openNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { HOSTILE_NAMES } from '../support/hostile-names.js';
import { freePort } from '../support/s3.js';
import { tempFolder } from '../support/temp.js';

const SECRET = 'the secret of the test';
const OLD_SECRET = 'the secret of last year';
const ID = '000000000aaaaaa';

const search = { filter: { op: 'and', args: [] }, order: [], limit: 5 };
const aggregate = { filter: search.filter, params: {} };
const series = { region: { kind: 'point', point: [0, 0] }, expression: 'red', filter: search.filter };
const cloud = { op: '<', property: 'eo:cloud_cover' };
let deep: object = search.filter;
for (let n = 0; n < 1000; n++) deep = { op: 'not', arg: deep };

/** By the kind of question. */
const WRONG_QUESTIONS: Record<string, unknown[]> = {
  search: [
    ...[null, undefined, 'x', {}, { ...search, limit: 'x' }, { ...search, limit: -1 }],
    ...[null, 'x', [null], [{ column: 'constructor', descending: true }]].map((order) => ({
      ...search,
      order,
    })),
    { ...search, after: { id: 5 } },
    ...[
      ...[null, 5, {}, deep, { op: 'constructor' }, { op: 'and', args: 5 }, { op: 'and', args: [null] }],
      ...[{ op: 'not' }, cloud, { ...cloud, value: 'x' }, { ...cloud, property: '__proto__', value: 1 }],
      ...[
        { op: 'in', property: 'id', values: 5 },
        { op: 'like', property: 'id', pattern: 5 },
      ],
      ...[
        { op: 'isNull', property: 'x' },
        { op: 't_after', property: 'datetime', period: 'x' },
      ],
      ...[{}, { bbox: 'x' }, { type: 'Point', coordinates: 'x' }].map((shape) => ({ op: 's_within', shape })),
    ].map((filter) => ({ ...search, filter })),
  ],
  tile: [null, undefined, {}],
  aggregate: [null, 'x', {}, { ...aggregate, params: 5 }, { ...aggregate, params: { aggregations: 5 } }],
  extents: ['x', {}],
  contents: ['x', {}],
  series: [
    ...[null, 'x', {}, { ...series, region: {} }, { ...series, region: { kind: 'area', sides: 5 } }],
    ...[
      { ...series, expression: 5 },
      { ...series, medians: ['x'] },
      { ...series, filter: null },
    ],
  ],
};

async function serve(t: TestContext, folder: string, more: Partial<NodeConfig> = {}) {
  const store = join(folder, 'store');
  await mkdir(store);
  const cluster = { store: pathToFileURL(store).href, etcd: [], name: 'default', zone: 'a', weight: 1 };
  const node = await openNode({
    ...{ data: join(folder, 'data'), memory: 512e6, cores: 1, reserve: 0 },
    cluster: { ...cluster, advertise: 'http://127.0.0.1:1', secrets: [SECRET, OLD_SECRET] },
    ...more,
  });
  atEnd(t, () => node.close());
  const url = await node.listen('127.0.0.1', 0);
  return { node, url, signatures: new Signatures(node.id, [SECRET]) };
}

type Receiver = Awaited<ReturnType<typeof serve>>;

interface Sent {
  method: string;
  path: string;
  headers: Record<string, string | number>;
  body: Buffer;
}

/** A signed message. */
function messageTo(
  { node: { id } }: Receiver,
  { path = HANDSHAKE_PATH, text = '{}', secret = SECRET, receiver = id, time = Date.now() } = {},
): Sent {
  const [method, body] = ['POST', Buffer.from(text)];
  const signed = new Signatures('another', [secret]).headers(receiver, { method, path, body }, time);
  return { method, path, headers: { 'content-type': MESSAGE_TYPE, ...signed }, body };
}

/** Sends a head and a body, whether they belong together or not. `fetch` would correct the length. */
async function deliver(url: string, { method, path, headers, body }: Sent) {
  const sent = request(new URL(path, url), { method, headers, agent: false });
  sent.on('error', () => undefined);
  const responded = once(sent, 'response') as Promise<[IncomingMessage]>;
  sent.write(body);
  const [response] = await responded;
  const answer = await text(response);
  sent.destroy();
  return { status: response.statusCode!, text: answer, code: String(Object(JSON.parse(answer)).code) };
}

async function send(receiver: Receiver, path: string, text: string) {
  const { status, text: answer } = await deliver(receiver.url, messageTo(receiver, { path, text }));
  return { status, text: answer };
}

test('a message with a hostile name or another schema is refused, and has no effect', async (t) => {
  const folder = await tempFolder(t);
  const receiver = await serve(t, folder);
  const share = { job: ID, run: ID, process: 'tensor', inputs: {}, slots: '1', since: 0 };
  const question = { kind: 'tile', question: 'x', slots: '', seq: 0, wait: 0 };
  const messages: [path: string, message: unknown][] = [];
  for (const name of [...HOSTILE_NAMES, undefined, null, 7, {}, [ID]])
    messages.push(
      [TASK_PATH, { ...share, job: name }],
      [TASK_PATH, { ...share, run: name }],
      [CANCEL_TASK_PATH, { job: name, run: ID }],
      [CANCEL_TASK_PATH, { job: ID, run: name }],
      [ALL_GATHER_PATH, { run: name, words: [] }],
    );
  messages.push(
    ...[null, 7, [], {}].flatMap((message) =>
      [TASK_PATH, CANCEL_TASK_PATH, ALL_GATHER_PATH, OWNER_QUERY_PATH].map((path): [string, unknown] => [
        path,
        message,
      ]),
    ),
    [TASK_PATH, { ...share, slots: 7 }],
    [TASK_PATH, { ...share, since: 'x' }],
    [ALL_GATHER_PATH, { run: ID, words: 'x' }],
    [OWNER_QUERY_PATH, { ...question, slots: 'x' }],
    [OWNER_QUERY_PATH, { ...question, slots: '70000' }],
    [OWNER_QUERY_PATH, { ...question, slots: null }],
    [OWNER_QUERY_PATH, { ...question, wait: -1 }],
    [OWNER_QUERY_PATH, { ...question, seq: 1e300 }],
    ...Object.entries(WRONG_QUESTIONS).flatMap(([kind, wrong]) =>
      [...wrong, 7, ['x'], { filter: 5 }].map((one): [string, unknown] => [
        OWNER_QUERY_PATH,
        { ...question, kind, question: one },
      ]),
    ),
  );
  const files = async () =>
    (await readdir(folder, { recursive: true })).filter(
      (name) => !/catalogue\/|coordination\/|running\//.test(name),
    );
  const before = await files();
  for (const [path, message] of messages) {
    const { status, text } = await send(receiver, path, JSON.stringify(message));
    const detail = `${path} ${JSON.stringify(message).slice(0, 200)}: ${status} ${text}`;
    assert.ok(status >= 400 && status < 500, detail);
    assert.match((JSON.parse(text) as { code: string }).code, /^TW_/, detail);
  }
  const { status, text } = await send(receiver, TASK_PATH, '{');
  assert.equal(status, 400, text);
  assert.deepEqual((await files()).sort(), before.sort());
  const known = await send(receiver, CANCEL_TASK_PATH, JSON.stringify({ job: ID, run: ID }));
  assert.deepEqual(known, { status: 200, text: '{"known":false}' });
});

test('the head of a message is checked before a byte of its body arrives', async (t) => {
  const receiver = await serve(t, await tempFolder(t));
  const { url } = receiver;
  const right = messageTo(receiver);
  const status = async (sent: Partial<Sent>) => {
    const { status, code } = await deliver(url, { ...right, ...sent });
    return `${status} ${code}`;
  };
  const without = (name: string) =>
    Object.fromEntries(Object.entries(right.headers).filter(([header]) => header !== name));
  const empty = Buffer.alloc(0);
  assert.equal(await status({}), '200 undefined');
  assert.equal(await status(messageTo(receiver, { secret: OLD_SECRET })), '200 undefined');

  const foreign = '401 TW_DHT_FOREIGN_NODE';
  // None of these sends its body, so an answer needs none.
  for (const path of [HANDSHAKE_PATH, ALL_GATHER_PATH, TASK_PATH]) {
    const unsigned = { 'content-type': MESSAGE_TYPE, 'content-length': 250e6 };
    assert.equal(await status({ path, headers: unsigned, body: empty }), foreign);
    assert.equal(
      await status({ path, headers: { ...right.headers, 'content-length': 250e6 }, body: empty }),
      foreign,
    );
  }
  assert.equal(await status({ ...messageTo(receiver, { secret: 'a guess' }), body: empty }), foreign);
  for (const header of ['authorization', 'tilewright-receiver', 'content-digest'])
    assert.equal(await status({ headers: without(header), body: empty }), foreign, header);
  const chunked = { ...without('content-length'), 'transfer-encoding': 'chunked' };
  assert.equal(await status({ headers: chunked, body: empty }), foreign);
  const late = messageTo(receiver, { time: Date.now() - 70_000 });
  assert.equal(await status({ ...late, body: empty }), '401 TW_DHT_CLOCK_APART');
  const misdirected = messageTo(receiver, { receiver: 'a former node at this address' });
  assert.equal(await status({ ...misdirected, body: empty }), '421 TW_DHT_OTHER_RECEIVER');
  const readdressed = { ...misdirected.headers, 'tilewright-receiver': receiver.node.id };
  assert.equal(await status({ headers: readdressed, body: empty }), foreign);

  assert.equal(await status({ body: Buffer.from('[]') }), '400 TW_DHT_DAMAGED_MESSAGE');
});

test('messages that are longer than their route allows are refused before they arrive', async (t) => {
  const receiver = await serve(t, await tempFolder(t));
  const long = messageTo(receiver, { text: JSON.stringify('x'.repeat(5e6)) });
  const { status, code } = await deliver(receiver.url, { ...long, body: Buffer.alloc(0) });
  assert.equal(`${status} ${code}`, '413 TW_API_TOO_LARGE');
});

test('with a listener of their own, messages of nodes are refused where clients connect, and clients there', async (t) => {
  const port = await freePort();
  const receiver = await serve(t, await tempFolder(t), { clusterListen: { host: '127.0.0.1', port } });
  const { url, node } = receiver;
  const ofNodes = `http://127.0.0.1:${port}`;
  const codeAt = async (address: string, sent: Sent) => (await deliver(address, sent)).code;
  assert.equal(await codeAt(ofNodes, messageTo(receiver)), 'undefined');
  assert.equal(await codeAt(url, messageTo(receiver)), 'TW_API_NOT_FOUND');
  const plain = (path: string): Sent => ({ method: 'GET', path, headers: {}, body: Buffer.alloc(0) });
  for (const path of ['/health', '/search', '/none', HANDSHAKE_PATH])
    assert.equal(await codeAt(ofNodes, plain(path)), 'TW_API_NODES_ONLY', path);

  // A request that another node forwards, for the job of a client.
  const path = '/jobs/000000000aaaaaa';
  const forwarded = {
    ...receiver.signatures.headers(node.id, { method: 'GET', path }),
    'tilewright-door': url,
  };
  assert.equal(await codeAt(ofNodes, { ...plain(path), headers: forwarded }), 'TW_JOB_NOT_FOUND');
  await node.close();
  await assert.rejects(fetch(ofNodes));
});
