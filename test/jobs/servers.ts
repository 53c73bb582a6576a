/** Nodes of one cluster, started as an operator starts them, and requests of clients. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { ListedNode } from '../../src/client/documents.js';
import { atEnd } from '../support/at-end.js';
import { start } from '../support/command.js';
import { EtcdCluster } from '../support/etcd.js';
import { freePort } from '../support/s3.js';
import { writeTestScene } from '../support/scenes.js';

const TIMEOUT_MS = 240_000;
/** Each poll is work for the servers, which share the machine with other tests. */
const POLL_MS = 200;

export interface Server {
  url: string;
  port: number;
  process: ChildProcess;
  /** The log output so far. */
  log: () => string;
}

/** The server that a request goes to. */
type Address = Pick<Server, 'url'>;

/** Three settled nodes. They stop with the test, and their folder is removed. */
export class Servers {
  private readonly started: Server[] = [];

  private constructor(
    readonly folder: string,
    private readonly etcd: EtcdCluster,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  static async start(t: TestContext, env: NodeJS.ProcessEnv = {}): Promise<Servers> {
    const folder = await mkdtemp(join(tmpdir(), 'tilewright-test-'));
    await mkdir(join(folder, 'store'));
    const servers = new Servers(folder, await EtcdCluster.start(t), env);
    atEnd(t, async () => {
      await Promise.all(servers.started.map(({ process }) => kill(process)));
      await rm(folder, { recursive: true });
    });
    const three = [await freePort(), await freePort(), await freePort()].map((port) => servers.serve(port));
    for (const server of three) await until(`${server.url} settled`, () => isSettled(server));
    return servers;
  }

  /** The nodes that were started first. */
  get three(): [Server, Server, Server] {
    return this.started.slice(0, 3) as [Server, Server, Server];
  }

  /** Starts a node, possibly again after it was killed. */
  serve(port: number): Server {
    const { folder } = this;
    const store = pathToFileURL(join(folder, 'store')).href;
    const place = ['--data', join(folder, `node-${port}`), '--port', `${port}`, '--zone', `${port}`];
    const cluster = [
      '--etcd',
      this.etcd.urls.join(),
      '--store',
      store,
      '--secret',
      'shared by all nodes',
      '--grace',
      '4',
    ];
    const rest = ['--allow-folder', folder, '--reserve', '0', '--cores', '1'];
    const process = start(['serve', ...place, ...cluster, ...rest], this.env);
    // A full pipe without a reader would block the server.
    process.stdout?.resume();
    let log = '';
    process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log += text;
    });
    const server = { url: `http://127.0.0.1:${port}`, port, process, log: () => log };
    this.started.push(server);
    return server;
  }
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
  for (const startedAt = performance.now(); !(await attempt()); await sleep(POLL_MS))
    assert.ok(performance.now() - startedAt < TIMEOUT_MS, `${what} within ${TIMEOUT_MS} ms: ${last}`);
}

export async function get<T>({ url }: Address, path: string): Promise<T> {
  const answer = await fetch(url + path);
  assert.equal(answer.status, 200, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return (await answer.json()) as T;
}

export async function nodeId(server: Server): Promise<string> {
  const { nodes } = await get<{ nodes: { id: string; url?: string }[] }>(server, '/cluster/nodes');
  return nodes.find(({ url }) => url === server.url)!.id;
}

/** True if, as a node sees it, every slot has two owners that answer. */
export async function isSettled(server: Server, members = 3): Promise<boolean> {
  const { nodes } = await get<{ nodes: ListedNode[] }>(server, '/cluster/nodes');
  if (nodes.filter(({ running }) => running).length !== members) return false;
  if (nodes.some(({ slots, states }) => states?.available !== slots)) return false;
  // The placement has megabytes, so it is asked for only when the counts fit.
  const { slots } = await get<{ slots: { state: string }[][] }>(server, '/cluster/placement');
  return slots.every((owners) => owners.length === 2 && owners.every(({ state }) => state === 'available'));
}

export interface Job {
  jobID: string;
  status: string;
  tiles: { total: number; done: number; failed: number; skipped: number };
  error?: { code: string; message: string };
}

/** Starts a job and returns its id. */
export async function startJob(
  { url }: Address,
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

/** Waits for the end of a job, as a node sees it, and returns the job. */
export async function ended(server: Address, id: string): Promise<Job> {
  let job: Job | undefined;
  await until(`job ${id} ends`, async () => {
    job = await get<Job>(server, `/jobs/${id}`);
    return ['successful', 'failed', 'dismissed'].includes(job.status);
  });
  return job!;
}

export async function resultsOf<T>(server: Address, id: string): Promise<T> {
  const { status, error } = await ended(server, id);
  assert.equal(status, 'successful', JSON.stringify(error));
  return get<T>(server, `/jobs/${id}/results`);
}

export interface Item {
  id: string;
  properties: Record<string, unknown>;
}

/** All items of a search, by id. */
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

/** Cells far enough apart to be in several slots. */
const PLACES = [0, 60_000, 120_000];
export const DATES = ['2024-06-01T10:00:00Z', '2024-06-04T10:00:00Z'];

export interface Models {
  models: { id: string; geocode: string; metrics: object }[];
  skipped: { geocode: string }[];
  failed: object[];
  pooled: { model: { mse: number; r2: number } } | null;
}

/** Dates of several cells, to be ingested with `OPTIONS`. */
export async function writeScenes(folder: string): Promise<{ datetime: string; href: string[] }[]> {
  return Promise.all(
    DATES.map(async (datetime, date) => {
      const scenes = PLACES.map((x, place) =>
        writeTestScene(join(folder, `s${place}-${date}.tif`), {
          width: 340,
          height: 340,
          seed: 1 + place + 10 * date,
          x: 500_000 + x,
          edge: 100 * (1 - date),
          cloud: 20 * date,
        }),
      );
      return { datetime, href: await Promise.all(scenes) };
    }),
  );
}

export const OPTIONS = { collection: 'test', scale: 0.0001, maskBand: 5, precision: 5 };
