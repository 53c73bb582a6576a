/**
 * The curriculum of `train --representatives-first`, compared with fresh models: one place of each cluster trains first, and the others
 * start from its model. Each seed has its own store, because a curriculum would also start from models of earlier trainings.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { computeSpread, digits, spreadText } from '../../src/cli/compare/measures.js';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { openNode } from '../../src/node.js';
import type { TrainResults } from '../../src/training/index.js';
import {
  type BenchOptions,
  type BenchResult,
  compareErrors,
  median,
  result,
  verdictCells,
} from '../support/bench.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { markdown } from '../training/markdown.js';
import { ingestReal, plantPlaces } from './places.js';

const PLANTED = 'planted';
const PATIENCE = 5;

/** Both trainings of the places of a collection with one seed. */
interface Pair {
  epochs: { curriculum: number; fresh: number };
  seconds: { curriculum: number; fresh: number };
  /** Validation errors by place. */
  errors: { curriculum: Map<string, number>; fresh: Map<string, number> };
}

export async function benchCurriculum({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const seeds = short ? [1] : [1, 2, 3];
  const pairs = new Map<string, Pair[]>();
  for (const seed of seeds)
    await withNode(async (client, folder) => {
      await plantPlaces(client, PLANTED, short ? 2 : 5, join(folder, 'scenes'));
      for (const collection of [PLANTED, ...(short ? [] : await ingestReal(client))]) {
        await client.run('texture', { filter: { collections: [collection] } });
        const pair = await trainBoth(client, collection, { seed, epochs: short ? 3 : 30 });
        pairs.set(collection, [...(pairs.get(collection) ?? []), pair]);
        log(`${collection}, seed ${seed}: ${row(collection, [pair]).join(' | ')}`);
      }
    });
  const rows = [...pairs].map(([collection, all]) => row(collection, all));
  log(`\n\n${markdown(TITLES, rows).join('\n')}\n`);
  return [...pairs].map(([collection, all]) =>
    result(
      `${collection}: seconds of fresh trainings over those of the curriculum`,
      'x',
      1 / median(all.map(({ seconds }) => seconds.curriculum / seconds.fresh)),
    ),
  );
}

async function withNode(work: (client: Client, folder: string) => Promise<void>): Promise<void> {
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'curriculum-'));
  const node = await openNode({ data: join(folder, 'data'), memory: 4e9, cores: 2, reserve: 0 });
  try {
    await work(new Client(inProcessTransport(node)), folder);
  } finally {
    await node.close();
    rmSync(folder, { recursive: true });
  }
}

async function trainBoth(
  client: Client,
  collection: string,
  { seed, epochs }: { seed: number; epochs: number },
): Promise<Pair> {
  const inputs = { model: 'ndvi', epochs, patience: PATIENCE, seed, filter: { collections: [collection] } };
  const train = async (more: object) =>
    (await client.run<TrainResults>('train', { ...inputs, ...more })).results.models;
  const curriculum = await train({ transfer: 'similar', curriculum: true });
  const fresh = new Map((await train({ mode: 'partitioned' })).map((model) => [model.geocode, model]));
  const both = curriculum.filter(({ geocode }) => fresh.has(geocode));
  const sums = (of: (model: TrainResults['models'][number]) => number) => ({
    curriculum: both.reduce((sum, model) => sum + of(model), 0),
    fresh: both.reduce((sum, { geocode }) => sum + of(fresh.get(geocode)!), 0),
  });
  return {
    epochs: sums((model) => model.epochs),
    seconds: sums(({ seconds }) => seconds),
    errors: {
      curriculum: new Map(both.map(({ geocode, metrics }) => [geocode, metrics.validation.mse])),
      fresh: new Map(both.map(({ geocode }) => [geocode, fresh.get(geocode)!.metrics.validation.mse])),
    },
  };
}

const TITLES = [
  'places',
  'epochs, fresh',
  'epochs, curriculum',
  'seconds, curriculum / fresh',
  'error, curriculum / fresh',
  'better at',
  'verdict',
];

/** Costs are medians over the seeds, with minimum and maximum; the error is the mean ratio over the places with its 95 % interval. */
function row(collection: string, pairs: Pair[]): string[] {
  // The generated land is the same for each seed.
  const compared = compareErrors(
    pairs.map(({ errors }) => errors.curriculum),
    pairs.map(({ errors }) => errors.fresh),
  );
  const text = (of: (pair: Pair) => number) => spreadText(computeSpread(pairs.map(of))!, digits);
  return [
    collection,
    text(({ epochs }) => epochs.fresh),
    text(({ epochs }) => epochs.curriculum),
    text(({ seconds }) => seconds.curriculum / seconds.fresh),
    ...verdictCells(compared),
  ];
}
