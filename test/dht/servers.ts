/** Servers as an operator starts them. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { ListedNode } from '../../src/client/client.js';
import { start } from '../support/command.js';
import type { EtcdCluster } from '../support/etcd.js';

const SECRET = 'what all nodes know';
const PATIENCE = 60_000;

export interface Server {
  url: string;
  process: ChildProcess;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' ? address!.port : 0;
}

/** A node of a cluster, or without etcd one that is alone; its data and the store are in a folder from which it may ingest. */
export function serve(t: TestContext, folder: string, port: number, etcd?: EtcdCluster): Server {
  const store = pathToFileURL(join(folder, 'store')).href;
  const place = ['--data', join(folder, `node-${port}`), '--port', `${port}`];
  const allow = ['--allow-folder', folder];
  const cluster = etcd
    ? ['--etcd', etcd.urls.join(), '--store', store, '--secret', SECRET, '--zone', `${port}`]
    : [];
  const process = start(['serve', ...place, ...cluster, ...allow, '--reserve', '0', '--cores', '1']);
  // A pipe that nobody reads would stop the server when it is full.
  process.stdout?.resume();
  process.stderr?.resume();
  t.after(async () => {
    if (process.exitCode !== null || process.signalCode !== null) return;
    const closed = once(process, 'close');
    process.kill('SIGKILL');
    await closed;
  });
  return { url: `http://127.0.0.1:${port}`, process };
}

export async function until(what: string, is: () => Promise<boolean>): Promise<void> {
  for (const begun = performance.now(); !(await is().catch(() => false)); await sleep(100))
    assert.ok(performance.now() - begun < PATIENCE, `${what} within ${PATIENCE} ms`);
}

export async function get<T>({ url }: Server, path: string): Promise<T> {
  const answer = await fetch(url + path);
  assert.equal(answer.status, 200, `${path}: ${answer.status}`);
  return (await answer.json()) as T;
}

/** Every slot has two owners that answer, as a node sees it. */
export async function isSettled(server: Server): Promise<boolean> {
  const { slots } = await get<{ slots: { state: string }[][] }>(server, '/cluster/placement');
  const { nodes } = await get<{ nodes: ListedNode[] }>(server, '/cluster/nodes');
  return (
    nodes.every(({ running }) => running) &&
    slots.every((owners) => owners.length === 2 && owners.every(({ state }) => state === 'available'))
  );
}
