/** Readers that take answers slowly or not at all, over real sockets. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import Fastify from 'fastify';
import { registerErrorHandler } from '../../src/api/plugins/problems.js';
import { registerReaders } from '../../src/api/plugins/readers.js';
import { httpTransport } from '../../src/client/transport.js';
import { atEnd } from '../support/at-end.js';

/** More than the kernel holds for a connection. */
const LONG = 40e6;
const WINDOW_MS = 300;
/** Long enough for pauses of a busy machine. */
const SLOW_WINDOW_MS = 2500;

async function serve(t: TestContext, limits: Parameters<typeof registerReaders>[1] = {}) {
  const server = Fastify({ forceCloseConnections: true });
  registerErrorHandler(server);
  registerReaders(server, { window: WINDOW_MS, least: 64_000, ...limits });
  const pulled: string[] = [];
  server.get('/bytes', async () => Buffer.alloc(LONG, 'a'));
  server.get('/text', async () => 'é'.repeat(LONG / 2));
  server.get('/stream', async () => {
    const chunks = async function* () {
      pulled.push('stream');
      for (let i = 0; i < LONG / 1e6; i++) yield Buffer.alloc(1e6);
    };
    return Readable.from(chunks(), { objectMode: false });
  });
  server.get('/events', async () => {
    const lines = async function* () {
      yield 'first\n';
      await sleep(10 * WINDOW_MS);
      yield 'last\n';
    };
    return Readable.from(lines());
  });
  server.get('/reserved', async (_, reply) => {
    await reply.reserveMemory(3e6);
    return Buffer.alloc(LONG);
  });
  server.get('/short', async () => 'short');
  atEnd(t, () => server.close());
  const url = await server.listen({ port: 0, host: '127.0.0.1' });
  const connections = promisify(server.server.getConnections.bind(server.server)) as () => Promise<number>;
  return { url, pulled, connections };
}

function ask(url: string, path: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
  return socket;
}

test('an answer of which nothing is read ends; one that is read slowly, and one with nothing to read, does not', async (t) => {
  const { url, connections } = await serve(t);
  for (const path of ['/bytes', '/text', '/stream']) {
    const socket = ask(url, path).on('error', () => undefined);
    await once(socket, 'connect');
    for (let tries = 0; (await connections()) > 0; tries++) {
      assert.ok(tries < 100, path);
      await sleep(WINDOW_MS / 3);
    }
    socket.destroy();
  }
  const slow = ask((await serve(t, { window: SLOW_WINDOW_MS })).url, '/bytes');
  let bytes = 0;
  // 10 MB a window, so the answer takes longer than the windows after which an unread one ends.
  for await (const chunk of slow) {
    bytes += (chunk as Buffer).length;
    await sleep(((chunk as Buffer).length / 10e6) * SLOW_WINDOW_MS);
  }
  assert.ok(bytes > LONG, String(bytes));
  const events = await fetch(`${url}/events`);
  assert.equal(await events.text(), 'first\nlast\n');
});

test('answers have the same bytes and lengths as without the limits', async (t) => {
  const { url, pulled } = await serve(t);
  const bytes = await fetch(`${url}/bytes`);
  assert.equal(bytes.headers.get('content-length'), String(LONG));
  assert.equal((await bytes.arrayBuffer()).byteLength, LONG);
  assert.equal(await (await fetch(`${url}/text`)).text(), 'é'.repeat(LONG / 2));
  const head = await fetch(`${url}/bytes`, { method: 'HEAD' });
  assert.equal(head.headers.get('content-length'), String(LONG));
  await (await fetch(`${url}/stream`, { method: 'HEAD' })).arrayBuffer();
  assert.deepEqual(pulled, [], 'HEAD reads nothing');
});

test('long answers wait for memory, then the server is busy; the client repeats its request', async (t) => {
  const { url } = await serve(t, { memory: 8e6, wait: 2 * WINDOW_MS, window: 4 * WINDOW_MS });
  const unread = [ask(url, '/reserved'), ask(url, '/reserved')];
  for (const socket of unread) socket.on('error', () => undefined);
  await sleep(WINDOW_MS);
  const refused = await fetch(`${url}/reserved`);
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get('retry-after'), '5');
  assert.equal(((await refused.json()) as { code: string }).code, 'TW_API_BUSY');
  assert.equal(await (await fetch(`${url}/short`)).text(), 'short');
  // Both readers lose their answers in the meantime.
  const { status } = await httpTransport(url)('GET', '/reserved');
  assert.equal(status, 200);
  // Nothing stays reserved, whether an answer is read, refused or abandoned.
  for (let i = 0; i < 5; i++) {
    const abandoned = ask(url, '/reserved').on('error', () => undefined);
    await sleep(20);
    abandoned.destroy();
    const answer = await fetch(`${url}/reserved`);
    assert.equal(answer.status, 200);
    await answer.arrayBuffer();
  }
});

test('the client reports an answer that was cut off', async (t) => {
  const { url } = await serve(t);
  const server = Fastify();
  server.get('/cut', async (_, reply) => {
    const chunks = async function* () {
      yield Buffer.alloc(1e5, 'a');
      await sleep(50);
      reply.raw.destroy();
    };
    return Readable.from(chunks(), { objectMode: false });
  });
  atEnd(t, () => server.close());
  const cut = httpTransport(await server.listen({ port: 0 }));
  await assert.rejects(cut('GET', '/cut'), {
    code: 'TW_CLIENT_BROKEN_ANSWER',
    message: /^the answer to \/cut ended before it was complete/,
  });
  await assert.rejects(httpTransport(url.replace(/\d+$/, '1'))('GET', '/'), {
    code: 'TW_CLIENT_UNREACHABLE',
  });
});
