/** Measures the models of the places of one node on new dates. Reads only. */

import { availableParallelism } from 'node:os';
import { mapConcurrent } from '../../async/index.js';
import {
  type EngineName,
  EnginePool,
  type Handler,
  resultOrFailure,
  selectEngineCached,
} from '../../engines/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import type { PixelGrid } from '../../grid/index.js';
import type { JobContext } from '../../jobs/index.js';
import { defaultToRawSource, type FilterParams, parseFilter, searchTiles } from '../../query/index.js';
import type { Window } from '../../raster/index.js';
import {
  type ModelFileLocation,
  type ModelVersionRecord,
  modelId,
  pinTiles,
  type Storage,
  type TileRecord,
  versionsOf,
} from '../../storage/index.js';
import type { AcquisitionFiles } from '../acquisitions.js';
import { acquisitionFiles, bandValueKinds, groupTilesByCell, type TrainingCell } from '../cells.js';
import type { DateError, HistoryFiles } from '../date-errors.js';
import { checkFailed } from '../errors.js';
import type { CardSummary } from '../model-card.js';
import { getModelSpec } from '../models/builtin.js';
import { requiredBands } from '../models/spec.js';
import { comparePlaces, type MeasuredPlace, withFiniteErrors } from './judgement.js';

/** Child processes that measure the errors of models on new dates in parallel. The caller must close it. */
class CheckPool {
  private readonly pool: EnginePool<CheckHandlers>;

  constructor(
    engine: EngineName,
    readonly threads: number,
  ) {
    this.pool = new EnginePool(new URL('./worker.bundle.js', import.meta.url), engine, threads);
  }

  /** If a child dies, only its place fails. Throws TW_TRAIN_CHECK, the reason of the signal, and the errors of the child. */
  check(task: CheckTask, signal: AbortSignal): Promise<CheckedDates> {
    return this.pool.run(signal, (child) =>
      resultOrFailure(child.request('check', task, { signal }), checkFailed),
    );
  }

  /** Call it only when no task is running or waiting. */
  close(): void {
    this.pool.close();
  }
}

/**
 * Returns one entry for each time and ground, the earliest first. Dates with the same time are parts of one overpass, weighted by their
 * patches.
 */
export function mergeDates(dates: readonly DateError[]): DateError[] {
  const merged = new Map<string, DateError>();
  for (const date of dates) {
    const key = `${Date.parse(date.datetime)} ${date.trained}`;
    const known = merged.get(key);
    const patches = date.patches + (known?.patches ?? 0);
    const error = known ? (known.error * known.patches + date.error * date.patches) / patches : date.error;
    merged.set(key, { ...date, error, patches });
  }
  return [...merged.values()].sort((a, b) => Date.parse(a.datetime) - Date.parse(b.datetime));
}

/** Clocks of satellites, deliveries and servers may differ by this. */
const CLOCK_TOLERANCE_MS = 86_400_000;
/** Dates from which looks are computed cover the cell and have hardly any cloud. */
const CLEAR_DATE = { coverage: 95, cloudCover: 5 };

interface PlannedCheck {
  tiles: TileRecord[];
  /** Errors of the training, from the card. Undefined for models without a truth. */
  known: DateError[] | undefined;
  task: Omit<CheckTask, 'model'>;
}

/**
 * Returns the last date of the data of a model, milliseconds since 1970. Dates that are later than the training itself are wrong, unless
 * all are: then the clock of the server was.
 */
export function trainedUntil({ data, createdAt }: Pick<CardSummary, 'data' | 'createdAt'>): number {
  const times = data.map(({ datetime }) => Date.parse(datetime));
  const possible = times.filter((time) => time <= Date.parse(createdAt) + CLOCK_TOLERANCE_MS);
  return (possible.length > 0 ? possible : times).reduce((a, b) => Math.max(a, b), -Infinity);
}

/**
 * Returns the check of the dates that are newer than those of the training, or the reason why the place cannot be judged. `now`:
 * milliseconds since 1970.
 */
export function planCheck(
  storage: Pick<Storage, 'tileImage'>,
  model: ModelVersionRecord,
  { tiles }: TrainingCell,
  now: number,
  trainedTiles: TileRecord[] = [],
): PlannedCheck | { unknown: string } {
  const spec = getModelSpec(model.model);
  const card = model.card as CardSummary;
  const until = trainedUntil(card);
  if (until === -Infinity) return { unknown: 'the card of the model names no date' };
  const newer = tiles.filter(({ start }) => start > until);
  if (newer.length === 0) return { unknown: 'no date is newer than the training' };
  const past = newer.filter(({ start }) => start <= now + CLOCK_TOLERANCE_MS);
  if (past.length === 0) return { unknown: 'the new dates are in the future; check their times' };
  const hasTruth = spec.target.kind !== 'clear';
  const heldOut = card.holdOut?.window;
  if (hasTruth && !(card.dateErrors && heldOut))
    return {
      unknown:
        'the card of the model has no errors of single dates, because an older version of tilewright trained the model; train it again',
    };
  const bands = requiredBands(spec);
  const { values = 'reflectance', pixelSize } = card;
  const usable = (tile: TileRecord) =>
    bandValueKinds(bands, [tile]).every((kind) => kind === values) && (hasTruth || isClear(tile));
  const filesOf = (from: TileRecord[]): { tile: TileRecord; files: AcquisitionFiles }[] =>
    from.filter(usable).flatMap((tile) => {
      const files = acquisitionFiles(storage, bands, tile);
      return files ? [{ tile, files }] : [];
    });
  const fresh = filesOf(past);
  if (fresh.length === 0)
    return {
      unknown: hasTruth
        ? `none of the new dates has ${bands.join(', ')} as ${values}`
        : 'none of the new dates is clear',
    };
  const trained = new Set(card.data.map(({ id }) => id));
  const known = hasTruth ? [] : filesOf(tiles.filter(({ id }) => trained.has(id)));
  if (!hasTruth && known.length < 2)
    return { unknown: 'fewer than 2 clear dates of the training still exist' };
  const { width, height } = pixelSize ?? {};
  const { history: read } = card.choice ?? {};
  const history = read
    ? filesOf(trainedTiles.filter(({ start }) => read.dates.includes(new Date(start).toISOString())))
    : [];
  return {
    tiles: [...known, ...history, ...fresh].map(({ tile }) => tile),
    known: card.dateErrors,
    task: {
      known: known.map(({ files }) => files),
      fresh: fresh.map(({ files }) => files),
      ...(hasTruth && heldOut && { heldOut }),
      ...(read && { history: { dates: history.map(({ files }) => files), use: read.use } }),
      ...(width !== undefined && height !== undefined && { size: { width, height } }),
    },
  };
}

const isClear = ({ coverage, cloudCover }: TileRecord) =>
  coverage >= CLEAR_DATE.coverage &&
  cloudCover !== null &&
  cloudCover !== undefined &&
  cloudCover <= CLEAR_DATE.cloudCover;

export interface CheckContext {
  storage: Storage;
  /** Maximum number of places checked in parallel. */
  cores?: number;
}

export interface CheckInputs {
  /** Kind of model. */
  model: string;
  filter?: FilterParams;
  engine?: string;
}

/** The measurements of one node. */
export interface CheckPart {
  places: MeasuredPlace[];
  /** Number of places without a model of their own. */
  without: number;
}

/**
 * Measures all places of this node. A place that cannot be measured has the reason. Versions that this job has stored are ignored, so that
 * a job that was interrupted decides as before. `part` receives the measurements so far. Throws the TW_STORE_ errors of the object store.
 */
export async function measurePlaces(
  { storage, cores = availableParallelism() }: CheckContext,
  inputs: CheckInputs,
  job: JobContext,
  part: CheckPart = { places: [], without: 0 },
): Promise<CheckPart> {
  const engine = await selectEngineCached(inputs.engine);
  const filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
  const picked = await storage.getTiles((await searchTiles(storage.index, filter)).ids);
  const cells = groupTilesByCell(picked.filter(job.isMine));
  const now = Date.now();
  const pool = new CheckPool(engine.name, cores);
  job.message(`checking ${inputs.model} with ${engine.name}`);
  const count = () => {
    const unknown = part.places.filter((place) => place.unknown !== undefined).length;
    const done = part.places.length - unknown;
    job.progress({ total: cells.length, done, skipped: unknown + part.without });
  };
  count();
  try {
    await mapConcurrent(cells, 2 + pool.threads, async (cell) => {
      job.signal.throwIfAborted();
      const measured = await measurePlace(storage, pool, inputs.model, cell, job, now);
      if (measured) part.places.push(measured);
      else part.without++;
      if (measured?.unknown !== undefined) job.log('info', `${cell.geocode}: ${measured.unknown}`);
      count();
    });
  } finally {
    pool.close();
  }
  part.places.sort(comparePlaces);
  return part;
}

/** Returns undefined if the place has no model of its own. */
async function measurePlace(
  storage: Storage,
  pool: CheckPool,
  kind: string,
  cell: TrainingCell,
  { id: job, signal }: JobContext,
  now: number,
): Promise<MeasuredPlace | undefined> {
  const { collection, grid, geocode } = cell;
  const id = modelId(kind, collection, grid, geocode);
  const scanned = await storage.models.scan(id);
  if (!scanned) return undefined;
  const place = { collection, grid, geocode, model: id, known: [], fresh: [], pixels: 0, seconds: 0 };
  if (!scanned.record)
    return { ...place, unknown: `the record of the model is damaged: ${scanned.error.message}` };
  const model = versionsOf(scanned.record).find(({ card }) => {
    const summary = card as CardSummary;
    return summary.mode !== 'distributed' && summary.job !== job;
  });
  if (!model) return undefined;
  const { pixelSize, seconds, epochs, adaptation } = model.card as CardSummary;
  const passes = epochs * (1 + (adaptation ? adaptation.others / adaptation.patches : 0));
  const of = { ...place, version: model.version, seconds, passes };
  const card = model.card as CardSummary;
  const trained = card.choice?.history ? await storage.getTiles(card.data.map(({ id }) => id)) : [];
  const plan = planCheck(storage, model, cell, now, trained);
  if ('unknown' in plan) return { ...of, ...plan };
  const pixels = pixelsOf(plan.tiles.at(-1)!, pixelSize);
  try {
    const read = await withFiles(storage, plan.tiles, async () =>
      pool.check({ ...plan.task, model: await filesOf(storage, model) }, signal),
    );
    const known = mergeDates(plan.known ?? read.known);
    return withFiniteErrors({ ...of, pixels, known, fresh: mergeDates(read.fresh) });
  } catch (error) {
    if (signal.aborted || (error instanceof TilewrightError && error.status === 503)) throw error;
    return { ...of, unknown: (await reasonIfChanged(storage, plan.tiles)) ?? describe(error) };
  }
}

async function withFiles<T>(storage: Storage, tiles: TileRecord[], work: () => Promise<T>): Promise<T> {
  const held = await pinTiles(
    storage,
    tiles.map((tile) => ({ tile, groups: tile.groups })),
  );
  try {
    return await work();
  } finally {
    held.release();
  }
}

async function filesOf(storage: Storage, model: ModelVersionRecord) {
  const topology = await storage.models.ensureFile(model, 'model.json');
  const weights = await storage.models.ensureFile(model, 'weights.bin');
  return { name: model.model, topology, weights };
}

/** The files of tiles that are deleted or replaced may disappear while they are read. */
async function reasonIfChanged(storage: Storage, tiles: TileRecord[]): Promise<string | undefined> {
  const now = await storage.getTiles(tiles.map(({ id }) => id));
  const versions = new Set(now.map(({ version }) => version));
  return tiles.every(({ version }) => versions.has(version))
    ? undefined
    : 'tiles were deleted or replaced during the check';
}

const describe = (error: unknown) =>
  error instanceof TilewrightError ? `${error.message} [${error.code}]` : messageOf(error);

function pixelsOf({ coverage, groups }: TileRecord, size: CardSummary['pixelSize']): number {
  const { width = groups[0].width, height = groups[0].height } = size ?? {};
  return Math.round((width * height * coverage) / 100);
}

/** The request that a checking process answers. */
interface CheckTask {
  /** Name and files of the model. */
  model: { name: string; topology: ModelFileLocation; weights: ModelFileLocation };
  /** Dates of the training, only for models without a truth. */
  known: AcquisitionFiles[];
  /** New dates. */
  fresh: AcquisitionFiles[];
  /** The ground held out from the training. Absent for models without a truth. */
  heldOut?: Window;
  /** Pixels of the cell in the training. Default: those of each date. */
  size?: PixelGrid;
  /** The dates of the training, if the model reads them as history. */
  history?: HistoryFiles;
}

interface CheckedDates {
  /** Empty for models with a truth, whose card has these errors. */
  known: DateError[];
  fresh: DateError[];
}

export type CheckHandlers = { check: Handler<CheckTask, CheckedDates> };
