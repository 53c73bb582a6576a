/**
 * `regional`: models that places adapt from one base (`train --mode regional`), beside the base and beside models that were trained for
 * each place alone. On generated regions, which are new for each seed, and on two real scenes. On the generated regions also for three
 * questions: new ground, later dates, and both.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { MIXED, REGIONS, type Region, writeSentinelLikeSeries } from '../../data-samples/index.js';
import { computeSpread, digits, spreadText } from '../../src/cli/compare/measures.js';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { selectEngine } from '../../src/engines/index.js';
import { loadEngine } from '../../src/engines/load.js';
import type { Tf } from '../../src/engines/tfjs.js';
import { geohash } from '../../src/grid/index.js';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { getModelSpec, type TrainResults } from '../../src/training/index.js';
import { installTorch } from '../engine/torch.js';
import {
  type BenchOptions,
  type BenchResult,
  compareErrors,
  result,
  verdictCells,
} from '../support/bench.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { markdown } from '../training/markdown.js';
import { DATES, extentOf, LAND } from '../training/regions.js';
import { ingestReal } from '../transfer/places.js';
import { boostingErrors, installBoosting } from './boosting.js';
import { errorsByQuestion, QUESTIONS, type QuestionErrors, readPlaces } from './questions.js';
import { torchErrors } from './torch.js';

/** Precision of the places, and of the cells by which they are chosen: no two places are near each other. */
const PRECISION = 5;
const APART = 4;
/** Part of the width of a cell that a sliver covers. */
const SLIVER = 0.4;
const SEED_STEP = 100_000;

/** How the generated places differ. */
const LANDS: Record<string, { region(i: number): Region; cover(i: number): number }> = {
  'full cells': { region: (i) => regionAt(i), cover: () => 1 },
  'with slivers': { region: (i) => regionAt(i), cover: (i) => (i % 2 ? SLIVER : 1) },
  'all alike': { region: () => MIXED, cover: () => 1 },
};
const regionAt = (i: number): Region => Object.values(REGIONS)[i % Object.keys(REGIONS).length]!;

const EPOCHS: Record<string, number> = { ndvi: 30, ndmi: 10 };

type Errors = Map<string, number>;

/** One training of a region, and of each of its places alone: errors by place. */
interface Run {
  /** Generated collections have other places for each seed, so places of several collections differ. */
  collection: string;
  base: Errors;
  adapted: Errors;
  fresh: Errors;
  /** Absent if LightGBM is not installed. */
  boosted?: Errors;
  /** Errors of PyTorch's base and adapted models. Absent if it is not installed, and for other models than `ndvi`. */
  torch?: Record<'base' | 'adapted', Errors>;
  /** Duration of the adaptation over that of the fresh models, summed over the places. */
  cost: number;
  questions: QuestionErrors;
}

export async function benchRegional({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const seeds = short ? [1] : [1, 2, 3];
  const models = process.env.TILEWRIGHT_BENCH_ONLY?.split(',') ?? Object.keys(EPOCHS);
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'regional-'));
  const node = await openNode({ data: join(folder, 'data'), memory: 4e9, cores: 2, reserve: 0 });
  try {
    const client = new Client(inProcessTransport(node));
    const { tf } = await loadEngine((await selectEngine({})).name);
    const pythons = { boosting: installBoosting(log), torch: installTorch(log) };
    const runs = new Map<string, Run[]>();
    const measure = async (name: string, model: string, collection: string, seed: number) => {
      const epochs = short ? 3 : EPOCHS[model];
      const run = await trainRegion({ tf, client, node, pythons, folder }, collection, {
        model,
        epochs,
        seed,
      });
      const key = `${model}, ${name}`;
      runs.set(key, [...(runs.get(key) ?? []), run]);
      log(`${key}, seed ${seed}: ${row(name, [run]).join(' | ')}`);
      for (const cells of questionRow(name, [run])) log(`adapted / base by question: ${cells.join(' | ')}`);
    };
    for (const seed of seeds)
      for (const [name, land] of Object.entries(LANDS)) {
        const collection = `${name.replaceAll(' ', '-')}-${seed}`;
        await generate(client, {
          collection,
          land,
          count: short ? 6 : 18,
          seed,
          folder: join(folder, collection),
        });
        for (const model of models) await measure(name, model, collection, seed);
      }
    for (const collection of short ? [] : await ingestReal(client))
      for (const seed of seeds)
        if (models.includes('ndvi')) await measure(collection, 'ndvi', collection, seed);
    log(
      `\n\n${markdown(
        TITLES,
        [...runs].map(([name, all]) => row(name, all)),
      ).join('\n')}\n`,
    );
    const questions = [...runs].flatMap(([name, all]) => questionRow(name, all));
    if (questions.length > 0)
      log(`\n\n${markdown(['adapted / base', ...QUESTIONS], questions).join('\n')}\n`);
    return [...runs].map(([name, all]) =>
      result(
        `${name}: error of the base over that of adapted models`,
        '',
        1 / overBase(all, ({ adapted }) => adapted)!.ratio!,
        { 'models of single places': 1 / overBase(all, ({ fresh }) => fresh)!.ratio! },
      ),
    );
  } finally {
    await node.close();
    rmSync(folder, { recursive: true });
  }
}

/** Generates and ingests places with the dates of `bench -- training`. */
async function generate(
  client: Client,
  land: { collection: string; land: (typeof LANDS)[string]; count: number; seed: number; folder: string },
): Promise<void> {
  const { collection, count, seed, folder } = land;
  const cells = geohash.cover(LAND, APART).slice(0, count);
  for (const [i, cell] of cells.entries()) {
    const { west, south, east, north } = geohash.bounds(cell);
    const geocode = geohash.encode((west + east) / 2, (south + north) / 2, PRECISION);
    const { origin, size } = extentOf(geocode);
    const files = await writeSentinelLikeSeries(folder, {
      ...{ name: geocode, dates: DATES, seed: SEED_STEP * seed + 1000 * (i + 1), swir16: true, origin },
      region: land.land.region(i),
      size: { ...size, width: Math.round(size.width * land.land.cover(i)) },
    });
    const href = files.map(({ path }) => path);
    await client.run('ingest', { href, collection, precision: PRECISION, scale: 0.0001, maskBand: 5 });
  }
}

interface Tools {
  tf: Tf;
  client: Client;
  node: TilewrightNode;
  /** The Pythons that have the peers. */
  pythons: { boosting?: string; torch?: string };
  folder: string;
}

async function trainRegion(
  { tf, client, node, pythons, folder }: Tools,
  collection: string,
  inputs: { model: string; epochs: number; seed: number },
): Promise<Run> {
  const filter = { collections: [collection] };
  const train = async (mode: string, more: object = {}) =>
    (await client.run<TrainResults>('train', { ...inputs, ...more, filter, mode })).results;
  const region = await train('regional', { fresh: false });
  const adapted = region.models;
  const places = await readPlaces(node.storage, collection, region);
  const questions = await errorsByQuestion(tf, node.storage, places, region);
  const spec = getModelSpec(inputs.model);
  const boosted =
    pythons.boosting &&
    (await boostingErrors(pythons.boosting, join(folder, 'boosting'), spec, places, inputs.seed));
  const torch =
    pythons.torch && inputs.model === 'ndvi'
      ? await torchErrors(pythons.torch, join(folder, 'torch'), spec, places, inputs)
      : undefined;
  const alone = new Map((await train('partitioned')).models.map((model) => [model.geocode, model]));
  const byPlace = (of: (model: TrainResults['models'][number]) => number) =>
    new Map(adapted.map((model) => [model.geocode, of(model)]));
  const total = (seconds: number[]) => seconds.reduce((sum, one) => sum + one, 0);
  return {
    collection,
    base: byPlace(({ adaptation }) => adaptation!.errors.base.mse),
    adapted: byPlace(({ metrics }) => metrics.validation.mse),
    fresh: byPlace(({ geocode }) => alone.get(geocode)!.metrics.validation.mse),
    cost:
      total(adapted.map(({ seconds }) => seconds)) / total([...alone.values()].map(({ seconds }) => seconds)),
    questions,
    ...(torch && { torch }),
    ...(boosted && { boosted }),
  };
}

type Compared = ReturnType<typeof compareErrors>;

/** Compares errors of all runs with others, by default those of the base. Undefined if a run lacks the errors. */
function overBase(
  runs: Run[],
  of: (run: Run) => Errors | undefined,
  base: (run: Run) => Errors | undefined = (run) => run.base,
): Compared | undefined {
  const errors = (side: typeof of) =>
    runs.map(
      (run) => new Map([...side(run)!].map(([place, error]) => [`${run.collection} ${place}`, error])),
    );
  return runs.every(of) ? compareErrors(errors(of), errors(base)) : undefined;
}

const TITLES = [
  'places',
  'adapted / base',
  'better than the base at',
  'verdict',
  'worst place',
  'fresh / base',
  'LightGBM / base',
  'PyTorch: adapted / base',
  'time of adaptation / fresh training',
];

/** Geometric means over the places with their 95 % intervals. The time is a median over the seeds, with the least and the most. */
function row(name: string, runs: Run[]): string[] {
  const adapted = overBase(runs, (run) => run.adapted)!;
  const text = (compared: Compared | undefined) => (compared ? verdictCells(compared)[0] : '');
  return [
    name,
    ...verdictCells(adapted),
    digits(adapted.worst!),
    text(overBase(runs, ({ fresh }) => fresh)),
    text(overBase(runs, ({ boosted }) => boosted)),
    text(
      overBase(
        runs,
        ({ torch }) => torch?.adapted,
        ({ torch }) => torch?.base,
      ),
    ),
    spreadText(computeSpread(runs.map(({ cost }) => cost)), digits),
  ];
}

/** Errors of adapted models over those of the base. Empty if the places have a single date. */
function questionRow(name: string, runs: Run[]): string[][] {
  const compared = QUESTIONS.map(
    (question) =>
      overBase(
        runs,
        ({ questions }) => questions[question].adapted,
        ({ questions }) => questions[question].base,
      )!,
  );
  return compared.every(({ places }) => places > 0)
    ? [[name, ...compared.map((one) => verdictCells(one)[0])]]
    : [];
}
