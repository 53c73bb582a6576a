/** Training as a job: tiles by filter, places, a model for each, stored as they come. */
import { availableParallelism } from 'node:os';
import { FailedWithResults, type JobContext, type Process } from '../jobs/index.js';
import {
  type Filter,
  type FilterParams,
  filterBody,
  parseFilter,
  rawUnlessAsked,
  searchTiles,
  toCql2Json,
} from '../query/index.js';
import { newVersion, type Storage } from '../storage/index.js';
import { version as softwareVersion } from '../version.js';
import { modelCard } from './card.js';
import { ENGINE_NAMES } from './engine/load-engine.js';
import { type SelectedEngine, selectEngine } from './engine/select-engine.js';
import { nothingTrained } from './errors.js';
import { pooledScore } from './metrics.js';
import { MODEL_NAMES } from './models/index.js';
import { filesOf, groupByPlace, type Place } from './places.js';
import { reasonsOf, type TrainResults } from './results.js';
import { trainPlaces } from './trainer.js';
import type { PlaceTask, TrainedPlace } from './worker-messages.js';

export interface TrainContext {
  storage: Storage;
  /** Places trained side by side at most. */
  cores?: number;
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
    // Models are stored one by one and whole; trained again with the same seed, each takes the place of its like.
    resumable: true,
    retryInputs: async (inputs, results) => ((results as TrainResults).failed?.length > 0 ? inputs : null),
    run: (inputs, job) => train(context, inputs as TrainInputs, job),
  };
}

async function train(
  { storage, cores = availableParallelism() }: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
): Promise<TrainResults> {
  const started = performance.now();
  const { model, epochs, seed = DEFAULT_SEED } = inputs;
  const filter = rawUnlessAsked(parseFilter(inputs.filter ?? {}));
  job.message('choosing an engine');
  const engine = await selectEngine({ engine: inputs.engine });

  job.signal.throwIfAborted();

  const results: TrainResults = {
    engine: engine.name,
    mode: 'partitioned',
    models: [],
    skipped: [],
    failed: [],
    pooled: null,
    seconds: 0,
  };
  job.partial(() => results);
  const places = groupByPlace(await storage.getTiles(searchTiles(storage.index, filter).ids));
  const tasks = new Map<string, Place>();
  const work: PlaceTask[] = [];
  for (const place of places) {
    const dates = place.tiles.map((tile) => filesOf(storage, tile)).filter((date) => date !== null);
    const id = `${place.collection} ${place.geocode}`;
    if (dates.length > 0) {
      tasks.set(id, place);
      work.push({ id, model, seed, epochs, dates });
    } else {
      results.skipped.push({
        geocode: place.geocode,
        reason: 'no band group holds red, green, blue and nir',
      });
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
  const trained: TrainedPlace[] = [];
  for await (const result of trainPlaces(work, { engine: engine.name, cores, signal: job.signal })) {
    const place = tasks.get(result.id) as Place;
    const { geocode } = place;
    if ('trained' in result) {
      trained.push(result.trained);
      const stored = await store(storage, place, result.trained, { model, filter, engine, seed });
      results.models.push(stored);
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
  const byGeocode = (a: { geocode: string }, b: { geocode: string }) => (a.geocode < b.geocode ? -1 : 1);
  results.models.sort(byGeocode);
  results.skipped.sort(byGeocode);
  results.failed.sort(byGeocode);
  if (trained.length > 0) {
    const truths = trained.map((one) => one.predictions.truth);
    const pooled = (mse: (one: TrainedPlace) => number) => pooledScore(truths, trained.map(mse));
    results.pooled = {
      model: pooled((one) => one.metrics.validation.mse),
      linear: pooled((one) => one.baseline.linear.mse),
      mean: pooled((one) => one.baseline.mean.mse),
    };
  }
  results.seconds = (performance.now() - started) / 1000;
  const { models, skipped, failed } = results;
  job.message(
    `${models.length} models trained, ${skipped.length} places skipped${failed.length > 0 ? `, ${failed.length} failed` : ''}`,
  );
  if (models.length > 0) return results;
  throw new FailedWithResults(nothingTrained(total, reasonsOf(results)), results);
}

async function store(
  storage: Storage,
  { collection, grid, geocode, tiles }: Place,
  trained: TrainedPlace,
  { model, filter, engine, seed }: { model: string; filter: Filter; engine: SelectedEngine; seed: number },
): Promise<TrainResults['models'][number]> {
  const place = { model, collection, grid, geocode, version: newVersion() };
  const card = modelCard(
    { ...place, filter: toCql2Json(filter), engine, seed, softwareVersion, tiles, createdAt: Date.now() },
    trained,
  );
  const record = await storage.putModel(
    { ...place, card },
    { ...trained.files, 'card.json': Buffer.from(JSON.stringify(card, null, 2)) },
  );
  const { epochs, metrics, baseline, seconds } = trained;
  return { id: record.id, ...place, epochs, metrics, baseline, seconds };
}
