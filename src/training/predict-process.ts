/** Prediction as a job: applies models to the tiles that match a filter, and stores the results as tiles. */

import { availableParallelism } from 'node:os';
import {
  DERIVE_RESULTS,
  type DeriveResults,
  DILATION_SCHEMA,
  deriveTiles,
  type MadeTile,
  type PlannedDerivation,
  RESUMABLE_PROCESS,
  selectedTiles,
  type TileDerivation,
  type TileMaker,
} from '../derive/index.js';
import {
  ENGINE_NAMES,
  type EngineName,
  EnginePool,
  type Handler,
  resultOrFailure,
  selectEngineCached,
} from '../engines/index.js';
import type { JobContext, Process } from '../jobs/index.js';
import {
  checkFilter,
  defaultToRawSource,
  type Filter,
  type FilterParams,
  filterSchema,
  parseFilter,
  requireCollections,
  type TileFinder,
} from '../query/index.js';
import {
  type ModelRecord,
  type ModelVersionRecord,
  modelVersionNotFound,
  type Storage,
  type TileRecord,
  versionNamed,
  WORLD_CELL,
} from '../storage/index.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../utils/json-schema.js';
import { trainingCellKey } from './cells.js';
import { noModelVersion, noTrainedModel, predictionFailed } from './errors.js';
import {
  type ChosenModel,
  type Fallback,
  isBase,
  isSurelyWorse,
  lacksVersion,
  type ModelUse,
  modelChooser,
} from './model-choice.js';
import { MODEL_NAMES } from './models/builtin.js';
import {
  type BelowBaselineModel,
  baselineWarning,
  belowMeanBaseline,
  planPrediction,
  verifiedModelFiles,
} from './predict-plan.js';
import type { PredictTask } from './predict-tile.js';
import type { TextureIndex } from './texture/texture-index.js';
import type { GroundErrors, ScoreTask } from './tile-errors.js';

export type PredictionHandlers = {
  predict: Handler<PredictTask, MadeTile | null>;
  score: Handler<ScoreTask, GroundErrors[]>;
};

/** Child processes that apply models to tiles in parallel. The caller must close it. */
export class PredictPool implements TileMaker<PredictTask> {
  private readonly pool: EnginePool<PredictionHandlers>;

  constructor(
    engine: EngineName,
    readonly threads: number,
  ) {
    this.pool = new EnginePool(new URL('./predict-worker.bundle.js', import.meta.url), engine, threads);
  }

  /** If a child dies, only its tile fails. Throws TW_TRAIN_PREDICT, the reason of the signal, and the errors of the child. */
  make(task: PredictTask, signal: AbortSignal): Promise<MadeTile | null> {
    return this.pool.run(signal, (child) =>
      resultOrFailure(child.request('predict', task, { signal }), predictionFailed),
    );
  }

  /** Compares a prediction with measured pixels. Throws as `make` does. */
  score(task: ScoreTask, signal: AbortSignal): Promise<GroundErrors[]> {
    return this.pool.run(signal, (child) =>
      resultOrFailure(child.request('score', task, { signal }), predictionFailed),
    );
  }

  /** Call it only when no task is running or waiting. */
  close(): void {
    this.pool.close();
  }
}

interface PredictContext {
  storage: Storage;
  finder: TileFinder;
  textures: TextureIndex;
  /** Maximum number of tiles made in parallel. */
  cores?: number;
  /** Functions that apply kinds of models of other parts, by the name of the kind. Such models apply to any collection. */
  appliers?: Record<string, ApplyModel>;
}

/** Predicts the tiles that match. `engine`: the requested engine, for models that need one. */
type ApplyModel = (
  model: ModelVersionRecord,
  filter: Filter,
  job: JobContext,
  engine?: string,
) => Promise<DeriveResults>;

interface PredictInputs {
  /** The name of a model: each tile by the model of its cell. Or the id of a model. */
  model: string;
  /** Version of each model: `latest`, `best` or a version name. Default: `latest`. */
  version?: string;
  filter?: FilterParams;
  engine?: string;
  /** For the name of a model: skips tiles whose places have no model of their own. Default: false. */
  onlyOwn?: boolean;
  /** Also applies models that are surely worse than the mean of their training. Default: false. */
  evenIfWorse?: boolean;
  /** Reads the pixels around each tile, and blends the models of neighbouring places at their border. Default: true. */
  halo?: boolean;
  /** Metres by which cloud and shadow are widened before they are filled. */
  dilate?: number;
}

export interface PredictResults extends DeriveResults {
  /** Applied models that are worse on their validation patches than the mean of their training values, by id. */
  worse: BelowBaselineModel[];
  /** Tiles by the place of the model that maps them. Absent if one model was named, and in results of older versions. */
  uses?: Record<ModelUse, number>;
  /** The first places that have no model of their own and are mapped by another one. */
  fallbacks?: Fallback[];
  /** Tiles that were planned while some of their neighbours could not be found or used. Absent in results of older versions. */
  partialHalos?: number;
}

const OBJECTS = listOf({ type: 'object' });
const OUTPUTS = {
  tiles: { title: 'New tiles', schema: { type: 'integer' } },
  unchanged: { title: 'Tiles that already existed', schema: { type: 'integer' } },
  rims: {
    title: 'Cloud removal: pixels that the masks call clear, and those that were filled too, close to clouds',
    schema: { type: 'object', additionalProperties: { type: 'integer' } },
  },
  skipped: {
    title: 'Tiles without a prediction, by reason',
    schema: { type: 'object', additionalProperties: { type: 'integer' } },
  },
  failed: { title: 'The first tiles that failed, with reasons', schema: OBJECTS },
  failures: { title: 'Tiles that failed', schema: { type: 'integer' } },
  uses: {
    title: 'Tiles by the place of their model: own, cluster (a similar place), base (the region)',
    schema: { type: 'object', additionalProperties: { type: 'integer' } },
  },
  fallbacks: {
    title: 'The first places without a model of their own, with the model that maps them',
    schema: OBJECTS,
  },
  partialHalos: {
    title: 'Tiles that were planned while some of their neighbours could not be found or used',
    schema: { type: 'integer' },
  },
  worse: { title: 'Applied models that are worse than the mean of their training values', schema: OBJECTS },
  seconds: { title: 'Duration in seconds', schema: { type: 'number' } },
};

const BELOW_BASELINE_SCHEMA = objectOf({ id: TEXT, version: TEXT, geocode: TEXT, mse: NUMBER, mean: NUMBER });
const USES_SCHEMA = objectOf({ own: COUNT, cluster: COUNT, base: COUNT });
const FALLBACK_SCHEMA = objectOf({ collection: TEXT, geocode: TEXT, model: TEXT, use: TEXT, reason: TEXT });
/** Maximum number of places in `fallbacks`. */
const MAX_FALLBACKS = 1000;
/** Older versions do not report these members. */
const PART = {
  allOf: [
    DERIVE_RESULTS,
    objectOf(
      {},
      {
        worse: listOf(BELOW_BASELINE_SCHEMA),
        uses: USES_SCHEMA,
        fallbacks: listOf(FALLBACK_SCHEMA),
        partialHalos: COUNT,
      },
    ),
  ],
};

export function predictProcess(context: PredictContext): Process {
  const kinds = [...MODEL_NAMES, ...Object.keys(context.appliers ?? {})];
  return {
    id: 'predict',
    title: 'Predict tiles',
    description:
      'Applies models and stores the predictions as tiles: maps of NDVI and NDMI, and images without cloud. A name selects the model of each place, an id one model.',
    inputs: {
      type: 'object',
      required: ['model'],
      additionalProperties: false,
      properties: {
        model: {
          type: 'string',
          maxLength: 200,
          pattern: `^(${kinds.join('|')})(_.+_[gq].+)?$`,
          description: `A kind of model, ${MODEL_NAMES.join(', ')}: each tile by the model of its place. Or the id of one model, such as ndvi_sample_gu26xg, or classifier_enmap_gu33d.`,
        },
        version: {
          type: 'string',
          maxLength: 40,
          default: 'latest',
          description: 'Version of each model: latest, best, or the name of a version',
        },
        filter: filterSchema,
        engine: { enum: ENGINE_NAMES },
        dilate: DILATION_SCHEMA,
        onlyOwn: {
          type: 'boolean',
          default: false,
          description:
            'For a kind of model: skips tiles whose places have no model of their own. By default the model of the most similar place of the cluster maps them, or else the base model of the region',
        },
        evenIfWorse: {
          type: 'boolean',
          default: false,
          description:
            'Also applies models whose error on their validation patches is larger than that of the mean of their training, by its 95 % interval. By default another model whose error is smaller maps these tiles, or they are skipped',
        },
        halo: {
          type: 'boolean',
          default: true,
          description:
            'Reads the pixels around each tile and blends the models of neighbouring places at their border, so that maps and fills of clouds have no seams. False maps each tile alone',
        },
      },
    },
    outputs: OUTPUTS,
    ...RESUMABLE_PROCESS,
    check: checkFilter,
    merge: (parts) => mergePredicted(parts as PredictResults[]),
    part: PART,
    run: (inputs, job) => predict(context, inputs as PredictInputs, job),
    conclude: (results, job, inputs) => conclude(results as PredictResults, job, inputs as PredictInputs),
  };
}

/** Throws TW_TRAIN_NO_VERSION and TW_WRANGLE_ALL_FAILED. */
function conclude(
  results: PredictResults,
  job: Pick<JobContext, 'message'>,
  { model, version = 'latest' }: PredictInputs,
): void {
  const { tiles, unchanged, failures, skipped } = results;
  if (tiles + unchanged + failures === 0 && lacksVersion(model, skipped))
    throw noModelVersion(model, version);
  RESUMABLE_PROCESS.conclude(results, job);
}

async function predict(
  { storage, finder, textures, cores = availableParallelism(), appliers = {} }: PredictContext,
  inputs: PredictInputs,
  job: JobContext,
): Promise<PredictResults> {
  const { version = 'latest' } = inputs;
  await requireCollections(storage, inputs.filter);
  const one = MODEL_NAMES.includes(inputs.model) ? undefined : await storage.models.get(inputs.model);
  if (!one && !MODEL_NAMES.includes(inputs.model)) throw noTrainedModel(inputs.model, MODEL_NAMES.join(', '));
  if (one && !versionNamed(one, version)) throw modelVersionNotFound(one.id, version);
  const apply = one && appliers[one.model];
  if (apply) {
    const collections = [one.collection];
    const filter = parseFilter({ collections, ...inputs.filter });
    return { ...(await apply(versionNamed(one, version)!, filter, job, inputs.engine)), worse: [] };
  }
  const filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
  job.message('choosing an engine');
  const engine = await selectEngineCached(inputs.engine);
  job.message(`predicting with ${engine.name}`);
  const workers = new PredictPool(engine.name, cores);
  try {
    const applied = new Map<string, ModelVersionRecord>();
    const uses: Record<ModelUse, number> = { own: 0, cluster: 0, base: 0 };
    const fallbacks = new Map<string, Fallback>();
    const { evenIfWorse = false } = inputs;
    const named = one && versionNamed(one, version)!;
    const isRefused = named !== undefined && !evenIfWorse && isSurelyWorse(named);
    const choose = named
      ? async (tile: TileRecord) =>
          !isFor(named, tile)
            ? undefined
            : isRefused
              ? {
                  skipped: `the model is worse than the mean of its training; --even-if-worse (evenIfWorse) applies it`,
                }
              : { model: named, use: 'own' as const }
      : modelChooser(
          { storage, textures, job },
          { kind: inputs.model, version, onlyOwn: inputs.onlyOwn ?? false, evenIfWorse },
        );
    const modelOf = async (tile: TileRecord) => {
      const chosen = await choose(tile);
      return chosen && 'model' in chosen ? chosen.model : undefined;
    };
    const neighbours =
      (inputs.halo ?? true) ? { storage, finder, modelOf, filesOf: verifiedModelFiles(storage) } : undefined;
    let partialHalos = 0;
    const { dilate = DILATION_SCHEMA.default } = inputs;
    const plan = (chosen: ChosenModel, tile: TileRecord) =>
      planPrediction(storage, chosen, tile, neighbours, dilate);
    const planned = planPredictions(
      selectedTiles(storage, filter, job.isMine),
      choose,
      plan,
      (made, chosen) => {
        const { model, use, reason = '' } = chosen;
        if (made.facts.model?.halo) partialHalos++;
        const tile = made.facts;
        applied.set(model.id, model);
        uses[use]++;
        const { collection, geocode } = tile;
        if (use !== 'own' && fallbacks.size < MAX_FALLBACKS)
          fallbacks.set(trainingCellKey(tile), { collection, geocode, model: model.id, use, reason });
      },
    );
    const results = await deriveTiles(
      { storage, finder, workers },
      planned,
      job,
      'they have no readable pixel',
    );
    const worse = [...applied.values()].flatMap(belowMeanBaseline);
    for (const model of applied.values()) for (const text of baselineWarning(model)) job.log('warning', text);
    return {
      ...results,
      worse,
      ...(!one && { uses, fallbacks: [...fallbacks.values()] }),
      partialHalos,
    };
  } finally {
    workers.close();
  }
}

function mergePredicted(parts: PredictResults[]): PredictResults {
  const worse = new Map(parts.flatMap(({ worse = [] }) => worse.map((one) => [one.id, one])));
  const uses = parts.flatMap((part) => part.uses ?? []);
  const total = (use: ModelUse) => uses.reduce((sum, one) => sum + one[use], 0);
  const partialHalos = parts.reduce((sum, part) => sum + (part.partialHalos ?? 0), 0);
  return {
    ...RESUMABLE_PROCESS.merge(parts),
    worse: [...worse.keys()].sort().map((id) => worse.get(id)!),
    ...(uses.length > 0 && {
      uses: { own: total('own'), cluster: total('cluster'), base: total('base') },
      fallbacks: parts.flatMap(({ fallbacks = [] }) => fallbacks).slice(0, MAX_FALLBACKS),
    }),
    partialHalos,
  };
}

/** `choose` returns undefined for tiles of other places, which are not counted. `onPlanned` is called for each tile that is planned. */
async function* planPredictions(
  tiles: AsyncIterable<TileRecord>,
  choose: (tile: TileRecord) => Promise<ChosenModel | { skipped: string } | undefined>,
  plan: (chosen: ChosenModel, tile: TileRecord) => AsyncIterable<PlannedDerivation<PredictTask>>,
  onPlanned: (derivation: TileDerivation<PredictTask>, chosen: ChosenModel) => void,
): AsyncGenerator<PlannedDerivation<PredictTask>> {
  for await (const tile of tiles) {
    const chosen = await choose(tile);
    if (!chosen) continue;
    if ('skipped' in chosen) {
      yield chosen;
      continue;
    }
    for await (const planned of plan(chosen, tile)) {
      if ('task' in planned) onPlanned(planned, chosen);
      yield planned;
    }
  }
}

/** A model applies to its own cell, or to all cells within the cell of a distributed training. */
function isFor({ collection, grid, geocode, card }: ModelRecord, tile: TileRecord): boolean {
  if (collection !== tile.collection || grid !== tile.grid) return false;
  if (!isBase({ card })) return geocode === tile.geocode;
  return geocode === WORLD_CELL || tile.geocode.startsWith(geocode);
}
