/** Execute requests of OGC API Processes 1.0 apart from their inputs, and the pages of its lists. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Process } from '../../src/jobs/index.js';
import { gate, process as processOf } from '../jobs/process.js';
import { eventually } from '../support/eventually.js';
import { tempFolder } from '../support/temp.js';
import { jobServer } from './job-server.js';

const OUTPUTS: Process['outputs'] = {
  tiles: { title: 'Tiles', schema: { type: 'integer' } },
  names: { title: 'Names', schema: { type: 'array' } },
  note: { title: 'Note', schema: { type: 'string' } },
};
const RESULTS = { tiles: 3, names: ['a', 'ü'], note: 'done' };

async function executing(
  t: TestContext,
  process = processOf(async () => ({ ...RESULTS }), { outputs: OUTPUTS }),
) {
  const { server } = await jobServer(t, await tempFolder(t), [process]);
  const execute = (payload: object, headers: Record<string, string> = {}, id = 'fill') =>
    server.inject({ method: 'POST', url: `/processes/${id}/execution`, payload, headers });
  const resultsOf = async (payload: object, query = '') => {
    const started = await execute(payload);
    assert.equal(started.statusCode, 201, started.body);
    const url = `/jobs/${started.json().jobID}`;
    await eventually('it ends', async () => (await server.inject(url)).json().status === 'successful');
    return server.inject(`${url}/results${query}`);
  };
  return { server, execute, resultsOf };
}

test('results have the outputs that the request names, all without names', async (t) => {
  const { resultsOf } = await executing(t);
  const names = async (request: object) => Object.keys((await resultsOf(request)).json()).sort();
  const all = ['names', 'note', 'seconds', 'tiles'];
  assert.deepEqual(await names({}), all);
  assert.deepEqual(await names({ outputs: {}, response: 'document' }), all);
  assert.deepEqual(await names({ outputs: { tiles: {}, note: { transmissionMode: 'value' } } }), [
    'note',
    'tiles',
  ]);
  const one = await resultsOf({ outputs: { tiles: { format: { mediaType: 'application/json' } } } });
  assert.deepEqual(one.json(), { tiles: 3 });
});

test('raw results are the value of one output, or a part for each of several', async (t) => {
  const { resultsOf } = await executing(t);
  for (const [name, value] of Object.entries(RESULTS)) {
    const answer = await resultsOf({ outputs: { [name]: {} }, response: 'raw' });
    assert.match(String(answer.headers['content-type']), /^application\/json/);
    assert.deepEqual(answer.json(), value);
  }
  const several = await resultsOf({ outputs: { tiles: {}, names: {} }, response: 'raw' });
  const type = String(several.headers['content-type']);
  const [, boundary = ''] = /^multipart\/related; type="application\/json"; boundary=(\S+)$/.exec(type)!;
  // Format of RFC 2046: Node's FormData reads multipart/form-data only.
  const parts = several.body.split(`--${boundary}`);
  assert.deepEqual([parts.at(0), parts.at(-1)], ['', '--\r\n']);
  const read = parts.slice(1, -1).map((part) => {
    const [head = '', body = ''] = part.split('\r\n\r\n');
    return [/content-id: <(.*)>/.exec(head)?.[1], JSON.parse(body)];
  });
  assert.deepEqual(Object.fromEntries(read), { tiles: 3, names: ['a', 'ü'] });
  const asDocument = await resultsOf({ outputs: { tiles: {}, names: {} }, response: 'raw' }, '?f=json');
  assert.deepEqual(asDocument.json(), { tiles: 3, names: ['a', 'ü'] });
  const all = await resultsOf({ response: 'raw' });
  assert.equal(all.body.match(/content-id/g)?.length, 4);
});

test('an execute request that cannot be answered is refused before a job starts', async (t) => {
  const { execute, server } = await executing(t);
  const cases: [request: object, code: string][] = [
    [{ outputs: { tile: {} } }, 'TW_API_NO_OUTPUT'],
    [{ outputs: { toString: {} } }, 'TW_API_NO_OUTPUT'],
    [{ outputs: { '\ud800': {} }, response: 'raw' }, 'TW_API_NO_OUTPUT'],
    [{ outputs: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [i, {}])) }, 'TW_API_BAD_REQUEST'],
    [{ outputs: { tiles: { transmissionMode: 'reference' } } }, 'TW_API_BAD_REQUEST'],
    [{ outputs: { tiles: { format: { mediaType: 'text/csv' } } } }, 'TW_API_BAD_REQUEST'],
    [{ outputs: ['tiles'] }, 'TW_API_BAD_REQUEST'],
    [{ response: 'all' }, 'TW_API_BAD_REQUEST'],
    [{ subscriber: { successUri: 'http://127.0.0.1:1/' } }, 'TW_API_NO_CALLBACKS'],
    [{ mode: 'sync' }, 'TW_API_BAD_REQUEST'],
  ];
  for (const [request, code] of cases) {
    const refused = await execute(request);
    assert.deepEqual([refused.statusCode, refused.json().code], [400, code], JSON.stringify(request));
  }
  assert.match((await execute({ outputs: { tile: {} } })).json().detail, /it has tiles, names, note$/);
  assert.equal((await server.inject('/jobs')).json().jobs.length, 0);
  const { conformsTo } = (await server.inject('/conformance')).json();
  assert.ok(!conformsTo.some((one: string) => one.endsWith('/conf/callback')));
});

test('a process that declares no outputs refuses names of them', async (t) => {
  const { execute } = await executing(
    t,
    processOf(async () => RESULTS),
  );
  for (const name of ['tiles', 'toString', '\ud800']) {
    const refused = await execute({ outputs: { [name]: {} } });
    assert.deepEqual([refused.statusCode, refused.json().code], [400, 'TW_API_NO_OUTPUT'], name);
  }
});

test('one idempotency key cannot be used for two forms of results', async (t) => {
  const { execute } = await executing(t);
  const key = { 'idempotency-key': 'a' };
  const first = await execute({ outputs: { tiles: {} } }, key);
  assert.equal(first.statusCode, 201);
  assert.equal((await execute({ outputs: { tiles: {} } }, key)).json().jobID, first.json().jobID);
  assert.equal((await execute({ outputs: { tiles: {} }, response: 'raw' }, key)).statusCode, 422);
});

test('a retry has the form of results of the original job', async (t) => {
  let fails = true;
  const process = processOf(
    async () => {
      if (fails) throw new Error('not yet');
      return RESULTS;
    },
    { outputs: OUTPUTS },
  );
  const { server, execute } = await executing(t, process);
  const { jobID } = (await execute({ outputs: { tiles: {} }, response: 'raw' })).json();
  const ended = async (id: string, status: string) =>
    eventually(status, async () => (await server.inject(`/jobs/${id}`)).json().status === status);
  await ended(jobID, 'failed');
  fails = false;
  const again = (await server.inject({ method: 'POST', url: `/jobs/${jobID}/retry` })).json().jobID;
  await ended(again, 'successful');
  assert.equal((await server.inject(`/jobs/${again}/results`)).body, '3');
});

test('the preference for asynchronous execution is confirmed', async (t) => {
  const { execute } = await executing(t);
  const applied = async (prefer?: string) =>
    (await execute({}, prefer === undefined ? {} : { prefer })).headers['preference-applied'];
  assert.equal(await applied('respond-async'), 'respond-async');
  assert.equal(await applied('return=minimal, Respond-Async; wait=10'), 'respond-async');
  assert.equal(await applied('respond-sync'), undefined);
  assert.equal(await applied(), undefined);
});

test('processes and jobs come in pages', async (t) => {
  const { work, open } = gate();
  const processes = ['fill', 'split', 'coalesce'].map((id) => processOf(work, { id }));
  const { server, jobs } = await jobServer(t, await tempFolder(t), processes);
  for (const process of processes) await jobs.start(process, {});
  for (const [path, count] of [
    ['processes', 5],
    ['jobs', 3],
  ] as const) {
    const idOf = (one: { id?: string; jobID?: string }) => one.id ?? one.jobID;
    const whole = (await server.inject(`/${path}`)).json();
    assert.equal(whole[path].length, count);
    assert.deepEqual(
      whole.links.map(({ rel }: { rel: string }) => rel),
      ['self'],
    );
    const seen: unknown[] = [];
    for (let url: string | undefined = `/${path}?limit=2`; url !== undefined; ) {
      const page: { links: { rel: string; href: string }[] } & Record<string, []> = (
        await server.inject(url)
      ).json();
      assert.ok(page[path]!.length <= 2);
      seen.push(...page[path]!.map(idOf));
      url = page.links.find(({ rel }) => rel === 'next')?.href;
    }
    assert.deepEqual(seen, whole[path].map(idOf));
    for (const limit of ['0', '-1', 'abc', '1.5', ''])
      assert.equal((await server.inject(`/${path}?limit=${limit}`)).statusCode, 400, `${path} ${limit}`);
    assert.deepEqual((await server.inject(`/${path}?limit=100000`)).json()[path], whole[path]);
    const refused = await server.inject(`/${path}?token=nobody`);
    assert.deepEqual([refused.statusCode, refused.json().code], [400, 'TW_API_TOKEN']);
  }
  open({});
});
