/** Searches at three nodes under steady commits: while one of the nodes writes a checkpoint, and while none does. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { mapConcurrent } from '../../src/async/index.js';
import type { RecordEdit, TileRecord } from '../../src/storage/index.js';
import { COLLECTION, tilesOf, wholeRecords } from '../search/search-data.js';
import { type SearchRequest, searchRequests } from '../search/search-requests.js';
import { type Figure, quantile } from './rounds.js';
import { askBytes, type Place, type Server, settled, startNode, stop } from './servers.js';
import { openWriter, type Writer } from './writer.js';

const NAMES = ['node-a', 'node-b', 'node-c'];
const OWNERS = 2;
/** A node writes a checkpoint after this many commits; it checks every 10 s. */
const CHECKPOINT_COMMITS = 1000;
const COMMITS_A_SECOND = 10;
const SEARCHERS = 2;
/** Concurrent commits before the measurement, and searches that warm the nodes up. */
const CONCURRENCY = 16;
const WARM_UP_SEARCHES = 60;
/** Duration of the measurement without a checkpoint, and its maximum during one. */
const POLL_INTERVAL_MS = 10_000;
const MAX_WAIT_MS = 30_000;
/** How long to wait for the start of a checkpoint. */
const START_TIMEOUT_MS = 30_000;

export async function measureCheckpoint(
  place: Place,
  { short, rows }: { short: boolean; rows: number },
): Promise<Figure[]> {
  const tiles = tilesOf(rows);
  const nodes = await Promise.all(NAMES.map((name) => startNode(place, name, 1)));
  const writer = await openWriter(place);
  try {
    await settled(nodes, OWNERS);
    // Small commits: the checkpoint that comes of them is that of all tiles.
    const records = [...wholeRecords(tiles)];
    const commits = CHECKPOINT_COMMITS - COMMITS_A_SECOND;
    await commitInParts(writer, records, commits);
    const requests = searchRequests(tiles, 200, 42);
    const parts = () => checkpointParts(place);
    const before = (await parts()).length;

    for (const [n, { body }] of requests.slice(0, WARM_UP_SEARCHES).entries())
      await askBytes(nodes[n % nodes.length]!, '/search', JSON.parse(body));
    const steady = new AbortController();
    const searching = new Searching(nodes, requests);
    const committing = commitSteadily(writer, records[0]!, steady.signal);
    // The commits before the checkpoint is due are too few for a phase of their own: it may begin at any look from here on.
    const begun = await until(async () => (await parts()).length > before, START_TIMEOUT_MS);
    const quiet = searching.take();
    if (!begun) throw new Error('no node has started a checkpoint');
    const start = performance.now();
    const manifests = (await checkpointManifests(place)).length;
    await until(async () => (await checkpointManifests(place)).length > manifests, MAX_WAIT_MS);
    const seconds = (performance.now() - start) / 1e3;
    const during = searching.take();
    // The same searches and commits after the checkpoint.
    await sleep(short ? POLL_INTERVAL_MS / 5 : POLL_INTERVAL_MS);
    const after = searching.take();
    steady.abort();
    await committing;
    await searching.stop();
    const title = `search of ${records.length} tiles over 3 nodes, ${COMMITS_A_SECOND} commits/s`;
    const of = (name: string, times: number[]): Figure[] => [
      { name: `${title}, ${name}: p50`, unit: 'ms', value: quantile(times, 0.5) },
      { name: `${title}, ${name}: p99`, unit: 'ms', value: quantile(times, 0.99) },
    ];
    return [
      ...of('no checkpoint', quiet),
      ...of('while a checkpoint is written', during),
      ...of('after it', after),
      { name: 'the first manifest after the first part of a checkpoint', unit: 's', value: seconds },
    ];
  } finally {
    await writer.close();
    await Promise.all(nodes.map(({ child }) => stop(child)));
  }
}

/** Clients that send searches to the nodes in turn until they are stopped. */
class Searching {
  private times: number[] = [];
  private isStopped = false;
  private readonly loops: Promise<void>[];

  constructor(nodes: Server[], requests: SearchRequest[]) {
    this.loops = Array.from({ length: SEARCHERS }, async (_, s) => {
      for (let n = s; !this.isStopped; n += SEARCHERS) {
        const begun = performance.now();
        const { body } = requests[n % requests.length]!;
        await askBytes(nodes[n % nodes.length]!, '/search', JSON.parse(body));
        this.times.push(performance.now() - begun);
      }
    });
  }

  /** The times of the searches since the last call, ms. */
  take(): number[] {
    return this.times.splice(0);
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await Promise.all(this.loops);
  }
}

async function commitInParts(writer: Writer, records: TileRecord[], commits: number): Promise<void> {
  const size = Math.ceil(records.length / (commits - 1));
  const commit = async (added: TileRecord[], edits: RecordEdit[] = []) => {
    const claim = await writer.claims.lockShared();
    await claim.commit(async () => ({ added, edits }));
    await claim.release();
  };
  await commit([], [{ table: 'collections', key: COLLECTION.id, record: COLLECTION }]);
  const numbers = Array.from({ length: commits - 1 }, (_, n) => n);
  await mapConcurrent(numbers, CONCURRENCY, (n) => commit(records.slice(n * size, (n + 1) * size)));
}

/** Adds tiles one by one. */
async function commitSteadily(writer: Writer, like: TileRecord, signal: AbortSignal): Promise<void> {
  for (let n = 0; !signal.aborted; n++) {
    const begun = performance.now();
    const claim = await writer.claims.lockShared();
    const tile = { ...like, scene: `steady-${n}`, id: `${COLLECTION.id}_steady-${n}_g${like.geocode}` };
    await claim.commit(async () => ({ added: [tile] }));
    await claim.release();
    await sleep(Math.max(0, 1000 / COMMITS_A_SECOND - (performance.now() - begun)));
  }
}

const checkpointParts = (place: Place) => namesIn(place, 'parts');
const checkpointManifests = (place: Place) => namesIn(place, 'manifests');

const namesIn = ({ folder }: Place, kind: string): Promise<string[]> =>
  readdir(join(folder, 'store', 'catalogue', kind)).catch(() => []);

/** Returns false if the condition is not met within `limit` ms. */
async function until(is: () => Promise<boolean>, limit: number): Promise<boolean> {
  for (const end = performance.now() + limit; performance.now() < end; await sleep(10))
    if (await is()) return true;
  return false;
}
