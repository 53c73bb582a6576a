/**
 * `query`: a million tiles in the column index, in this process, then over HTTP. With `--rows N` only the index, with about N
 * tiles. Times: less is better.
 */
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { geohash } from '../../src/grid/index.js';
import { type Filter, parseFilter, searchTiles } from '../../src/query/index.js';
import type { IndexQuery } from '../../src/storage/column-index/query.js';
import { SnapshotFolder } from '../../src/storage/column-index/snapshot.js';
import { ColumnIndex, type RunFilter, type TileRecord } from '../../src/storage/index.js';
import { type BenchOptions, type BenchResult, median, result, spend } from '../support/bench.js';
import { benchSearch } from './search.js';
import { DAY_MS, FIRST_DAY, MONTH, randomNumbers, records, regionKey, type Tiles } from './tile-rows.js';

const SETS: Tiles[] = [
  { name: '20,000 cells x 50 dates', regions: 250, cellsOfRegion: 80, dates: 50, daysBetween: 10 },
  { name: '2,000 cells x 500 dates', regions: 250, cellsOfRegion: 8, dates: 500, daysBetween: 5 },
  {
    name: '20 full cells of precision 3 x 49 dates',
    regions: 20,
    cellsOfRegion: 1024,
    dates: 49,
    daysBetween: 10,
  },
];

export async function benchQuery(options: BenchOptions): Promise<BenchResult[]> {
  const { short, log, rows } = options;
  if (rows !== undefined) return benchIndex(setOf(rows));
  const results: BenchResult[] = [];
  for (const tiles of SETS) {
    log(`${tiles.name} ...`);
    const set = short ? { ...tiles, dates: Math.ceil(tiles.dates / 20) } : tiles;
    results.push(...(await benchIndex(set)));
  }
  return [...results, ...(await benchSearch(options))];
}

function setOf(rows: number): Tiles {
  const [cellsOfRegion, dates] = [80, 50];
  const regions = Math.ceil(rows / (cellsOfRegion * dates));
  return { name: `${rows / 1e6} million tiles`, regions, cellsOfRegion, dates, daysBetween: 10 };
}

async function benchIndex(tiles: Tiles): Promise<BenchResult[]> {
  const results: BenchResult[] = [];
  const report: Report = (what, unit, value) => {
    results.push(result(`${tiles.name}: ${what}`, unit, value));
  };
  const made = await spend(async () => {
    const index = new ColumnIndex();
    index.load(records(tiles));
    return index;
  });
  report('made from records', 'CPU s', made.cpuSeconds);
  const folder = await mkdtemp(join(tmpdir(), 'tilewright-bench-'));
  try {
    await benchLoaded(await throughSnapshot(folder, made.value, report), tiles, report);
  } finally {
    await rm(folder, { recursive: true });
  }
  for (const partial of [0, 0.1]) await benchPlaces(tiles, partial, report);
  return results;
}

/** Searches by place, if a share of the tiles lacks data in the north-west of the cell. */
async function benchPlaces(tiles: Tiles, partial: number, report: Report) {
  const random = randomNumbers(7);
  const index = new ColumnIndex();
  const parts = (record: TileRecord) =>
    random() < partial
      ? { ...record, dataParts: EDGE_PARTS[Math.floor(random() * EDGE_PARTS.length)] }
      : record;
  index.load([...records(tiles)].map(parts));
  const places = Array.from({ length: Math.min(50, tiles.regions) }, (_, i) => cornerOf(i * 5));
  const boxes = places.map(([x, y]) => parseFilter({ bbox: [x + 0.01, y + 0.01, x + 0.06, y + 0.04] }));
  const circles = places.map((centre) => parseFilter({ intersects: circleAround(centre, 0.2) }));
  const batch = (filters: Filter[]) => async () => {
    for (const filter of filters) await searchTiles(index, filter, { limit: 10 });
  };
  const clear = parseFilter({ maxCloud: 20, minCoverage: 90 });
  const share = `${100 * partial} % of tiles incomplete`;
  report(`cloud and coverage of all, ${share}`, 'CPU ms', await cpuOf(repeat(21, batch([clear]))));
  report(`50 boxes inside a few cells, ${share}`, 'CPU ms', await cpuOf(repeat(21, batch(boxes))));
  report(`50 circles over 40 cells, ${share}`, 'CPU ms', await cpuOf(repeat(21, batch(circles))));
}

/** Parts of cells that straight edges leave with data. */
const EDGE_PARTS = ['00000000ffffffff', '0103070f1f3f7fff', '0f0f0f0f0f0f0f0f', '000103070f1f3f7f'];

/** The south-western corner of the cells of a region. */
function cornerOf(region: number): [lon: number, lat: number] {
  const { west, south } = geohash.bounds(geohash.geocode(regionKey(region), 3));
  return [west, south];
}

function circleAround([x, y]: [lon: number, lat: number], radius: number) {
  const ring = Array.from({ length: 65 }, (_, i) => {
    const angle = ((i % 64) / 32) * Math.PI;
    return [x + radius * (1 + Math.cos(angle)), y + radius * (1 + Math.sin(angle))];
  });
  return { type: 'Polygon', coordinates: [ring] };
}

type Report = (what: string, unit: string, value: number) => void;

/** Queries and changes. */
async function benchLoaded({ index, snapshots }: Loaded, tiles: Tiles, report: Report) {
  const places = regionQueries(tiles);
  const page = spread(places, (query) => index.query(query));
  const found = places.map((query) => index.query(query).matched);
  report('geohash 3, month, cloud, coverage: p50', 'ms', page.p50);
  report('geohash 3, month, cloud, coverage: p95', 'ms', page.p95);
  report('geohash 3, month, cloud, coverage: p99', 'ms', page.p99);
  report('geohash 3, month, cloud, coverage: tiles found, median', 'tiles', median(found));
  const newest = spread(repeat(200, {}), () => index.query({ limit: 100 }));
  report('newest 100 of all: p50', 'ms', newest.p50);
  report('newest 100 of all: p95', 'ms', newest.p95);
  const order = [{ column: 'cloud', descending: false }] as const;
  const cloudless = repeat(11, () => index.query({ limit: 100, order }));
  report('least cloudy 100 of all', 'CPU ms', await cpuOf(cloudless));
  report('aggregation over all', 'CPU ms', await cpuOf(repeat(21, () => aggregate(index))));
  const { ids } = index.query({ order, limit: 10_000 });
  const lookups = ids.filter((_, i) => i % 10 === 0).map((id) => [id]);
  report('lookup of an id: p50', 'ms', spread(lookups, (one) => index.query({ ids: one })).p50);
  const rounds = [1, 2, 3, 4, 5, 6, 7].map((round) =>
    [...records({ ...tiles, dates: 1 }, round)].slice(0, 1000),
  );
  report('1,000 tiles more', 'CPU ms', await cpuOf(rounds.map((added) => () => index.add(added))));
  index.compactTail();
  index.add([...records({ ...tiles, dates: 10 }, 9)].slice(0, 17_000));
  const { busy, longest } = await whileTurning(() => index.compact());
  report('merge of a tail of 17,000', 'CPU ms', busy);
  report('merge of a tail of 17,000: most between two turns', 'CPU ms', longest);
  const next = await spend(() => snapshots.write(index.images(), { ...STAMP, sequence: 2 }));
  report('snapshot after the merge', 'CPU ms', 1e3 * next.cpuSeconds);
}

interface Loaded {
  index: ColumnIndex;
  snapshots: SnapshotFolder;
}

/** The same index, loaded from its snapshot. */
async function throughSnapshot(folder: string, made: ColumnIndex, report: Report): Promise<Loaded> {
  const { busy, longest } = await whileTurning(() => new SnapshotFolder(folder).write(made.images(), STAMP));
  report('snapshot written', 'CPU ms', busy);
  report('snapshot written: most between two turns', 'CPU ms', longest);
  const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size);
  report('snapshot', 'bytes a tile', (await Promise.all(sizes)).reduce((a, b) => a + b) / made.size);
  const before = memory();
  const loaded = await loadSnapshot(folder);
  report('memory', 'bytes a tile', (memory() - before) / made.size);
  const loads: number[] = [];
  for (let round = 0; round < 5; round++) loads.push((await spend(() => loadSnapshot(folder))).cpuSeconds);
  report('loaded from snapshot', 'CPU ms', 1e3 * median(loads));
  return loaded;
}

const STAMP = { sequence: 1, tag: '', damaged: [] };

async function loadSnapshot(folder: string): Promise<Loaded> {
  const snapshots = new SnapshotFolder(folder);
  const found = await snapshots.read((await snapshots.newest())!);
  if ('unusable' in found) throw new Error(`the snapshot ${found.unusable}`);
  const index = new ColumnIndex();
  index.restore(found.images);
  return { index, snapshots };
}

/** Each region in two months, in a mixed order. */
function regionQueries({ regions, dates, daysBetween }: Tiles): IndexQuery[] {
  const months = Math.max(1, Math.floor((dates * daysBetween * DAY_MS) / MONTH) - 1);
  return Array.from({ length: Math.max(2 * regions, 500) }, (_, i) => {
    const region = (i * 101) % regions;
    const start = FIRST_DAY + ((i * 7) % months) * MONTH;
    return {
      where: isClear,
      ranges: [{ grid: 'geohash', from: regionKey(region), to: regionKey(region) + 32 ** 6 }],
      time: { start, end: start + MONTH },
      limit: 100,
    };
  });
}

const isClear: RunFilter =
  ({ columns: { cloud, coverage } }) =>
  (row) =>
    cloud[row] <= 20 && coverage[row] >= 90;

/** The month of each day since 1970, counted from January 1970. */
const monthOfDay = Int32Array.from({ length: 36_525 }, (_, day) => {
  const date = new Date(day * DAY_MS);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
});

/** Tiles by collection, by month and by tenth of cloud cover, in one pass. */
async function aggregate(index: ColumnIndex): Promise<number[][]> {
  const byCollection: number[] = new Array(16).fill(0);
  const byMonth: number[] = new Array(1200).fill(0);
  const byCloud: number[] = new Array(11).fill(0);
  await index.forEach({}, ({ columns: { collection, start, cloud } }) => (row) => {
    byCollection[collection[row]]++;
    byMonth[monthOfDay[Math.floor(start[row] / DAY_MS)]]++;
    byCloud[cloud[row] >= 0 ? Math.min(9, Math.floor(cloud[row] / 10)) : 10]++;
  });
  return [byCollection, byMonth, byCloud];
}

/** Half and 95 % of the calls were no slower, ms; the first ones only warm up. */
function spread<T>(
  inputs: T[],
  work: (input: T) => unknown,
  warm = inputs.length,
): { p50: number; p95: number; p99: number } {
  for (let i = 0; i < warm; i++) work(inputs[i]);
  const times = inputs.map((input) => {
    const begun = performance.now();
    work(input);
    return performance.now() - begun;
  });
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)];
  return { p50: median(times), p95: at(0.95), p99: at(0.99) };
}

/** The median CPU time of works that take milliseconds: a loaded machine changes it less than the wall clock. */
async function cpuOf(works: (() => unknown)[]): Promise<number> {
  const times: number[] = [];
  for (const work of works) times.push((await spend(async () => work())).cpuSeconds);
  return 1e3 * median(times);
}

/** CPU time of work that gives others their turn: all of it, and the most between two turns of the event loop, ms. */
async function whileTurning(work: () => Promise<unknown>): Promise<{ busy: number; longest: number }> {
  let longest = 0;
  let last = process.cpuUsage();
  let goesOn = true;
  const turn = () => {
    const { user, system } = process.cpuUsage(last);
    longest = Math.max(longest, (user + system) / 1e3);
    last = process.cpuUsage();
    if (goesOn) setImmediate(turn);
  };
  setImmediate(turn);
  const { cpuSeconds } = await spend(work);
  goesOn = false;
  return { busy: 1e3 * cpuSeconds, longest };
}

/** Bytes that this process holds. */
function memory(): number {
  setFlagsFromString('--expose_gc');
  const collect: () => void = runInNewContext('gc');
  for (let i = 0; i < 3; i++) collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const repeat = <T>(count: number, value: T): T[] => new Array(count).fill(value);
