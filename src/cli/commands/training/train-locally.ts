/** Trains a place of a server on this machine: in a Job of Kubernetes, within the limits of its container. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { toArray } from '../../../async/index.js';
import { type Client, type Progress, unreachable } from '../../../client/index.js';
import { selectEngine } from '../../../engines/index.js';
import { receivedError, TilewrightError } from '../../../errors.js';
import type { Timed } from '../../../jobs/index.js';
import {
  DEFAULT_SEED,
  modelNamed,
  nothingTrained,
  type PlaceDate,
  type PlaceInputs,
  sent,
  type TrainResults,
  trainPlaces,
} from '../../../training/index.js';

export interface HereInputs extends PlaceInputs {
  epochs?: number;
  patience?: number;
  seed?: number;
  engine?: string;
  /** Bytes that the process that trains may take. */
  placeMemory?: number;
}

/** How often a model is sent, and the pause between, ms. */
const MOST_TIMES = 30;
const PAUSE = 5000;

interface Hooks {
  signal: AbortSignal;
  onProgress: (progress: Progress) => void;
}

/**
 * Fetches what the place needs, trains it as a node would, and has the server store the model. Nothing stays here. Throws what the server
 * says, and why the training failed; TW_TRAIN_NOTHING where the place is unfit.
 */
export async function trainHere(
  client: Client,
  {
    model,
    filter,
    validationFrom,
    epochs,
    patience,
    seed = DEFAULT_SEED,
    engine: wanted,
    placeMemory,
  }: HereInputs,
  { signal, onProgress }: Hooks,
): Promise<{ job: string; results: Timed<TrainResults> }> {
  const begun = performance.now();
  const spec = modelNamed(model);
  const engine = await selectEngine({ engine: wanted });
  const {
    tiles,
    geocode,
    dates,
    pairs,
    validationFrom: from,
  } = await client.trainingPlace({
    model,
    filter,
    validationFrom,
  });
  const folder = await mkdtemp(join(tmpdir(), 'tilewright-place-'));
  try {
    const task = {
      ...{ id: geocode, model, seed, epochs, patience, pairs, validationFrom: from },
      dates: await fetched(client, dates, folder),
      checkpoint: join(folder, 'checkpoint'),
    };
    const options = { engine: engine.name, cores: 1, limit: placeMemory ?? spec.placeMemory, signal };
    const onEpoch = ({ epoch }: { epoch: number }) =>
      onProgress({
        message: `training ${model} with ${engine.name}, epoch ${epoch}`,
        progress: (100 * epoch) / (epochs ?? spec.epochs),
        tiles: { total: 1, done: 0, failed: 0, skipped: 0 },
      });
    const [result] = await toArray(trainPlaces([task], { ...options, onEpoch }));
    if ('skipped' in result) throw nothingTrained(1, [`${geocode}: ${result.skipped}`]);
    if ('error' in result) throw receivedError({ status: 500, ...result.error });
    const trained = sent(result.trained);
    const inputs = { model, filter, seed, tiles, engine, trained };
    const stored = await patiently(signal, () => client.run<TrainResults>('store-model', inputs, { signal }));
    const seconds = (performance.now() - begun) / 1000;
    return { ...stored, results: { ...stored.results, seconds } };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Asks a server again that starts, or has too much to do: what was trained is worth the wait. */
async function patiently<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (let times = 1; ; times++) {
    try {
      return await ask();
    } catch (error) {
      const isBusy = error instanceof TilewrightError && error.status === 429;
      if (times === MOST_TIMES || !(isBusy || unreachable.is(error))) throw error;
      await sleep(PAUSE, undefined, { signal });
    }
  }
}

/** The dates with their files in `folder`, under names of its own; each is fetched once. */
async function fetched(client: Client, dates: PlaceDate[], folder: string): Promise<PlaceDate[]> {
  const paths = new Map<string, string>();
  const local = async (route: string) => {
    const known = paths.get(route);
    if (known !== undefined) return known;
    const path = join(folder, `${paths.size}.tif`);
    paths.set(route, path);
    await client.saveTileFile(route, path);
    return path;
  };
  const here: PlaceDate[] = [];
  for (const { bands, mask, ...date } of dates) {
    const files: PlaceDate['bands'] = {};
    for (const [name, file] of Object.entries(bands))
      files[name as keyof typeof bands] = { ...file, path: await local(file.path) };
    here.push({ ...date, bands: files, mask: await local(mask) });
  }
  return here;
}
