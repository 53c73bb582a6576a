/** The partitioned and the contained mode: a model for each place, stored as they come. */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { JobContext } from '../jobs/index.js';
import { parseFilter, rawUnlessAsked, searchTiles } from '../query/index.js';
import { type HeldTile, holdTiles } from '../storage/index.js';
import { counted } from './counted.js';
import { chosenEngine } from './engine/select-engine.js';
import { DEFAULT_SEED, modelsOf, type TrainContext, type TrainInputs } from './inputs.js';
import type { TrainPart } from './merge.js';
import type { Spread } from './metrics.js';
import { modelNamed } from './models/index.js';
import { filesOf, groupByPlace, type Place } from './places.js';
import { placeName, reasonsOf, type TrainResults } from './results.js';
import { storedBy, storeModel } from './store-model.js';
import { type PlaceProgress, trainPlaces } from './trainer.js';
import type { PlaceTask } from './worker-messages.js';

export async function trainPartitioned(
  { storage, cores = availableParallelism(), memory }: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
): Promise<TrainPart> {
  const started = performance.now();
  const memoryOf = (model: string) => modelNamed(model).placeMemory;
  // The first process shows what one takes.
  const models = modelsOf(inputs).toSorted((a, b) => memoryOf(b) - memoryOf(a));
  const { mode = 'partitioned', epochs, seed = DEFAULT_SEED } = inputs;
  const limit = mode === 'contained' ? (inputs.placeMemory ?? memoryOf(models[0])) : undefined;
  const filter = rawUnlessAsked(parseFilter(inputs.filter ?? {}));
  job.message('choosing an engine');
  const engine = await chosenEngine(inputs.engine);

  job.signal.throwIfAborted();

  const results: TrainPart = {
    engine: engine.name,
    mode,
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
  const tasks = new Map<string, { place: Place; model: string }>();
  const work: PlaceTask[] = [];
  const keep = (model: TrainResults['models'][number], spread: Spread) => {
    results.models.push(model);
    results.spreads[model.id] = spread;
  };
  const add = async (place: Place, model: string) => {
    const { collection, geocode } = place;
    const stored = await storedBy(storage, job.id, model, place);
    if (stored) {
      keep(stored.model, stored.spread);
      return;
    }
    const files = filesOf(storage, modelNamed(model), place);
    const name = `${collection} ${geocode}`;
    const id = placeName(name, model, models);
    if ('skipped' in files) results.skipped.push({ geocode, model, reason: files.skipped });
    else {
      tasks.set(id, { place, model });
      const checkpoint = join(checkpoints, checkpointName(id));
      work.push({ id, place: name, model, seed, epochs, ...files, checkpoint });
    }
  };
  for (const place of places) for (const model of models) await add(place, model);

  const total = places.length * models.length;
  const count = () => {
    const { models: trained, skipped, failed } = results;
    job.progress({ total, done: trained.length, skipped: skipped.length, failed: failed.length });
  };
  count();
  job.message(`training ${models.join(', ')} with ${engine.name}`);
  job.log('info', `${counted(places.length, 'place')}, engine ${engine.name}`);
  for (const reason of reasonsOf(results, models)) job.log('warning', `skipped ${reason}`);
  const held = new Map<string, HeldTile>();
  const prepare = async (id: string) => {
    const tiles = tasks.get(id)?.place.tiles.map((tile) => ({ tile, groups: tile.groups })) ?? [];
    const files = await holdTiles(storage, tiles);
    held.set(id, files);
    if (files.fetched > 0) results.bytesFetched = (results.bytesFetched ?? 0) + files.fetched;
  };
  const shares = new Map<string, number>();
  let sum = 0;
  const worked = (id: string, share: number) => {
    sum += share - (shares.get(id) ?? 0);
    shares.set(id, share);
    job.progress({ share: sum / work.length });
  };
  const onEpoch = ({ id, epoch }: PlaceProgress) =>
    worked(id, epoch / (epochs ?? modelNamed(tasks.get(id)!.model).epochs));
  const options = {
    ...{ engine: engine.name, cores, memory, limit, pinned: limit !== undefined },
    ...{ signal: job.signal, onEpoch, prepare },
  };
  try {
    for await (const result of trainPlaces(work, options)) {
      const { place, model } = tasks.get(result.id)!;
      held.get(result.id)?.release();
      held.delete(result.id);
      const { geocode } = place;
      const name = placeName(geocode, model, models);
      if ('trained' in result) {
        const about = { mode, model, filter, engine, seed, job: job.id };
        const stored = await storeModel(storage, place, result.trained, about);
        keep(stored, result.trained.spread);
        job.log('info', `${name}: validation R2 ${stored.metrics.validation.r2.toFixed(3)}`);
      } else if ('skipped' in result) {
        results.skipped.push({ geocode, model, reason: result.skipped });
        job.log('warning', `${name}: ${result.skipped}`);
      } else {
        const { code, message } = result.error;
        results.failed.push({ geocode, model, code, message });
        job.log('error', `${name}: ${message} [${code}]`);
      }
      worked(result.id, 1);
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
