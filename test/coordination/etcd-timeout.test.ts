/** The time limits of calls, with a server that never answers. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { EtcdStore } from '../../src/coordination/index.js';
import { atEnd } from '../support/at-end.js';

test('every call ends after its own time limit', async (t) => {
  let requests = 0;
  const server = createServer(() => requests++);
  atEnd(t, () => server.close());
  atEnd(t, () => server.closeAllConnections());
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  const store = new EtcdStore([`http://127.0.0.1:${port}`], 'test', 100);
  const options = { timeoutMs: 1 };
  const calls = {
    transact: () => store.transact({ success: [{ op: 'put', key: 'a', value: '1' }] }, options),
    read: () => store.read([{ key: 'a' }], options),
    grantLease: () => store.grantLease(5, options),
    keepAlive: () => store.keepAlive('1', options),
    revokeLease: () => store.revokeLease('1', options),
  };
  for (const [name, call] of Object.entries(calls)) {
    requests = 0;
    await assert.rejects(call(), { status: 503 }, name);
    assert.equal(requests, 1, `${name} is not repeated after its time limit`);
  }
});
