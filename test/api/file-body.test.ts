/** Files that change while they are sent. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { extract } from 'tar-stream';
import { FileBody, httpTransport } from '../../src/client/index.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';

test('a file that grows is sent with its announced length', async (t) => {
  const path = join(await tempFolder(t), 'a.tif');
  const beside = `${path}.msk`;
  await writeFile(path, 'abc');
  await writeFile(beside, '');
  const bodies = [new FileBody(path), new FileBody(path, [beside]), new FileBody(beside)];
  const announced = await Promise.all(bodies.map((body) => body.bytes()));
  await appendFile(path, 'd'.repeat(2000));
  await appendFile(beside, 'e');
  const sent = await Promise.all(bodies.map((body) => buffer(body.stream())));
  assert.deepEqual(
    sent.map(({ length }) => length),
    announced,
  );
  assert.equal(`${sent[0]}`, 'abc');
  const entries: string[] = [];
  const archive = extract();
  archive.end(sent[1]);
  for await (const entry of archive) entries.push(`${entry.header.name}: ${await buffer(entry)}`);
  assert.deepEqual(entries, ['a.tif: abc', 'a.tif.msk: ']);
});

test('the error of a file that is removed or cut off while it is sent names the file, not the server', async (t) => {
  const path = join(await tempFolder(t), 'a.tif');
  const beside = `${path}.msk`;
  let change = async () => {};
  const server = createServer().on('checkContinue', async (request, response) => {
    await change();
    response.writeContinue();
    request.on('error', () => undefined).resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, () => server.close());
  const ask = httpTransport(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  for (const [changed, message] of [
    [() => rm(path), /a\.tif cannot be sent: .* does not exist/],
    [() => truncate(path, 1), /a\.tif cannot be sent: it lost 2 of its 3 bytes/],
  ] as const)
    for (const sideFiles of [[], [beside]]) {
      await writeFile(path, 'abc');
      await writeFile(beside, 'mask');
      change = changed;
      const sent = ask('POST', '/ingest?filename=a.tif', new FileBody(path, sideFiles));
      await assert.rejects(sent, { code: 'TW_CLIENT_NO_FILE', message });
    }
});
