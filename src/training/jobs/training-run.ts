/** The models of many places: what there is to train, and what came of it. */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { SelectedEngine } from '../../engines/index.js';
import type { JobContext } from '../../jobs/index.js';
import { plural } from '../../plural.js';
import { defaultToRawSource, type Filter, parseFilter, searchTiles } from '../../query/index.js';
import { type PinnedTile, pinTiles } from '../../storage/index.js';
import { groupTilesByCell, type TrainingCell, trainedPixels, trainingFiles } from '../data/training-cells.js';
import { getModelSpec } from '../models/builtin-models.js';
import { reasonNotTrainableByMasks } from '../patches/trainability.js';
import {
  describeUnstoredModel,
  modelStoredByJob,
  type StoredModel,
  storeModel,
} from '../registry/store-model.js';
import {
  findSources,
  type SourceCandidates,
  type TransferPlan,
  transferProvenance,
} from '../transfer/provenance.js';
import type { TrainCellTask, TrainedCell } from '../workers/training-messages.js';
import { type CellProgress, trainCells } from '../workers/training-pool.js';
import type { PartialTrainResults } from './merge-results.js';
import {
  DEFAULT_SEED,
  requestedModels,
  type TrainContext,
  type TrainInputs,
  validationTime,
} from './train-options.js';
import { cellLabel, summariseReasons } from './train-results.js';

/** A model to be trained. */
export interface PlannedModel {
  model: string;
  place: TrainingCell;
  task: TrainCellTask;
}

/**
 * Invariant: each model that is planned becomes one entry of `models`, `skipped` or `failed`, once it was given to `train`.
 */
export class TrainingRun {
  readonly results: PartialTrainResults;
  private readonly models: string[];
  private readonly filter: Filter;
  /** Models that the filter asks for, also those that are not trained. */
  private total = 0;
  private planned = 0;
  /** Of the planned models, the share of each that is done, and their sum. */
  private readonly fractions = new Map<string, number>();
  private worked = 0;

  constructor(
    private readonly context: TrainContext,
    private readonly inputs: TrainInputs,
    private readonly job: JobContext,
    private readonly engine: SelectedEngine,
  ) {
    const memoryOf = (model: string) => getModelSpec(model).memoryPerCell;
    // The first process shows what one takes.
    this.models = requestedModels(inputs).toSorted((a, b) => memoryOf(b) - memoryOf(a));
    this.filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
    const { mode = 'partitioned' } = inputs;
    this.results = {
      ...{ engine: engine.name, mode, models: [], skipped: [], failed: [] },
      spreads: {},
    };
  }

  /** What is to be trained. What the job has stored before it was cut off, and places whose tiles do not suffice, go to the results. */
  async plan(): Promise<PlannedModel[]> {
    const { results, models, job } = this;
    const { storage } = this.context;
    const picked = await storage.getTiles(searchTiles(storage.index, this.filter).ids);
    const places = groupTilesByCell(picked.filter(job.isMine));
    const checkpoints = await storage.scratch.makeForJob(job.id);
    const planned: PlannedModel[] = [];
    for (const place of places)
      for (const model of models) {
        const stored = await modelStoredByJob(storage, job.id, model, place);
        const files = trainingFiles(storage, getModelSpec(model), place);
        if (stored) this.keep(stored);
        else if ('skipped' in files)
          results.skipped.push({ geocode: place.geocode, model, reason: files.skipped });
        else planned.push({ model, place, task: this.taskOf(place, model, files, checkpoints) });
      }
    this.total = places.length * models.length;
    this.planned = planned.length;
    this.count();
    job.message(`training ${models.join(', ')} with ${this.engine.name}`);
    job.log('info', `${plural(places.length, 'place')}, engine ${this.engine.name}`);
    for (const reason of summariseReasons(results, models)) job.log('warning', `skipped ${reason}`);
    return planned;
  }

  /** Trains and stores each of them, from the models that `descent` finds. */
  async train(models: PlannedModel[], descent?: TransferPlan): Promise<void> {
    const { job, inputs, engine, context } = this;
    const { cores = availableParallelism(), memory } = context;
    const { mode, epochs, placeMemory = getModelSpec(this.models[0]).memoryPerCell } = inputs;
    const limit = mode === 'contained' ? placeMemory : undefined;
    const byId = new Map(models.map((planned) => [planned.task.id, planned]));
    const held = new Map<string, PinnedTile>();
    const found = new Map<string, SourceCandidates>();
    let hasEnded = false;
    const prepare = async (task: TrainCellTask): Promise<{ skipped: string } | undefined> => {
      const { place, model } = byId.get(task.id)!;
      const files = await this.pinTiles(place);
      if (hasEnded) {
        files.release();
        return undefined;
      }
      held.set(task.id, files);
      if (limit !== undefined) {
        // No process is started for a place that has too little.
        const reason = await reasonNotTrainableByMasks(context.storage, getModelSpec(model), place, task);
        if (reason !== undefined) return { skipped: reason };
      }
      if (!descent) return undefined;
      const ancestors = await findSources(context.storage, descent, model, place);
      found.set(task.id, ancestors);
      if (ancestors.start) Object.assign(task, { start: ancestors.start, fineTuning: descent.fineTuning });
      return undefined;
    };
    const onEpoch = ({ id, epoch }: CellProgress) =>
      this.advance(id, epoch / (epochs ?? getModelSpec(byId.get(id)!.model).epochs));
    const options = {
      ...{ engine: engine.name, cores, memory, limit, pinned: limit !== undefined },
      ...{ signal: job.signal, onEpoch, prepare },
    };
    const tasks = models.map(({ task }) => task);
    try {
      for await (const result of trainCells(tasks, options)) {
        held.get(result.id)?.release();
        held.delete(result.id);
        const planned = byId.get(result.id)!;
        const ancestors = found.get(result.id);
        if ('trained' in result) {
          const { start } = result.trained;
          const lineage = descent && ancestors && transferProvenance(descent, ancestors, start);
          await this.store(planned, result.trained, lineage);
        } else if ('skipped' in result) this.skip(planned, result.skipped);
        else this.fail(planned, result.error);
        found.delete(result.id);
        this.advance(result.id, 1);
        this.count();
      }
    } finally {
      // Places that are being prepared when the job stops let go of their files themselves.
      hasEnded = true;
      for (const files of held.values()) files.release();
    }
  }

  private taskOf(
    place: TrainingCell,
    model: string,
    files: Pick<TrainCellTask, 'dates' | 'pairs'>,
    checkpoints: string,
  ): TrainCellTask {
    const { epochs, patience, seed = DEFAULT_SEED } = this.inputs;
    const name = `${place.collection} ${place.geocode}`;
    const id = cellLabel(name, model, this.models);
    const checkpoint = join(checkpoints, checkpointName(id));
    return {
      id,
      cell: name,
      model,
      seed,
      epochs,
      patience,
      ...files,
      validationFrom: validationTime(this.inputs),
      checkpoint,
    };
  }

  private async pinTiles(place: TrainingCell): Promise<PinnedTile> {
    const tiles = place.tiles.map((tile) => ({ tile, groups: tile.groups }));
    const files = await pinTiles(this.context.storage, tiles);
    const { results } = this;
    if (files.fetched > 0) results.bytesFetched = (results.bytesFetched ?? 0) + files.fetched;
    return files;
  }

  private keep({ model, spread }: StoredModel): void {
    this.results.models.push(model);
    this.results.spreads[model.id] = spread;
  }

  private async store(
    { place, model }: PlannedModel,
    trained: TrainedCell,
    lineage: ReturnType<typeof transferProvenance> | undefined,
  ): Promise<void> {
    const { job, engine, filter, results } = this;
    const { seed = DEFAULT_SEED, store: isStored = true } = this.inputs;
    const name = cellLabel(place.geocode, model, this.models);
    const about = {
      ...{ mode: results.mode, model, filter, engine, seed, job: job.id },
      ...trainedPixels(getModelSpec(model), place),
      ...lineage,
    };
    const stored = isStored
      ? await storeModel(this.context.storage, place, trained, about)
      : describeUnstoredModel(place, trained, about);
    this.keep(stored);
    const { metrics, parent, transfer } = stored.model;
    const from = parent ? `, from ${parent}` : transfer?.fresh ? `, started fresh: ${transfer.fresh}` : '';
    job.log('info', `${name}: validation R2 ${metrics.validation.r2.toFixed(3)}${from}`);
    for (const { id, reason } of transfer?.refused ?? [])
      job.log('warning', `${name} does not start from ${id}: ${reason}`);
  }

  private skip({ place: { geocode }, model }: PlannedModel, reason: string): void {
    this.results.skipped.push({ geocode, model, reason });
    this.job.log('warning', `${cellLabel(geocode, model, this.models)}: ${reason}`);
  }

  private fail({ place: { geocode }, model }: PlannedModel, error: { code: string; message: string }): void {
    this.results.failed.push({ geocode, model, ...error });
    const { code, message } = error;
    this.job.log('error', `${cellLabel(geocode, model, this.models)}: ${message} [${code}]`);
  }

  private advance(id: string, share: number): void {
    this.worked += share - (this.fractions.get(id) ?? 0);
    this.fractions.set(id, share);
    this.job.progress({ share: this.worked / this.planned });
  }

  private count(): void {
    const { models, skipped, failed } = this.results;
    const done = { done: models.length, skipped: skipped.length, failed: failed.length };
    this.job.progress({ total: this.total, ...done });
  }
}

/** A short file name for any place. */
function checkpointName(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 16);
}
