/** `throughput`: small models trained in a minute on two cores, beside PyTorch from PyPI that trains the same on the same patches. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { writeSentinelLikeSeries } from '../../data-samples/index.js';
import { toArray } from '../../src/async/index.js';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { readAcquisitions } from '../../src/training/acquisitions.js';
import { groupTilesByCell, trainingFiles } from '../../src/training/cells.js';
import { getModelSpec, type TrainResults } from '../../src/training/index.js';
import { labelImages } from '../../src/training/labelled-images.js';
import { makePatches } from '../../src/training/patches.js';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { installTorch, writeTorchPlace } from './torch.js';

const TORCH_PLACES = fileURLToPath(new URL('../../../bench/engine/torch_places.py', import.meta.url));
const CORES = 2;
/** Ours over the better of PyTorch's. */
const MARK = 1.2;

export async function benchThroughput({ short, log }: BenchOptions): Promise<BenchResult[]> {
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'throughput-'));
  const node = await openNode({ data: join(folder, 'data'), memory: 2e9, cores: CORES, reserve: 0 });
  try {
    const client = new Client(inProcessTransport(node));
    const options = short ? { size: { width: 800, height: 700 } } : {};
    for (const { path } of await writeSentinelLikeSeries(join(folder, 'scenes'), options))
      await client.run('ingest', { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
    const places = await writePlaces(node, folder);
    log(`${places} places`);
    const python = installTorch(log);
    const train = async (epochs?: number) => {
      const inputs = { model: 'ndvi', filter: { collections: ['s'] }, epochs };
      const { models } = (await client.run<TrainResults>('train', inputs)).results;
      if (models.length !== places) throw new Error(`${models.length} models of ${places} places`);
    };
    // A server chooses its engine once; PyTorch's import does not count either.
    await train(1);
    const ours: number[] = [];
    const theirs: Record<string, number[]> = {
      'PyTorch, one process of two threads': [],
      'PyTorch, two of one': [],
    };
    for (let round = 0; round < (short ? 1 : 5); round++) {
      const started = performance.now();
      await train();
      ours.push(places / ((performance.now() - started) / 60_000));
      if (!python) continue;
      const [one, two] = Object.values(theirs) as [number[], number[]];
      one.push(places / ((await torch(python, folder, 1)) / 60));
      two.push(places / ((await torch(python, folder, 2)) / 60));
      log(
        `round ${round + 1}: ${[ours, one, two].map((rates) => rates.at(-1)!.toFixed(0)).join(' ')} models a minute`,
      );
    }
    const peers = python
      ? Object.fromEntries(Object.entries(theirs).map(([name, rates]) => [name, median(rates)]))
      : {};
    return [
      result(
        `NDVI models of ${places} places on two cores (mark ${MARK} x the better)`,
        'models/min',
        median(ours),
        peers,
      ),
    ];
  } finally {
    await node.close();
    rmSync(folder, { recursive: true });
  }
}

/** Writes the patches of all places in the format for PyTorch, and returns the number of places. */
async function writePlaces(node: TilewrightNode, folder: string): Promise<number> {
  const spec = getModelSpec('ndvi');
  let count = 0;
  for (const place of groupTilesByCell(await toArray(node.storage.catalogue.tiles.values()))) {
    const files = trainingFiles(node.storage, spec, place);
    if ('skipped' in files) continue;
    const read = await readAcquisitions(files.dates);
    if ('skipped' in read) continue;
    const patches = makePatches(spec, labelImages(spec, read.dates));
    if ('skipped' in patches) continue;
    await writeTorchPlace(join(folder, `place-${count}`), spec, patches.dataset);
    count++;
  }
  return count;
}

/** Seconds from the first place to the last, of as many processes, which share the cores and the places; importing is left out. */
async function torch(python: string, folder: string, processes: number): Promise<number> {
  const threads = `${CORES / processes}`;
  const times = await Promise.all(
    Array.from({ length: processes }, async (_, part) => {
      const child = spawn(python, [TORCH_PLACES, folder, `${part}`, `${processes}`, threads], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, OMP_NUM_THREADS: threads, MKL_NUM_THREADS: threads },
      });
      const [printed] = await Promise.all([text(child.stdout), once(child, 'close')]);
      return JSON.parse(printed) as { from: number; to: number };
    }),
  );
  return Math.max(...times.map(({ to }) => to)) - Math.min(...times.map(({ from }) => from));
}
