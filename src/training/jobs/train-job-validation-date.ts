/** Finds the first held-out date of a training job, which is the same for all cells on all nodes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { searchTilePages, tilesOutOfReach } from '../../derive/index.js';
import type { PrepareContext } from '../../jobs/index.js';
import { defaultToRawSource, type Filter, parseFilter, type TileFinder } from '../../query/index.js';
import { trainingCellKey } from '../data/index.js';
import { validationDate } from '../patches/index.js';
import type { TrainInputs } from './train-job-inputs.js';

/** Maximum time to wait for unreachable nodes. */
const UNREACHABLE_TIMEOUT_MS = 60_000;
const RETRY_DELAY_MS = 1000;

/** Returns the inputs with `validationFrom`, unless no cell has several dates. Throws TW_WRANGLE_OUT_OF_REACH. */
export async function withValidationDate(
  finder: TileFinder,
  inputs: TrainInputs,
  job: PrepareContext,
): Promise<TrainInputs> {
  if (inputs.validationFrom !== undefined) return inputs;
  const filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
  const from = validationDate(await timesWithRetry(finder, filter, job));
  if (from === undefined) return inputs;
  const validationFrom = new Date(from).toISOString();
  job.log('info', `dates from ${validationFrom} on are held out for validation`);
  return { ...inputs, validationFrom };
}

async function timesWithRetry(
  finder: TileFinder,
  filter: Filter,
  { message, signal }: PrepareContext,
): Promise<Iterable<number[]>> {
  for (const until = performance.now() + UNREACHABLE_TIMEOUT_MS; ; ) {
    try {
      return await timesByCell(finder, filter, signal);
    } catch (error) {
      if (!tilesOutOfReach.is(error) || performance.now() > until) throw error;
      message(error.message);
      await sleep(RETRY_DELAY_MS, undefined, { signal });
    }
  }
}

/** Returns the times of all tiles that match the filter, on all nodes, by cell. */
async function timesByCell(
  finder: TileFinder,
  filter: Filter,
  signal: AbortSignal,
): Promise<Iterable<number[]>> {
  const times = new Map<string, number[]>();
  for await (const tiles of searchTilePages(finder, filter)) {
    signal.throwIfAborted();
    for (const tile of tiles) {
      const key = trainingCellKey(tile);
      const known = times.get(key);
      if (known) known.push(tile.start);
      else times.set(key, [tile.start]);
    }
  }
  return times.values();
}
