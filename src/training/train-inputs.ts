/** Inputs of a training job, the services that it uses, and the date from which on it holds out tiles for validation. */

import { setTimeout as sleep } from 'node:timers/promises';
import { searchTilePages, tilesOutOfReach } from '../derive/index.js';
import type { PrepareContext } from '../jobs/index.js';
import {
  defaultToRawSource,
  type FilterParams,
  parseFilter,
  parseInstant,
  type TileFinder,
} from '../query/index.js';
import type { Storage } from '../storage/index.js';
import { plural } from '../utils/text.js';
import { bandValueKinds, regionName, trainingCellKey } from './cells.js';
import { type Dated, datedOf, dayOf, daysOf, hasDay, isComposite } from './dates.js';
import type { Rendezvous } from './distributed/rendezvous.js';
import { unusableHoldOut } from './errors.js';
import { type HistoryUse, hasUsableHistory } from './history.js';
import { type HeldOutDates, heldOutDates, isHeldOut, isNearHeldOut, validationDate } from './hold-out.js';
import type { FreezingSchedule } from './learner.js';
import type { TrainingMode, TransferPolicy } from './model-card.js';
import { getModelSpec } from './models/builtin.js';
import { requiredBands } from './models/spec.js';
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
  /** Default: see `trainingMode` and `withSelection`. */
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

/**
 * The mode of a training that names none, as far as its inputs decide: models of a region have the smaller errors on ground and dates that
 * were held out. `cloud-removal` has not been measured so.
 */
export function trainingMode(inputs: TrainInputs): TrainingMode {
  const { mode, base, fresh = true, transfer = 'none' } = inputs;
  if (mode) return mode;
  if (base !== undefined || !fresh) return 'regional';
  const models = requestedModels(inputs);
  const isShared =
    models.length === 1 && transfer === 'none' && getModelSpec(models[0]!).target.kind !== 'clear';
  return isShared ? 'regional' : 'partitioned';
}

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
 * Completes the inputs with what the selected tiles decide, the same for all cells on all nodes. Without a mode, places are trained as a
 * region if there are several of one kind. If the inputs hold out no dates, `validationFrom` is added; not if every cell has only one date,
 * because no date can be held out then. Without places that have a history, `history` becomes `none`. Throws TW_WRANGLE_OUT_OF_REACH.
 */
export async function withSelection(
  finder: TileFinder,
  inputs: TrainInputs,
  job: PrepareContext,
): Promise<TrainInputs> {
  const { places, regions, nested } = await selectedWithRetry(finder, inputs, job);
  if (nested.length > 0) job.log('warning', nestedWarning(nested));
  let mode = trainingMode(inputs);
  const isImplied = inputs.mode === undefined && inputs.base === undefined && inputs.fresh !== false;
  if (isImplied && mode === 'regional') {
    if (regions.size > 1)
      job.log(
        'info',
        `each place trains a model of its own, because the tiles are of ${[...regions].join(', ')}`,
      );
    if (regions.size > 1 || places.length === 1) mode = 'partitioned';
  }
  // All dates since a change are needed for the training of stale places, so only ground is held out.
  if (inputs.stale) return { ...inputs, mode };
  return withHistoryUse(withHeldOutDates({ ...inputs, mode }, places, job), places);
}

function withHeldOutDates(
  inputs: TrainInputs,
  cells: Dated[][],
  job: Pick<PrepareContext, 'log'>,
): TrainInputs {
  const dates = cells.flat();
  const days = new Set(dates.map(({ time }) => dayOf(time)));
  const missing = inputs.holdOut?.filter((day) => !days.has(day)) ?? [];
  const coversHeldOutDay = (date: Dated) =>
    inputs.holdOut?.includes(dayOf(date.time)) || missing.some((day) => hasDay(date, day));
  const composite = dates.find((date) => isComposite(date) && coversHeldOutDay(date));
  if (composite)
    throw unusableHoldOut(
      `a tile holds observations from ${daysOf(composite).replace('/', ' to ')}, which other dates may share`,
      'Hold out all dates from one on: --validation-from.',
    );
  if (missing.length > 0)
    throw unusableHoldOut(
      `no selected tile is of ${missing.join(', ')}`,
      '"tilewright search --format json" lists tiles with their dates.',
    );
  const heldOut = jobHeldOut(inputs);
  if (heldOut && dates.every(({ time }) => isHeldOut(heldOut, time)))
    throw unusableHoldOut(
      'all dates of the selected tiles are held out, so none is left to train on',
      'Hold out fewer of them; "tilewright search --format json" lists tiles with their dates.',
    );
  if (heldOut && !dates.some(({ time }) => isHeldOut(heldOut, time)))
    job.log(
      'warning',
      `no selected tile is of ${inputs.validationFrom} or later, so no date is held out, only ground: name an earlier --validation-from`,
    );
  if (heldOut) return inputs;
  const from = validationDate(cells.map((ofCell) => ofCell.map(({ time }) => time)));
  if (from === undefined) return inputs;
  const validationFrom = new Date(from).toISOString();
  job.log('info', `dates from ${validationFrom} on are held out for validation`);
  return { ...inputs, validationFrom };
}

/** Models read no history if no place has enough dates for the training. */
function withHistoryUse(inputs: TrainInputs, cells: Dated[][]): TrainInputs {
  const { history = 'all' } = inputs;
  const heldOut = jobHeldOut(inputs);
  const isTrained = (date: Dated) => heldOut === undefined || !isNearHeldOut(heldOut, date);
  const hasHistory = history !== 'none' && cells.some((dates) => hasUsableHistory(dates.filter(isTrained)));
  return hasHistory ? inputs : { ...inputs, history: 'none' };
}

async function selectedWithRetry(
  finder: TileFinder,
  inputs: TrainInputs,
  { message, signal }: PrepareContext,
): Promise<SelectedPlaces> {
  for (const until = performance.now() + UNREACHABLE_TIMEOUT_MS; ; ) {
    try {
      return await selectedPlaces(finder, inputs, signal);
    } catch (error) {
      if (!tilesOutOfReach.is(error) || performance.now() > until) throw error;
      message(error.message);
      await sleep(RETRY_DELAY_MS, undefined, { signal });
    }
  }
}

/** The tiles of all nodes that match the filter of a training. */
interface SelectedPlaces {
  /** The dates of each cell. */
  places: Dated[][];
  /** One model of several places needs tiles of one region. */
  regions: Set<string>;
  /** Geocodes of places that lie in another one. */
  nested: string[];
}

/** Returns the geocodes of places that lie in a larger one of their collection and grid, as places of split tiles in those of raw tiles. */
function nestedPlaces(places: ReadonlyMap<string, unknown>, lengths: ReadonlySet<number>): string[] {
  // Prefixes are only looked for if there are cells of several sizes.
  if (lengths.size < 2) return [];
  return [...places.keys()].flatMap((key) => {
    const start = key.lastIndexOf(' ') + 1;
    const isNested = [...lengths].some(
      (length) => start + length < key.length && places.has(key.slice(0, start + length)),
    );
    return isNested ? [key.slice(start)] : [];
  });
}

const nestedWarning = (nested: string[]) =>
  `${plural(nested.length, 'place')} (such as ${nested[0]}) ${nested.length > 1 ? 'lie' : 'lies'} in another selected place, so ground that one of them holds out trains the other, and scores are too good: select tiles of one cell size, such as those with "source = 'raw'"`;

async function selectedPlaces(
  finder: TileFinder,
  inputs: TrainInputs,
  signal: AbortSignal,
): Promise<SelectedPlaces> {
  const filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
  const bands = requestedModels(inputs).flatMap((model) => requiredBands(getModelSpec(model)));
  const places = new Map<string, Dated[]>();
  const regions = new Set<string>();
  /** Lengths of the geocodes. */
  const lengths = new Set<number>();
  for await (const tiles of searchTilePages(finder, filter)) {
    signal.throwIfAborted();
    for (const tile of tiles) {
      for (const values of bandValueKinds(bands, [tile])) regions.add(regionName(tile, values));
      lengths.add(tile.geocode.length);
      const key = trainingCellKey(tile);
      const dates = places.get(key);
      const date = datedOf(tile);
      if (dates) dates.push(date);
      else places.set(key, [date]);
    }
  }
  return { places: [...places.values()], regions, nested: nestedPlaces(places, lengths) };
}
