/**
 * `analysis-nodes`: `stats`, `match` and `unmix` of cubes in many cells by three nodes of one core, compared with one node. A job ends
 * when the busiest node is done. So the speedup is the CPU time of the single node divided by that of the busiest of the three, and the
 * benchmark does not need three cores.
 */
import { linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ENDMEMBERS, writeSpectrometerLikeSeries } from '../../data-samples/index.js';
import { Client, httpTransport } from '../../src/client/index.js';
import { ready, type Server, settled, startEtcd, startNode, startSingle, stop } from '../cluster/servers.js';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';
import { treeCpuSeconds } from '../support/measure-tree.js';
import { BENCH_FOLDER } from '../support/scene.js';

const NODES = ['a', 'b', 'c'];
const OWNERS = 2;
const BANDS = 200;
/** Slots are cells of precision 4, of about 25 x 20 km here: each cube lies in one of its own. */
const [COLUMNS, ROWS, EAST, NORTH] = [6, 6, 28_000, 20_000];
/** Target speedup of three nodes. */
const WANTED = 0.8 * NODES.length;

export async function benchAnalysisNodes({ short, log }: BenchOptions): Promise<BenchResult[]> {
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'analysis-'));
  const servers: Server[] = [];
  const etcd = await startEtcd(folder, 1);
  try {
    const single = await startSingle(folder, 'single', 1);
    servers.push(single);
    await ready(single);
    const three = await Promise.all(NODES.map((name) => startNode({ folder, etcd }, name, 1)));
    servers.push(...three);
    await settled(three, OWNERS);
    const paths = await writeCubes(folder, short ? 64 : 256);
    log('ingest');
    for (const server of [single, three[0]!])
      await run(server, 'ingest', { paths, collection: 'cubes', precision: 5 });
    const results: BenchResult[] = [];
    for (const name of ['stats', 'match', 'unmix']) {
      const speedups: number[] = [];
      const works: number[] = [];
      // The first job starts the threads.
      for (let round = 0; round < (short ? 2 : 4); round++) {
        const inputs = inputsOf(name, round);
        const [one] = await costs([single], name, inputs);
        const all = await costs(three, name, inputs);
        log(`${name}: one node ${one!.toFixed(2)} CPU s, three ${all.map((s) => s.toFixed(2)).join(', ')}`);
        if (round === 0) continue;
        speedups.push(one! / Math.max(...all));
        works.push(all.reduce((sum, s) => sum + s, 0) / one!);
      }
      const title = `${name} on three nodes of one core`;
      results.push(
        result(`${title}: speedup, more is better`, 'times', median(speedups), { wanted: WANTED }),
      );
      results.push(result(`${title}: work of all, less is better`, 'times that of one', median(works)));
    }
    return results;
  } finally {
    await Promise.all(servers.map(({ child }) => stop(child)));
    await etcd.stop();
    rmSync(folder, { recursive: true });
  }
}

/** The same cube at many places. Returns the paths of its headers. */
async function writeCubes(folder: string, side: number): Promise<string[]> {
  const size = { width: side, height: side };
  const { cubes } = await writeSpectrometerLikeSeries(join(folder, 'cubes'), {
    size,
    dates: 1,
    bands: BANDS,
  });
  const header = cubes[0]!.path;
  const text = readFileSync(header, 'utf8');
  return Array.from({ length: COLUMNS * ROWS }, (_, i) => {
    const path = header.replace(/[^/]*\.hdr$/, `cube${i}.hdr`);
    const [x, y] = [300_000 + EAST * (i % COLUMNS), 5_300_000 + NORTH * Math.floor(i / COLUMNS)];
    writeFileSync(path, text.replace(/(map info = \{UTM, *1, *1, *)[^,]*,[^,]*/, `$1${x}, ${y}`));
    linkSync(header.replace(/hdr$/, 'bil'), path.replace(/hdr$/, 'bil'));
    return path;
  });
}

/** Each round has its own library: an analysis does not recompute the maps of a known one. */
function inputsOf(name: string, round: number): object {
  const filter = { collections: ['cubes'] };
  if (name === 'stats') return { filter };
  const wavelengths = Array.from({ length: 100 }, (_, i) => 420 + 20 * i);
  const spectra = ENDMEMBERS.map(({ name }, k) => ({
    name,
    values: wavelengths.map((nm) => 0.3 + 0.01 * round + 0.2 * Math.sin((nm / 300) * (k + 1))),
  }));
  return { filter, library: { wavelengths, spectra } };
}

/** CPU seconds of each server during an analysis. */
async function costs(servers: Server[], name: string, inputs: object): Promise<number[]> {
  // The last job may still copy its maps to the store.
  await sleep(3000);
  const before = servers.map(({ child }) => treeCpuSeconds([child.pid!]));
  await run(servers[0]!, `analyse-${name}`, inputs);
  return servers.map(({ child }, i) => treeCpuSeconds([child.pid!]) - before[i]!);
}

async function run(server: Server, process: string, inputs: object): Promise<void> {
  await new Client(httpTransport(server.url)).run(process, inputs);
}
