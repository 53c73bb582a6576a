/** The servers of a cluster, started like an operator does: three etcd members on one disk, and nodes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Place as Spot } from '../../test/cluster/network/network.js';
import { endsWithUs, freePort, until } from '../support/peer-process.js';

/** The program of this checkout. */
export const COMMAND = fileURLToPath(new URL('../../command/main.js', import.meta.url));
const SECRET = 'of the benchmark';
/** Token of nodes that listen on other addresses than loopback. */
export const TOKEN = 'of-the-benchmark';
const START_TIMEOUT_MS = 120_000;

export interface Server {
  url: string;
  child: ChildProcess;
  /** Requests must carry this token. */
  token?: string;
}

export interface Etcd {
  urls: string[];
  pids: number[];
  stop(): Promise<void>;
}

export async function startEtcd(folder: string, size = 3, host = '127.0.0.1'): Promise<Etcd> {
  const ports = await Promise.all(Array.from({ length: 2 * size }, freePort));
  const url = (i: number) => `http://${host}:${ports[i]}`;
  const members = ports.slice(size).map((_, i) => i);
  const cluster = members.map((i) => `m${i}=${url(size + i)}`).join();
  const children = members.map((i) => {
    const clients = ['--listen-client-urls', url(i), '--advertise-client-urls', url(i)];
    const peers = ['--listen-peer-urls', url(size + i), '--initial-advertise-peer-urls', url(size + i)];
    const place = ['--name', `m${i}`, '--data-dir', join(folder, `etcd-${i}`), '--initial-cluster', cluster];
    const args = [...place, ...clients, ...peers, '--log-level', 'fatal'];
    return endsWithUs(spawn('etcd', args, { stdio: 'ignore' }));
  });
  for (const i of members)
    if (!(await until(() => answersRead(url(i)), children[i]!))) throw new Error('etcd does not start');
  return {
    urls: members.map(url),
    pids: children.map(({ pid }) => pid!),
    stop: async () => {
      await Promise.all(children.map((child) => stop(child, 'SIGKILL')));
    },
  };
}

async function answersRead(url: string): Promise<boolean> {
  const body = JSON.stringify({ key: Buffer.from('ready').toString('base64') });
  return fetch(`${url}/v3/kv/range`, { method: 'POST', body }).then(
    ({ ok }) => ok,
    () => false,
  );
}

export interface Place {
  /** Data folders and the store go here. */
  folder: string;
  etcd: Etcd;
  /** The program of the nodes. Default: this checkout. */
  program?: string;
  /** More flags of the nodes. */
  flags?: string[];
}

/** The object store of a cluster. Creates its folder. */
export function storeOf({ folder }: Pick<Place, 'folder'>): string {
  const store = join(folder, 'store');
  mkdirSync(store, { recursive: true });
  return pathToFileURL(store).href;
}

/** Starts a node of a cluster on loopback, or at a spot of another network. It may not answer yet. */
export async function startNode(place: Place, name: string, cores: number, spot?: Spot): Promise<Server> {
  const cluster = ['--etcd', place.etcd.urls.join(), '--store', storeOf(place), '--secret', SECRET];
  const flags = [...cluster, '--zone', name, ...(place.flags ?? [])];
  return startServer(place.folder, name, cores, flags, spot, place.program);
}

/** Starts a node without a cluster, optionally with an object store. */
export const startSingle = (
  folder: string,
  name: string,
  cores: number,
  { withStore = false, flags = [] }: { withStore?: boolean; flags?: string[] } = {},
) => startServer(folder, name, cores, [...(withStore ? ['--store', storeOf({ folder })] : []), ...flags]);

async function startServer(
  folder: string,
  name: string,
  cores: number,
  more: string[],
  spot?: Spot,
  program = COMMAND,
): Promise<Server> {
  const { host, port, wrapper } = spot ?? { host: '127.0.0.1', port: await freePort(), wrapper: [] };
  const data = ['--data', join(folder, name), '--port', `${port}`, '--reserve', '0', '--cores', `${cores}`];
  const access = spot ? ['--host', host, '--token', TOKEN, '--rate-limit', '0'] : [];
  const args = [...profile(name), program, 'serve', ...data, '--allow-folder', '/', ...access, ...more];
  const command = [...wrapper, process.execPath, ...args];
  const child = endsWithUs(spawn(command[0]!, command.slice(1), { stdio: 'ignore' }));
  return { url: `http://${host}:${port}`, child, ...(spot && { token: TOKEN }) };
}

/** With TILEWRIGHT_BENCH_PROFILE=FOLDER each server writes a CPU profile to that folder. */
function profile(name: string): string[] {
  const folder = process.env.TILEWRIGHT_BENCH_PROFILE;
  return folder === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', join(folder, name)];
}

export async function stop(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.kill(signal);
  await closed;
}

export async function ready({ url, child }: Server): Promise<void> {
  await eventually(`${url} is ready`, async () => {
    if (child.exitCode !== null) throw new Error(`the server at ${url} has ended`);
    return (await fetch(`${url}/ready`)).ok;
  });
}

/** Waits until every slot has this many owners and all nodes answer. */
export async function settled(nodes: Server[], owners: number): Promise<void> {
  for (const node of nodes) {
    await ready(node);
    await eventually('the slots are shared out', async () => {
      const { slots } = await ask<{ slots: { state: string }[][] }>(node, '/cluster/placement');
      return slots.every((all) => all.length === owners && all.every(({ state }) => state === 'available'));
    });
  }
}

export async function eventually(
  what: string,
  is: () => Promise<boolean>,
  { every = 50, patience = START_TIMEOUT_MS } = {},
): Promise<void> {
  for (const end = performance.now() + patience; !(await is().catch(() => false)); await sleep(every))
    if (performance.now() > end) throw new Error(`not within ${patience / 1e3} s: ${what}`);
}

const agent = new Agent({ keepAlive: true });

/** The answer of a server. Throws if the status is not 2xx. */
export async function ask<T>(server: Asked, path: string, message?: unknown): Promise<T> {
  return JSON.parse((await askBytes(server, path, message)).toString()) as T;
}

type Asked = Pick<Server, 'url' | 'token'>;

export const askBytes = (server: Asked, path: string, message?: unknown): Promise<Buffer> =>
  send(server, message === undefined ? 'GET' : 'POST', path, message);

/** A request of any method. */
export function send(
  { url, token }: Asked,
  method: string,
  path: string,
  message?: unknown,
): Promise<Buffer> {
  const body = message === undefined ? undefined : JSON.stringify(message);
  const headers = {
    ...(token && { authorization: `Bearer ${token}` }),
    ...(body && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
  return new Promise((resolve, reject) => {
    const sent = request(url + path, { method, agent, headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const whole = Buffer.concat(chunks);
        const { statusCode = 0 } = answer;
        if (statusCode >= 200 && statusCode < 300) resolve(whole);
        else reject(new Error(`${url}${path}: ${statusCode} ${whole.subarray(0, 500)}`));
      });
    });
    sent.on('error', reject).end(body);
  });
}
