/** Connections between the nodes of a distributed training. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { after, describe, type TestContext, test } from 'node:test';
import { Signatures } from '../../../src/dht/index.js';
import { pipeBothWays, Rendezvous } from '../../../src/training/distributed/rendezvous.js';
import { atEnd } from '../../support/at-end.js';
import { socketPair } from './process-groups.js';

/** The address of a node at an IP address of this machine, or undefined if the machine does not have it. */
async function nodeAt(t: TestContext, doors: Rendezvous, host: string): Promise<string | undefined> {
  const server = createServer();
  server.on('connect', (request, socket: Socket) => doors.accept(request, socket));
  try {
    await once(server.listen(0, host), 'listening');
  } catch {
    return undefined;
  }
  atEnd(t, () => server.close());
  return `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}

for (const host of ['127.0.0.1', '::1'])
  test(`a node is reached at ${host}`, async (t) => {
    const doors = new Rendezvous(new Signatures('n', ['the secret of the cluster']));
    const url = await nodeAt(t, doors, host);
    if (url === undefined) return t.skip(`this machine has no address ${host}`);
    const door = doors.listen();
    const out = await doors.connect({ node: 'n', url }, door.id);
    const visitor = await door.connection;
    out.write('hello');
    assert.equal(String(await once(visitor, 'data')), 'hello');
    out.destroy();
    door.close();
    await assert.rejects(doors.connect({ node: 'n', url }, door.id), {
      code: 'TW_TRAIN_RING',
      message: /node n .*404/,
    });
  });

describe('pipeBothWays', { timeout: 60_000 }, () => {
  const open: Socket[] = [];
  const pair = async () => {
    const both = await socketPair();
    open.push(...both);
    return both;
  };
  after(() => {
    for (const socket of open) socket.destroy();
  });

  test('forwards data, and ends with the other stream', async () => {
    const [[a, nearA], [b, nearB]] = [await pair(), await pair()];
    pipeBothWays(nearA, nearB);
    a.write('hello');
    assert.equal(String(await once(b, 'data')), 'hello');
    a.destroy();
    await once(b.resume(), 'close');
  });

  test('ends if the other stream is already closed', async () => {
    for (const order of ['first', 'second'] as const) {
      const [[a], [b, nearB]] = [await pair(), await pair()];
      await once(a.destroy(), 'close');
      if (order === 'first') pipeBothWays(a, nearB);
      else pipeBothWays(nearB, a);
      await once(b.resume(), 'close');
    }
  });

  test('ends without another stream', async () => {
    const [a, nearA] = await pair();
    pipeBothWays(nearA, undefined);
    await once(a.resume(), 'close');
  });
});
