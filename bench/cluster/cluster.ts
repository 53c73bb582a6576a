/** `cluster`: performance of a cluster of three nodes and three etcd members on this machine, compared with targets and with one node. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TileRecord } from '../../src/storage/index.js';
import { COLLECTION, searchFolder, tilesOf, wholeRecords } from '../search/search-data.js';
import { searchRequests } from '../search/search-requests.js';
import type { Tiles } from '../search/tile-rows.js';
import { type BenchOptions, type BenchResult, isInstalled } from '../support/bench.js';
import { measureCatchUp } from './catch-up.js';
import { measureCheckpoint } from './checkpoint.js';
import { measureCommits } from './commits.js';
import { measureFiles } from './files.js';
import { measureIngests, type Side } from './ingests.js';
import { measureLoad } from './load.js';
import { measureDeath, measureEmptyDisk } from './losses.js';
import { inAlternation } from './rounds.js';
import { measureSearches } from './searches.js';
import {
  ask,
  eventually,
  type Place,
  ready,
  type Server,
  settled,
  startEtcd,
  startNode,
  startSingle,
  stop,
} from './servers.js';
import { openWriter, type Writer } from './writer.js';

const NAMES = ['node-a', 'node-b', 'node-c'];
const OWNERS = 2;
/** Each of four nodes stores half of these rows. */
const ROWS = 200_000;
const BATCH = 5000;
/** Tiles of the measured checkpoint. */
const CHECKPOINT_ROWS = 100_000;
/** Tiles of a node that catches up. */
const CATCH_UP_ROWS = 500_000;

/** Each measurement has its own etcd, object store and folders. */
type Part = (place: Place, options: BenchOptions) => Promise<BenchResult[]>;

/** A measurement that creates the places that it needs. */
type Whole = (options: BenchOptions) => Promise<BenchResult[]>;

export async function benchCluster({ log, ...rest }: BenchOptions): Promise<BenchResult[]> {
  const begun = performance.now();
  const options = { ...rest, log: (line: string) => log(`${seconds(begun)} ${line}`) };
  // Each server ends with this process.
  process.setMaxListeners(100);
  if (!isInstalled('etcd')) throw new Error('etcd is not on PATH');
  const results: BenchResult[] = [];
  const only = process.env.TILEWRIGHT_BENCH_ONLY?.split(',');
  for (const [name, part] of Object.entries(PARTS)) {
    if (only && !only.includes(name)) continue;
    options.log(name);
    const folder = await mkdtemp(join(tmpdir(), 'tilewright-cluster-'));
    const etcd = await startEtcd(folder);
    try {
      results.push(...(await part({ folder, etcd }, options)));
    } finally {
      await etcd.stop();
      await rm(folder, { recursive: true, force: true });
    }
  }
  for (const [name, part] of Object.entries(WHOLES))
    if (!only || only.includes(name)) results.push(...(await part(options)));
  return results;
}

const files: Part = (place, { short }) => withWriter(place, (writer) => measureFiles(writer, short));

const commits: Part = (place, { short }) => withWriter(place, (writer) => measureCommits(writer, short));

async function ingest(place: Place, { short, log }: BenchOptions): Promise<BenchResult[]> {
  const workers = NAMES.length;
  const folder = join(place.folder, 'one');
  await mkdir(folder);
  const other: Place = { folder, etcd: await startEtcd(folder) };
  const nodes = await startNodes(place);
  const one = await startNode(other, 'one', workers);
  const stored = await startSingle(join(place.folder, 'stored'), 'data', workers, { withStore: true });
  const single = await startSingle(place.folder, 'single', workers);
  try {
    await settled(nodes, OWNERS);
    await settled([one], 1);
    await ready(stored);
    await ready(single);
    const side = (name: string, servers: Server[], etcd: number[]): Side => ({
      ...{ name, servers, etcd },
      pids: [...servers.map(({ child }) => child.pid!), ...etcd],
    });
    const sides = [
      side(`${workers} nodes of 1 worker`, nodes, place.etcd.pids),
      side(`a cluster of one node of ${workers} workers`, [one], other.etcd.pids),
      side(`one node of ${workers} workers over a store`, [stored], []),
      side(`one node of ${workers} workers`, [single], []),
    ];
    return await measureIngests(sides, { short, log });
  } finally {
    await Promise.all([...nodes, one, stored, single].map(({ child }) => stop(child)));
    await other.etcd.stop();
  }
}

/** Measures searches, including those while a node is lost. */
async function reads(place: Place, { short, rows, log }: BenchOptions): Promise<BenchResult[]> {
  const tiles = tilesOf(rows ?? (short ? 20_000 : ROWS));
  const total = tiles.regions * tiles.cellsOfRegion * tiles.dates;
  const single = await startSingle(await searchFolder(tiles, log), '.', 1);
  let nodes = await startNodes(place);
  try {
    await settled(nodes, OWNERS);
    log('all servers run');
    await withWriter(place, async (writer) => {
      await seed(writer, tiles);
      await writer.checkpoint();
    });
    log(`${total} tiles are committed`);
    for (const node of nodes)
      await eventually('all tiles are found', async () => {
        const { numberMatched } = await ask<{ numberMatched: number }>(node, '/search', { limit: 1 });
        return numberMatched === total;
      });
    await ready(single);
    const results = await measureSearches(nodes, single, {
      requests: searchRequests(tiles, short ? 30 : 200, 42),
      warm: searchRequests(tiles, 20, 7),
      title: `search of ${total} tiles over 3 nodes`,
    });
    log('a node is killed');
    results.push(...(await measureDeath(place, nodes, total)));
    const back = await startNode(place, NAMES[2]!, 1);
    nodes = [nodes[0]!, nodes[1]!, back];
    await settled(nodes, OWNERS);
    log('it is back; another joins');
    const empty = await measureEmptyDisk(place, 'node-d', total);
    nodes.push(empty.node);
    return [...results, ...empty.results];
  } finally {
    await Promise.all([...nodes, single].map(({ child }) => stop(child)));
  }
}

/** Rounds of `load`; `checkpoint` has one round less. */
const ROUNDS = 3;

const load: Whole = async ({ short, log }) => {
  const rounds = short ? 1 : ROUNDS;
  const of = (nodes: string[]) => inAlternation(rounds, log, (place) => measureLoad(place, { nodes, short }));
  return [...(await of([NAMES[0]!])), ...(await of(NAMES))];
};

const catchUp: Part = async (place, { short, rows, log }) => {
  const tiles = tilesOf(rows ?? (short ? 40_000 : CATCH_UP_ROWS));
  await withWriter(place, (writer) => seed(writer, tiles));
  log('seeded');
  return measureCatchUp(place, tiles, log);
};

const checkpoint: Whole = ({ short, rows, log }) =>
  inAlternation(short ? 1 : ROUNDS - 1, log, (place) =>
    measureCheckpoint(place, { short, rows: rows ?? (short ? 20_000 : CHECKPOINT_ROWS) }),
  );

const PARTS: Record<string, Part> = { files, commits, ingest, reads, 'catch-up': catchUp };
const WHOLES: Record<string, Whole> = { load, checkpoint };

const seconds = (since: number) => `${((performance.now() - since) / 1e3).toFixed(0)} s:`;

const startNodes = (place: Place) => Promise.all(NAMES.map((name) => startNode(place, name, 1)));

async function withWriter<T>(place: Place, work: (writer: Writer) => Promise<T>): Promise<T> {
  const writer = await openWriter(place);
  try {
    return await work(writer);
  } finally {
    await writer.close();
  }
}

/** The records of all tiles, without files. */
async function seed({ claims }: Writer, tiles: Tiles): Promise<void> {
  const record = COLLECTION;
  let batch: TileRecord[] = [];
  const flush = async (edits: { table: 'collections'; key: string; record: typeof record }[] = []) => {
    const claim = await claims.lockShared();
    const added = batch;
    await claim.commit(async () => ({ added, edits }));
    await claim.release();
    batch = [];
  };
  await flush([{ table: 'collections', key: record.id, record }]);
  for (const tile of wholeRecords(tiles)) {
    batch.push(tile);
    if (batch.length === BATCH) await flush();
  }
  if (batch.length > 0) await flush();
}
