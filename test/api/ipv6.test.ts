/** A server at an IPv6 address, whose URLs have brackets: each way in which clients and other nodes reach it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { FileBody, httpTransport } from '../../src/client/index.js';
import { Signatures } from '../../src/dht/index.js';
import { messageOf } from '../../src/errors.js';
import { Rendezvous } from '../../src/training/index.js';
import { atEnd } from '../support/at-end.js';
import { testNode } from '../support/node.js';
import { tempFolder } from '../support/temp.js';

async function isMissing(t: TestContext): Promise<boolean> {
  const server = createServer().listen(0, '::1');
  try {
    await once(server, 'listening');
    return false;
  } catch (error) {
    t.skip(`this machine has no IPv6: ${messageOf(error)}`);
    return true;
  } finally {
    server.close();
  }
}

test('a client sends requests and files, and follows events', async (t) => {
  if (await isMissing(t)) return;
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const url = await node.listen('::1', 0);
  assert.match(url, /^http:\/\/\[::1\]:\d+$/);
  const ask = httpTransport(url, node.ownerSecret);
  const home = (await ask('GET', '/')).body as { links: { rel: string; href: string }[] };
  assert.ok(home.links.find(({ rel }) => rel === 'self')!.href.startsWith(url));
  const file = join(folder, 'scene.tif');
  await writeFile(file, 'not a TIFF');
  const sent = await ask('POST', '/ingest?filename=scene.tif&collection=c', new FileBody(file));
  assert.equal(sent.status, 201, JSON.stringify(sent.body));
  const { jobID } = sent.body as { jobID: string };
  const events = await ask.open(`/jobs/${jobID}/events`, {});
  let stream = '';
  for await (const part of events.body) stream += part;
  assert.match(stream, /"status":"failed"/);
  const saved = join(folder, 'answer');
  assert.equal((await ask.download('/', saved)).status, 200);
});

test('a member of a training ring reaches the rendezvous of another node', async (t) => {
  if (await isMissing(t)) return;
  const doors = new Rendezvous(new Signatures('n', ['the secret of the test']));
  const server = createServer().listen(0, '::1');
  server.on('connect', (request, socket) => doors.accept(request, socket as Socket));
  await once(server, 'listening');
  atEnd(t, () => server.close());
  const url = `http://[::1]:${(server.address() as AddressInfo).port}`;
  const door = doors.listen();
  const [there, here] = await Promise.all([doors.connect({ node: 'n', url }, door.id), door.connection]);
  there.end('hello');
  assert.equal(await text(here), 'hello');
  door.close();
});
