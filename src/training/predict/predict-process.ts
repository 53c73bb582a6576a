/** Prediction as a job: applies models to the tiles that match a filter, and stores the results as tiles. */
import { availableParallelism } from 'node:os';
import {
  DERIVE_RESULTS,
  type DeriveResults,
  deriveTiles,
  type PlannedDerivation,
  RESUMABLE_PROCESS,
  selectedTiles,
} from '../../derive/index.js';
import { ENGINE_NAMES, selectEngineCached } from '../../engines/index.js';
import type { JobContext, Process } from '../../jobs/index.js';
import {
  checkFilter,
  defaultToRawSource,
  type Filter,
  type FilterParams,
  filterSchema,
  parseFilter,
  requireCollections,
  searchTiles,
  type TileFinder,
} from '../../query/index.js';
import {
  type ModelRecord,
  type ModelVersionRecord,
  modelId,
  modelVersionNotFound,
  type Storage,
  type TileRecord,
  type TileSource,
  versionNamed,
  WORLD_CELL,
} from '../../storage/index.js';
import { listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import {
  type AcquisitionFiles,
  acquisitionFiles,
  areAlike,
  bandValueKinds,
  coarsestGroup,
  priorDates,
} from '../data/index.js';
import { noTrainedModel } from '../errors.js';
import { getModelSpec, MODEL_NAMES, type ModelSpec } from '../models/index.js';
import type { CardSummary } from '../registry/index.js';
import { modelPixels } from './predict-pixel-size.js';
import { PredictPool } from './predict-pool.js';
import type { PredictTask } from './predict-task.js';

interface PredictContext {
  storage: Storage;
  finder: TileFinder;
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
}

export interface PredictResults extends DeriveResults {
  /** Applied models that are worse on their validation patches than the mean of their training values, by id. */
  worse: BelowBaselineModel[];
}

interface BelowBaselineModel {
  id: string;
  version: string;
  geocode: string;
  /** Mean squared errors on the validation patches. */
  mse: number;
  mean: number;
}

const OBJECTS = listOf({ type: 'object' });
const OUTPUTS = {
  tiles: { title: 'New tiles', schema: { type: 'integer' } },
  unchanged: { title: 'Tiles that already existed', schema: { type: 'integer' } },
  skipped: {
    title: 'Tiles without a prediction, by reason',
    schema: { type: 'object', additionalProperties: { type: 'integer' } },
  },
  failed: { title: 'The first tiles that failed, with reasons', schema: OBJECTS },
  failures: { title: 'Tiles that failed', schema: { type: 'integer' } },
  worse: { title: 'Applied models that are worse than the mean of their training values', schema: OBJECTS },
  seconds: { title: 'Duration in seconds', schema: { type: 'number' } },
};

const BELOW_BASELINE_SCHEMA = objectOf({ id: TEXT, version: TEXT, geocode: TEXT, mse: NUMBER, mean: NUMBER });
/** Older versions do not report such models. */
const PART = { allOf: [DERIVE_RESULTS, objectOf({}, { worse: listOf(BELOW_BASELINE_SCHEMA) })] };

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
      },
    },
    outputs: OUTPUTS,
    ...RESUMABLE_PROCESS,
    check: checkFilter,
    merge: (parts) => mergePredicted(parts as PredictResults[]),
    part: PART,
    run: (inputs, job) => predict(context, inputs as PredictInputs, job),
  };
}

async function predict(
  { storage, finder, cores = availableParallelism(), appliers = {} }: PredictContext,
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
    const choose = (model: ModelRecord) => {
      const made = versionNamed(model, version);
      if (made) applied.set(made.id, made);
      return made;
    };
    const planned = planPredictions(storage, one ?? inputs.model, choose, filter, job.isMine);
    const results = await deriveTiles(
      { storage, finder, workers },
      planned,
      job,
      'they have no readable pixel',
    );
    const worse = [...applied.values()].flatMap(belowMeanBaseline);
    for (const { id, version, mse, mean } of worse)
      job.log(
        'warning',
        `${id}, version ${version}, is worse than the mean of its training values: MSE ${mse.toExponential(2)}, mean ${mean.toExponential(2)}; use another version, train it again or delete it`,
      );
    return { ...results, worse };
  } finally {
    workers.close();
  }
}

function mergePredicted(parts: PredictResults[]): PredictResults {
  const worse = new Map(parts.flatMap(({ worse = [] }) => worse.map((one) => [one.id, one])));
  return { ...RESUMABLE_PROCESS.merge(parts), worse: [...worse.keys()].sort().map((id) => worse.get(id)!) };
}

/** Compares the scores on the validation patches. */
function belowMeanBaseline({ id, version, geocode, card }: ModelVersionRecord): BelowBaselineModel[] {
  const { metrics, baseline } = card as CardSummary;
  const [mse, mean] = [metrics.validation.mse, baseline.mean.mse];
  return mse > mean ? [{ id, version, geocode, mse, mean }] : [];
}

async function* planPredictions(
  storage: Storage,
  by: ModelRecord | string,
  choose: (model: ModelRecord) => ModelVersionRecord | undefined,
  filter: Filter,
  isMine: JobContext['isMine'],
): AsyncGenerator<PlannedDerivation<PredictTask>> {
  for await (const tile of selectedTiles(storage, filter, isMine)) {
    const { collection, grid, geocode } = tile;
    if (typeof by !== 'string') {
      if (isFor(by, tile)) yield* planOne(storage, choose(by)!, tile);
      continue;
    }
    const scanned = await storage.models.scan(modelId(by, collection, grid, geocode));
    if (scanned?.error) {
      yield { skipped: 'the records of their models are damaged; "tilewright models" lists these' };
      continue;
    }
    const model = scanned?.record;
    const made = model && choose(model);
    if (made) yield* planOne(storage, made, tile);
    else yield { skipped: `their places have no ${model ? 'such version of their ' : ''}model ${by}` };
  }
}

/** A model applies to its own cell, or to all cells within the cell of a distributed training. */
function isFor({ collection, grid, geocode, card }: ModelRecord, tile: TileRecord): boolean {
  if (collection !== tile.collection || grid !== tile.grid) return false;
  if ((card as CardSummary).mode !== 'distributed') return geocode === tile.geocode;
  return geocode === WORLD_CELL || tile.geocode.startsWith(geocode);
}

async function* planOne(
  storage: Storage,
  model: ModelVersionRecord,
  tile: TileRecord,
): AsyncGenerator<PlannedDerivation<PredictTask>> {
  const spec = getModelSpec(model.model);
  const { collection, scene, grid, geocode, start, end, platform } = tile;
  const isCloudRemoval = spec.target.kind === 'clear';
  const source: TileSource = isCloudRemoval ? 'cloud-free' : 'predicted';
  const cell = { collection, scene, grid, geocode };
  const derivation = {
    facts: { ...cell, source, start, end, platform, model: { id: model.id, version: model.version } },
    inputs: [tile],
    parameters: { model: model.id },
  };
  const date = acquisitionFiles(storage, spec.inputs, tile);
  if (!date) return yield { skipped: `they lack ${spec.inputs.join(', ')}` };
  if (isCloudRemoval && !tile.cloudCover) {
    // Older versions made a tile of every date.
    yield { obsolete: derivation };
    return yield { skipped: tile.cloudCover === 0 ? 'they have no cloud' : 'their cloud was not assessed' };
  }
  // Models of older versions, whose cards have no held-out ground, read only the date itself.
  const { holdOut, distributed } = model.card as CardSummary;
  const readsPrior = isCloudRemoval && (holdOut ?? distributed?.places[0]?.holdOut) !== undefined;
  const others = readsPrior ? await priorTiles(storage, spec, tile) : [];
  const { pixelSize, values = 'reflectance' } = model.card as CardSummary;
  const found = bandValueKinds(spec.inputs, [tile]);
  if (found.some((one) => one !== values))
    return yield {
      skipped: `their values are ${found.join(' and ')}, but the model was trained on ${values}`,
    };
  // Models of older versions have no pixel size, and read a tile at the size of its bands.
  const own = coarsestGroup(spec.inputs, tile)!;
  const size = pixelSize && modelPixels(pixelSize, tile, own, tile.geocode === model.geocode);
  if (size && 'skipped' in size) return yield size;
  const topology = await storage.models.ensureFile(model, 'model.json');
  const weights = await storage.models.ensureFile(model, 'weights.bin');
  yield {
    ...derivation,
    // A new or changed date of the prior replaces the tile.
    around: others.map((other) => other.tile),
    // The recipe distinguishes tiles of older versions, which also changed clear pixels.
    ...(isCloudRemoval && { recipe: 'fills cloud and shadow' }),
    task: (made) => ({
      tile: { ...made, metadata: { ...made.metadata, MODEL: `${model.id} ${model.version}` } },
      model: { name: model.model, topology, weights },
      date,
      others: others.map((other) => other.date),
      size,
      areCounts: values === 'scaled counts',
      groups: {
        ...(size && { [`${size.width}x${size.height}`]: pixelSize!.group }),
        ...Object.fromEntries(
          tile.groups
            .filter(({ role }) => role === 'data')
            .map(({ width, height, name }) => [`${width}x${height}`, name]),
        ),
      },
    }),
  };
}

/** Returns other dates of the cell of a tile for the prior of cloud removal, the nearest in time first. */
async function priorTiles(
  storage: Storage,
  { inputs }: ModelSpec,
  tile: TileRecord,
): Promise<{ tile: TileRecord; date: AcquisitionFiles }[]> {
  const { collection, grid, geocode, source } = tile;
  const filter = parseFilter({ collections: [collection], geocode, source });
  const found = await storage.getTiles(searchTiles(storage.index, filter).ids);
  const near = found.filter(
    (other) => other.grid === grid && other.id !== tile.id && areAlike(inputs, tile, other),
  );
  const dates = [tile, ...near].flatMap((one) => {
    const date = acquisitionFiles(storage, inputs, one);
    return date ? [{ tile: one, date }] : [];
  });
  const tiles = dates.map((one) => one.tile);
  return priorDates(tiles, 0).map((other) => dates[other]);
}
