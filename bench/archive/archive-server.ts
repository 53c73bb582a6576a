/** A process that serves an Item as an archive does: a STAC API and files with ranges, with latency, faults and counts. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { rangeServer } from '../../test/support/range-server.js';
import { endsWithUs } from '../support/peer-process.js';
import { describeItem, type ItemFiles } from './item-files.js';

const LATENCY_MS = 50;
const API = '/stac';

export interface Faults {
  /** Every how many requests the answer is 503; never if absent. */
  unavailable?: number;
  /** Every how many requests the connection is reset while the answer is sent. */
  reset?: number;
}

export interface Counts {
  /** Requests for documents of the STAC API. */
  searches: number;
  /** Requests for each file, by name. */
  files: Record<string, number>;
  /** Bytes of files that were sent. */
  bytes: number;
  heads: number;
  notFound: number;
  unavailable: number;
  resets: number;
}

const noCounts = (): Counts => ({
  searches: 0,
  files: {},
  bytes: 0,
  heads: 0,
  notFound: 0,
  unavailable: 0,
  resets: 0,
});

export const fileRequests = ({ files }: Counts): number =>
  Object.values(files).reduce((sum, count) => sum + count, 0);

export interface ArchiveServer {
  /** Address of the landing page of the STAC API. */
  api: string;
  host: string;
  /** Runs a work and returns the counts of its requests. */
  count<T>(work: () => Promise<T>, faults?: Faults): Promise<{ value: T; counts: Counts }>;
  stop(): void;
}

export async function startArchiveServer({ folder, side }: ItemFiles): Promise<ArchiveServer> {
  const child = endsWithUs(fork(fileURLToPath(import.meta.url), [folder, `${side}`]));
  const host = (await answerOf(child)) as string;
  const ask = async (faults: Faults) => {
    child.send(faults);
    return (await answerOf(child)) as Counts;
  };
  return {
    api: `http://${host}${API}`,
    host,
    async count(work, faults = {}) {
      await ask(faults);
      const value = await work();
      return { value, counts: await ask({}) };
    },
    stop: () => child.kill(),
  };
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const [message] = await once(child, 'message');
  return message;
}

/** Answers each message with the counts since the message before, and then uses its faults. */
async function serve(folder: string, side: number): Promise<void> {
  const server = await rangeServer({ after: () => undefined }, folder);
  const api = server.url + API;
  const item = describeItem(side, (file) => `${server.url}/${file}`);
  const link = (rel: string, href: string, method = 'GET') => ({
    ...{ rel, href, method, type: 'application/geo+json' },
  });
  server.documents.set(API, {
    ...{ type: 'Catalog', stac_version: '1.0.0', id: 'archive', description: 'archive' },
    conformsTo: ['https://api.stacspec.org/v1.0.0/core', 'https://api.stacspec.org/v1.0.0/item-search'],
    links: [link('root', api), link('self', api), link('search', `${api}/search`, 'POST')],
  });
  server.documents.set(`${API}/search`, { type: 'FeatureCollection', features: [item], links: [] });

  let faults: Faults = {};
  let counts = noCounts();
  let requests = 0;
  const isEach = (every: number | undefined) => every !== undefined && requests % every === 0;
  server.fault = async ({ method, url = '', headers }, response) => {
    requests++;
    if (url.startsWith(API)) counts.searches++;
    else counts.files[url.slice(1)] = (counts.files[url.slice(1)] ?? 0) + 1;
    if (method === 'HEAD') counts.heads++;
    const [isReset, isUnavailable] = [isEach(faults.reset), isEach(faults.unavailable)];
    const current = counts;
    response.once('finish', () => {
      if (response.statusCode === 404) current.notFound++;
      if (!url.startsWith(API) && method !== 'HEAD')
        current.bytes += Number(response.getHeader('content-length') ?? 0);
    });
    await sleep(LATENCY_MS);
    if (isReset) {
      counts.resets++;
      breakOff(response, headers, join(folder, url));
    } else if (isUnavailable) {
      counts.unavailable++;
      response.writeHead(503).end();
    }
    return isReset || isUnavailable;
  };
  process.on('message', (given: Faults) => {
    process.send!(counts);
    [counts, faults, requests] = [noCounts(), given, 0];
  });
  process.send!(server.host);
}

/** Sends the start of the requested range with wrong bytes, and then resets the connection. */
function breakOff(response: ServerResponse, headers: IncomingHttpHeaders, path: string): void {
  const [, first, last] = /(\d+)-(\d+)/.exec(headers.range ?? '') ?? [];
  if (headers['if-match'] === undefined || first === undefined || last === undefined) {
    response.socket?.resetAndDestroy();
    return;
  }
  response.writeHead(206, {
    ...{ etag: headers['if-match'], 'content-range': `bytes ${first}-${last}/${statSync(path).size}` },
    'content-length': Number(last) - Number(first) + 1,
  });
  response.write(Buffer.alloc(100), () => response.socket?.resetAndDestroy());
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await serve(process.argv[2]!, Number(process.argv[3]));
