/** Trains a place of a server on this machine, for example in a Kubernetes Job within the limits of its container. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { toArray } from '../../async/index.js';
import type { Client } from '../../client/index.js';
import { selectEngine } from '../../engines/index.js';
import { fromErrorDocument, TilewrightError } from '../../errors.js';
import type { Timed } from '../../jobs/index.js';
import {
  type AcquisitionFiles,
  type CellInputs,
  DEFAULT_SEED,
  encodeUpload,
  getModelSpec,
  nothingTrained,
  type TrainResults,
  trainCells,
} from '../../training/index.js';
import type { Hooks } from '../connection.js';
import type { TrainingOptions } from '../options.js';

type LocalTrainingInputs = CellInputs & TrainingOptions & { seed?: number };

/** Attempts to store the model. */
const MAX_ATTEMPTS = 30;
const RETRY_DELAY_MS = 5000;

/**
 * Downloads the files of the place, trains as a node would, and lets the server store the model. Leaves no files on this machine. Throws
 * errors of the server and of the training, and TW_TRAIN_NOTHING if the place cannot be trained on.
 */
export async function trainLocally(
  client: Client,
  inputs: LocalTrainingInputs,
  { signal, onProgress }: Hooks,
): Promise<{ job: string; results: Timed<TrainResults> }> {
  const started = performance.now();
  const { model, filter, epochs, patience, seed = DEFAULT_SEED } = inputs;
  const spec = getModelSpec(model);
  const engine = await selectEngine({ engine: inputs.engine });
  const place = await client.trainingPlace({ model, filter, validationFrom: inputs.validationFrom });
  const folder = await mkdtemp(join(tmpdir(), 'tilewright-place-'));
  try {
    const task = {
      id: place.geocode,
      model,
      seed,
      epochs,
      patience,
      pairs: place.pairs,
      validationFrom: place.validationFrom,
      history: inputs.history ?? 'all',
      dates: await downloadTiles(client, place.dates, folder),
      checkpoint: join(folder, 'checkpoint'),
    };
    const options = {
      engine: engine.name,
      cores: 1,
      limit: inputs.placeMemory ?? spec.memoryPerCell,
      signal,
    };
    const onEpoch = ({ epoch }: { epoch: number }) =>
      onProgress({
        message: `training ${model} with ${engine.name}, epoch ${epoch}`,
        progress: (100 * epoch) / (epochs ?? spec.epochs),
        tiles: { total: 1, done: 0, failed: 0, skipped: 0 },
      });
    const [result] = await toArray(trainCells([task], { ...options, onEpoch }));
    if ('sample' in result) throw new Error('the task was no training');
    if ('skipped' in result) throw nothingTrained(1, [`${place.geocode}: ${result.skipped}`]);
    if ('error' in result) throw fromErrorDocument({ status: 500, ...result.error });
    const trained = encodeUpload(result.trained);
    const upload = { model, filter, seed, tiles: place.tiles, engine, trained };
    const stored = await retryTemporary(signal, () =>
      client.run<TrainResults>('store-model', upload, { signal }),
    );
    const seconds = (performance.now() - started) / 1000;
    return { ...stored, results: { ...stored.results, seconds } };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Repeats a request while the server is down, starting or overloaded, so that the trained model is not lost. */
export async function retryTemporary<T>(
  signal: AbortSignal,
  ask: () => Promise<T>,
  delayMs = RETRY_DELAY_MS,
): Promise<T> {
  for (let times = 1; ; times++) {
    try {
      return await ask();
    } catch (error) {
      const isTemporary = error instanceof TilewrightError && (error.status === 429 || error.status === 503);
      if (times === MAX_ATTEMPTS || !isTemporary) throw error;
      await sleep(delayMs, undefined, { signal });
    }
  }
}

/** Downloads the files of the dates to `folder`, each once. Returns the dates with local paths. */
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
    here.push({ ...date, bands: files, mask: { ...mask, path: await local(mask.path) } });
  }
  return here;
}
