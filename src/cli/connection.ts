/** Connects a command to a server or to a node in the same process, runs its jobs, and fetches the pages of its searches. */
import { createWriteStream, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import {
  Client,
  decodeText,
  FileBody,
  httpTransport,
  type ItemCollection,
  JobError,
  type RunHooks,
  type Transport,
} from '../client/index.js';
import type { Timed } from '../jobs/index.js';
import type { TilewrightNode } from '../node.js';
import { readLock, storageLocked } from '../storage/index.js';
import { noDataFolder } from './errors.js';
import { defaultResources, type TargetOptions } from './options.js';
import { logToStderr, mergePartial, withProgressLine } from './output.js';
import { interruptSignal } from './process.js';

export interface Connection {
  client: Client;
  /** Address of the server or path of the folder, for messages. */
  name: string;
  close(): Promise<void>;
}

type ConnectionOptions = Omit<TargetOptions, 'format'> & { allowHost?: string[]; remoteCredentials?: string };

/** True also for a folder that this user may not read: opening it reports the reason. */
export function hasDataFolder(dir: string): boolean {
  try {
    return statSync(join(dir, 'node.json'), { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/**
 * Connects a command to the server of `--server`, or to a node in this process that opens the data folder. If a server has the folder
 * open, connects to that server. `create` creates a missing folder. With `resume`, a node in this process resumes unfinished jobs.
 */
async function connect(
  options: ConnectionOptions,
  { create = false, resume = false } = {},
): Promise<Connection> {
  const { data, server, token } = options;
  if (server) {
    warnUnusedAccess(server, options);
    return connectToServer(server, token);
  }
  if (!create && !hasDataFolder(data)) throw noDataFolder(data);
  try {
    // This import is slow, and a command that uses a server does not need it.
    const { openNode } = await import('../node.js');
    // It may fetch from all public hosts, because its user names them.
    const hosts = { hosts: options.allowHost ?? [], anyPublic: true };
    const node = await openNode({ ...defaultResources(), ...options, hosts, resume });
    return { client: new Client(inProcessTransport(node)), name: data, close: () => node.close() };
  } catch (error) {
    const lock = storageLocked.is(error) ? await readLock(data) : null;
    if (!lock?.url) throw error;
    warnUnusedAccess(lock.url, options);
    return connectToServer(lock.url, lock.secret);
  }
}

function warnUnusedAccess(server: string, { allowHost, remoteCredentials }: ConnectionOptions): void {
  const flags = [allowHost && '--allow-host', remoteCredentials !== undefined && '--remote-credentials'];
  const unused = flags.filter(Boolean).join(' and ');
  if (unused !== '')
    logToStderr(
      `warning: ${unused} has no effect: the server at ${server} fetches, so the flags of the server count`,
    );
}

/** Connects, runs `work`, and closes the connection even if `work` fails. The settings are those of `connect`. */
export async function withConnection<T>(
  options: ConnectionOptions,
  work: (target: Connection) => Promise<T>,
  settings: { create?: boolean; resume?: boolean } = {},
): Promise<T> {
  const target = await connect(options, settings);
  try {
    return await work(target);
  } finally {
    await target.close();
  }
}

function connectToServer(url: string, token: string | undefined): Connection {
  return { client: new Client(httpTransport(url, token)), name: url, close: async () => {} };
}

/** Links in the answers of a node in this process begin with this host. */
const IN_PROCESS_HOST = 'localhost';

/** Calls the node's routes directly, without a socket. */
export function inProcessTransport(node: TilewrightNode): Transport {
  const asOwner = { host: IN_PROCESS_HOST, authorization: `Bearer ${node.ownerSecret}` };
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await node.server.inject({
      method: method as 'GET' | 'POST' | 'PATCH' | 'DELETE',
      url: path,
      headers: {
        ...asOwner,
        ...(body instanceof FileBody && { 'content-type': 'application/octet-stream' }),
      },
      ...(body !== undefined && {
        payload: (body instanceof FileBody ? body.stream() : body) as object,
      }),
    });
    const answer = response.body ? JSON.parse(response.body) : null;
    removeOwnLinks(answer);
    await useLocalPaths(node, answer);
    return { status: response.statusCode, body: answer, headers: response.headers as Record<string, string> };
  };
  const open: Transport['open'] = async (path, headers, signal) => {
    const request = { url: path, headers: { ...asOwner, ...headers }, payloadAsStream: true, signal };
    const response = await node.server.inject(request);
    return { status: response.statusCode, body: decodeText(response.stream()) };
  };
  const download: Transport['download'] = async (url, into) => {
    const response = await node.server.inject({ url, headers: asOwner, payloadAsStream: true });
    const answer = { status: response.statusCode, headers: response.headers as Record<string, string> };
    if (answer.status >= 400) return { ...answer, body: JSON.parse(await text(response.stream())) };
    await pipeline(response.stream(), createWriteStream(into));
    return { ...answer, body: null };
  };
  return Object.assign(ask, { open, download });
}

interface Linked {
  links?: { rel: string; href: string }[];
}

/**
 * Removes links to this node from a document and from the documents in it, because no server answers them. Keeps links to next pages,
 * which the client follows, and replaces links to the tiles and the model of derived Items by their ids, which `tilewright info` accepts.
 */
function removeOwnLinks(answer: Linked | null): void {
  const isOwn = (href: string) => href.startsWith(`http://${IN_PROCESS_HOST}/`);
  for (const one of [answer, ...Object.values(answer ?? {}).flat()] as (Linked | null)[])
    if (Array.isArray(one?.links))
      one.links = one.links
        .filter(({ rel, href }) => rel === 'next' || rel === 'derived_from' || !isOwn(href))
        .map((link) =>
          link.rel === 'derived_from' && isOwn(link.href) ? { ...link, href: sourceId(link.href) } : link,
        );
}

const sourceId = (href: string) => decodeURIComponent(/\/(?:items|models)\/([^/]+)/.exec(href)?.[1] ?? href);

interface Item {
  type?: string;
  id: string;
  assets: Record<string, { href: string }>;
}

/**
 * Replaces the URLs of assets by the names by which GDAL and QGIS open their images, because no server answers these URLs. Removes
 * pictures, which have no file.
 */
async function useLocalPaths(
  node: TilewrightNode,
  answer: (Partial<Item> & { features?: Item[] }) | null,
): Promise<void> {
  const items = answer?.features ?? (answer?.type === 'Feature' ? [answer as Item] : []);
  // Commands that use a server do not load it.
  const { gdalName } = await import('../raster/index.js');
  for (const { id, assets } of items) {
    const tile = await node.storage.catalogue.tiles.get(id);
    if (!tile) continue;
    for (const [name, asset] of Object.entries(assets)) {
      if (tile.groups.some((group) => group.name === name)) {
        const image = node.storage.tileImage(tile, name);
        asset.href = gdalName({ ...image, path: resolve(image.path) });
      } else delete assets[name];
    }
  }
}

export type Hooks = Required<Pick<RunHooks, 'signal' | 'onProgress'>>;

/** Calls `run` with a signal that Ctrl-C aborts, and with a progress line that counts `unit`. */
export function runJob<T>(unit: string, run: (hooks: Hooks) => Promise<T>): Promise<T> {
  return withProgressLine(unit, ({ update }) => run({ signal: interruptSignal(), onProgress: update }));
}

interface JobOutcome<Results> {
  /** Absent if the job failed. */
  job?: string;
  results: Timed<Results>;
  error?: JobError;
}

/** Returns the results of a job, even if it failed. Throws if the job failed without results. */
export async function outcomeOf<Results>(
  run: Promise<{ job: string; results: Timed<Results> }>,
): Promise<JobOutcome<Results>> {
  try {
    return await run;
  } catch (error) {
    if (error instanceof JobError && error.results)
      return { results: error.results as Timed<Results>, error };
    throw error;
  }
}

/** Items of a page. */
const PAGE_SIZE = 1000;

/** Follows the pages of a search until there are `limit` items or no more pages. */
export async function fetchAllPages(
  page: (limit: number, token: string | undefined) => Promise<ItemCollection>,
  limit = Infinity,
): Promise<ItemCollection> {
  let all: ItemCollection | undefined;
  let token: string | undefined;
  do {
    const next = await page(Math.min(PAGE_SIZE, limit - (all?.features.length ?? 0)), token);
    all = all ? { ...all, ...mergePartial(all, next), features: [...all.features, ...next.features] } : next;
    token = next.links.find((link) => link.rel === 'next')?.body?.token;
  } while (token && all.features.length < limit);
  return { ...all, numberReturned: all.features.length, links: [] };
}
