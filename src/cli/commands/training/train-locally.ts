/** Trains a place of a server on this machine: in a Job of Kubernetes, within the limits of its container. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { toArray } from '../../../async/index.js';
import { type Client, type Progress, unreachable } from '../../../client/index.js';
import { selectEngine } from '../../../engines/index.js';
import { fromErrorDocument, TilewrightError } from '../../../errors.js';
import type { Timed } from '../../../jobs/index.js';
import {
  type AcquisitionFiles,
  type CellInputs,
  DEFAULT_SEED,
  encodeUpload,
  getModelSpec,
  nothingTrained,
  type TrainResults,
  trainCells,
} from '../../../training/index.js';

export interface LocalTrainingInputs extends CellInputs {
  epochs?: number;
  patience?: number;
  seed?: number;
  engine?: string;
  /** Bytes that the process that trains may take. */
  placeMemory?: number;
}

/** How often a model is sent, and the pause between, ms. */
const MAX_ATTEMPTS = 30;
const RETRY_DELAY_MS = 5000;

interface Hooks {
  signal: AbortSignal;
  onProgress: (progress: Progress) => void;
}

/**
 * Fetches what the place needs, trains it as a node would, and has the server store the model. Nothing stays here. Throws what the server
 * says, and why the training failed; TW_TRAIN_NOTHING where the place is unfit.
 */
export async function trainLocally(
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
  }: LocalTrainingInputs,
  { signal, onProgress }: Hooks,
): Promise<{ job: string; results: Timed<TrainResults> }> {
  const begun = performance.now();
  const spec = getModelSpec(model);
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
      dates: await downloadTiles(client, dates, folder),
      checkpoint: join(folder, 'checkpoint'),
    };
    const options = { engine: engine.name, cores: 1, limit: placeMemory ?? spec.memoryPerCell, signal };
    const onEpoch = ({ epoch }: { epoch: number }) =>
      onProgress({
        message: `training ${model} with ${engine.name}, epoch ${epoch}`,
        progress: (100 * epoch) / (epochs ?? spec.epochs),
        tiles: { total: 1, done: 0, failed: 0, skipped: 0 },
      });
    const [result] = await toArray(trainCells([task], { ...options, onEpoch }));
    if ('skipped' in result) throw nothingTrained(1, [`${geocode}: ${result.skipped}`]);
    if ('error' in result) throw fromErrorDocument({ status: 500, ...result.error });
    const trained = encodeUpload(result.trained);
    const inputs = { model, filter, seed, tiles, engine, trained };
    const stored = await retryUnreachable(signal, () =>
      client.run<TrainResults>('store-model', inputs, { signal }),
    );
    const seconds = (performance.now() - begun) / 1000;
    return { ...stored, results: { ...stored.results, seconds } };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Asks a server again that starts, or has too much to do: what was trained is worth the wait. */
async function retryUnreachable<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (let times = 1; ; times++) {
    try {
      return await ask();
    } catch (error) {
      const isBusy = error instanceof TilewrightError && error.status === 429;
      if (times === MAX_ATTEMPTS || !(isBusy || unreachable.is(error))) throw error;
      await sleep(RETRY_DELAY_MS, undefined, { signal });
    }
  }
}

/** The dates with their files in `folder`, under names of its own; each is fetched once. */
async function downloadTiles(
  client: Client,
  dates: AcquisitionFiles[],
  folder: string,
): Promise<AcquisitionFiles[]> {
  const paths = new Map<string, string>();
  const local = async (route: string) => {
    const known = paths.get(route);
    if (known !== undefined) return known;
    const path = join(folder, `${paths.size}.tif`);
    paths.set(route, path);
    await client.saveTileFile(route, path);
    return path;
  };
  const here: AcquisitionFiles[] = [];
  for (const { bands, mask, ...date } of dates) {
    const files: AcquisitionFiles['bands'] = {};
    for (const [name, file] of Object.entries(bands))
      files[name as keyof typeof bands] = { ...file, path: await local(file.path) };
    here.push({ ...date, bands: files, mask: await local(mask) });
  }
  return here;
}
