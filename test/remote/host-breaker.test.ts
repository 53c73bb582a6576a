/** A host that accepts connections and drops them. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { HostBreaker } from '../../src/remote/hosts.js';
import { HttpClient } from '../../src/remote/index.js';
import { ingest, testNode } from '../support/node.js';
import { remoteCatalog } from '../support/remote-catalog.js';
import { tempFolder } from '../support/temp.js';

const FAILURES = 3;
const ATTEMPTS = 6;

async function deadHost(t: TestContext) {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on('error', () => undefined);
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => server.close());
  const host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  return { host, connections: () => connections };
}

test('after three requests without an answer, a host gets none', async (t) => {
  const { host, connections } = await deadHost(t);
  const client = new HttpClient({ hosts: [host], anyPublic: false });
  t.after(() => client.close());
  const code = (path: string) =>
    client.request(`http://${host}${path}?sig=hush`, { maxBytes: 10 }).then(
      () => assert.fail('it answered'),
      (error: Error & { code: string }) => {
        assert.doesNotMatch(error.message, /hush/);
        return error.code;
      },
    );
  const first = await Promise.all(['/a', '/b', '/c'].map(code));
  assert.deepEqual(first, Array(FAILURES).fill('TW_REMOTE_UNREACHABLE'));
  assert.equal(connections(), FAILURES * ATTEMPTS);
  assert.equal(await code('/d'), 'TW_REMOTE_HOST_DOWN');
  assert.equal(connections(), FAILURES * ATTEMPTS);
});

function fakeBreaker() {
  const clock = { now: 0 };
  const breaker = new HostBreaker(60_000, () => clock.now);
  const isStopped = () => {
    try {
      breaker.check('http://h/a', 'h');
      return false;
    } catch (error) {
      assert.equal((error as { code: string }).code, 'TW_REMOTE_HOST_DOWN');
      return true;
    }
  };
  return { clock, breaker, isStopped };
}

test('requests to a host that never answered are stopped for a minute', () => {
  const { clock, breaker, isStopped } = fakeBreaker();
  for (let i = 0; i < FAILURES; i++) {
    assert.equal(isStopped(), false);
    assert.equal(breaker.failed(), undefined);
  }
  assert.equal(isStopped(), true);
  clock.now = 60_000;
  assert.equal(isStopped(), false);
  breaker.failed();
  assert.equal(isStopped(), true, 'one more failure is enough');
});

test('requests to a host that has answered wait once for a minute', () => {
  const { clock, breaker, isStopped } = fakeBreaker();
  breaker.answered();
  assert.equal(breaker.failed(), 60_000);
  clock.now = 20_000;
  assert.equal(breaker.failed(), 40_000, 'all requests wait for the same moment');
  clock.now = 61_000;
  for (let i = 0; i < FAILURES; i++) {
    assert.equal(isStopped(), false);
    assert.equal(breaker.failed(), undefined);
  }
  assert.equal(isStopped(), true);
  clock.now = 130_000;
  breaker.answered();
  assert.equal(breaker.failed(), 60_000, 'the next outage');
  assert.equal(isStopped(), false);
});

test('a request continues after the restart of its host', async (t) => {
  let connections = 0;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    connections++;
    if (connections > 1 && connections <= 1 + ATTEMPTS) socket.destroy();
    else socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => server.close());
  const host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  const times = { head: 10_000, rate: 10_000, pause: 100 };
  const client = new HttpClient({ hosts: [host], anyPublic: false }, undefined, times);
  t.after(() => client.close());
  for (let i = 0; i < 2; i++)
    assert.equal((await client.request(`http://${host}/`, { maxBytes: 10 })).body.toString(), 'ok');
  assert.equal(connections, 2 + ATTEMPTS);
});

test('scenes of a dead host fail without a request each, and those of other hosts are ingested', async (t) => {
  const { api, items, server } = await remoteCatalog(t);
  const { host, connections } = await deadHost(t);
  const [item] = items as [{ assets: { red: object } }];
  const dead = Array.from({ length: 12 }, (_, i) => ({
    ...item,
    id: `dead-${i}`,
    assets: { red: { ...item.assets.red, href: `http://${host}/${i}.tif` } },
  }));
  items.unshift(...dead.splice(0, 11));
  items.push(...dead);
  const hosts = { hosts: [server.host, host], anyPublic: false };
  const node = await testNode(t, join(await tempFolder(t), 'data'), { hosts });
  const { failed, scenes } = await ingest(node, {
    stac: { url: api, assets: ['red'] },
    ...{ bbox: [15.03, 47.75, 15.12, 47.8], precision: 5 },
  });
  assert.deepEqual(
    scenes.map(({ id }) => id),
    ['a'],
  );
  const count = (code: string) => failed.filter((one) => one.code === code).length;
  assert.deepEqual([count('TW_REMOTE_UNREACHABLE'), count('TW_REMOTE_HOST_DOWN')], [FAILURES, 9]);
  assert.equal(connections(), FAILURES * ATTEMPTS);
});
