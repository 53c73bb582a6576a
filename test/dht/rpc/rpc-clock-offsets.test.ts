/** The clocks of two real processes differ. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ListedNode } from '../../../src/client/documents.js';
import { PeerClient } from '../../../src/dht/peers.js';
import { Signatures } from '../../../src/dht/signatures.js';
import { atEnd } from '../../support/at-end.js';
import { finished, start } from '../../support/command.js';
import { EtcdCluster, noEtcd } from '../../support/etcd.js';
import { tempFolder } from '../../support/temp.js';
import { ended, freePort, get, SECRET, serve, storeOf, until } from '../server-processes.js';

const PATH = '/cluster/internal/greeting';
const anything = () => undefined;

/** The environment of a process whose clock is `seconds` ahead. */
function shifted(seconds: number): NodeJS.ProcessEnv {
  const shift = `const { now } = Date; Date.now = () => now() + ${seconds * 1000};`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(shift)}` };
}

/** Starts a node without etcd whose clock is `seconds` ahead of the clock of this process. */
async function startNode(t: TestContext, seconds: number) {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const port = await freePort();
  const place = ['--data', join(folder, 'data'), '--port', `${port}`, '--reserve', '0'];
  const child = start(['serve', ...place, '--store', storeOf(folder), '--secret', SECRET], shifted(seconds));
  child.stdout?.resume();
  child.stderr?.resume();
  atEnd(t, () => ended(child, 'SIGKILL'));
  const server = { url: `http://127.0.0.1:${port}`, process: child };
  await until('the node runs', async () => (await get(server, '/health')) !== undefined);
  const { nodes } = await get<{ nodes: ListedNode[] }>(server, '/cluster/nodes');
  return { ...server, id: nodes[0]!.id };
}

function openPeers(t: TestContext) {
  const warnings: Error[] = [];
  const peers = new PeerClient(new Signatures('self', [SECRET]), (error) => warnings.push(error));
  atEnd(t, () => peers.close());
  return { peers, warnings };
}

test('an answer says how far the clocks are apart, and a small difference causes no warning', async (t) => {
  const { peers, warnings } = openPeers(t);
  const node = await startNode(t, -5);
  await peers.call(node, PATH, {}, 30_000, anything);
  const offset = peers.clockOffsets.get(node.id)!;
  assert.ok(offset > -7 && offset < -3, String(offset));
  assert.deepEqual(warnings, []);
});

test('a refusal says how far the clocks are apart, and causes one warning that names the node', async (t) => {
  const { peers, warnings } = openPeers(t);
  const node = await startNode(t, 120);
  for (let i = 0; i < 2; i++)
    await assert.rejects(
      peers.call(node, PATH, {}, 30_000, anything),
      /node \w+ at .* 401 .*TW_DHT_CLOCK_APART.* 1[12]\d s apart/,
    );
  const offset = peers.clockOffsets.get(node.id)!;
  assert.ok(Math.abs(offset - 120) < 2, String(offset));
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0]!.message,
    /^the clock of node \w+ at \S+ is 1[12]\d s ahead of the clock of this node; from 60 s on .*NTP/,
  );
});

test('a node whose clock is wrong cannot join, and the running node says why', {
  skip: noEtcd,
}, async (t) => {
  const etcd = await EtcdCluster.start(t);
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const running = serve(t, folder, await freePort(), etcd);
  await until('the first node runs', async () => (await get(running, '/cluster/nodes')) !== undefined);
  const place = ['--data', join(folder, 'late'), '--port', `${await freePort()}`, '--reserve', '0'];
  const shared = ['--etcd', etcd.urls.join(), '--store', storeOf(folder), '--secret', SECRET];
  const { code, stderr } = await finished(start(['serve', ...place, ...shared], shifted(90)));
  assert.equal(code, 1, stderr);
  assert.match(stderr, /node \S+ at \S+ refuses the messages of this node: .* (89|9\d) s apart; .*NTP/);
});
