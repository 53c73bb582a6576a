/**
 * `history`: the worth of the history of a place. Each date of a real series is held out at all places in turn, with all other dates or
 * only the earlier ones as training and history. The errors are those of the held-out date on the ground of the training, over all places;
 * beside those with all dates as history are those of the same mode without history. TILEWRIGHT_BENCH_ONLY=regional,partitioned runs some
 * of the modes.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { selectEngine } from '../../src/engines/index.js';
import { loadEngine } from '../../src/engines/load.js';
import type { Tf } from '../../src/engines/tfjs.js';
import { openNode } from '../../src/node.js';
import { parseFilter, searchTiles } from '../../src/query/index.js';
import type { Storage } from '../../src/storage/index.js';
import { predictPatches } from '../../src/training/batches.js';
import { squaredErrors } from '../../src/training/evaluation.js';
import type { HistoryUse } from '../../src/training/history.js';
import {
  type CardSummary,
  getModelSpec,
  type TrainingMode,
  type TrainResults,
} from '../../src/training/index.js';
import { buildModel } from '../../src/training/models/network.js';
import { makePatches } from '../../src/training/patches.js';
import type { QuestionErrors } from '../../src/training/report.js';
import { comparePlaces } from '../../src/utils/bootstrap.js';
import { realData } from '../../test/support/rasters.js';
import { loadStored, readImages } from '../regional/questions.js';
import { type BenchOptions, type BenchResult, result, verdictCells } from '../support/bench.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { markdown } from './markdown.js';

const SERIES = 'naip-north-dakota-series';
const MODES: TrainingMode[] = ['partitioned', 'regional', 'distributed'];
/** Marks for the mean error over the dates: all other dates, and earlier dates only. */
const MARKS = { all: 0.044, past: 0.072 };

/** A place has failed if its error is larger than that of its history alone by this factor. */
const FAILED = 1.1;

type Asked = NonNullable<TrainResults['questions']>[number];
/** Sums over dates by place. */
type Sums = Map<string, Pick<QuestionErrors, 'values' | 'model' | 'history' | 'linear'>>;

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
    const times = await node.storage.getTiles(searchTiles(node.storage.index, parseFilter({})).ids);
    const days = [...new Set(times.map(({ start }) => new Date(start).toISOString().slice(0, 10)))].sort();
    const rows: string[][] = [];
    const means = new Map<string, number>();
    const { tf } = await loadEngine((await selectEngine({})).name);
    const network = buildModel(tf, getModelSpec('ndvi'), 1);
    const only = process.env.TILEWRIGHT_BENCH_ONLY?.split(',') ?? (short ? ['regional'] : MODES);
    for (const mode of MODES.filter((one) => only.includes(one)))
      for (const history of ['all', 'past'] as const) {
        const late = history === 'past' ? days.slice(2) : days;
        const dates: Asked[] = [];
        const without: number[] = [];
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
          if (history === 'all')
            without.push(await errorWithout(tf, node.storage, network, await train('none'), day));
          const none = without.length > 0 ? [`without history ${without.at(-1)!.toFixed(4)}`] : [];
          log(`${mode}, history ${history}, ${day}: ${[...row(asked), ...none].join(' | ')}`);
        }
        if (dates.length === 0) continue;
        const mean = (of: keyof Asked['errors']) =>
          dates.reduce((sum, { errors }) => sum + errors[of], 0) / dates.length;
        means.set(`${mode}, ${history}`, mean('model'));
        rows.push([
          ...[mode, history, mean('model').toFixed(4)],
          without.length > 0 ? (without.reduce((a, b) => a + b, 0) / without.length).toFixed(4) : '',
          ...(['mean', 'history', 'nearest', 'linear'] as const).map((name) => mean(name).toFixed(4)),
          ...placeCells(places),
          ...[dates.map(({ errors }) => errors.model.toFixed(3)).join(' ')],
        ]);
      }
    const titles = [
      'mode',
      'history',
      'error',
      'without history',
      'mean',
      'history alone',
      'nearest date',
      'ridge of the place',
      `places above ${FAILED} of history`,
      'error / ridge',
    ];
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
      for (const { question, values, model, history, linear } of questions) {
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

/** The error of models without history on the same patches. */
async function errorWithout(
  tf: Tf,
  storage: Storage,
  network: LayersModel,
  { models }: TrainResults,
  day: string,
): Promise<number> {
  const spec = getModelSpec('ndvi');
  const bands = spec.inputs.length;
  const modelOf = new Map(
    models.flatMap(({ id, geocode, distributed }) =>
      (distributed?.places ?? [{ geocode }]).map((place) => [place.geocode, id] as const),
    ),
  );
  const images = await readImages(storage, 'series', 'ndvi', (geocode) => modelOf.has(geocode));
  let [squares, values] = [0, 0];
  for (const [geocode, dates] of images) {
    const cut = makePatches(spec, dates, { days: [day] }, { use: 'all' });
    if ('skipped' in cut) continue;
    await loadStored(tf, storage, modelOf.get(geocode)!, network);
    for (const { patches } of cut.dataset.history?.otherDates ?? []) {
      const plain = {
        ...patches,
        inputs: patches.inputs.filter((_, i) => i % patches.inputBands < bands),
        inputBands: bands,
      };
      const errors = squaredErrors([plain], (set) => predictPatches(tf, network, set));
      squares += errors.squares;
      values += errors.values;
    }
  }
  return squares / values;
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
