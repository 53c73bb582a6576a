/** Measures the models of the places of one node on new dates. Reads only. */
import { availableParallelism } from 'node:os';
import { mapConcurrent } from '../../async/index.js';
import { selectEngineCached } from '../../engines/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import type { JobContext } from '../../jobs/index.js';
import { defaultToRawSource, type FilterParams, parseFilter, searchTiles } from '../../query/index.js';
import {
  type ModelVersionRecord,
  modelId,
  pinTiles,
  type Storage,
  type TileRecord,
  versionsOf,
} from '../../storage/index.js';
import { groupTilesByCell, type TrainingCell } from '../data/index.js';
import type { CardSummary } from '../registry/index.js';
import { CheckPool } from './check-pool.js';
import { comparePlaces } from './compare-places.js';
import { type MeasuredPlace, withFiniteErrors } from './measured-place.js';
import { mergeDates } from './merge-dates.js';
import { planCheck } from './plan-check.js';

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
  const picked = await storage.getTiles(searchTiles(storage.index, filter).ids);
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
  const plan = planCheck(storage, model, cell, now);
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
