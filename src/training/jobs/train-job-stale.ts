/** Restricts a training to the places whose models have drifted (`stale`). */
import { TilewrightError } from '../../errors.js';
import type { JobContext } from '../../jobs/index.js';
import { type Storage, versionsOf } from '../../storage/index.js';
import { adaptationPasses } from '../adaptation/index.js';
import { type TrainingCell, trainingCellKey } from '../data/index.js';
import { unusedStale } from '../errors.js';
import {
  chooseStale,
  datesSinceChange,
  judgePlaces,
  measurePlaces,
  type PlaceFreshness,
} from '../freshness/index.js';
import { getModelSpec } from '../models/index.js';
import type { CardSummary } from '../registry/index.js';
import { requestedModels, type TrainContext, type TrainInputs } from './train-job-inputs.js';
import type { PartialTrainResults } from './train-job-merge.js';
import { reasonNotTrainable } from './train-job-trainability.js';
import { type BaseVersion, requestedBase } from './train-requested-base.js';

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
