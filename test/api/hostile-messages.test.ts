/** Messages that are signed with the secret of the cluster but that no node would send. */
import assert from 'node:assert/strict';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { crc32 } from 'node:zlib';
import { CHECKSUM_HEADER, MESSAGE_TYPE, OWNER_QUERY_PATH, sign } from '../../src/dht/index.js';
import { ALL_GATHER_PATH, CANCEL_TASK_PATH, TASK_PATH } from '../../src/jobs/index.js';
import { openNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { HOSTILE_NAMES } from '../support/hostile-names.js';
import { tempFolder } from '../support/temp.js';

const SECRET = 'the secret of the test';
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

async function serve(t: TestContext, folder: string) {
  const store = join(folder, 'store');
  await mkdir(store);
  const cluster = { store: pathToFileURL(store).href, etcd: [], name: 'default', zone: 'a', weight: 1 };
  const node = await openNode({
    ...{ data: join(folder, 'data'), memory: 512e6, cores: 1, reserve: 0 },
    cluster: { ...cluster, advertise: 'http://127.0.0.1:1', secret: SECRET },
  });
  atEnd(t, () => node.close());
  return node.listen('127.0.0.1', 0);
}

async function send(url: string, path: string, text: string) {
  const body = Buffer.from(text);
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: {
      'content-type': MESSAGE_TYPE,
      [CHECKSUM_HEADER]: String(crc32(body)),
      authorization: sign(SECRET, { method: 'POST', path, body }),
    },
    body,
  });
  return { status: answer.status, text: await answer.text() };
}

test('a message with a hostile name or another schema is refused, and has no effect', async (t) => {
  const folder = await tempFolder(t);
  const url = await serve(t, folder);
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
    const { status, text } = await send(url, path, JSON.stringify(message));
    const detail = `${path} ${JSON.stringify(message).slice(0, 200)}: ${status} ${text}`;
    assert.ok(status >= 400 && status < 500, detail);
    assert.match((JSON.parse(text) as { code: string }).code, /^TW_/, detail);
  }
  const { status, text } = await send(url, TASK_PATH, '{');
  assert.equal(status, 400, text);
  assert.deepEqual((await files()).sort(), before.sort());
  const known = await send(url, CANCEL_TASK_PATH, JSON.stringify({ job: ID, run: ID }));
  assert.deepEqual(known, { status: 200, text: '{"known":false}' });
});
