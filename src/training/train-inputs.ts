/** Inputs of a training job, the services that it uses, and the date from which on it holds out tiles for validation. */

import { setTimeout as sleep } from 'node:timers/promises';
import { searchTilePages, tilesOutOfReach } from '../derive/index.js';
import type { PrepareContext } from '../jobs/index.js';
import {
  defaultToRawSource,
  type Filter,
  type FilterParams,
  parseFilter,
  parseInstant,
  type TileFinder,
} from '../query/index.js';
import type { Storage } from '../storage/index.js';
import { trainingCellKey } from './cells.js';
import type { Rendezvous } from './distributed/rendezvous.js';
import { unusableHoldOut } from './errors.js';
import { type HistoryUse, hasUsableHistory } from './history.js';
import { dayOf, type HeldOutDates, heldOutDates, isHeldOut, validationDate } from './hold-out.js';
import type { FreezingSchedule } from './learner.js';
import type { TrainingMode, TransferPolicy } from './model-card.js';
import type { TextureIndex } from './texture/texture-index.js';

export interface TrainContext {
  storage: Storage;
  finder: TileFinder;
  textures: TextureIndex;
  /** Maximum number of cells trained in parallel. */
  cores?: number;
  /** Memory for all training processes together, in bytes. */
  memory?: number;
  /** Called after each epoch of a training that this node takes part in. */
  onEpoch?: () => void;
  /** Address of a node of a cluster, and its connections to other nodes. */
  rendezvous?: { url: string; doors: Rendezvous };
}

export interface TrainInputs {
  /** One kind of model, or several different ones. */
  model: string | string[];
  mode?: TrainingMode;
  filter?: FilterParams;
  epochs?: number;
  /** Stops a training if the selection loss has not improved for this number of epochs. */
  patience?: number;
  /** First held-out time, RFC 3339. Default: the last quarter of the dates, see `validationDate`. */
  validationFrom?: string;
  /** Days that are held out instead, at all places, such as 2020-06-30. */
  holdOut?: string[];
  /** The history that models read. Default: `all`. */
  history?: HistoryUse;
  seed?: number;
  engine?: string;
  /** Memory limit of the process of a cell in bytes, in the contained mode. */
  placeMemory?: number;
  /** Source model of each cell. Default: none. */
  transfer?: TransferPolicy;
  /** Schedule of the trainable layers if the training starts from another model. Default: all. */
  fineTuning?: FreezingSchedule;
  /** False: the models are scored and not stored, and the results contain their losses. Default: true. */
  store?: boolean;
  /** One cell of each cluster trains first, and the others start from these models. */
  curriculum?: boolean;
  /** Id of the base model of the regional mode. Default: one is trained. */
  base?: string;
  /** Only the places whose models have drifted, see `freshness`. */
  stale?: boolean;
  /** With `stale`: limit of the sum of the seconds that the last trainings took, over all nodes. Default: no limit. */
  budget?: number;
  /** Regional mode: false trains no fresh model of each cell to compare with. Default: true. */
  fresh?: boolean;
}

export const requestedModels = ({ model }: Pick<TrainInputs, 'model'>): string[] => [model].flat();

/** Returns the first held-out time of the inputs, milliseconds since 1970. Throws TW_QUERY_INSTANT. */
export const validationTime = ({
  validationFrom,
}: Pick<TrainInputs, 'validationFrom'>): number | undefined =>
  validationFrom === undefined ? undefined : parseInstant(validationFrom, 'validationFrom');

/** The dates that a job holds out at all places; undefined if it holds out only ground. */
export const jobHeldOut = (
  inputs: Pick<TrainInputs, 'validationFrom' | 'holdOut'>,
): HeldOutDates | undefined =>
  heldOutDates({ validationFrom: validationTime(inputs), holdOut: inputs.holdOut });

export const DEFAULT_SEED = 1;

/** How long a search for the dates is repeated while some nodes cannot be reached. */
const UNREACHABLE_TIMEOUT_MS = 60_000;
const RETRY_DELAY_MS = 1000;

/**
 * Adds `validationFrom` to the inputs if they hold out no dates, the same date for all cells on all nodes; not if every cell has only one
 * date, because no date can be held out then. Without places that have a history, `history` becomes `none`. Throws
 * TW_WRANGLE_OUT_OF_REACH.
 */
export async function withValidationDate(
  finder: TileFinder,
  inputs: TrainInputs,
  job: PrepareContext,
): Promise<TrainInputs> {
  const filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
  const cells = [...(await timesWithRetry(finder, filter, job))];
  return withHistoryUse(withHeldOutDates(inputs, cells, job), cells);
}

function withHeldOutDates(
  inputs: TrainInputs,
  cells: number[][],
  job: Pick<PrepareContext, 'log'>,
): TrainInputs {
  const days = new Set(cells.flat().map(dayOf));
  const missing = inputs.holdOut?.filter((day) => !days.has(day)) ?? [];
  if (missing.length > 0)
    throw unusableHoldOut(
      `no selected tile is of ${missing.join(', ')}`,
      '"tilewright search --format json" lists tiles with their dates.',
    );
  if (inputs.validationFrom !== undefined || inputs.holdOut) return inputs;
  const from = validationDate(cells);
  if (from === undefined) return inputs;
  const validationFrom = new Date(from).toISOString();
  job.log('info', `dates from ${validationFrom} on are held out for validation`);
  return { ...inputs, validationFrom };
}

/** Models read no history if no place has enough dates for the training. */
function withHistoryUse(inputs: TrainInputs, cells: number[][]): TrainInputs {
  const { history = 'all' } = inputs;
  const dates = jobHeldOut(inputs);
  const isTrained = (time: number) => dates === undefined || !isHeldOut(dates, time);
  const hasHistory = cells.some((times) => hasUsableHistory(times.filter(isTrained), history));
  return hasHistory ? inputs : { ...inputs, history: 'none' };
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
