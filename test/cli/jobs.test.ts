/** Jobs of a real server with the real command. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from '../support/at-end.js';
import { finished, start, tilewright } from '../support/command.js';
import { remoteCatalog } from '../support/remote-catalog.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const TOKEN = ['--token', 'word'];

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  return port;
}

async function serve(t: TestContext, data: string, port: number, logs: string[] = []): Promise<ChildProcess> {
  const flags = ['--port', String(port), '--format', 'json', '--cores', '1', ...TOKEN];
  const server = start(['serve', '--data', data, ...flags]);
  atEnd(t, () => server.kill('SIGKILL'));
  server.stderr?.setEncoding('utf8').on('data', (text) => {
    logs.push(text);
  });
  await once(server.stdout as NodeJS.ReadableStream, 'data');
  return server;
}

async function send(url: string, path: string, key: string): Promise<{ status: number; jobID: string }> {
  const query = 'filename=scene.tif&collection=test&maskBand=5&precision=6&datetime=2024-06-01T10:00:00Z';
  const response = await fetch(`${url}/ingest?${query}&id=${key}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/octet-stream',
      authorization: 'Bearer word',
      'idempotency-key': key,
      'x-request-id': `request-${key}`,
    },
    body: await readFile(path),
  });
  const { jobID } = (await response.json()) as { jobID: string };
  return { status: response.status, jobID };
}

test('a job with an uploaded file resumes after kill -9 of the server, and a command that follows it continues', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const target = ['--server', url, ...TOKEN];
  const large = await writeTestScene(join(folder, 'large.tif'), { width: 1600, height: 1600 });
  const small = await writeTestScene(join(folder, 'small.tif'));

  const first = await serve(t, data, port);
  const { jobID } = await send(url, large, 'large');
  const waiting = await send(url, small, 'small');
  const following = start(['jobs', jobID, '--follow', '--format', 'json', ...target]);
  const follower = finished(following);
  // It must have found the server once before the server goes.
  await once(following.stderr as NodeJS.ReadableStream, 'data');
  while (!existsSync(join(data, 'tiles', 'geohash'))) await sleep(10);
  first.kill('SIGKILL');
  await once(first, 'close');
  assert.equal((await readdir(join(data, 'scratch'))).length, 2);

  // A command that only reads does not touch the jobs and their files.
  const looks = await tilewright('jobs', '--data', data, '--format', 'json');
  const states = JSON.parse(looks.stdout).jobs.map(({ status }: { status: string }) => status);
  assert.deepEqual(states, ['accepted', 'accepted']);

  const logs: string[] = [];
  await serve(t, data, port, logs);
  const { code, stdout, stderr } = await follower;
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).status, 'successful');
  const told = [...stderr.matchAll(/ state\s+(\w+)/g)].map(([, state]) => state);
  assert.deepEqual(told, ['accepted', 'running', 'accepted', 'running', 'successful']);
  assert.match(stderr, /test\/large: \d+ tiles/);
  const after = await tilewright('jobs', waiting.jobID, '--follow', ...target);
  assert.equal(after.code, 0, after.stderr);
  assert.match(
    after.stdout,
    /ingest, successful, 1 scene ingested\n(\d+) of \1 tiles done, 0 failed, 0 skipped, /,
  );
  while ((await readdir(join(data, 'scratch'))).length > 0) await sleep(10);
  const again = await send(url, small, 'small');
  assert.deepEqual([again.status, again.jobID], [200, waiting.jobID], 'keys outlive the server too');
  const accepted = logs
    .join('')
    .split('\n')
    .find((line) => line.includes('job accepted'));
  const { reqId, job } = JSON.parse(accepted ?? '{}');
  assert.deepEqual([reqId, job], ['request-small', waiting.jobID], 'requests can be told apart in the log');
  const verified = await tilewright('verify', ...target);
  assert.equal(verified.code, 0, verified.stderr);
});

test('jobs are listed, shown, cancelled and retried', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const target = ['--data', data];
  const good = await writeTestScene(join(folder, 'good.tif'));
  const broken = join(folder, 'broken.tif');
  await writeFile(broken, 'no');
  const ingest = ['ingest', good, broken, '--datetime', '2024-06-01T10:00:00Z', ...SCENE_FLAGS, ...target];
  assert.equal((await tilewright(...ingest)).code, 3);
  const [job] = JSON.parse((await tilewright('jobs', ...target, '--format', 'json')).stdout).jobs;
  const list = await tilewright('jobs', ...target);
  assert.match(list.stdout, new RegExp(`^${job.jobID} +ingest +successful +100 %`, 'm'));
  assert.match(
    (await tilewright('jobs', job.jobID, ...target)).stdout,
    /ingest, successful, 1 scene ingested, 1 failed: .*\n\d+ of \d+ tiles done, .*\n(warning|error): .*broken/,
  );

  await writeFile(broken, await readFile(await writeTestScene(join(folder, 'other.tif'), { seed: 3 })));
  const retried = await tilewright('jobs', job.jobID, '--retry', '--format', 'json', ...target);
  assert.equal(retried.code, 0, retried.stderr);
  assert.equal(JSON.parse(retried.stdout).retryOf, job.jobID);
  assert.match(retried.stderr, /test\/broken_20240601T100000Z: \d+ tiles/);
  const cancelled = await tilewright('jobs', job.jobID, '--cancel', ...target);
  assert.match(cancelled.stdout, /successful/, 'an ended job stays as it is');
  const nothing = await tilewright('jobs', JSON.parse(retried.stdout).jobID, '--retry', ...target);
  assert.equal(nothing.code, 1);
  assert.match(nothing.stderr, /TW_JOB_NOTHING_FAILED/);
  assert.equal((await tilewright('jobs', 'none', ...target)).code, 1);
  assert.equal((await tilewright('jobs', '--follow', ...target)).code, 2);
});

test('a cancelled job stops within seconds, and keeps its finished part', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await serve(t, data, port);
  const small = await writeTestScene(join(folder, 'a-small.tif'));
  const large = await writeTestScene(join(folder, 'b-large.tif'), { width: 1600, height: 1600, x: 600_000 });
  const lock = JSON.parse(await readFile(join(data, 'lock'), 'utf8'));
  const headers = { authorization: `Bearer ${lock.secret}`, 'content-type': 'application/json' };
  const inputs = { paths: [small, large], collection: 'test', maskBand: 5, precision: 6 };
  const body = JSON.stringify({ inputs: { ...inputs, datetime: '2024-06-01T10:00:00Z' } });
  const response = await fetch(`${url}/processes/ingest/execution`, { method: 'POST', headers, body });
  const { jobID } = (await response.json()) as { jobID: string };
  const lines = async () =>
    ((await (await fetch(`${url}/jobs/${jobID}/logs`)).json()) as { lines: { text: string }[] }).lines;
  while (!(await lines()).some(({ text }) => text.startsWith('test/a-small'))) await sleep(20);
  const cancel = await tilewright('jobs', jobID, '--cancel', '--server', url, ...TOKEN, '--format', 'json');
  assert.equal(JSON.parse(cancel.stdout).status, 'dismissed', cancel.stdout);
  const results = (await (await fetch(`${url}/jobs/${jobID}/results`)).json()) as {
    scenes: { id: string }[];
  };
  assert.deepEqual(
    results.scenes.map(({ id }) => id),
    ['a-small_20240601T100000Z'],
  );
});

test('a retry of a remote ingest without a server has its hosts and credentials', async (t) => {
  const { api, server } = await remoteCatalog(t);
  const folder = await tempFolder(t);
  const data = ['--data', join(folder, 'data')];
  const credentials = join(folder, 'credentials.json');
  await writeFile(credentials, JSON.stringify({ bearer: [{ hosts: [server.host], token: 'abc' }] }), {
    mode: 0o600,
  });
  server.fault = ({ url = '', headers }, response) => {
    if (!url.endsWith('.tif') || headers.authorization === 'Bearer abc') return false;
    response.writeHead(403).end();
    return true;
  };
  const allow = ['--allow-host', server.host];
  const region = ['--bbox', '15.06,47.75,15.12,47.8', '--precision', '5', '--bands', 'red'];
  const failed = await tilewright('ingest', '--from-stac', api, ...allow, ...region, ...data);
  assert.equal(failed.code, 1);
  const { jobs } = JSON.parse((await tilewright('jobs', ...data, '--format', 'json')).stdout);
  const retry = ['jobs', jobs[0].jobID, '--retry', ...data];
  const refused = await tilewright(...retry);
  assert.equal(refused.code, 1);
  assert.match(refused.stdout, /name its host with --allow-host 127/);
  const last = JSON.parse((await tilewright('jobs', ...data, '--format', 'json')).stdout).jobs[0];
  const done = await tilewright(
    ...['jobs', last.jobID, '--retry', ...data, ...allow, '--remote-credentials', credentials],
  );
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /: ingest, successful, 1 scene ingested\n/);
});
