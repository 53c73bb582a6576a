/**
 * `history`: the worth of the history of a place. Each date of a real series is held out at all places in turn, with all other dates or
 * only the earlier ones as training and history. The errors are those of the held-out date on the ground of the training, over all places,
 * and on other ground, where models without history are beside them. scikit-learn has the ridge regressions that were fixed in advance.
 * TILEWRIGHT_BENCH_ONLY=regional,partitioned runs some of the modes.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { openNode } from '../../src/node.js';
import { parseFilter, searchTiles } from '../../src/query/index.js';
import type { Storage } from '../../src/storage/index.js';
import type { HistoryUse } from '../../src/training/history.js';
import type { CardSummary, TrainingMode, TrainResults } from '../../src/training/index.js';
import { comparePlaces } from '../../src/utils/bootstrap.js';
import { realData } from '../../test/support/rasters.js';
import { type BenchOptions, type BenchResult, result, verdictCells } from '../support/bench.js';
import { installPython } from '../support/python.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { markdown } from './markdown.js';

const SERIES = 'naip-north-dakota-series';
const RIDGE = fileURLToPath(new URL('../../../bench/training/history_ridge.py', import.meta.url));
const MODES: TrainingMode[] = ['partitioned', 'regional', 'distributed'];
/** Marks for the mean error over the dates: all other dates, and earlier dates only. */
const MARKS = { all: 0.044, past: 0.072 };

/** A place has failed if its error is larger than that of its history alone by this factor. */
const FAILED = 1.1;

type Asked = NonNullable<TrainResults['questions']>[number];
/** Sums over dates by place. */
type Sums = Map<string, { values: number; model: number; history: number; linear: number }>;

export async function benchHistory({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const href = join(realData, SERIES);
  if (!existsSync(href)) {
    log(`the series ${SERIES} is not on this machine`);
    return [];
  }
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'history-'));
  const node = await openNode({ data: join(folder, 'data'), memory: 4e9, cores: 2, reserve: 0 });
  try {
    const client = new Client(inProcessTransport(node));
    await client.run('ingest', { href, collection: 'series' });
    const { ids } = await searchTiles(node.storage.index, parseFilter({}));
    const times = await node.storage.getTiles(ids);
    const days = [...new Set(times.map(({ start }) => new Date(start).toISOString().slice(0, 10)))].sort();
    const rows: string[][] = [];
    const means = new Map<string, number>();
    const only = process.env.TILEWRIGHT_BENCH_ONLY?.split(',') ?? (short ? ['regional'] : MODES);
    for (const mode of MODES.filter((one) => only.includes(one)))
      for (const history of ['all', 'past'] as const) {
        const late = history === 'past' ? days.slice(2) : days;
        const dates: Asked[] = [];
        const otherGround: { known: number; none?: number }[] = [];
        const places: Sums = new Map();
        for (const day of short ? late.slice(-1) : late) {
          const until = history === 'past' ? { datetime: `2000-01-01T00:00:00Z/${day}T23:59:59Z` } : {};
          const train = async (use: HistoryUse) =>
            (
              await client.run<TrainResults>('train', {
                ...{ model: 'ndvi', mode, history: use, holdOut: [day] },
                filter: { collections: ['series'], ...until },
              })
            ).results;
          const results = await train(history);
          const asked = results.questions?.find(({ question }) => question === 'otherDates');
          if (!asked) continue;
          dates.push(asked);
          await addErrors(places, node.storage, results);
          const none = history === 'all' ? (await train('none')).pooled!.model.mse : undefined;
          otherGround.push({ known: results.pooled!.model.mse, none });
          const beside = none === undefined ? [] : [`without history ${none.toFixed(4)}`];
          const ground = `other ground ${results.pooled!.model.mse.toFixed(4)}`;
          log(`${mode}, history ${history}, ${day}: ${[...row(asked), ground, ...beside].join(' | ')}`);
        }
        if (dates.length === 0) continue;
        const mean = (of: keyof Asked['errors']) =>
          dates.reduce((sum, { errors }) => sum + errors[of]!, 0) / dates.length;
        means.set(`${mode}, ${history}`, mean('model'));
        rows.push([
          ...[mode, history, mean('model').toFixed(4)],
          ...(['mean', 'history', 'nearest', 'linear'] as const).map((name) => mean(name).toFixed(4)),
          ...placeCells(places),
          meanText(otherGround.map(({ known }) => known)),
          meanText(otherGround.flatMap(({ none }) => none ?? [])),
          ...[dates.map(({ errors }) => errors.model.toFixed(3)).join(' ')],
        ]);
      }
    const titles = [
      'mode',
      'history',
      'error',
      'mean',
      'history alone',
      'nearest date',
      'ridge of the place',
      `places above ${FAILED} of history`,
      'error / ridge',
      'other ground',
      'other ground, without history',
    ];
    logRidge(href, log);
    log(`\n\n${markdown([...titles, 'by date'], rows).join('\n')}\n`);
    return (['all', 'past'] as const).flatMap((use) => {
      const error = means.get(`regional, ${use}`);
      return error === undefined
        ? []
        : [result(`regional, history ${use}: mark over error`, '', MARKS[use] / error, {})];
    });
  } finally {
    await node.close();
    rmSync(folder, { recursive: true });
  }
}

/** Adds the errors of a held-out date at each place, from the cards of the models. */
async function addErrors(places: Sums, storage: Storage, { models }: TrainResults): Promise<void> {
  for (const { id } of models) {
    const card = (await storage.models.get(id))!.card as CardSummary;
    for (const { geocode, questions = [] } of card.distributed?.places ?? [card])
      for (const { question, values, model, history, linear = 0 } of questions) {
        if (question !== 'otherDates') continue;
        const sum = places.get(geocode) ?? { values: 0, model: 0, history: 0, linear: 0 };
        places.set(geocode, {
          values: sum.values + values,
          model: sum.model + model,
          history: sum.history + history,
          linear: sum.linear + linear,
        });
      }
  }
}

const meanText = (errors: number[]) =>
  errors.length > 0 ? (errors.reduce((sum, error) => sum + error, 0) / errors.length).toFixed(4) : '';

/** Prints the mean errors of the ridge regressions of scikit-learn on patches of the whole series. */
function logRidge(folder: string, log: (line: string) => void): void {
  const python = installPython('history', ['rasterio', 'scikit-learn'], 'sklearn', log);
  if (!python) return;
  const { status, stdout, stderr } = spawnSync(python, [RIDGE, folder], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${RIDGE} failed: ${stderr}`);
  const uses = JSON.parse(stdout) as Record<string, Record<string, number[]>>;
  const rows = Object.entries(uses).flatMap(([use, functions]) =>
    Object.entries(functions).map(([name, errors]) => [
      ...[use, name, meanText(errors)],
      errors.map((error) => error.toFixed(3)).join(' '),
    ]),
  );
  log(`\n\n${markdown(['history', 'scikit-learn', 'error', 'by date'], rows).join('\n')}\n`);
}

/** The number of places that failed, and the ratio of the errors of the models and of ridge, paired by place, with its interval. */
function placeCells(places: Sums): [failed: string, ratio: string] {
  const failed = [...places.values()].filter(({ model, history }) => model > FAILED * history).length;
  const errors = (of: 'model' | 'linear') =>
    new Map([...places].map(([geocode, sums]) => [geocode, [sums[of] / sums.values]]));
  return [
    `${failed} of ${places.size}`,
    verdictCells(comparePlaces(errors('model'), errors('linear'))).join(', '),
  ];
}

const row = ({ errors, better, places }: Asked): string[] => [
  ...Object.entries(errors).map(([name, error]) => `${name} ${error.toFixed(4)}`),
  `better than history at ${better.history} of ${places}`,
];
