/** Restricts a training to the places whose models have drifted (`stale`). */

import { TilewrightError } from '../errors.js';
import type { JobContext } from '../jobs/index.js';
import { type Storage, type TileRecord, versionsOf } from '../storage/index.js';
import { reasonNotTrainable, type TrainingCell, trainingCellKey } from './cells.js';
import { unusedStale } from './errors.js';
import { adaptationPasses } from './fine-tuning.js';
import { chooseStale, judgePlaces, type PlaceFreshness } from './freshness/judgement.js';
import { measurePlaces } from './freshness/measurement.js';
import type { CardSummary } from './model-card.js';
import { type BaseVersion, requestedBase } from './model-store.js';
import { getModelSpec } from './models/builtin.js';
import { requestedModels, type TrainContext, type TrainInputs } from './train-inputs.js';
import type { PartialTrainResults } from './train-results.js';

/**
 * Older dates for each date since the change. They show the unchanged ground in other seasons, without which models fail on later dates.
 * The limit keeps a long archive from hiding the change.
 */
const OLDER_PER_NEW = 8;
/** Cloudier older dates add little. */
const MAX_CLOUD_PERCENT = 20;

/**
 * Returns the dates since the change, and older clear ones, spread evenly over their time. Older dates that were not assessed for cloud
 * are taken only if no clear one exists. `tiles`: from the earliest to the latest; `changed`: the first date of the change, milliseconds
 * since 1970.
 */
export function datesSinceChange<T extends Pick<TileRecord, 'start' | 'cloudCover'>>(
  tiles: T[],
  changed: number,
): T[] {
  const since = tiles.filter(({ start }) => start >= changed);
  const before = tiles.filter(({ start }) => start < changed);
  const clear = before.filter(({ cloudCover }) => cloudCover !== null && cloudCover <= MAX_CLOUD_PERCENT);
  const older = clear.length > 0 ? clear : before.filter(({ cloudCover }) => cloudCover === null);
  const wanted = Math.min(older.length, OLDER_PER_NEW * since.length);
  const chosen = Array.from({ length: wanted }, (_, i) => older[Math.floor((i * older.length) / wanted)]);
  return [...chosen, ...since];
}

/** The places of all nodes that are trained again. */
export class StaleSelection {
  private readonly changes: Map<string, number>;

  /** `base`: the model that they adapt, the same version on all nodes. Undefined if one is trained, or none is needed. */
  constructor(
    chosen: PlaceFreshness[],
    readonly base?: BaseVersion,
  ) {
    this.changes = new Map(
      chosen.map((place) => [trainingCellKey(place), Date.parse(place.firstDrifted!)] as const),
    );
  }

  includes(cell: Pick<TrainingCell, 'collection' | 'grid' | 'geocode'>): boolean {
    return this.changes.has(trainingCellKey(cell));
  }

  /**
   * Returns the cell with the dates since the change and some older ones, or with all dates if those have too few patches. Throws the
   * errors of the object store.
   */
  async cellSinceChange(storage: Storage, model: string, cell: TrainingCell): Promise<TrainingCell> {
    const changed = this.changes.get(trainingCellKey(cell))!;
    const since = { ...cell, tiles: datesSinceChange(cell.tiles, changed) };
    try {
      return (await reasonNotTrainable(storage, model, since, undefined)) === undefined ? since : cell;
    } catch (error) {
      if (!(error instanceof TilewrightError) || error.status === 503) throw error;
      // A mask cannot be read. The training of this cell reports the error, and the other cells are trained.
      return since;
    }
  }
}

/** Trains a mode with the places of a selection. */
type TrainMode = (
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
  stale: StaleSelection,
) => Promise<PartialTrainResults>;

/**
 * Checks the models of all nodes, chooses the places within the budget, which is that of all nodes together, and trains them. All nodes
 * choose the same places, because they decide from the same measurements.
 */
export async function trainStale(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
  emptyResults: PartialTrainResults,
  train: TrainMode,
): Promise<PartialTrainResults> {
  const [model] = requestedModels(inputs);
  if (inputs.base !== undefined) await requestedBase(context.storage, { id: inputs.base }, model);
  // The counts of the job are those of the training.
  const { places: own } = await measurePlaces(context, { ...inputs, model }, { ...job, progress() {} });
  const judged = judgePlaces((await job.allGather(own)).flat());
  if (judged.length === 0)
    throw unusedStale(`no selected place has a model ${model} of its own; train without stale first`);
  const { chosen, leftOut, seconds } = chooseStale(judged, inputs.budget, plannedPasses(model, inputs));
  const mine = judged.filter(job.isMine);
  const count = (status: PlaceFreshness['status']) => mine.filter((place) => place.status === status).length;
  const isMine = new Set(mine.map((place) => `${place.collection} ${place.geocode}`));
  const found = {
    checked: { fresh: count('fresh'), drifted: count('drifted'), unknown: count('unknown') },
    leftOut: leftOut.filter(({ collection, geocode }) => isMine.has(`${collection} ${geocode}`)),
    estimatedSeconds: seconds,
    ...(chosen.length > 0 && { since: chosen.map((place) => place.firstDrifted!).sort()[0] }),
  };
  for (const { geocode, reason } of found.leftOut)
    job.log('info', `${geocode} is not trained again: ${reason}`);
  if (chosen.length === 0) return { ...emptyResults, ...found };
  const findsBase = inputs.mode === 'regional' && inputs.base === undefined;
  const base = findsBase ? await agreedBase(context.storage, model, chosen, job) : undefined;
  const results = await train(
    context,
    inputs,
    { ...job, partial: (of) => job.partial(() => ({ ...(of() as PartialTrainResults), ...found })) },
    new StaleSelection(chosen, base),
  );
  return { ...results, ...found };
}

/** Passes over the patches of a place in a training with these inputs, of the fresh model for comparison too. */
function plannedPasses(model: string, { mode, epochs, fresh = true }: TrainInputs): number {
  const full = epochs ?? getModelSpec(model).epochs;
  return mode === 'regional' ? adaptationPasses(full) + (fresh ? full : 0) : full;
}

/**
 * Returns the base that all nodes adapt: the newest that was trained on one of the places, else the newest. A base that this job has
 * trained is left out, so that a job that was interrupted decides as before.
 */
async function agreedBase(
  storage: Storage,
  model: string,
  places: PlaceFreshness[],
  job: JobContext,
): Promise<BaseVersion | undefined> {
  const [{ collection, grid }] = places;
  const geocodes = new Set(places.map(({ geocode }) => geocode));
  const bases: (BaseVersion & { knows: boolean })[] = [];
  for await (const { record } of storage.models.scanAll()) {
    if (record?.model !== model || record.collection !== collection || record.grid !== grid) continue;
    for (const { id, version, card } of versionsOf(record)) {
      const { mode, distributed, job: trainedBy } = card as CardSummary;
      if (mode !== 'distributed' || trainedBy === job.id) continue;
      if (!distributed?.places.every(({ holdOut }) => holdOut?.window)) continue;
      bases.push({ id, version, knows: distributed.places.some(({ geocode }) => geocodes.has(geocode)) });
    }
  }
  const all = (await job.allGather(bases)).flat();
  const [newest] = all.sort(
    (a, b) =>
      Number(b.knows) - Number(a.knows) || (a.version < b.version ? 1 : a.version > b.version ? -1 : 0),
  );
  return newest && { id: newest.id, version: newest.version };
}
