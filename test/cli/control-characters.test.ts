/** Names of others that contain control characters: they reach no terminal, no log and no text of a job as they are. */
import assert from 'node:assert/strict';
import { mkdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { visibleText } from '../../src/utils/text.js';
import { freePort, serve, until } from '../dht/server-processes.js';
import { tilewright } from '../support/command.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

/** Sets a title, a colour, begins a line, moves the cursor (C1), and reverses what follows. */
const NAME = 'é\u001b]0;pwned\u0007\u001b[31mRED\nFAKE LINE\r\u009b2J\u007f\u202e';
const RAW = /(?![\t\n])[\p{Cc}\u202e]|^FAKE/mu;

test('a text becomes one line without control characters, and is otherwise unchanged', () => {
  const anything = fc.string({ unit: 'binary' });
  const property = fc.property(anything, (text) => {
    const visible = visibleText(text);
    assert.doesNotMatch(visible, /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
    assert.equal(visibleText(visible), visible);
  });
  fc.assert(property, { seed: 42, numRuns: 500 });
  for (const text of ['größe 3 µm → 4', 'a  b', '日本語 👩‍👩‍👧 ﷽']) assert.equal(visibleText(text), text);
});

test('commands print names in one line', async (t) => {
  const folder = await tempFolder(t);
  const [data, scenes] = [join(folder, 'data'), join(folder, 'scenes')];
  await mkdir(scenes);
  await rename(await writeTestScene(join(folder, 'good.tif')), join(scenes, `${NAME} good.tif`));
  await writeTestScene(join(scenes, 'broken.tif'));
  await rename(join(scenes, 'broken.tif'), join(scenes, `${NAME} broken.txt`));
  const options = ['--data', data, '--datetime', '2024-06-01', '--collection', 'c'];
  const outputs = [
    await tilewright('ingest', ...options, scenes),
    await tilewright('ingest', ...options, join(scenes, `${NAME} missing.tif`)),
    await tilewright('ingest', ...options, scenes, '--format', 'json'),
    await tilewright('search', '--data', data),
    await tilewright('info', '--data', data, NAME),
    await tilewright('jobs', '--data', data),
  ];
  for (const { stdout, stderr } of outputs)
    for (const text of [stdout, stderr]) assert.doesNotMatch(text, RAW);
  assert.ok(outputs.some(({ stdout, stderr }) => /RED FAKE LINE/.test(stdout + stderr)));
});

test('jobs of uploads, their logs and the log of the server have no raw names', async (t) => {
  const folder = await tempFolder(t);
  const server = serve(t, folder, await freePort());
  let log = '';
  server.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  await until('it runs', async () => (await fetch(`${server.url}/health`)).ok);
  const ids: string[] = [];
  for (const body of [
    await readFile(await writeTestScene(join(folder, 'good.tif'))),
    Buffer.from('no image'),
  ]) {
    const query = new URLSearchParams({ filename: `${NAME}.tif`, datetime: '2024-06-01', collection: 'c' });
    const answer = await fetch(`${server.url}/ingest?${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/octet-stream' },
      body,
    });
    ids.push(((await answer.json()) as { jobID: string }).jobID);
  }
  for (const id of ids) {
    const ended = async () =>
      /"status":"(successful|failed)"/.test(await (await fetch(`${server.url}/jobs/${id}`)).text());
    await until('the job has ended', ended);
    const { lines } = (await (await fetch(`${server.url}/jobs/${id}/logs`)).json()) as {
      lines: { text: string }[];
    };
    for (const { text } of lines) assert.doesNotMatch(text, RAW);
    const { message = '' } = (await (await fetch(`${server.url}/jobs/${id}`)).json()) as { message?: string };
    assert.doesNotMatch(message, RAW);
    for (const command of [['jobs', id], ['jobs', id, '--follow'], ['jobs']]) {
      const { stdout, stderr } = await tilewright(...command, '--server', server.url);
      assert.doesNotMatch(stdout + stderr, RAW);
    }
  }
  await fetch(`${server.url}/collections/${encodeURIComponent(NAME)}`);
  assert.match(log, /RED/);
  assert.doesNotMatch(log, RAW);
});
