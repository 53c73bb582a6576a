/** Prediction as a job: tiles of what models say of the tiles that a filter picks. */
import { availableParallelism } from 'node:os';
import type { JobContext, Process } from '../../jobs/index.js';
import {
  checkFilter,
  type Filter,
  type FilterParams,
  filterBody,
  parseFilter,
  rawUnlessAsked,
  type TileFinder,
} from '../../query/index.js';
import { type ModelRecord, modelId, type Storage, type TileRecord, WORLD } from '../../storage/index.js';
import { derive, type Planned, pickedTiles, REPEATABLE, type WrangleResults } from '../../wrangle/index.js';
import type { ModelCard } from '../card.js';
import { ENGINE_NAMES } from '../engine/load-engine.js';
import { chosenEngine } from '../engine/select-engine.js';
import { noModel } from '../errors.js';
import { MODEL_NAMES, modelNamed } from '../models/index.js';
import { dateFiles } from '../places.js';
import type { PredictTask } from './predict-tile.js';
import { Predictors } from './predictors.js';

export interface PredictContext {
  storage: Storage;
  finder: TileFinder;
  /** Tiles made side by side at most. */
  cores?: number;
}

export interface PredictInputs {
  /** A model's name: each tile by the model of its place. A model's id: that one. */
  model: string;
  filter?: FilterParams;
  engine?: string;
}

export function predictProcess(context: PredictContext): Process {
  return {
    id: 'predict',
    title: 'Predict tiles',
    description:
      'Makes tiles of what models say: maps of NDVI and NDMI, and places without cloud. A name takes the model of each place, an id one model.',
    inputs: {
      type: 'object',
      required: ['model'],
      additionalProperties: false,
      properties: {
        model: { type: 'string', maxLength: 200 },
        filter: { type: 'object', additionalProperties: false, properties: filterBody },
        engine: { enum: ENGINE_NAMES },
      },
    },
    ...REPEATABLE,
    check: checkFilter,
    run: (inputs, job) => predict(context, inputs as PredictInputs, job),
  };
}

async function predict(
  { storage, finder, cores = availableParallelism() }: PredictContext,
  inputs: PredictInputs,
  job: JobContext,
): Promise<WrangleResults> {
  const one = MODEL_NAMES.includes(inputs.model) ? undefined : await storage.getModel(inputs.model);
  if (!one && !MODEL_NAMES.includes(inputs.model)) throw noModel(inputs.model, MODEL_NAMES.join(', '));
  const filter = rawUnlessAsked(parseFilter(inputs.filter ?? {}));
  job.message('choosing an engine');
  const engine = await chosenEngine(inputs.engine);
  job.message(`predicting with ${engine.name}`);
  const workers = new Predictors(engine.name, cores);
  try {
    const planned = planPredictions(storage, one ?? inputs.model, filter, job.isMine);
    return await derive({ storage, finder, workers }, planned, job, 'no pixel of it can be read');
  } finally {
    workers.close();
  }
}

async function* planPredictions(
  storage: Storage,
  by: ModelRecord | string,
  filter: Filter,
  isMine: JobContext['isMine'],
): AsyncGenerator<Planned<PredictTask>> {
  for await (const tile of pickedTiles(storage, filter, isMine)) {
    const { collection, grid, geocode } = tile;
    if (typeof by !== 'string') {
      if (isFor(by, tile)) yield await planOne(storage, by, tile);
      continue;
    }
    const model = await storage.getModel(modelId(by, collection, grid, geocode));
    yield model ? await planOne(storage, model, tile) : { skipped: `their places have no model ${by}` };
  }
}

/** A model is for its own place, or for all places in the cell for which it was trained as one. */
function isFor({ collection, grid, geocode, card }: ModelRecord, tile: TileRecord): boolean {
  if (collection !== tile.collection || grid !== tile.grid) return false;
  if ((card as ModelCard).mode !== 'distributed') return geocode === tile.geocode;
  return geocode === WORLD || tile.geocode.startsWith(geocode);
}

async function planOne(
  storage: Storage,
  model: ModelRecord,
  tile: TileRecord,
): Promise<Planned<PredictTask>> {
  const spec = modelNamed(model.model);
  const date = dateFiles(storage, spec.inputs, tile);
  if (!date) return { skipped: `they lack ${spec.inputs.join(', ')}` };
  const topology = await storage.bringModelFile(model, 'model.json');
  const weights = await storage.bringModelFile(model, 'weights.bin');
  const { collection, scene, grid, geocode, start, end, platform } = tile;
  const source = spec.target.kind === 'clear' ? 'cloud-free' : 'predicted';
  return {
    facts: { collection, scene, grid, geocode, source, start, end, platform },
    inputs: [tile],
    parameters: { model: model.id },
    since: model.version,
    task: (made) => ({
      tile: { ...made, metadata: { ...made.metadata, MODEL: `${model.id} ${model.version}` } },
      model: { name: model.model, topology, weights },
      date,
      groups: Object.fromEntries(
        tile.groups
          .filter(({ role }) => role === 'data')
          .map(({ width, height, name }) => [`${width}x${height}`, name]),
      ),
    }),
  };
}
