/** Finds the date from which on a training job holds out tiles for validation. The date is the same for all cells on all nodes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { searchTilePages, tilesOutOfReach } from '../../derive/index.js';
import type { PrepareContext } from '../../jobs/index.js';
import { defaultToRawSource, type Filter, parseFilter, type TileFinder } from '../../query/index.js';
import { trainingCellKey } from '../data/index.js';
import { validationDate } from '../patches/index.js';
import type { TrainInputs } from './train-job-inputs.js';

/** How long a search for the dates is repeated while some nodes cannot be reached. */
const UNREACHABLE_TIMEOUT_MS = 60_000;
const RETRY_DELAY_MS = 1000;

/**
 * Adds `validationFrom` to the inputs if they lack it. Returns the inputs unchanged if every cell has only one date, because no date can be
 * held out then. Throws TW_WRANGLE_OUT_OF_REACH.
 */
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

/** Returns one list for each cell, with the times of all tiles of the cell on all nodes that match the filter (ms since 1970). */
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
