/** Fetches the pixels of regions by tilewright and by programs from PyPI, in alternation. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Bbox } from '../../src/grid/index.js';
import { type BenchResult, median, result } from '../support/bench.js';
import { installPython } from '../support/python.js';
import { markdown } from '../training/markdown.js';
import { type ArchiveServer, type Counts, fileRequests } from './archive-server.js';
import type { FetchCost, OwnFetchCost } from './fetch.js';
import { type Mark, megabytes, ratios, spread } from './figures.js';
import { ASSET_NAMES } from './item-files.js';

const FETCH = fileURLToPath(new URL('fetch.js', import.meta.url));
const PEERS = fileURLToPath(new URL('../../../bench/archive/peers.py', import.meta.url));

export interface Peer {
  name: string;
  python: string;
}

/** One round of a program. */
interface Run<Cost> {
  cost: Cost;
  counts: Counts;
}

export interface Fetches {
  ours: Run<OwnFetchCost>[];
  /** Rounds by the name of the peer. */
  peers: Map<string, Run<FetchCost>[]>;
}

/** The peers that can be installed. rasterio is a dependency of odc-stac. */
export function installPeers(log: (line: string) => void): Peer[] {
  const odc = installPython('odc-stac', ['odc-stac', 'pystac-client', 'rasterio'], 'odc.stac', log);
  const async = installPython('async-geotiff', ['async-geotiff', 'obstore'], 'async_geotiff', log);
  return [
    ...(odc === undefined ? [] : ['odc-stac', 'rasterio'].map((name) => ({ name, python: odc }))),
    ...(async === undefined ? [] : [{ name: 'async-geotiff', python: async }]),
  ];
}

export async function measureFetches(
  server: ArchiveServer,
  peers: Peer[],
  bbox: Bbox,
  rounds: number,
): Promise<Fetches> {
  const box = bbox.map(String);
  const run = async <Cost>(program: string, args: string[]): Promise<Run<Cost>> => {
    const { value, counts } = await server.count(() => promisify(execFile)(program, args));
    return { cost: JSON.parse(value.stdout) as Cost, counts };
  };
  const fetches: Fetches = { ours: [], peers: new Map(peers.map(({ name }) => [name, []])) };
  for (let round = 0; round < rounds; round++) {
    fetches.ours.push(await run(process.execPath, [FETCH, server.api, server.host, ...box]));
    for (const { name, python } of peers)
      fetches.peers.get(name)!.push(await run(python, [PEERS, name, server.api, ...box, ...ASSET_NAMES]));
  }
  return fetches;
}

/** The counts of the last round; they hardly differ between rounds. */
export function requestTable(title: string, { ours, peers }: Fetches): string {
  const { cells, neededBytes } = ours.at(-1)!.cost;
  const rows = [['ours', ours] as const, ...peers].map(([name, runs]) => {
    const { counts } = runs.at(-1)!;
    const requests = fileRequests(counts);
    return [
      name,
      ...[requests, requests / ASSET_NAMES.length, requests / cells].map((value) => `${round(value)}`),
      ...[counts.heads, counts.notFound].map(String),
      megabytes(counts.bytes),
      (counts.bytes / neededBytes).toFixed(3),
    ];
  });
  return markdown(
    [title, 'requests', 'a file', 'a cell', 'HEAD', '404', 'MB', 'bytes / needed bytes'],
    rows,
  ).join('\n');
}

const round = (value: number) => Number(value.toPrecision(2));
const milliseconds = (seconds: number[]) => spread(seconds.map((value) => 1000 * value));

/** Wall-clock and CPU time, and ours over that of each peer. */
export function timeTable(title: string, { ours, peers }: Fetches): string {
  const wall = ours.map(({ cost }) => cost.wallSeconds);
  const cpu = ours.map(({ cost }) => cost.cpuSeconds);
  const decodedWall = ours.map(({ cost }) => cost.wallSeconds + cost.decode.wallSeconds);
  const decodedCpu = ours.map(({ cost }) => cost.cpuSeconds + cost.decode.cpuSeconds);
  const own = (name: string, walls: number[], cpus: number[]) => [
    ...[
      name,
      milliseconds(ours.map(({ cost }) => cost.searchSeconds)),
      milliseconds(walls),
      milliseconds(cpus),
    ],
    ...['', '', ''],
  ];
  const rows = [...peers].map(([name, runs]) => {
    const of = (value: (cost: FetchCost) => number) => runs.map(({ cost }) => value(cost));
    const [theirWall, theirCpu] = [of((cost) => cost.wallSeconds), of((cost) => cost.cpuSeconds)];
    return [
      name,
      milliseconds(of((cost) => cost.searchSeconds)),
      milliseconds(theirWall),
      milliseconds(theirCpu),
      spread(ratios(wall, theirWall)),
      spread(ratios(decodedWall, theirWall)),
      spread(ratios(decodedCpu, theirCpu)),
    ];
  });
  return markdown(
    [
      ...[title, 'search, ms', 'wall, ms', 'CPU ms'],
      ...['wall, ours / theirs', 'the same, decoded', 'CPU, ours decoded / theirs'],
    ],
    [own('ours', wall, cpu), own('ours, decoded', decodedWall, decodedCpu), ...rows],
  ).join('\n');
}

const WALL_MARKS: Record<string, number> = { 'odc-stac': 0.7, 'async-geotiff': 1.2 };

export function requestMarks(cell: Fetches, region: Fetches): Mark[] {
  const last = ({ ours }: Fetches) => ours.at(-1)!;
  const files = Object.values(last(cell).counts.files);
  const both = [last(cell).counts, last(region).counts];
  return [
    { name: 'one cell: requests a file', most: 3, measured: Math.max(...files) },
    { name: 'HEAD requests', most: 0, measured: both.reduce((sum, { heads }) => sum + heads, 0) },
    { name: 'answers 404', most: 0, measured: both.reduce((sum, { notFound }) => sum + notFound, 0) },
    {
      name: 'region: requests a cell',
      most: 0.5,
      measured: fileRequests(last(region).counts) / last(region).cost.cells,
    },
    ...Object.entries({ 'one cell': cell, region }).map(([name, fetches]) => ({
      name: `${name}: bytes over those of the needed blocks`,
      most: 1.05,
      measured: last(fetches).counts.bytes / last(fetches).cost.neededBytes,
    })),
  ];
}

/** Medians of the ratios of wall-clock times. */
export function wallMarks(name: string, { ours, peers }: Fetches): Mark[] {
  const wall = ours.map(({ cost }) => cost.wallSeconds);
  return [...peers].flatMap(([peer, runs]) =>
    WALL_MARKS[peer] === undefined
      ? []
      : [
          {
            name: `${name}: wall of the fetch / ${peer}`,
            most: WALL_MARKS[peer],
            measured: median(
              ratios(
                wall,
                runs.map(({ cost }) => cost.wallSeconds),
              ),
            ),
          },
        ],
  );
}

export function fetchResults(name: string, { ours, peers }: Fetches): BenchResult[] {
  const of = (runs: Run<FetchCost>[], value: (cost: FetchCost) => number) =>
    median(runs.map(({ cost }) => value(cost)));
  const all = (value: (cost: FetchCost) => number) =>
    Object.fromEntries([...peers].map(([peer, runs]) => [peer, of(runs, value)]));
  const wall = ({ wallSeconds }: FetchCost) => wallSeconds;
  const cpu = ({ cpuSeconds }: FetchCost) => cpuSeconds;
  return [
    result(`${name}: wall of the fetch`, 's', of(ours, wall), all(wall)),
    result(`${name}: CPU of the fetch`, 's', of(ours, cpu), all(cpu)),
  ];
}
