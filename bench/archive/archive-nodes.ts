/**
 * `archive-nodes`: a whole remote scene by three nodes of one core that read it together, compared with one node. A scene is ready when the
 * busiest node is done. So the speedup is the CPU time of the single node divided by that of the busiest of the three, and the benchmark
 * does not need three cores.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, httpTransport } from '../../src/client/index.js';
import type { Bbox } from '../../src/grid/index.js';
import { ready, type Server, settled, startEtcd, startNode, startSingle, stop } from '../cluster/servers.js';
import { type BenchOptions, type BenchResult, isInstalled, median, result } from '../support/bench.js';
import { treeCpuSeconds } from '../support/measure-tree.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { type ArchiveServer, fileRequests, startArchiveServer } from './archive-server.js';
import { ASSET_NAMES, COLLECTION, itemFiles } from './item-files.js';
import { PRECISION, regionOf } from './region.js';

const NODES = ['a', 'b', 'c'];
const OWNERS = 2;
const ROUNDS = 3;
/** Cells a side of a region that the scene fills: about 97 x 97 km. */
const SIDE = 20;

interface Cost {
  /** CPU seconds of each node. */
  cpuSeconds: number[];
  seconds: number;
  bytes: number;
  requests: number;
  tiles: number;
}

export async function benchArchiveNodes({ short, log }: BenchOptions): Promise<BenchResult[]> {
  if (!isInstalled('gdal_translate') || !isInstalled('etcd')) {
    log('GDAL or etcd is not installed: no figures');
    return [];
  }
  const files = itemFiles(10_980, log);
  const region = regionOf(files, short ? 8 : SIDE);
  const archive = await startArchiveServer(files);
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'nodes-'));
  const servers: Server[] = [];
  const etcd = await startEtcd(folder, 1);
  try {
    const flags = ['--allow-host', archive.host];
    const single = await startSingle(join(folder, 'one'), 'single', 1, { withStore: true, flags });
    servers.push(single);
    await ready(single);
    const three = await Promise.all(NODES.map((name) => startNode({ folder, etcd, flags }, name, 1)));
    servers.push(...three);
    await settled(three, OWNERS);
    const all: { one: Cost; together: Cost }[] = [];
    // The first round starts the threads.
    for (let round = 0; round <= (short ? 1 : ROUNDS); round++) {
      const one = await measure(archive, [single], region, round);
      const together = await measure(archive, three, region, round);
      log(`one node: ${JSON.stringify(one)}\nthree nodes: ${JSON.stringify(together)}`);
      if (one.tiles !== together.tiles) throw new Error('the nodes made other tiles');
      if (round > 0) all.push({ one, together });
    }
    const each = (of: (one: Cost, together: Cost) => number) =>
      median(all.map(({ one, together }) => of(one, together)));
    const sum = ({ cpuSeconds }: Cost) => cpuSeconds.reduce((total, value) => total + value, 0);
    const title = 'a remote scene by three nodes of one core';
    return [
      result(
        `${title}: speedup, more is better`,
        'times',
        each((one, together) => sum(one) / Math.max(...together.cpuSeconds)),
      ),
      result(
        `${title}: work of all`,
        'times that of one',
        each((one, three) => sum(three) / sum(one)),
      ),
      result(
        `${title}: bytes read`,
        'times those of one',
        each((one, three) => three.bytes / one.bytes),
      ),
      result(
        `${title}: requests`,
        '',
        each((_, three) => three.requests),
        { 'one node': each((one) => one.requests) },
      ),
    ];
  } finally {
    archive.stop();
    await Promise.all(servers.map(({ child }) => stop(child)));
    await etcd.stop();
    rmSync(folder, { recursive: true });
  }
}

/** Each round makes a collection of its own. */
async function measure(archive: ArchiveServer, servers: Server[], bbox: Bbox, round: number): Promise<Cost> {
  // The last job may still copy its tiles.
  await sleep(3000);
  const stac = { url: archive.api, collections: [COLLECTION], assets: ASSET_NAMES };
  const before = servers.map(({ child }) => treeCpuSeconds([child.pid!]));
  const started = performance.now();
  const { value, counts } = await archive.count(async () => {
    const client = new Client(httpTransport(servers[0]!.url));
    return client.run('ingest', { stac, bbox, precision: PRECISION, collection: `round-${round}` });
  });
  return {
    cpuSeconds: servers.map(({ child }, i) => treeCpuSeconds([child.pid!]) - before[i]!),
    seconds: (performance.now() - started) / 1000,
    bytes: counts.bytes,
    requests: fileRequests(counts),
    tiles: (value.results as unknown as { tiles: number }).tiles,
  };
}
