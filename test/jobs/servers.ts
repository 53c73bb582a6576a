/** Nodes of one cluster as an operator starts them, and what clients ask of them. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { start } from '../support/command.js';
import type { EtcdCluster } from '../support/etcd.js';

const PATIENCE = 240_000;

export interface Server {
  url: string;
  process: ChildProcess;
}

export function serve(t: TestContext, folder: string, port: number, etcd: EtcdCluster): Server {
  const store = pathToFileURL(join(folder, 'store')).href;
  const place = ['--data', join(folder, `node-${port}`), '--port', `${port}`, '--zone', `${port}`];
  const cluster = ['--etcd', etcd.urls.join(), '--store', store, '--secret', 'shared', '--grace', '4'];
  const rest = ['--allow-folder', folder, '--reserve', '0', '--cores', '1'];
  const process = start(['serve', ...place, ...cluster, ...rest]);
  // A pipe that nobody reads would stop the server when it is full.
  process.stdout?.resume();
  process.stderr?.resume();
  t.after(() => kill(process));
  return { url: `http://127.0.0.1:${port}`, process };
}

export async function kill(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const closed = once(process, 'close');
  process.kill('SIGKILL');
  await closed;
}

export async function until(what: string, is: () => Promise<boolean>): Promise<void> {
  let last: unknown;
  const attempt = () =>
    is().catch((error) => {
      last = error;
      return false;
    });
  for (const begun = performance.now(); !(await attempt()); await sleep(100))
    assert.ok(performance.now() - begun < PATIENCE, `${what} within ${PATIENCE} ms: ${last}`);
}

export async function get<T>({ url }: Server, path: string): Promise<T> {
  const answer = await fetch(url + path);
  assert.equal(answer.status, 200, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return (await answer.json()) as T;
}

export async function nodeId(server: Server): Promise<string> {
  const { nodes } = await get<{ nodes: { id: string; url?: string }[] }>(server, '/cluster/nodes');
  return nodes.find(({ url }) => url === server.url)!.id;
}

/** Every slot has two owners that answer, as a node sees it. */
export async function isSettled(server: Server, members = 3): Promise<boolean> {
  const { slots } = await get<{ slots: { state: string }[][] }>(server, '/cluster/placement');
  const { nodes } = await get<{ nodes: { running: boolean }[] }>(server, '/cluster/nodes');
  return (
    nodes.filter(({ running }) => running).length === members &&
    slots.every((owners) => owners.length === 2 && owners.every(({ state }) => state === 'available'))
  );
}

export interface Job {
  jobID: string;
  status: string;
  tiles: { total: number; done: number; failed: number; skipped: number };
  error?: { code: string; message: string };
}

/** Starts a job and gives its id. */
export async function startJob(
  { url }: Server,
  process: string,
  inputs: object,
  headers: Record<string, string> = {},
): Promise<string> {
  const path = process === 'ingest' ? '/ingest' : `/processes/${process}/execution`;
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(process === 'ingest' ? inputs : { inputs }),
  });
  const job = (await answer.json()) as Job;
  assert.ok(answer.status === 201 || answer.status === 200, JSON.stringify(job));
  return job.jobID;
}

/** The job when it has ended, as a node sees it. */
export async function ended(server: Server, id: string): Promise<Job> {
  let job: Job | undefined;
  await until(`job ${id} ends`, async () => {
    job = await get<Job>(server, `/jobs/${id}`);
    return ['successful', 'failed', 'dismissed'].includes(job.status);
  });
  return job!;
}

export async function resultsOf<T>(server: Server, id: string): Promise<T> {
  const { status, error } = await ended(server, id);
  assert.equal(status, 'successful', JSON.stringify(error));
  return get<T>(server, `/jobs/${id}/results`);
}

export interface Item {
  id: string;
  properties: Record<string, unknown>;
}

/** All items that a search finds, by their ids. */
export async function itemsOf(server: Server, query: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let path = `/search?limit=1000&${query}`; path !== ''; ) {
    const page = await get<{ features: Item[]; links: { rel: string; href: string }[] }>(server, path);
    items.push(...page.features);
    const next = page.links.find(({ rel }) => rel === 'next');
    path = next ? next.href.slice(server.url.length) : '';
  }
  return items.sort((a, b) => (a.id < b.id ? -1 : 1));
}
