/** Trains a model in several modes on one server, run after run. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, JobError, type Progress } from '../../client/index.js';
import type { FilterParams } from '../../query/index.js';
import type { TrainingMode, TrainResults } from '../../training/index.js';
import { type ComparedRun, type Comparison, type FailedRun, turns } from './comparison.js';
import { type ReadUsage, withUsage } from './usage.js';

export interface CompareInputs {
  model: string;
  filter: FilterParams;
  epochs?: number;
  patience?: number;
  validationFrom?: string;
  engine?: string;
  /** Bytes that a process of the contained mode may take. */
  placeMemory?: number;
}

export interface CompareHooks {
  signal: AbortSignal;
  onProgress(what: string, progress: Progress): void;
  /** After each training, with all so far and with this one. */
  onRun(comparison: Comparison, last: ComparedRun | FailedRun): Promise<void>;
}

/** Between two looks at what the nodes use, ms. */
const LOOK = 500;
/** How long is looked for what the nodes send that do nothing, ms. */
const IDLE = 10_000;

/**
 * Trains in each mode with each seed; nothing is stored. Before that, one epoch is trained that does not count: then every node has chosen
 * its engine, and places that cannot be trained are told of early. A job that fails is noted in the comparison. Throws what else a job
 * throws, and TW_TRAIN_NOTHING from the epoch before.
 */
export async function compareModes(
  client: Client,
  inputs: CompareInputs,
  { modes, seeds }: { modes: TrainingMode[]; seeds: number[] },
  read: ReadUsage,
  { signal, onProgress, onRun }: CompareHooks,
): Promise<Comparison> {
  const train = (what: string, mode: TrainingMode, seed: number, epochs = inputs.epochs) => {
    const { placeMemory, ...rest } = inputs;
    const given = { ...rest, mode, seed, epochs, store: false, ...(mode === 'contained' && { placeMemory }) };
    return client.run<TrainResults>('train', given, {
      signal,
      onProgress: (progress) => onProgress(what, progress),
    });
  };
  await train('warm-up', modes[0]!, seeds[0]!, 1);
  const idleRate = await idleRateOf(read, signal);
  const comparison: Comparison = {
    ...{ model: inputs.model, modes, seeds, runs: [], failed: [] },
    ...(idleRate !== undefined && { idleRate }),
  };
  const all = turns(modes, seeds);
  for (const [i, { mode, seed }] of all.entries()) {
    const what = `${i + 1} of ${all.length}, ${mode}, seed ${seed}`;
    const last = await measured(mode, seed, read, () => train(what, mode, seed));
    if ('code' in last) comparison.failed.push(last);
    else comparison.runs.push(last);
    await onRun(comparison, last);
  }
  return comparison;
}

async function measured(
  mode: TrainingMode,
  seed: number,
  read: ReadUsage,
  train: () => ReturnType<typeof Client.prototype.run<TrainResults>>,
): Promise<ComparedRun | FailedRun> {
  try {
    const { result, usage } = await withUsage(read, LOOK, train);
    const { seconds, ...results } = result.results;
    return { mode, seed, job: result.job, seconds, usage, results };
  } catch (error) {
    if (!(error instanceof JobError)) throw error;
    return { mode, seed, code: error.code, message: error.message };
  }
}

/** Bytes a second; undefined if no node counts them. The looks at the nodes send some too, here as in a training. */
async function idleRateOf(read: ReadUsage, signal: AbortSignal): Promise<number | undefined> {
  if ((await read()).every(({ network }) => network === undefined)) return undefined;
  const { usage } = await withUsage(read, LOOK, () => sleep(IDLE, undefined, { signal }));
  return usage.sentBytes! / usage.seconds;
}
