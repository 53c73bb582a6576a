/** Limits of what one client, and all of them together, take of a server. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import Fastify, { type FastifyInstance } from 'fastify';
import { registerBodyTimeout, registerJsonBodyLimits } from '../../src/api/plugins/bodies.js';
import { ClientLimit, limitConnections } from '../../src/api/plugins/limits.js';
import { registerErrorHandler } from '../../src/api/plugins/problems.js';
import { atEnd } from '../support/at-end.js';

test('no sum is above its limit, and everything can be given back', () => {
  const step = fc.record({ client: fc.constantFrom('a', 'b', 'c'), amount: fc.integer({ min: 1, max: 5 }) });
  const property = fc.property(fc.array(fc.oneof(step, fc.nat(20)), { maxLength: 60 }), (steps) => {
    const limit = new ClientLimit(10, 6);
    const taken: { client: string; amount: number; release: () => void }[] = [];
    const sum = (client?: string) =>
      taken.reduce((all, one) => (client === undefined || one.client === client ? all + one.amount : all), 0);
    for (const next of steps) {
      if (typeof next === 'number') {
        taken.splice(next, 1)[0]?.release();
        continue;
      }
      const fits = sum() + next.amount <= 10 && sum(next.client) + next.amount <= 6;
      const release = limit.take(next.client, next.amount);
      assert.equal(release !== undefined, fits);
      if (release) taken.push({ ...next, release });
    }
    for (const { release } of taken.splice(0)) release();
    assert.ok(limit.take('a', 6) && limit.take('b', 4));
  });
  fc.assert(property, { seed: 42, numRuns: 500 });
});

async function listen(t: TestContext, server: FastifyInstance): Promise<number> {
  atEnd(t, () => server.close());
  return Number(new URL(await server.listen({ port: 0, host: '0.0.0.0' })).port);
}

/** A connection from an address of this machine. */
function from(localAddress: string, port: number, head = ''): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined);
  socket.write(head);
  return socket;
}

test('a client with too many connections gets no more, others do', async (t) => {
  if (process.platform !== 'linux') return t.skip('other systems have only one loopback address');
  const server = Fastify({ forceCloseConnections: true });
  limitConnections(server, ['127.0.0.9/32']);
  const port = await listen(t, server);
  let closed = 0;
  const open = async (address: string, count: number) => {
    const sockets = Array.from({ length: count }, () => from(address, port).on('close', () => closed++));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    return sockets;
  };
  const settled = async (most: number) => {
    for (let last = -1; last !== closed || closed < most; ) {
      last = closed;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return closed;
  };
  const first = await open('127.0.0.1', 520);
  for (const socket of first) socket.resume();
  assert.equal(await settled(8), 8);
  for (const socket of [...(await open('127.0.0.2', 20)), ...(await open('127.0.0.9', 600))]) socket.resume();
  assert.equal(await settled(8), 8, 'another client, and a proxy that connects for many');
  for (const socket of first.slice(0, 100)) socket.destroy();
  assert.equal(await settled(108), 108);
  for (const socket of await open('127.0.0.1', 90)) socket.resume();
  assert.equal(await settled(108), 108, 'connections that have ended do not count');
});

test('bodies that wait in memory are limited by client, and end soon; files are limited by their number', async (t) => {
  const server = Fastify({ forceCloseConnections: true, requestTimeout: 0 });
  registerErrorHandler(server);
  registerJsonBodyLimits(server);
  registerBodyTimeout(server, { jsonWindow: 1500 });
  server.addContentTypeParser('application/octet-stream', (_request, payload, done) => done(null, payload));
  server.post('/', async ({ body }) =>
    body instanceof Object && 'pipe' in body ? text(body as never) : 'ok',
  );
  const port = await listen(t, server);
  const head = (type: string, length: number) =>
    `POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`;
  const answerTo = async (socket: Socket) =>
    (await text(socket)).replace(/^HTTP\/1\.1 (\d+)[\s\S]*?(TW_\w+)[\s\S]*$/, '$1 $2');

  const json = head('application/json', 2 ** 20);
  const slow = Array.from({ length: 16 }, () => from('127.0.0.1', port, json));
  const ends = slow.map(answerTo);
  assert.equal(await answerTo(from('127.0.0.1', port, json)), '503 TW_API_BUSY');
  // Another client, and a request without a body.
  const { body } = { body: `"${'x'.repeat(1000)}"` };
  assert.match(await answerTo(from('127.0.0.2', port, head('application/json', body.length) + body)), /ok$/);
  assert.deepEqual(new Set(await Promise.all(ends)), new Set(['408 TW_API_TOO_SLOW']));
  assert.match(await answerTo(from('127.0.0.1', port, head('application/json', body.length) + body)), /ok$/);

  const file = head('application/octet-stream', 5);
  const uploads = Array.from({ length: 16 }, () => from('127.0.0.1', port, file));
  const answers = uploads.map((socket) => text(socket));
  assert.equal(await answerTo(from('127.0.0.1', port, file)), '429 TW_API_TOO_MANY_UPLOADS');
  for (const socket of uploads) socket.write('bytes');
  for (const answer of await Promise.all(answers)) assert.match(answer, /bytes$/);
  assert.match(await text(from('127.0.0.1', port, `${file}bytes`)), /bytes$/);
});
