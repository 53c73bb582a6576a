/**
 * `training`: the tables and figures of "Small is Beautiful", measured on a cluster of three nodes: duration, accuracy, bytes and CPU of
 * one model for all places (distributed), compared with a model for each place (partitioned, contained), and memory by the size of a place.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cellScores } from '../../src/cli/compare/measures.js';
import { type ComparedRun, runOrder } from '../../src/cli/compare/runs.js';
import { mayMakeNamespaces } from '../../test/cluster/network/namespaces.js';
import { type BenchOptions, type BenchResult, isInstalled } from '../support/bench.js';
import { treeCpuSeconds } from '../support/measure-tree.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { cpuPlot } from './cpu-plot.js';
import { measureLine } from './line.js';
import { measureMemory, memoryResults, memoryTable } from './memory.js';
import { type TrainingCluster, withCluster } from './nodes.js';
import { layRegions } from './regions.js';
import { measured, train } from './run.js';
import { shape } from './shaped.js';
import {
  accuracyTable,
  cpuTable,
  type LineRuns,
  MODES,
  placeTable,
  ratioTable,
  results,
  timeTable,
  trafficTable,
} from './tables.js';

/** The round trip takes 0.5 ms. */
const LINE = { rate: 1e9, delay: 0.25e-3 };
const [UNSHAPED, SHAPED] = ['unshaped', '1 Gbit/s, 0.5 ms'] as const;

interface Size {
  places: number;
  rounds: number;
  lines: (typeof UNSHAPED | typeof SHAPED)[];
  /** Epochs of each model. */
  epochs: Record<string, number>;
  /** Duration of the measurement of idle traffic. */
  idleSeconds: number;
}

/** The larger models take hours in rounds, and the line changes their times less than those of a small model. */
const FULL: Size[] = [
  { places: 9, rounds: 3, lines: [UNSHAPED, SHAPED], epochs: { ndvi: 30 }, idleSeconds: 40 },
  { places: 9, rounds: 1, lines: [UNSHAPED], epochs: { ndmi: 3, 'cloud-removal': 1 }, idleSeconds: 40 },
];
const SHORT: Size[] = [
  {
    places: 3,
    rounds: 1,
    lines: [UNSHAPED, SHAPED],
    epochs: { ndvi: 5, ndmi: 1, 'cloud-removal': 1 },
    idleSeconds: 10,
  },
];

export async function benchTraining({ log, ...rest }: BenchOptions): Promise<BenchResult[]> {
  const begun = performance.now();
  const options = {
    ...rest,
    log: (line: string) => log(`${((performance.now() - begun) / 1e3).toFixed(0)} s: ${line}`),
  };
  // Each program ends with this process.
  process.setMaxListeners(500);
  const sizes = sizesOf(options.short);
  const models = sizes.flatMap(({ epochs }) => Object.keys(epochs));
  const memoryOfPlaces = await measureMemory(models, options);
  options.log(`\n\n${memoryTable(memoryOfPlaces).join('\n')}\n`);
  const memory = memoryResults(memoryOfPlaces);
  const missing = missingForCluster();
  if (missing) {
    log(`no cluster: ${missing}`);
    return memory;
  }
  const found: BenchResult[] = [];
  for (const size of sizes) found.push(...(await withCluster((cluster) => tables(cluster, size, options))));
  return [...found, ...memory];
}

/** With TILEWRIGHT_BENCH_ONLY, the sizes include only the models that the variable lists. */
function sizesOf(short: boolean): Size[] {
  const only = process.env.TILEWRIGHT_BENCH_ONLY?.split(',');
  return (short ? SHORT : FULL).flatMap((size) => {
    const epochs = Object.entries(size.epochs).filter(([model]) => only?.includes(model) ?? true);
    return epochs.length === 0 ? [] : [{ ...size, epochs: Object.fromEntries(epochs) }];
  });
}

function missingForCluster(): string | undefined {
  if (!isInstalled('etcd')) return 'etcd is not on PATH';
  if (!mayMakeNamespaces()) return 'this process may make no network namespaces; that takes root';
  return undefined;
}

async function tables(
  cluster: TrainingCluster,
  size: Size,
  { log }: Pick<BenchOptions, 'log'>,
): Promise<BenchResult[]> {
  const { places: count, rounds, lines: ofSize, epochs } = size;
  const places = await layRegions(cluster.nodes, count, join(cluster.folder, 'scenes'));
  log(`places: ${places.map(({ geocode, region }) => `${geocode} ${region}`).join(', ')}`);
  log(`epochs: ${JSON.stringify(epochs)}, ${rounds} rounds, seeds from 1`);
  await train(cluster, { model: 'ndvi', mode: 'partitioned', epochs: 1, seed: 1 });
  const lines: LineRuns[] = [];
  const python = spawnSync('python3', ['--version']).status === 0;
  if (!python) log('no shaped line: python3 is not on PATH');
  const seeds = Array.from({ length: rounds }, (_, round) => round + 1);
  const order = runOrder(MODES, seeds);
  for (const seed of seeds)
    for (const line of python ? ofSize : [UNSHAPED]) {
      const shaped = line === SHAPED ? await shape(cluster.network, LINE) : undefined;
      try {
        let runs = lines.find((one) => one.line === line);
        if (!runs) {
          runs = await idleLine(cluster, line, size, seeds, log);
          lines.push(runs);
        }
        for (const { model, runs: all } of runs.comparisons)
          for (const { mode } of order.filter((turn) => turn.seed === seed)) {
            const before = shaped ? treeCpuSeconds([shaped.pid]) : 0;
            const run = await train(cluster, { model, mode, epochs: epochs[model]!, seed });
            requireWhole(model, run, count);
            all.push(run);
            const switching = shaped
              ? `, the switch ${(treeCpuSeconds([shaped.pid]) - before).toFixed(2)}`
              : '';
            const { seconds, usage } = run;
            log(
              `${line}, round ${seed}: ${model} ${mode}: ${seconds.toFixed(2)} s, ${usage.cpuSeconds.toFixed(1)} CPU s${switching}, ${usage.sentBytes} bytes`,
            );
          }
      } finally {
        await shaped?.end();
      }
    }
  const last = lines.at(-1)!;
  const regionOf = new Map(places.map(({ geocode, region }) => [geocode, region]));
  const text = [
    timeTable(lines),
    accuracyTable(last),
    placeTable(last, regionOf),
    trafficTable(lines),
    ratioTable(lines),
    cpuTable(lines),
  ];
  for (const table of text) log(`\n\n${table.join('\n')}\n`);
  log(`CPU over time: ${await writePlot(last)}`);
  return results(lines);
}

/** Measures a line and the idle nodes before the first training. */
async function idleLine(
  cluster: TrainingCluster,
  line: string,
  { epochs, idleSeconds }: Size,
  seeds: number[],
  log: BenchOptions['log'],
): Promise<LineRuns> {
  const { roundTrip, rate } = await measureLine(cluster);
  log(`${line}: ${(1e3 * roundTrip).toFixed(3)} ms there and back, ${(rate / 1e9).toFixed(2)} Gbit/s`);
  const { usage: idle } = await measured(cluster, () => sleep(1000 * idleSeconds));
  const idleBytesPerSecond = idle.sentBytes! / idle.seconds;
  log(`${line}: ${idleBytesPerSecond.toFixed(0)} bytes a second while nothing is trained`);
  const comparisons = Object.keys(epochs).map((model) => ({
    ...{ model, modes: MODES, seeds, runs: [], failed: [], idleBytesPerSecond },
  }));
  return { line, idle, comparisons };
}

function requireWhole(model: string, { mode, results }: ComparedRun, places: number): void {
  const trained = cellScores(results).size;
  if (trained !== places)
    throw new Error(
      `${model} ${mode}: ${trained} of ${places} places; ${JSON.stringify([results.skipped, results.failed])}`,
    );
}

/** Plots the CPU time of the first round. Returns the path of the picture. */
async function writePlot({ comparisons }: LineRuns): Promise<string> {
  const picture = cpuPlot(
    comparisons.flatMap(({ model, runs }) =>
      runs.filter(({ seed }) => seed === 1).map(({ mode, usage }) => ({ model, mode, points: usage.trace })),
    ),
  );
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const path = join(BENCH_FOLDER, `training-cpu-${comparisons.map(({ model }) => model).join('-')}.svg`);
  await writeFile(path, picture);
  return path;
}
