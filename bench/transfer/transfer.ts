/**
 * `transfer`: how soon a place learns from a model of a place that looks alike (figure 9 of "Small is Beautiful"), compared with a random
 * model, a probed model and a fresh start; on land with planted textures and on real scenes.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { digits } from '../../src/cli/compare/measures.js';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { selectEngine } from '../../src/engines/index.js';
import { loadEngine } from '../../src/engines/load.js';
import type { Tf } from '../../src/engines/tfjs.js';
import { openNode } from '../../src/node.js';
import type { Storage } from '../../src/storage/index.js';
import {
  type ClusteredCollection,
  getModelSpec,
  TextureIndex,
  type TextureResults,
  type TrainResults,
} from '../../src/training/index.js';
import { TRANSFER_POLICIES } from '../../src/training/model-card.js';
import { type BenchOptions, type BenchResult, median, result, verdictCells } from '../support/bench.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { markdown } from '../training/markdown.js';
import {
  type Curve,
  curveOf,
  placesOf,
  type StartKind,
  startOf,
  startsOfOthers,
  tunedRate,
} from './curves.js';
import { datedPlaces, ingestReal, plantPlaces } from './places.js';
import { type LossLine, lossPlot } from './plot.js';
import { adjustedRand, bestInHindsight, medianCurve, scoresOf } from './scores.js';

const PLANTED = 'planted';
/** Places with cloudy dates. */
const DATED = 'dated';
/** Such places of each region. */
const DATED_EACH = 2;
/** Seed of the parents. It differs from the seeds of the compared models. */
const PARENT_SEED = 100;

const STARTS: StartKind[] = TRANSFER_POLICIES.map((policy) => ({ name: policy, policy }));
const SCHEDULES: StartKind[] = [
  { name: 'similar, head', policy: 'similar', fineTuning: 'head' },
  { name: 'similar, gradual', policy: 'similar', fineTuning: 'gradual' },
];
/** A start from the other place that proved best afterwards: the upper limit of any choice of the place. */
const HINDSIGHT = 'best in hindsight';

/** Rows of the tables. */
const ROWS = [...[...STARTS, ...SCHEDULES].map(({ name }) => name), HINDSIGHT];

/** How a kind of model is compared. */
interface Comparison {
  epochs: number;
  /** Candidate step sizes, and how many seeds try each. The benchmark uses the best one for a fresh start. */
  rates: number[];
  tried: number;
  /** True to compare on the real scenes as well, including the best in hindsight. */
  real?: boolean;
  /** True to compare schedules in which the last layers train alone, too. */
  schedules?: boolean;
  /** True to compare only one place of each kind; all of them are parents. */
  onePerKind?: boolean;
  /** True for places with cloudy dates instead of the planted ones. */
  dated?: boolean;
  /** Default: the seeds of the benchmark. */
  seeds?: number;
}

interface Size {
  /** Places of each kind of land. */
  each: number;
  seeds: number;
  models: Record<string, Comparison>;
}

/** The step size of the model itself: trying others takes as long as the comparison. */
const CLOUD_RATES = [getModelSpec('cloud-removal').learningRate];

const FULL: Size = {
  ...{ each: 5, seeds: 3 },
  models: {
    ndvi: { epochs: 30, rates: [1e-3, 2e-3, 3e-3, 5e-3, 1e-2, 2e-2], tried: 3, real: true, schedules: true },
    ndmi: { epochs: 20, rates: [2e-3, 4e-3, 8e-3], tried: 1, onePerKind: true },
    'cloud-removal': { epochs: 3, rates: CLOUD_RATES, tried: 1, onePerKind: true, dated: true, seeds: 1 },
  },
};
const SHORT: Size = {
  ...{ each: 2, seeds: 1 },
  models: { ndvi: { epochs: 3, rates: [2e-3, 5e-3], tried: 1 } },
};

export async function benchTransfer({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const size = short ? SHORT : FULL;
  const only = process.env.TILEWRIGHT_BENCH_ONLY?.split(',') ?? Object.keys(size.models);
  // The same settings as in training. The library reads them once, when it is loaded.
  Object.assign(process.env, { OMP_NUM_THREADS: '1', OMP_WAIT_POLICY: 'passive' });
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'transfer-'));
  const node = await openNode({ data: join(folder, 'data'), memory: 4e9, cores: 2, reserve: 0 });
  try {
    const client = new Client(inProcessTransport(node));
    const { name, version } = await selectEngine({});
    const { tf } = await loadEngine(name);
    log(`engine ${name} ${version}`);
    const chosen = Object.entries(size.models).filter(([model]) => only.includes(model));
    const results: BenchResult[] = [];
    /** The kind of each place of the collections of generated land. */
    const generated = new Map<string, Map<string, string>>();
    if (chosen.some(([, { dated }]) => !dated)) {
      const kinds = await plantPlaces(client, PLANTED, size.each, join(folder, 'scenes'));
      generated.set(PLANTED, kinds);
      const rand = await plantedClusters(client, kinds, log);
      results.push(result('clusters of planted textures, adjusted Rand index (mark 0.9)', '', rand));
    }
    if (chosen.some(([, { dated }]) => dated)) {
      generated.set(DATED, await datedPlaces(client, DATED, DATED_EACH, join(folder, 'dated')));
      await client.run('texture', { filter: { collections: [DATED] } });
    }
    const scenes = chosen.some(([, { real }]) => real) ? await ingestReal(client) : [];
    for (const collection of scenes) await client.run('texture', { filter: { collections: [collection] } });
    const panels = new Map<string, LossLine[]>();
    for (const [model, comparison] of chosen) {
      const land = comparison.dated ? DATED : PLANTED;
      const kinds = generated.get(land)!;
      // The first places are of different kinds.
      const few = comparison.onePerKind
        ? [...kinds.keys()].slice(0, new Set(kinds.values()).size)
        : undefined;
      for (const collection of [land, ...(comparison.real ? scenes : [])]) {
        const measured = { seeds: size.seeds, ...comparison, collection, model, few, log };
        const curves = await measure(tf, client, node.storage, measured);
        panels.set(
          `${model}, ${collection}`,
          TRANSFER_POLICIES.map((policy) => ({ policy, losses: medianCurve(curves, policy) })),
        );
        log(`\n\n${table(curves).join('\n')}\n`);
        results.push(...resultsOf(`${model}, ${collection}`, curves));
      }
    }
    log(`losses by epoch: ${await writePlot(panels)}`);
    log(`\n\n${curveTable(panels).join('\n')}\n`);
    return results;
  } finally {
    await node.close();
    rmSync(folder, { recursive: true });
  }
}

/** How well the clusters agree with the planted kinds. */
async function plantedClusters(
  client: Client,
  kinds: Map<string, string>,
  log: (line: string) => void,
): Promise<number> {
  // The edges of scenes extend into neighbouring cells.
  const whole = { collections: [PLANTED], minCoverage: 99 };
  const { results } = await client.run<TextureResults>('texture', { filter: whole });
  const [{ clusters, curve }] = results.collections as [ClusteredCollection];
  log(`${clusters.length} clusters of ${new Set(kinds.values()).size} kinds: ${JSON.stringify(curve)}`);
  for (const { places } of clusters) log(places.map((place) => kinds.get(place)).join(' '));
  const labelled = clusters.flatMap(({ places }, i) => places.map((place) => [kinds.get(place)!, `${i}`]));
  return adjustedRand(
    labelled.map(([region]) => region!),
    labelled.map(([, cluster]) => cluster!),
  );
}

interface Measure extends Comparison {
  collection: string;
  model: string;
  seeds: number;
  /** Geocodes of the places that are compared. Default: all. */
  few?: string[];
  log: (line: string) => void;
}

async function measure(
  tf: Tf,
  client: Client,
  storage: Storage,
  { collection, model, epochs, rates, tried, schedules, seeds, few, log }: Measure,
): Promise<Curve[]> {
  const spec = getModelSpec(model);
  const all = await placesOf(storage, collection, spec);
  const places = few ? all.filter(({ place }) => few.includes(place.geocode)) : all;
  const learningRate = await tunedRate(tf, storage, places, { spec, rates, epochs, seeds: tried }, log);
  log(
    `${model}, ${collection}: ${places.length} places, step size ${learningRate}, the model's own is ${spec.learningRate}`,
  );
  const kind = { model, mode: 'partitioned', history: 'none' };
  const inputs = { ...kind, epochs, seed: PARENT_SEED, filter: { collections: [collection] } };
  const parents = (await client.run<TrainResults>('train', inputs)).results;
  const cost = parents.models.reduce((sum, { seconds }) => sum + seconds, 0);
  log(`${parents.models.length} parents, ${digits(cost / parents.models.length)} s each`);
  const textures = new TextureIndex(storage);
  const starts = [...STARTS, ...(schedules ? SCHEDULES : [])];
  const curves: Curve[] = [];
  const others: Curve[] = [];
  for (let seed = 1; seed <= seeds; seed++) {
    const options = { spec: { ...spec, learningRate }, seed, epochs };
    for (const kind of seed % 2 === 0 ? starts : starts.toReversed()) {
      const start = await startOf(storage, textures, model, kind, seed);
      for (const place of places) curves.push(await curveOf(tf, storage, place, start, options));
      log(`${model}, ${collection}, seed ${seed}: ${kind.name}`);
    }
    if (collection === PLANTED || collection === DATED) continue;
    for (const place of places)
      for (const start of await startsOfOthers(storage, model, place.place))
        others.push(await curveOf(tf, storage, place, start, options));
  }
  return [...curves, ...bestInHindsight(curves, others, HINDSIGHT)];
}

function table(curves: Curve[]): string[] {
  const scores = scoresOf(curves);
  const shown = (value: number) => (Number.isFinite(value) ? digits(value) : 'not reached');
  return markdown(
    [
      ...['start', 'epochs to the target', 'reached', 'CPU s to the target'],
      ...['epochs / fresh', 'error / fresh', 'better at', 'verdict'],
    ],
    ROWS.filter((row) => scores.some(({ start }) => start === row)).map((name) => {
      const { epochs, cpu, error, sooner } = scores.find(({ start }) => start === name)!;
      const reached = epochs.filter(Number.isFinite).length;
      return [
        name,
        shown(median(epochs)),
        `${reached} of ${epochs.length}`,
        shown(median(cpu)),
        ...(name === 'none' ? ['', '', '', ''] : [verdictCells(sooner)[0], ...verdictCells(error)]),
      ];
    }),
  );
}

function resultsOf(of: string, curves: Curve[]): BenchResult[] {
  const scores = scoresOf(curves);
  const fresh = scores.find(({ start }) => start === 'none')!;
  return (
    scores
      .filter(({ start }) => start !== 'none')
      .flatMap(({ start, epochs, cpu, error }) => [
        result(
          `${of}: epochs to the target, fresh over ${start}`,
          'x',
          median(fresh.epochs) / median(epochs),
        ),
        result(`${of}: CPU seconds to the target, fresh over ${start}`, 'x', median(fresh.cpu) / median(cpu)),
        result(`${of}: validation error at the selected epoch, ${start} over fresh`, 'x', error.ratio!),
      ])
      // Exclude targets that one of the two does not reach.
      .filter(({ ours }) => Number.isFinite(ours))
  );
}

/** The raw numbers behind the picture. */
function curveTable(panels: Map<string, LossLine[]>): string[] {
  const rows = [...panels].flatMap(([title, lines]) =>
    lines.map(({ policy, losses }) => {
      const at = [1, 2, 3, 5, 10, 20, losses.length];
      return [title, policy, ...at.map((epoch) => losses[epoch - 1]?.toFixed(3) ?? '')];
    }),
  );
  return markdown(['places', 'start', 'epoch 1', '2', '3', '5', '10', '20', 'last'], rows);
}

/** With UPDATE_DOCS=1 the plot replaces the picture of the documentation. */
async function writePlot(panels: Map<string, LossLine[]>): Promise<string> {
  const path = process.env.UPDATE_DOCS
    ? fileURLToPath(new URL('../../../docs/images/transfer.svg', import.meta.url))
    : join(BENCH_FOLDER, 'transfer.svg');
  await writeFile(path, lossPlot(panels));
  return path;
}
