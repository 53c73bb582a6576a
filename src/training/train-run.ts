/** A training run over many cells: the planned models, and their results. */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { SelectedEngine } from '../engines/index.js';
import type { JobContext } from '../jobs/index.js';
import { defaultToRawSource, type Filter, parseFilter, searchTiles } from '../query/index.js';
import type { Window } from '../raster/index.js';
import { type PinnedTile, pinTiles } from '../storage/index.js';
import { plural } from '../utils/text.js';
import {
  groupTilesByCell,
  reasonNotTrainableByMasks,
  type TrainingCell,
  trainedPixels,
  trainingFiles,
  withPrecision,
} from './cells.js';
import { adaptationEpochs, type SampleMessage } from './fine-tuning.js';
import { modelStoredByJob, storeModel } from './model-store.js';
import { getModelSpec } from './models/builtin.js';
import type { ModelChoice, TrainedCell } from './report.js';
import {
  DEFAULT_SEED,
  requestedModels,
  type TrainContext,
  type TrainInputs,
  trainingMode,
  validationTime,
} from './train-inputs.js';
import { type CellProgress, type CellResult, trainCells } from './train-pool.js';
import {
  addModel,
  cellLabel,
  emptyResults,
  type PartialTrainResults,
  summariseReasons,
} from './train-results.js';
import type { StaleSelection } from './train-stale.js';
import type { FineTuneStep, TrainCellTask } from './train-task.js';
import { findSources, type SourceCandidates, type TransferPlan, transferProvenance } from './transfer.js';
import type { SourceModelFiles } from './warm-start.js';

/** A model to be trained. */
export interface PlannedModel {
  model: string;
  cell: TrainingCell;
  task: TrainCellTask;
  /** The ground that the base of a region did not train on. Absent if the base did not train on this cell. */
  heldOut?: Window;
}

/** Completed fraction of a cell after its fine-tuning, which a fresh model may follow. */
const TUNING_SHARE = 0.5;

/**
 * Invariant: each planned model becomes exactly one entry of `models`, `skipped` or `failed`, after it has been passed to `train`
 * or `fineTune`.
 */
export class TrainingRun {
  readonly results: PartialTrainResults;
  private readonly models: string[];
  private readonly filter: Filter;
  /** Number of models for the matching cells, including those that are not trained. */
  private total = 0;
  private planned = 0;
  /** Completed fraction of each planned model, and their sum. */
  private readonly fractions = new Map<string, number>();
  private worked = 0;

  constructor(
    private readonly context: TrainContext,
    private readonly inputs: TrainInputs,
    private readonly job: JobContext,
    private readonly engine: SelectedEngine,
    private readonly stale?: StaleSelection,
  ) {
    const memoryOf = (model: string) => getModelSpec(model).memoryPerCell;
    // The first process determines the memory use of all, so the largest model goes first.
    this.models = requestedModels(inputs).toSorted((a, b) => memoryOf(b) - memoryOf(a));
    this.filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
    this.results = emptyResults(engine.name, trainingMode(inputs));
  }

  /**
   * Returns the models to be trained. Models that the job stored before an interruption, and cells with too few tiles, go directly to the
   * results.
   */
  async plan(): Promise<PlannedModel[]> {
    const { results, models, job } = this;
    const stale = this.stale;
    const { storage } = this.context;
    const picked = await storage.getTiles((await searchTiles(storage.index, this.filter)).ids);
    const cells = groupTilesByCell(picked.filter(job.isMine));
    const checkpoints = await storage.scratch.makeForJob(job.id);
    const planned: PlannedModel[] = [];
    for (const cell of cells)
      for (const model of models) {
        const stored = await modelStoredByJob(storage, job.id, model, cell, results.mode);
        if (stored) {
          addModel(results, stored);
          continue;
        }
        if (stale && !stale.includes(cell)) continue;
        const used = stale ? await stale.cellSinceChange(storage, model, cell) : cell;
        const files = trainingFiles(storage, getModelSpec(model), used);
        if ('skipped' in files) results.skipped.push({ geocode: cell.geocode, model, reason: files.skipped });
        else planned.push({ model, cell: used, task: this.taskOf(used, model, files, checkpoints) });
      }
    const count = stale ? cells.filter((cell) => stale.includes(cell)).length : cells.length;
    this.total = count * models.length;
    this.planned = planned.length;
    this.count();
    job.message(`training ${models.join(', ')} with ${this.engine.name}`);
    job.log('info', `${plural(count, 'place')}, engine ${this.engine.name}`);
    for (const reason of summariseReasons(results, models)) job.log('warning', `skipped ${reason}`);
    return planned;
  }

  /** Trains and stores the models, starting from the source models that `plan` finds. */
  async train(models: PlannedModel[], transfer?: TransferPlan): Promise<void> {
    const found = new Map<string, SourceCandidates>();
    const prepare = async ({ model, cell, task }: PlannedModel) => {
      if (!transfer) return;
      const sources = await findSources(this.context.storage, transfer, model, cell);
      found.set(task.id, sources);
      if (sources.start) Object.assign(task, { start: sources.start, fineTuning: transfer.fineTuning });
    };
    await this.runTasks(models, prepare, async (planned, result) => {
      if (!('trained' in result)) return;
      const sources = found.get(planned.task.id);
      found.delete(planned.task.id);
      const { start } = result.trained;
      const provenance = transfer && sources && transferProvenance(transfer, sources, start);
      await this.store(planned, result.trained, provenance);
    });
  }

  /** Returns some training patches of each cell. Cells that are skipped or fail go to the results, and must not be fine-tuned. */
  async sample(
    models: PlannedModel[],
    { base, patches }: { base: SourceModelFiles; patches: number },
  ): Promise<SampleMessage[]> {
    const samples: SampleMessage[] = [];
    for (const { task, heldOut } of models) task.adaptation = { base, heldOut, step: 'sample', patches };
    await this.runTasks(
      models,
      async () => {},
      async (_, result) => {
        if ('sample' in result) samples.push(result.sample);
      },
    );
    return samples;
  }

  /** Adapts a base model to each cell, and stores the models. */
  async fineTune(
    models: PlannedModel[],
    step: Omit<FineTuneStep, 'step'> & { base: SourceModelFiles; choice?: ModelChoice },
  ): Promise<void> {
    for (const { task, heldOut } of models) task.adaptation = { ...step, heldOut, step: 'fine-tune' };
    await this.runTasks(
      models,
      async () => {},
      async (planned, result) => {
        if ('trained' in result) await this.store(planned, result.trained, { parent: step.base.id });
      },
    );
  }

  /** Runs the tasks of these models. Those that are skipped or fail go to the results; `onDone` is awaited for the others. */
  private async runTasks(
    models: PlannedModel[],
    prepareModel: (planned: PlannedModel) => Promise<void>,
    onDone: (planned: PlannedModel, result: CellResult) => Promise<void>,
  ): Promise<void> {
    const { job, inputs, engine, context } = this;
    const { cores = availableParallelism(), memory } = context;
    const { mode, epochs, placeMemory = getModelSpec(this.models[0]).memoryPerCell } = inputs;
    const limit = mode === 'contained' ? placeMemory : undefined;
    const byId = new Map(models.map((planned) => [planned.task.id, planned]));
    const held = new Map<string, PinnedTile>();
    let hasEnded = false;
    const prepare = async (task: TrainCellTask): Promise<{ skipped: string } | undefined> => {
      const planned = byId.get(task.id)!;
      const { cell, model } = planned;
      const files = await this.pinTiles(cell);
      if (hasEnded) {
        files.release();
        return undefined;
      }
      held.set(task.id, files);
      if (limit !== undefined) {
        // No process is started for a cell with too little data.
        const reason = await reasonNotTrainableByMasks(context.storage, getModelSpec(model), cell, task);
        if (reason !== undefined) return { skipped: reason };
      }
      await prepareModel(planned);
      return undefined;
    };
    const onEpoch = ({ id, epoch }: CellProgress) => {
      context.onEpoch?.();
      const { model, task } = byId.get(id)!;
      const total = epochs ?? getModelSpec(model).epochs;
      this.advance(id, task.adaptation ? (TUNING_SHARE * epoch) / adaptationEpochs(total) : epoch / total);
    };
    const options = {
      engine: engine.name,
      cores,
      memory,
      limit,
      pinned: limit !== undefined,
      signal: job.signal,
      onEpoch,
      prepare,
    };
    const tasks = models.map(({ task }) => task);
    try {
      for await (const result of trainCells(tasks, options)) {
        held.get(result.id)?.release();
        held.delete(result.id);
        const planned = byId.get(result.id)!;
        if ('skipped' in result) this.skip(planned, result.skipped);
        else if ('error' in result) this.fail(planned, result.error);
        else await onDone(planned, result);
        if (!('sample' in result)) this.advance(result.id, 1);
        this.count();
      }
    } finally {
      // Cells in preparation when the job stops release their files themselves.
      hasEnded = true;
      for (const files of held.values()) files.release();
    }
  }

  private taskOf(
    cell: TrainingCell,
    model: string,
    files: Pick<TrainCellTask, 'dates' | 'pairs'>,
    checkpoints: string,
  ): TrainCellTask {
    const { epochs, patience, seed = DEFAULT_SEED, holdOut, history = 'all' } = this.inputs;
    const name = `${cell.collection} ${cell.geocode}`;
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
      holdOut,
      ...(getModelSpec(model).target.kind !== 'clear' && { history }),
      checkpoint,
    };
  }

  private async pinTiles(cell: TrainingCell): Promise<PinnedTile> {
    const tiles = cell.tiles.map((tile) => ({ tile, groups: tile.groups }));
    const files = await pinTiles(this.context.storage, tiles);
    const { results } = this;
    if (files.fetched > 0) results.bytesFetched = (results.bytesFetched ?? 0) + files.fetched;
    return files;
  }

  private async store(
    { cell, model }: PlannedModel,
    trained: TrainedCell,
    provenance: ReturnType<typeof transferProvenance> | { parent: string } | undefined,
  ): Promise<void> {
    const { job, engine, filter, results } = this;
    const { seed = DEFAULT_SEED, store: isStored = true } = this.inputs;
    const name = cellLabel(cell.geocode, model, this.models);
    const about = {
      mode: results.mode,
      model,
      filter,
      engine,
      seed,
      job: job.id,
      ...trainedPixels(getModelSpec(model), cell),
      ...provenance,
    };
    const stored = await storeModel(this.context.storage, cell, trained, about, isStored);
    addModel(results, stored);
    const { metrics, parent, transfer } = stored.model;
    const from = parent
      ? `, from ${parent}`
      : transfer?.fresh
        ? `, started with random weights: ${transfer.fresh}`
        : '';
    job.log('info', `${name}: validation R2 ${metrics.validation.r2.toFixed(3)}${from}`);
    for (const { id, reason } of transfer?.refused ?? [])
      job.log('warning', `${name} does not start from ${id}: ${reason}`);
  }

  private skip({ cell, model }: PlannedModel, why: string): void {
    const { geocode } = cell;
    const reason = withPrecision(why, model, cell);
    this.results.skipped.push({ geocode, model, reason });
    this.job.log('warning', `${cellLabel(geocode, model, this.models)}: ${reason}`);
  }

  private fail({ cell: { geocode }, model }: PlannedModel, error: { code: string; message: string }): void {
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

/** Returns a short file name for any cell. */
function checkpointName(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 16);
}
