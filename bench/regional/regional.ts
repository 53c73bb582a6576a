/**
 * `regional`: models of a region, the default of `train`, beside models of single places, LightGBM and the simple candidates: on three
 * kinds of generated land, each with places of its own, on a real series, and on two real scenes of one date with three seeds. The errors
 * are those on the ground and dates that the training held out. TILEWRIGHT_BENCH_ONLY=ndvi measures one model.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { MIXED, REGIONS, type Region, writeSentinelLikeSeries } from '../../data-samples/index.js';
import { computeSpread, digits, spreadText } from '../../src/cli/compare/measures.js';
import { inProcessTransport } from '../../src/cli/connection.js';
import { formatMse } from '../../src/cli/output.js';
import { Client } from '../../src/client/index.js';
import { geohash } from '../../src/grid/index.js';
import { openNode, type TilewrightNode } from '../../src/node.js';
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
import { DATES, extentOf, LAND } from '../training/regions.js';
import { ingestReal } from '../transfer/places.js';
import { boostingErrors, installBoosting, readPlaces } from './boosting.js';

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
type Pooled = NonNullable<TrainResults['pooled']>;

/** One training of a region, and of each of its places alone. */
interface Run {
  collection: string;
  region: Errors;
  alone: Errors;
  ridge: Errors;
  /** Errors of the base, where places adapt it: those without a history. */
  base?: Errors;
  /** Absent if LightGBM is not installed. */
  boosted?: Errors;
  /** Over all patches. */
  pooled: Record<'region' | 'alone', Pooled>;
  /** Duration of the training of the region over that of the places. */
  cost: number;
}

export async function benchRegional({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const models = process.env.TILEWRIGHT_BENCH_ONLY?.split(',') ?? Object.keys(EPOCHS);
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'regional-'));
  const node = await openNode({ data: join(folder, 'data'), memory: 4e9, cores: 2, reserve: 0 });
  try {
    const client = new Client(inProcessTransport(node));
    const python = installBoosting(log);
    const runs = new Map<string, Run[]>();
    const measure = async (name: string, model: string, collection: string, seed: number) => {
      const inputs = { model, epochs: short ? 3 : EPOCHS[model]!, seed };
      const run = await trainRegion({ client, node, python, folder }, collection, inputs);
      const key = `${model}, ${name}`;
      runs.set(key, [...(runs.get(key) ?? []), run]);
      log(`seed ${seed}: ${errorsRow(key, [run]).join(' | ')}`);
      log(`seed ${seed}: ${comparedRow(key, [run]).join(' | ')}`);
    };
    for (const [i, [name, land]] of Object.entries(LANDS)
      .slice(0, short ? 1 : undefined)
      .entries()) {
      const seed = i + 1;
      const collection = name.replaceAll(' ', '-');
      const count = short ? 6 : 18;
      await generate(client, { ...{ collection, land, count, seed }, folder: join(folder, collection) });
      // `ndmi` takes ten times as long.
      for (const model of models)
        if (model === 'ndvi' || i === 0) await measure(name, model, collection, seed);
    }
    for (const collection of short || !models.includes('ndvi')
      ? []
      : await ingestReal(client, { withSeries: true }))
      for (const seed of [1, 2, 3]) await measure(collection, 'ndvi', collection, seed);
    for (const [titles, row] of [
      [ERRORS, errorsRow],
      [COMPARED, comparedRow],
    ] as const) {
      const rows = [...runs].map(([name, all]) => row(name, all));
      log(`\n\n${markdown(titles, rows).join('\n')}\n`);
    }
    return [...runs].map(([name, all]) =>
      result(`${name}: error of the best simple candidate over that of the region`, '', overSimple(all), {
        'models of single places': overSimple(all, 'alone'),
      }),
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

async function trainRegion(
  {
    client,
    node,
    python,
    folder,
  }: { client: Client; node: TilewrightNode; python: string | undefined; folder: string },
  collection: string,
  inputs: { model: string; epochs: number; seed: number },
): Promise<Run> {
  const train = async (more: { mode: string; fresh?: false }) => {
    const started = performance.now();
    const all = { ...inputs, ...more, filter: { collections: [collection] } };
    const { results } = await client.run<TrainResults>('train', all);
    return { ...results, seconds: (performance.now() - started) / 1000 };
  };
  const region = await train({ mode: 'regional', fresh: false });
  const alone = await train({ mode: 'partitioned' });
  const adapts = region.models.some(({ adaptation }) => adaptation && adaptation.factor > 0);
  const boosted =
    python &&
    (await boostingErrors(
      python,
      join(folder, 'boosting'),
      await readPlaces(node.storage, collection, region),
      inputs.seed,
    ));
  return {
    collection,
    region: errorsOf(region, ({ metrics }) => metrics.validation.mse),
    alone: errorsOf(alone, ({ metrics }) => metrics.validation.mse),
    ridge: errorsOf(alone, ({ baseline }) => baseline.linear.mse),
    ...(adapts && { base: errorsOf(region, ({ adaptation }) => adaptation!.errors.base.mse) }),
    ...(boosted && { boosted }),
    pooled: { region: region.pooled!, alone: alone.pooled! },
    cost: region.seconds / alone.seconds,
  };
}

const errorsOf = ({ models }: TrainResults, of: (model: TrainResults['models'][number]) => number): Errors =>
  new Map(models.map((model) => [model.geocode, of(model)]));

/** The median over the runs of an error over all patches. */
const pooledMedian = (runs: Run[], of: (run: Run) => number) => median(runs.map(of));

const SIMPLE = ['mean', 'history', 'nearest', 'linear'] as const;

/** The error of the best simple candidate over that of a mode; the candidate is the best one of each run, as nobody could choose it. */
const overSimple = (runs: Run[], mode: 'region' | 'alone' = 'region') =>
  pooledMedian(
    runs,
    ({ pooled: { [mode]: pooled } }) =>
      Math.min(...SIMPLE.map((name) => pooled[name]?.mse ?? Infinity)) / pooled.model.mse,
  );

const ERRORS = ['MSE over all patches', 'region', 'single places', ...SIMPLE, 'best simple / region'];

function errorsRow(name: string, runs: Run[]): string[] {
  const simple = SIMPLE.map((of) =>
    runs.some(({ pooled }) => pooled.alone[of])
      ? formatMse(pooledMedian(runs, ({ pooled }) => pooled.alone[of]!.mse))
      : '',
  );
  return [
    name,
    ...(['region', 'alone'] as const).map((mode) =>
      formatMse(pooledMedian(runs, ({ pooled }) => pooled[mode].model.mse)),
    ),
    ...simple,
    digits(overSimple(runs)),
  ];
}

const COMPARED = [
  'error of the region over that of',
  'single places',
  'region is better at',
  'verdict',
  'ridge of the place',
  'LightGBM',
  'its base',
  'time, region / single places',
];

/** Geometric means over the places with their 95 % intervals. The time is a median over the seeds, with the least and the most. */
function comparedRow(name: string, runs: Run[]): string[] {
  const over = (of: (run: Run) => Errors | undefined) => {
    const errors = (side: typeof of) =>
      runs.map(
        (run) => new Map([...side(run)!].map(([place, error]) => [`${run.collection} ${place}`, error])),
      );
    return runs.every(of)
      ? verdictCells(
          compareErrors(
            errors(({ region }) => region),
            errors(of),
          ),
        )
      : [''];
  };
  return [
    name,
    ...over(({ alone }) => alone),
    over(({ ridge }) => ridge)[0]!,
    over(({ boosted }) => boosted)[0]!,
    over(({ base }) => base)[0]!,
    spreadText(computeSpread(runs.map(({ cost }) => cost)), digits),
  ];
}
