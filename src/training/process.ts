/** Training as a job: tiles by filter, places, a model for each, stored as they come. */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { JobContext, Process } from '../jobs/index.js';
import {
  type Filter,
  type FilterParams,
  filterBody,
  parseFilter,
  rawUnlessAsked,
  searchTiles,
  toCql2Json,
} from '../query/index.js';
import { type HeldTile, holdTiles, modelId, newVersion, type Storage, versionsOf } from '../storage/index.js';
import { version as softwareVersion } from '../version.js';
import { type ModelCard, modelCard, scoreOf } from './card.js';
import { ENGINE_NAMES } from './engine/load-engine.js';
import { type SelectedEngine, selectEngine } from './engine/select-engine.js';
import { nothingTrained } from './errors.js';
import { pooledScore, type Spread } from './metrics.js';
import { MODEL_NAMES, modelNamed } from './models/index.js';
import { filesOf, groupByPlace, type Place } from './places.js';
import { reasonsOf, type TrainResults } from './results.js';
import { trainPlaces } from './trainer.js';
import type { PlaceTask, TrainedPlace } from './worker-messages.js';

export interface TrainContext {
  storage: Storage;
  /** Places trained side by side at most. */
  cores?: number;
  /** Bytes that the processes that train may take together. */
  memory?: number;
}

export interface TrainInputs {
  model: string;
  filter?: FilterParams;
  epochs?: number;
  seed?: number;
  engine?: string;
}

const DEFAULT_SEED = 1;

const OUTPUTS = {
  engine: { title: 'Engine that trained', schema: { type: 'string' } },
  mode: { title: 'How the work was shared out', schema: { type: 'string' } },
  models: { title: 'Models with their metrics', schema: { type: 'array', items: { type: 'object' } } },
  skipped: {
    title: 'Places without a model, and why',
    schema: { type: 'array', items: { type: 'object' } },
  },
  failed: { title: 'Places that failed, and why', schema: { type: 'array', items: { type: 'object' } } },
  pooled: { title: 'Scores over all places', schema: { type: 'object', nullable: true } },
  seconds: { title: 'Time that it took', schema: { type: 'number' } },
};

export function trainProcess(context: TrainContext): Process {
  return {
    id: 'train',
    title: 'Train models',
    description: 'Trains one small model for each place that the filter picks.',
    inputs: {
      type: 'object',
      required: ['model'],
      additionalProperties: false,
      properties: {
        model: { enum: MODEL_NAMES },
        filter: { type: 'object', additionalProperties: false, properties: filterBody },
        epochs: { type: 'integer', minimum: 1, maximum: 10_000 },
        seed: { type: 'integer' },
        engine: { enum: ENGINE_NAMES },
      },
    },
    outputs: OUTPUTS,
    // Models are stored one by one and whole; those that the job has stored before it was cut off stay.
    resumable: true,
    merge: (parts) => mergeResults(parts as TrainPart[]),
    conclude: (results, context) => conclude(results as TrainResults, context),
    retryInputs: async (inputs, results) => ((results as TrainResults).failed?.length > 0 ? inputs : null),
    run: (inputs, job) => train(context, inputs as TrainInputs, job),
  };
}

/** What was trained of some of the places. */
interface TrainPart extends Omit<TrainResults, 'pooled'> {
  /** Of the validation patches, by model. */
  spreads: Record<string, Spread>;
}

function mergeResults(parts: TrainPart[]): TrainResults {
  const byGeocode = (a: { geocode: string }, b: { geocode: string }) =>
    a.geocode < b.geocode ? -1 : a.geocode > b.geocode ? 1 : 0;
  const spreads: TrainPart['spreads'] = Object.assign({}, ...parts.map((part) => part.spreads));
  const models = parts.flatMap((part) => part.models).sort(byGeocode);
  const truths = models.map(({ id }) => spreads[id]);
  const pooled = (mse: (model: TrainResults['models'][number]) => number) =>
    pooledScore(truths, models.map(mse));
  const fetched = parts.reduce((sum, { bytesFetched = 0 }) => sum + bytesFetched, 0);
  return {
    engine: [...new Set(parts.map(({ engine }) => engine))].sort().join(', '),
    mode: 'partitioned',
    models,
    skipped: parts.flatMap(({ skipped }) => skipped).sort(byGeocode),
    failed: parts.flatMap(({ failed }) => failed).sort(byGeocode),
    pooled:
      models.length === 0
        ? null
        : {
            model: pooled(({ metrics }) => metrics.validation.mse),
            linear: pooled(({ baseline }) => baseline.linear.mse),
            mean: pooled(({ baseline }) => baseline.mean.mse),
          },
    ...(fetched > 0 && { bytesFetched: fetched }),
    seconds: Math.max(0, ...parts.map(({ seconds }) => seconds)),
  };
}

/** Throws TW_TRAIN_NOTHING. */
function conclude(results: TrainResults, { message }: Pick<JobContext, 'message'>): void {
  const { models, skipped, failed } = results;
  message(
    `${models.length} models trained, ${skipped.length} places skipped${failed.length > 0 ? `, ${failed.length} failed` : ''}`,
  );
  if (models.length > 0) return;
  throw nothingTrained(skipped.length + failed.length, reasonsOf(results));
}

async function train(
  { storage, cores = availableParallelism(), memory }: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
): Promise<TrainPart> {
  const started = performance.now();
  const { model, epochs, seed = DEFAULT_SEED } = inputs;
  const spec = modelNamed(model);
  const filter = rawUnlessAsked(parseFilter(inputs.filter ?? {}));
  job.message('choosing an engine');
  const engine = await selectEngine({ engine: inputs.engine });

  job.signal.throwIfAborted();

  const results: TrainPart = {
    engine: engine.name,
    mode: 'partitioned',
    models: [],
    skipped: [],
    failed: [],
    spreads: {},
    seconds: 0,
  };
  job.partial(() => results);
  const picked = await storage.getTiles(searchTiles(storage.index, filter).ids);
  const places = groupByPlace(picked.filter(job.isMine));
  const checkpoints = await storage.jobScratch(job.id);
  const tasks = new Map<string, Place>();
  const work: PlaceTask[] = [];
  const keep = (model: TrainResults['models'][number], spread: Spread) => {
    results.models.push(model);
    results.spreads[model.id] = spread;
  };
  for (const place of places) {
    const known = await storage.getModel(modelId(model, place.collection, place.grid, place.geocode));
    const done = known && versionsOf(known).find(({ card }) => (card as ModelCard).job === job.id);
    if (done) {
      const card = done.card as ModelCard;
      keep(trainedModel(done, card), card.spread);
      continue;
    }
    const files = filesOf(storage, spec, place);
    const id = `${place.collection} ${place.geocode}`;
    if ('skipped' in files) results.skipped.push({ geocode: place.geocode, reason: files.skipped });
    else {
      tasks.set(id, place);
      work.push({ id, model, seed, epochs, ...files, checkpoint: join(checkpoints, checkpointName(id)) });
    }
  }

  const total = places.length;
  const count = () => {
    const { models, skipped, failed } = results;
    job.progress({ total, done: models.length, skipped: skipped.length, failed: failed.length });
  };
  count();
  job.message(`training ${model} with ${engine.name}`);
  job.log('info', `${places.length} places, engine ${engine.name}`);
  for (const reason of reasonsOf(results)) job.log('warning', `skipped ${reason}`);
  const held = new Map<string, HeldTile>();
  const prepare = async (id: string) => {
    const tiles = tasks.get(id)?.tiles.map((tile) => ({ tile, groups: tile.groups })) ?? [];
    const files = await holdTiles(storage, tiles);
    held.set(id, files);
    if (files.fetched > 0) results.bytesFetched = (results.bytesFetched ?? 0) + files.fetched;
  };
  const options = { engine: engine.name, cores, memory, signal: job.signal, prepare };
  try {
    for await (const result of trainPlaces(work, options)) {
      const place = tasks.get(result.id) as Place;
      held.get(result.id)?.release();
      held.delete(result.id);
      const { geocode } = place;
      if ('trained' in result) {
        const about = { model, filter, engine, seed, job: job.id };
        const stored = await store(storage, place, result.trained, about);
        keep(stored, result.trained.spread);
        job.log('info', `${geocode}: validation R2 ${stored.metrics.validation.r2.toFixed(3)}`);
      } else if ('skipped' in result) {
        results.skipped.push({ geocode, reason: result.skipped });
        job.log('warning', `${geocode}: ${result.skipped}`);
      } else {
        const { code, message } = result.error;
        results.failed.push({ geocode, code, message });
        job.log('error', `${geocode}: ${message} [${code}]`);
      }
      count();
    }
  } finally {
    for (const files of held.values()) files.release();
  }
  results.seconds = (performance.now() - started) / 1000;
  return results;
}

/** A short file name for any place. */
function checkpointName(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 16);
}

/** What the results say of a model. */
function trainedModel({ id }: { id: string }, card: ModelCard): TrainResults['models'][number] {
  const { model, collection, grid, geocode, version, epochs, metrics, baseline, seconds } = card;
  return { id, model, collection, grid, geocode, version, epochs, metrics, baseline, seconds };
}

async function store(
  storage: Storage,
  { collection, grid, geocode, tiles }: Place,
  trained: TrainedPlace,
  about: { model: string; filter: Filter; engine: SelectedEngine; seed: number; job: string },
): Promise<TrainResults['models'][number]> {
  const { model, filter, engine, seed, job } = about;
  const place = { model, collection, grid, geocode, version: newVersion() };
  const card = modelCard(
    {
      ...place,
      filter: toCql2Json(filter),
      engine,
      seed,
      job,
      softwareVersion,
      tiles,
      createdAt: Date.now(),
    },
    trained,
  );
  const record = await storage.putModel(
    { ...place, card, score: scoreOf(card) },
    { ...trained.files, 'card.json': Buffer.from(JSON.stringify(card, null, 2)) },
  );
  return trainedModel(record, card);
}
