/**
 * `history`: the worth of the history of a place. Each date of a real series is held out at all places in turn, with all other dates or
 * only the earlier ones as training and history; the modes run with and without history. The errors are those of the held-out date on the
 * ground of the training, over all places. TILEWRIGHT_BENCH_ONLY=regional,partitioned runs some of the modes.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { openNode } from '../../src/node.js';
import { parseFilter, searchTiles } from '../../src/query/index.js';
import type { TrainingMode, TrainResults } from '../../src/training/index.js';
import { realData } from '../../test/support/rasters.js';
import { type BenchOptions, type BenchResult, result } from '../support/bench.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { markdown } from './markdown.js';

const SERIES = 'naip-north-dakota-series';
const MODES: TrainingMode[] = ['partitioned', 'regional', 'distributed'];
/** Marks for the mean error over the dates: all other dates, and earlier dates only. */
const MARKS = { all: 0.044, past: 0.072 };

type Asked = NonNullable<TrainResults['questions']>[number];

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
    const only = process.env.TILEWRIGHT_BENCH_ONLY?.split(',') ?? (short ? ['regional'] : MODES);
    for (const mode of MODES.filter((one) => only.includes(one)))
      for (const history of ['all', 'past', 'none'] as const) {
        const late = history === 'past' ? days.slice(2) : days;
        const dates: Asked[] = [];
        for (const day of short ? late.slice(-1) : late) {
          const until = history === 'past' ? { datetime: `2000-01-01T00:00:00Z/${day}T23:59:59Z` } : {};
          const { results } = await client.run<TrainResults>('train', {
            ...{ model: 'ndvi', mode, history, holdOut: [day], store: false },
            filter: { collections: ['series'], ...until },
          });
          const asked = results.questions?.find(({ question }) => question === 'otherDates');
          if (!asked) continue;
          dates.push(asked);
          log(`${mode}, history ${history}, ${day}: ${row(asked).join(' | ')}`);
        }
        if (dates.length === 0) continue;
        const mean = (of: keyof Asked['errors']) =>
          dates.reduce((sum, { errors }) => sum + errors[of]!, 0) / dates.length;
        means.set(`${mode}, ${history}`, mean('model'));
        rows.push([
          ...[mode, history, mean('model').toFixed(4)],
          ...(['mean', 'history', 'nearest', 'linear'] as const).map((name) => mean(name).toFixed(4)),
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

const row = ({ errors, better, places }: Asked): string[] => [
  ...Object.entries(errors).map(([name, error]) => `${name} ${error.toFixed(4)}`),
  `better than history at ${better.history} of ${places}`,
];
