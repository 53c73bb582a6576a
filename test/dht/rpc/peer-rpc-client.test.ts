/** Requests to another node over real sockets: many at the same time, to a node that is slow, dead, or dies. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { CHECKSUM_HEADER, PeerClient } from '../../../src/dht/peers.js';
import { Signatures } from '../../../src/dht/signatures.js';
import { atEnd } from '../../support/at-end.js';

const MANY = 500;
/** Longer than any test, so that no request fails because of its total timeout. */
const TIMEOUT_MS = 300_000;
const anything = () => undefined;

async function listen(t: TestContext, answer: RequestListener, host = '127.0.0.1'): Promise<Server> {
  const server = createServer(answer).listen(0, host);
  await once(server, 'listening');
  atEnd(t, () => stop(server));
  return server;
}

function stop(server: Server): void {
  server.closeAllConnections();
  server.close();
}

function peerOf(server: Server, host = '127.0.0.1') {
  return { id: 'peer', url: `http://${host}:${(server.address() as AddressInfo).port}` };
}

function openPeers(t: TestContext): PeerClient {
  const peers = new PeerClient(new Signatures('self', ['the secret of the test']));
  atEnd(t, () => peers.close());
  return peers;
}

/** Answers with the question, after `ms`. */
function echoAfter(ms: number, asked: unknown[] = []): RequestListener {
  return async (request, response) => {
    const question = await json(request);
    asked.push(question);
    await sleep(ms);
    const bytes = JSON.stringify(question);
    response.writeHead(200, { [CHECKSUM_HEADER]: crc32(bytes) }).end(bytes);
  };
}

test('a slow node answers many concurrent requests: none fails, none is repeated', async (t) => {
  const asked: unknown[] = [];
  const peer = peerOf(await listen(t, echoAfter(400, asked)));
  const peers = openPeers(t);
  const questions = Array.from({ length: MANY }, (_, n) => n);
  const answers = await Promise.all(questions.map((n) => peers.call(peer, '/x', n, TIMEOUT_MS, anything)));
  assert.deepEqual(answers, questions);
  assert.deepEqual(
    asked.sort((a, b) => Number(a) - Number(b)),
    questions,
  );
  assert.equal(peers.failures.size, 0);
});

test('when a node dies, all requests fail, even those that wait for a socket', async (t) => {
  let isAsked = () => {};
  const first = new Promise<void>((resolve) => {
    isAsked = resolve;
  });
  const server = await listen(t, () => isAsked());
  const peers = openPeers(t);
  const asked = Array.from({ length: MANY }, (_, n) =>
    peers.call(peerOf(server), '/x', n, TIMEOUT_MS, anything),
  );
  const ends = Promise.allSettled(asked);
  await first;
  stop(server);
  for (const end of await ends)
    assert.ok(end.status === 'rejected' && end.reason.code === 'TW_DHT_PEER', JSON.stringify(end));
  assert.equal(peers.failures.get('peer'), MANY, 'each failure counts once');
});

test('the connect timeout detects a node whose machine does not answer, even behind other requests', async (t) => {
  if (process.platform !== 'linux') return t.skip('another kernel treats a full queue differently');
  // The server never accepts: once its queue is full, connection attempts get no answer, as from an unreachable machine.
  const listener = `require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
    require('fs').writeSync(1, this.address().port + '\\n');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  })`;
  const child = spawn(process.execPath, ['-e', listener], { stdio: ['ignore', 'pipe', 'inherit'] });
  atEnd(t, () => child.kill('SIGKILL'));
  const [text] = await once(child.stdout, 'data');
  const port = Number(text);
  const fillers = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  atEnd(t, () => {
    for (const socket of fillers) socket.destroy();
  });
  await Promise.race(fillers.map((socket) => once(socket, 'connect')));
  await sleep(100);
  const peers = openPeers(t);
  const peer = { id: 'gone', url: `http://127.0.0.1:${port}` };
  const asked = Array.from({ length: 130 }, () => peers.call(peer, '/x', {}, TIMEOUT_MS, anything));
  for (const end of await Promise.allSettled(asked))
    assert.match(end.status === 'rejected' ? end.reason.message : 'answered', /it cannot be reached/);
});

test('the wait for a socket counts as part of the total timeout', async (t) => {
  const peer = peerOf(await listen(t, () => undefined));
  const peers = openPeers(t);
  const asked = Array.from({ length: 100 }, () => peers.call(peer, '/x', {}, 1000, anything));
  for (const end of await Promise.allSettled(asked))
    assert.match(end.status === 'rejected' ? end.reason.message : 'answered', /no answer within 1000 ms/);
});

test('an answer that is damaged or not JSON fails only its own request', async (t) => {
  const bytes = 'no JSON';
  const sums = [crc32(bytes), 1];
  const peer = peerOf(
    await listen(t, (_, response) => {
      response.writeHead(200, { [CHECKSUM_HEADER]: sums.shift()! }).end(bytes);
    }),
  );
  const peers = openPeers(t);
  await assert.rejects(peers.call(peer, '/x', {}, TIMEOUT_MS, anything), /its answer is not JSON/);
  await assert.rejects(peers.call(peer, '/x', {}, TIMEOUT_MS, anything), /its answer is damaged/);
});

test('nodes reach each other over IPv6', async (t) => {
  const server = await listen(t, echoAfter(0), '::1').catch(() => undefined);
  if (!server) return t.skip('this machine has no IPv6');
  assert.equal(await openPeers(t).call(peerOf(server, '[::1]'), '/x', 7, TIMEOUT_MS, anything), 7);
});
