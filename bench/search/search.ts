/**
 * `search`: STAC searches over HTTP, ours and stac-fastapi-pgstac's in turn, both by one client on this machine and over the
 * same items. Ours also counts all that match. Then the waits of a cheap request beside our dearest ones.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';
import { treeCpuSeconds } from '../support/measure-tree.js';
import { endsWithUs } from '../support/peer-process.js';
import { heavyRequests, type Waits, waitsBeside } from './heavy-requests.js';
import { startPgstac } from './pgstac.js';
import { searchFolder, tilesOf } from './search-data.js';
import { type Kind, type SearchRequest, searchRequests } from './search-requests.js';

const COMMAND = fileURLToPath(new URL('../../command/main.js', import.meta.url));
const ROWS = 1_000_000;
/** Concurrent clients of the measurement of requests per second. */
const CLIENTS = 4;
const ROUNDS = 3;

interface Side {
  name: string;
  url: string;
  /** Its own, with all that they start. */
  processes: number[];
  stop(): Promise<void>;
}

export async function benchSearch({
  short,
  rows = short ? 20_000 : ROWS,
  log,
}: BenchOptions): Promise<BenchResult[]> {
  const tiles = tilesOf(rows);
  const folder = await searchFolder(tiles, log);
  const pgstac = await startPgstac(tiles, log);
  const sides: Side[] = pgstac ? [{ ...pgstac, name: `stac-fastapi-pgstac ${pgstac.version}` }] : [];
  try {
    sides.unshift(await startOurs(folder));
    for (const side of sides) for (const one of searchRequests(tiles, 20, 7)) await ask(side, one);
    await compareAnswers(sides, searchRequests(tiles, short ? 20 : 40, 11));
    log('one client');
    const latencies = await oneByOne(sides, searchRequests(tiles, short ? 20 : 100, 42));
    log(`${CLIENTS} clients`);
    const rates = await together(sides, searchRequests(tiles, short ? 10 : 40, 43));
    const [{ url, processes }] = sides as [Side];
    const waits = await waitsBeside(url, processes, heavyRequests, ROUNDS);
    log(['', ...waitsTable(waits), ''].join('\n'));
    const figures: Figures[] = waits.map(({ what, wait }) => ({
      what: `longest wait beside ${what}`,
      unit: 'ms',
      values: [wait],
    }));
    return [...latencies, ...rates, ...figures].map(({ what, unit, values }) => {
      const [ours, ...theirs] = values;
      const peers = theirs.map((value, i) => [sides[i + 1].name, value]);
      return result(`${tiles.name}: search, ${what}`, unit, ours, Object.fromEntries(peers));
    });
  } finally {
    for (const side of sides) await side.stop();
  }
}

const waitsTable = (waits: Waits[]): string[] => [
  '| beside | status | longest wait, ms | answer, ms | CPU ms |',
  '|---|---|---|---|---|',
  ...waits.map(
    ({ what, status, ...times }) =>
      `| ${what} | ${status} | ${[times.wait, times.answer, times.cpu].map((ms) => ms.toFixed(0)).join(' | ')} |`,
  ),
];

/** The command itself, as an operator starts it. */
async function startOurs(folder: string): Promise<Side> {
  const args = [COMMAND, 'serve', '--data', folder, '--port', '0', '--reserve', '0', '--format', 'json'];
  const child = endsWithUs(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] }));
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`tilewright serve does not start in ${folder}`)));
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (more: string) => {
      text += more;
      const [, found] = /"url": *"([^"]+)"/.exec(text) ?? [];
      if (found !== undefined) resolve(found);
    });
  });
  return { name: 'ours', url, processes: [child.pid!], stop: () => stopped(child) };
}

async function stopped(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close');
  child.kill('SIGINT');
  await closed;
}

const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });

/** The body of the answer, not parsed. */
function ask({ url }: Side, { body }: SearchRequest): Promise<Buffer> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/search`, { method: 'POST', agent, headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const whole = Buffer.concat(chunks);
        if (answer.statusCode === 200) resolve(whole);
        else reject(new Error(`${url}/search ${body}: ${answer.statusCode} ${whole.subarray(0, 500)}`));
      });
    });
    sent.on('error', reject).end(body);
  });
}

/** Both must give the same items in the same order. */
async function compareAnswers(sides: Side[], requests: SearchRequest[]): Promise<void> {
  for (const one of requests) {
    const [ours, ...others] = await Promise.all(
      sides.map(async (side) => {
        const { features } = JSON.parse((await ask(side, one)).toString()) as { features: { id: string }[] };
        return features.map(({ id }) => id).join('\n');
      }),
    );
    const other = others.findIndex((ids) => ids !== ours);
    if (other >= 0) throw new Error(`${sides[other + 1].name} finds other items than ours for ${one.body}`);
  }
}

interface Figures {
  what: string;
  unit: string;
  /** One for each side. */
  values: number[];
}

/** Consecutive requests to one side, because a server rarely shares CPU caches with another one. */
const STRETCH = 20;

/** Times of single requests, stretches of them asked of all sides in turn. */
async function oneByOne(sides: Side[], requests: SearchRequest[]): Promise<Figures[]> {
  const times = sides.map(() => [] as { kind: Kind; milliseconds: number; bytes: number }[]);
  for (let at = 0; at < requests.length; at += STRETCH) {
    for (const [i, side] of sides.entries()) {
      for (const one of requests.slice(at, at + STRETCH)) {
        const begun = performance.now();
        const { length } = await ask(side, one);
        times[i].push({ kind: one.kind, milliseconds: performance.now() - begun, bytes: length });
      }
    }
  }
  const of = (what: string, kinds: Kind[], pick: (values: number[]) => number): Figures => ({
    what,
    unit: 'ms',
    values: times.map((all) =>
      pick(all.filter(({ kind }) => kinds.includes(kind)).map(({ milliseconds }) => milliseconds)),
    ),
  });
  const every: Kind[] = ['box', 'polygon', 'newest'];
  const p95 = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.95)];
  return [
    of('p50', every, median),
    of('p95', every, p95),
    of('box, month and cloud: p50', ['box'], median),
    of('polygon: p50', ['polygon'], median),
    of('newest up to a day: p50', ['newest'], median),
    {
      what: 'mean size of an answer',
      unit: 'kB',
      values: times.map((all) => all.reduce((sum, { bytes }) => sum + bytes, 0) / all.length / 1e3),
    },
  ];
}

/** Requests a second of some clients at once, and CPU time of the servers; in rounds, the sides in turn. */
async function together(sides: Side[], requests: SearchRequest[]): Promise<Figures[]> {
  const rates = sides.map(() => [] as number[]);
  const costs = sides.map(() => [] as number[]);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, side] of sides.entries()) {
      const cpu = treeCpuSeconds(side.processes);
      const begun = performance.now();
      const waiting = [...requests];
      const client = async () => {
        for (let one = waiting.pop(); one; one = waiting.pop()) await ask(side, one);
      };
      await Promise.all(Array.from({ length: CLIENTS }, client));
      rates[i].push((1e3 * requests.length) / (performance.now() - begun));
      costs[i].push((1e3 * (treeCpuSeconds(side.processes) - cpu)) / requests.length);
    }
  }
  return [
    { what: `requests of ${CLIENTS} clients`, unit: 'a second', values: rates.map(median) },
    { what: 'CPU of the servers', unit: 'ms a request', values: costs.map(median) },
  ];
}
