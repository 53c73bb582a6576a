/** Jobs over HTTP: OGC API Processes, logs, retry and repeated requests. */
import assert from 'node:assert/strict';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { openNode } from '../../src/node.js';
import { gate, process as processOf, type Work } from '../jobs/process.js';
import { atEnd } from '../support/at-end.js';
import { ingest } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { jobServer } from './job-server.js';

const EXECUTE = '/processes/fill/execution';
const FILL = { properties: { n: { type: 'integer' } }, required: ['n'], type: 'object' };
const OGC = 'http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0';

const done: Work = async () => 'done';

async function fillServer(t: Parameters<typeof jobServer>[0], work: Work, more = {}, access = {}) {
  const fill = processOf(work, { inputs: FILL, ...more });
  const node = await jobServer(t, await tempFolder(t as never), [fill], access);
  const post = (url: string, payload?: object | Buffer, headers: Record<string, string> = {}) =>
    node.server.inject({ method: 'POST', url, headers, ...(payload && { payload }) });
  const get = async (url: string) => (await node.server.inject(url)).json();
  const run = async (n: number) => {
    const { jobID } = (await post(EXECUTE, { inputs: { n } })).json();
    return node.jobs.wait(jobID);
  };
  return { ...node, post, get, run };
}

test('processes and problems are described as OGC API Processes requires', async (t) => {
  const outputs = { sum: { title: 'Sum', schema: { type: 'number' } } };
  const { get, post, server } = await fillServer(t, gate().work, { outputs });
  const { processes, links } = await get('/processes');
  assert.deepEqual(
    processes.map(({ id }: { id: string }) => id),
    ['fill', 'ingest', 'store-model'],
  );
  assert.equal(links[0].rel, 'self');
  const fill = await get('/processes/fill');
  assert.deepEqual(fill.inputs, { n: { title: 'n', schema: { type: 'integer' }, minOccurs: 1 } });
  assert.deepEqual(fill.outputs, outputs);
  const execute = fill.links.find(({ rel }: { rel: string }) => rel.endsWith('/execute'));
  const accepted = await post(new URL(execute.href).pathname, { inputs: { n: 1 }, response: 'document' });
  assert.equal(accepted.statusCode, 201);
  const { jobID } = accepted.json();
  assert.match(String(accepted.headers['location']), new RegExp(`/jobs/${jobID}$`));
  for (const [url, status, code, type] of [
    [`/jobs/${jobID}/results`, 404, 'TW_JOB_NOT_READY', `${OGC}/result-not-ready`],
    ['/jobs/none', 404, 'TW_JOB_NOT_FOUND', `${OGC}/no-such-job`],
    ['/processes/none', 404, 'TW_API_NO_PROCESS', `${OGC}/no-such-process`],
  ] as const) {
    const answer = await server.inject(url);
    assert.deepEqual([answer.statusCode, answer.json().code, answer.json().type], [status, code, type]);
  }
  assert.equal((await post('/processes/none/execution', {})).json().type, `${OGC}/no-such-process`);
  assert.equal((await post(EXECUTE, { inputs: {} })).json().code, 'TW_API_BAD_REQUEST');
});

test('the list of jobs can be filtered and has pages', async (t) => {
  const { get, run } = await fillServer(t, async (_context, inputs) => {
    if ((inputs as { n: number }).n === 2) throw new Error('two is odd');
  });
  for (let n = 1; n <= 5; n++) await run(n);
  const ids = async (query: string) =>
    (await get(`/jobs?${query}`)).jobs.map(({ jobID }: { jobID: string }) => jobID);
  const all = await ids('');
  assert.equal(all.length, 5);
  assert.deepEqual(await ids('status=failed'), [all[3]]);
  assert.equal((await ids('status=failed,successful&processID=fill,train&type=process')).length, 5);
  assert.equal((await ids('status=failed&status=running')).length, 1);
  assert.equal((await ids('processID=train')).length, 0);
  assert.equal((await ids('datetime=../2020-01-01T00:00:00Z')).length, 0);
  assert.equal((await ids('datetime=2020-01-01T00:00:00Z/..&maxDuration=1000')).length, 5);
  assert.equal((await ids('minDuration=1000')).length, 0);
  assert.equal((await get('/jobs?status=odd')).code, 'TW_API_BAD_REQUEST');
  const seen: string[] = [];
  for (let next = '/jobs?limit=2&type=process'; next; ) {
    const { jobs, links } = await get(next);
    seen.push(...jobs.map(({ jobID }: { jobID: string }) => jobID));
    const href = links.find(({ rel }: { rel: string }) => rel === 'next')?.href;
    next = href ? href.replace(/^http:\/\/[^/]+/, '') : '';
  }
  assert.deepEqual(seen, all);
});

test('logs are read page by page, while the job runs and after', async (t) => {
  const { work, open, running } = gate();
  const { get, post, jobs } = await fillServer(t, async (context, inputs) => {
    for (let i = 0; i < 4; i++) context.log('info', `line ${i}`);
    return work(context, inputs);
  });
  const { jobID } = (await post(EXECUTE, { inputs: { n: 1 } })).json();
  await running;
  const seen: { text: string; time: string }[] = [];
  let next = `/jobs/${jobID}/logs?limit=3`;
  while (next) {
    const { lines, links } = await get(next);
    seen.push(...lines);
    if (seen.length === 6) {
      open('done');
      await jobs.wait(jobID);
    }
    const href = links.find(({ rel }: { rel: string }) => rel === 'next')?.href;
    next = href ? href.replace(/^http:\/\/[^/]+/, '') : '';
  }
  assert.deepEqual(
    seen.map(({ text }) => text),
    ['accepted', 'running', 'line 0', 'line 1', 'line 2', 'line 3', 'successful'],
  );
  assert.ok(seen.every(({ time }) => new Date(time).toISOString() === time));
});

test('a cancelled job has the results so far', async (t) => {
  const { work, running } = gate();
  const { get, post, server } = await fillServer(t, async (context, inputs) => {
    if ((inputs as { n: number }).n === 1) context.partial(() => ({ tiles: 3 }));
    return work(context, inputs);
  });
  const first = (await post(EXECUTE, { inputs: { n: 1 } })).json().jobID;
  const second = (await post(EXECUTE, { inputs: { n: 2 } })).json().jobID;
  await running;
  for (const id of [first, second])
    assert.equal((await server.inject({ method: 'DELETE', url: `/jobs/${id}` })).json().status, 'dismissed');
  const { seconds, ...made } = await get(`/jobs/${first}/results`);
  assert.deepEqual(made, { tiles: 3 });
  const { started, finished } = await get(`/jobs/${first}`);
  assert.equal(seconds, (Date.parse(finished) - Date.parse(started)) / 1000);
  assert.equal((await get(`/jobs/${second}/results`)).code, 'TW_JOB_DISMISSED');
});

test('a retry repeats the failed part, and both jobs link to each other', async (t) => {
  const { get, post, run, jobs } = await fillServer(
    t,
    async (_context, inputs) => {
      const { n } = inputs as { n: number };
      if (n > 9) throw new Error('too large');
      return { failed: n % 2 };
    },
    {
      retryInputs: async (_inputs: unknown, results: { failed: number }) =>
        results.failed === 0 ? null : { n: results.failed + 1 },
    },
  );
  const odd = await run(3);
  const answer = await post(`/jobs/${odd.id}/retry`);
  assert.equal(answer.statusCode, 201, answer.body);
  const { jobID, retryOf } = answer.json();
  assert.equal(retryOf, odd.id);
  assert.equal((await get(`/jobs/${odd.id}`)).retriedBy, jobID);
  await jobs.wait(jobID);
  const { seconds: _, ...results } = await get(`/jobs/${jobID}/results`);
  assert.deepEqual(results, { failed: 0 });
  const none = await post(`/jobs/${jobID}/retry`);
  assert.deepEqual([none.statusCode, none.json().code], [409, 'TW_JOB_NOTHING_FAILED']);
  const whole = await run(10);
  assert.equal((await post(`/jobs/${whole.id}/retry`)).json().retryOf, whole.id, 'failed as a whole');
  assert.equal((await post('/jobs/none/retry')).json().code, 'TW_JOB_NOT_FOUND');
});

test('a retry by another user of an ingest of the owner reads only the allowed folders', async (t) => {
  const { post, get, jobs } = await fillServer(t, done);
  const path = join(await tempFolder(t), 'secret.tif');
  const owner = { authorization: 'Bearer owner' };
  await writeFile(path, 'not there yet');
  const inputs = { paths: [path], collection: 'x', datetime: '2024-06-01T10:00:00Z', precision: 6 };
  const first = await post('/processes/ingest/execution', { inputs }, owner);
  assert.equal((await jobs.wait(first.json().jobID)).status, 'failed');
  await writeTestScene(path);
  const ended = async (headers: Record<string, string>) => {
    const { jobID } = (await post(`/jobs/${first.json().jobID}/retry`, undefined, headers)).json();
    await jobs.wait(jobID);
    return get(`/jobs/${jobID}/results`);
  };
  assert.match(JSON.stringify(await ended({})), /TW_INGEST_ALL_FAILED.*leads out of the folders/);
  assert.ok((await ended(owner)).tiles > 0);
});

test('a job that has not ended cannot be retried', async (t) => {
  const { post } = await fillServer(t, gate().work);
  const { jobID } = (await post(EXECUTE, { inputs: { n: 1 } })).json();
  const { statusCode, body } = await post(`/jobs/${jobID}/retry`);
  assert.deepEqual([statusCode, JSON.parse(body).code], [409, 'TW_JOB_NOT_ENDED']);
});

test('the same request with the same key starts one job', async (t) => {
  const { post, jobs } = await fillServer(t, done);
  const send = (key: string, n: number) => post(EXECUTE, { inputs: { n } }, { 'idempotency-key': key });
  const [first, twin] = await Promise.all([send('a', 1), send('a', 1)]);
  assert.deepEqual([first.statusCode, twin.statusCode], [201, 200]);
  assert.equal(twin.json().jobID, first.json().jobID);
  await jobs.wait(first.json().jobID);
  const late = await send('a', 1);
  assert.deepEqual([late.statusCode, late.json().jobID], [200, first.json().jobID]);
  const other = await send('a', 2);
  assert.deepEqual([other.statusCode, other.json().code], [422, 'TW_JOB_KEY_REUSED']);
  assert.notEqual((await send('b', 1)).json().jobID, first.json().jobID);
  assert.equal((await send('ü', 1)).json().code, 'TW_API_BAD_REQUEST');
  assert.equal((await jobs.list()).length, 2);
});

test('a file that is uploaded twice with one key is ingested once', async (t) => {
  const { server, jobs, storage } = await fillServer(t, done);
  const path = await writeTestScene(join(await tempFolder(t), 'scene.tif'));
  const bytes = await readFile(path);
  const send = (payload: Buffer, query = '') =>
    server.inject({
      method: 'POST',
      url: `/ingest?filename=scene.tif&collection=test&datetime=2024-06-01T10:00:00Z${query}`,
      headers: { 'content-type': 'application/octet-stream', 'idempotency-key': 'k' },
      payload,
    });
  const first = (await send(bytes)).json().jobID;
  assert.equal((await send(bytes)).json().jobID, first);
  assert.equal((await send(bytes.subarray(1))).statusCode, 422);
  assert.equal((await send(bytes, '&precision=6')).statusCode, 422);
  assert.equal((await jobs.wait(first)).status, 'successful');
  assert.equal((await jobs.list()).length, 1);
  assert.deepEqual(await readdir(join(storage.dir, 'scratch')), []);
  const gone = await server.inject({ method: 'POST', url: `/jobs/${first}/retry` });
  assert.equal(gone.json().code, 'TW_JOB_NOTHING_FAILED');
});

test('a retried ingest uses only the failed paths; an uploaded file must be uploaded again', async (t) => {
  const folder = await tempFolder(t);
  const scenes = await Promise.all(
    [1, 2].map((seed) => writeTestScene(join(folder, `scene${seed}.tif`), { seed })),
  );
  const broken = join(folder, 'broken.tif');
  await writeFile(broken, 'no');
  const node = await openNode({
    data: join(folder, 'data'),
    memory: 128e6,
    cores: 1,
    allowFolders: [folder],
  });
  atEnd(t, () => node.close());
  const post = async (url: string, payload?: object | Buffer, headers = {}) =>
    (await node.server.inject({ method: 'POST', url, headers, ...(payload && { payload }) })).json();
  const results = async (id: string) => {
    while (!('finished' in (await node.server.inject(`/jobs/${id}`)).json())) await sleep(10);
    return (await node.server.inject(`/jobs/${id}/results`)).json();
  };
  const inputs = { paths: [scenes[0], broken], collection: 'test', datetime: '2024-06-01T10:00:00Z' };
  const first = (await post('/processes/ingest/execution', { inputs })).jobID;
  const { failed, scenes: made } = await results(first);
  assert.deepEqual([failed.length, made.length], [1, 1]);
  await rm(broken);
  await writeFile(broken, await readFile(scenes[1]!));
  const second = (await post(`/jobs/${first}/retry`)).jobID;
  const retried = await results(second);
  assert.deepEqual(
    retried.scenes.map(({ id }: { id: string }) => id),
    ['broken_20240601T100000Z'],
  );
  assert.equal((await post(`/jobs/${second}/retry`)).code, 'TW_JOB_NOTHING_FAILED');
  const log = (await node.server.inject(`/jobs/${first}/logs`)).json().lines;
  const texts = log.map(({ level, text }: { level: string; text: string }) => `${level} ${text}`);
  assert.ok(
    texts.some((text: string) => /^info test\/scene1_20240601T100000Z: \d+ tiles$/.test(text)),
    texts,
  );
  assert.ok(
    texts.some((text: string) => /^error .*broken.tif.*\[TW_RASTER_NOT_TIFF\]$/.test(text)),
    texts,
  );
  const sent = await post('/ingest?filename=a.tif', Buffer.from('no'), {
    'content-type': 'application/octet-stream',
  });
  await results(sent.jobID);
  assert.equal((await post(`/jobs/${sent.jobID}/retry`)).code, 'TW_JOB_UPLOAD_GONE');
});

test('a full job queue is answered with Retry-After, and one client does not fill it', async (t) => {
  const { server } = await fillServer(t, gate().work);
  const fill = async (remoteAddress: string) => {
    for (let accepted = 0; ; accepted++) {
      const payload = { inputs: { n: accepted } };
      const answer = await server.inject({ method: 'POST', url: EXECUTE, payload, remoteAddress });
      if (answer.statusCode === 201) continue;
      assert.deepEqual([answer.statusCode, answer.json().code], [429, 'TW_JOB_LIMIT']);
      assert.ok(Number(answer.headers['retry-after']) > 0);
      return { accepted, detail: answer.json().detail as string };
    }
  };
  // One job runs.
  const first = await fill('192.0.2.1');
  assert.equal(first.accepted, 81);
  assert.match(first.detail, /80 jobs/);
  const second = await fill('192.0.2.2');
  assert.equal(second.accepted, 20);
  assert.match(second.detail, /100 jobs/);
});

test('the results of a job in a cluster have only their own files', async (t) => {
  const folder = await tempFolder(t);
  const store = pathToFileURL(await tempFolder(t)).href;
  const place = { store, etcd: [], name: 'default', advertise: 'http://127.0.0.1:1' };
  const cluster = { ...place, zone: 'default', weight: 1, secrets: ['shared'] };
  const node = await openNode({ data: join(folder, 'data'), memory: 1e9, cores: 1, reserve: 0, cluster });
  atEnd(t, () => node.close());
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const href = await writeTestScene(join(folder, 'scene.tif'), { width: 64, height: 64 });
  const scene = { collection: 'test', datetime: '2024-06-01T10:00:00Z', bands: { red: 3 }, precision: 6 };
  await ingest(node, { href, ...scene });
  const url = '/processes/tensor/execution';
  const payload = { inputs: { bands: ['red'], format: 'npy' } };
  const job = (await node.server.inject({ method: 'POST', url, headers, payload })).json();
  const isDone = async () => (await node.server.inject(`/jobs/${job.jobID}`)).json().status === 'successful';
  while (!(await isDone())) await sleep(20);
  const { files } = (await node.server.inject(`/jobs/${job.jobID}/results`)).json();
  const own = await node.server.inject(`/jobs/${job.jobID}/results/files/${files[0].name}`);
  assert.equal(own.statusCode, 200, own.body);
  for (const name of ['constructor', 'toString', 'absent.tif']) {
    const answer = await node.server.inject(`/jobs/${job.jobID}/results/files/${name}`);
    assert.deepEqual([answer.statusCode, answer.json().code], [404, 'TW_API_NOT_FOUND'], answer.body);
  }
});
