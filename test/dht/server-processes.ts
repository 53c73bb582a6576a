/** Servers, started as an operator starts them. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { ListedNode } from '../../src/client/documents.js';
import { atEnd } from '../support/at-end.js';
import { start, tilewright } from '../support/command.js';
import type { EtcdCluster } from '../support/etcd.js';

/** The secret that all nodes share. */
export const SECRET = 'what all nodes know';
const TIMEOUT_MS = 150_000;
/** Each poll is work for the servers, which share the machine with other tests. */
const POLL_MS = 200;

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

/** The store of a cluster whose nodes have their folders in `folder`; `<folder>/store` must exist. */
export const storeOf = (folder: string) => pathToFileURL(join(folder, 'store')).href;

/** A cluster node or, without etcd, a single node. It may ingest files in the folder. */
export function serve(
  t: TestContext,
  folder: string,
  port: number,
  etcd?: EtcdCluster,
  more: string[] = [],
): Server {
  const place = ['--data', join(folder, `node-${port}`), '--port', `${port}`];
  const shared = ['--store', storeOf(folder), '--secret', SECRET, '--zone', `${port}`];
  const cluster = etcd ? ['--etcd', etcd.urls.join(), ...shared] : [];
  const limits = ['--allow-folder', folder, '--reserve', '0', '--cores', '1'];
  const process = start(['serve', ...place, ...cluster, ...limits, ...more]);
  // A full pipe without a reader would block the server.
  process.stdout?.resume();
  process.stderr?.resume();
  atEnd(t, () => ended(process, 'SIGKILL'));
  return { url: `http://127.0.0.1:${port}`, process };
}

export async function ended(process: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const closed = once(process, 'close');
  process.kill(signal);
  await closed;
}

export async function until(what: string, is: () => Promise<boolean>): Promise<void> {
  for (const startedAt = performance.now(); !(await is().catch(() => false)); await sleep(POLL_MS))
    assert.ok(performance.now() - startedAt < TIMEOUT_MS, `${what} within ${TIMEOUT_MS} ms`);
}

export async function get<T>({ url }: Server, path: string): Promise<T> {
  const answer = await fetch(url + path);
  assert.equal(answer.status, 200, `${path}: ${answer.status}`);
  return (await answer.json()) as T;
}

/** True if, as a node sees it, every slot has two owners that answer. */
export async function isSettled(server: Server): Promise<boolean> {
  const { nodes } = await get<{ nodes: ListedNode[] }>(server, '/cluster/nodes');
  if (!nodes.every(({ running, slots, states }) => running && states?.available === slots)) return false;
  // The placement has megabytes, so it is asked for only when the counts fit.
  const { slots } = await get<{ slots: { state: string }[][] }>(server, '/cluster/placement');
  return slots.every((owners) => owners.length === 2 && owners.every(({ state }) => state === 'available'));
}

/** The output of a command with `--format json`. */
export async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await tilewright(...args, '--format', 'json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as T;
}

/** Files of remote scenes in a data folder. Only empty folders stay, for the next scene of a job. */
export async function filesOfScenes(data: string): Promise<string[]> {
  const files = await readdir(join(data, 'scratch'), { recursive: true });
  return files.filter((name) => /(^|\/)remote-[^/]*\/./.test(name));
}
