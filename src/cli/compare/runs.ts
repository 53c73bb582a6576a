/** The runs of a comparison: trainings of one model in several modes with the same seeds, run after run on one server. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, hasEnded, type JobDocument, type Progress } from '../../client/index.js';
import { TilewrightError } from '../../errors.js';
import type { Timed } from '../../jobs/index.js';
import type { FilterParams } from '../../query/index.js';
import type { TrainingMode, TrainResults } from '../../training/index.js';
import type { TrainingOptions } from '../options.js';
import { measureUsage, type ReadUsage, type Usage } from './usage.js';

export interface ComparedRun {
  mode: TrainingMode;
  seed: number;
  job: string;
  /** From the job's start to its end. */
  seconds: number;
  usage: Usage;
  results: Omit<Timed<TrainResults>, 'seconds'>;
  /** Ids of other jobs that ran at the same time. The figures include their usage. Undefined if the server did not answer. */
  disturbedBy: string[] | undefined;
}

export interface FailedRun {
  mode: TrainingMode;
  seed: number;
  code: string;
  message: string;
}

export interface Comparison {
  model: string;
  /** Every other mode is compared with the first one. */
  modes: TrainingMode[];
  seeds: number[];
  runs: ComparedRun[];
  failed: FailedRun[];
  /** Bytes that the nodes send in a second while nothing is trained; absent if no node counts them. */
  idleBytesPerSecond?: number;
}

/** Each mode once for each seed. Every second seed has the modes in reverse order, so that a machine that slows down affects all modes. */
export function runOrder(modes: TrainingMode[], seeds: number[]): { mode: TrainingMode; seed: number }[] {
  return seeds.flatMap((seed, i) =>
    (i % 2 === 0 ? modes : modes.toReversed()).map((mode) => ({ mode, seed })),
  );
}

type CompareInputs = TrainingOptions & { model: string; filter: FilterParams };

interface CompareHooks {
  signal: AbortSignal;
  onProgress(what: string, progress: Progress): void;
  /** Called after each training, with all runs so far and the last one. */
  onRun(comparison: Comparison, last: ComparedRun | FailedRun): Promise<void>;
}

const MEASURE_INTERVAL_MS = 500;
const IDLE_PHASE_MS = 10_000;
/** A server that does not answer for this long is considered gone. */
const SERVER_TIMEOUT_MS = 120_000;
const POLL_INTERVAL_MS = 1000;
/** Attempts at an idle phase without other jobs. */
const MAX_IDLE_ATTEMPTS = 3;

/**
 * Trains in each mode with each seed, and stores nothing. A warm-up of one epoch comes first, in which every node chooses its engine and
 * data that cannot be trained on fail early. Each run waits for other jobs to end. A failed run is recorded, and the next one follows.
 * Throws the errors of the warm-up, such as TW_TRAIN_NOTHING, and TW_CLIENT_UNREACHABLE if the server does not return.
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
    const given = {
      ...rest,
      mode,
      seed,
      epochs,
      store: false,
      ...(mode === 'contained' && { placeMemory }),
      ...(mode === 'regional' && { fresh: false }),
    };
    return client.run<TrainResults>('train', given, {
      signal,
      onProgress: (progress) => onProgress(what, progress),
    });
  };
  const waitForOthers = (what: string) =>
    waitForOtherJobs(client, signal, (progress) => onProgress(`${what}, waiting for another job`, progress));
  await waitForOthers('warm-up');
  const warmUp = await train('warm-up', modes[0]!, seeds[0]!, 1);
  const idleBytesPerSecond = await measureIdleRate(client, warmUp.job, read, signal);
  const comparison: Comparison = {
    model: inputs.model,
    modes,
    seeds,
    runs: [],
    failed: [],
    ...(idleBytesPerSecond !== undefined && { idleBytesPerSecond }),
  };
  const all = runOrder(modes, seeds);
  for (const [i, { mode, seed }] of all.entries()) {
    const what = `${i + 1} of ${all.length}, ${mode}, seed ${seed}`;
    await waitForOthers(what);
    const last = await measuredRun(client, { mode, seed }, read, signal, () => train(what, mode, seed));
    if ('code' in last) comparison.failed.push(last);
    else comparison.runs.push(last);
    await onRun(comparison, last);
  }
  return comparison;
}

async function measuredRun(
  client: Client,
  turn: { mode: TrainingMode; seed: number },
  read: ReadUsage,
  signal: AbortSignal,
  train: () => Promise<{ job: string; results: Timed<TrainResults> }>,
): Promise<ComparedRun | FailedRun> {
  try {
    const { result, usage } = await measureUsage(read, MEASURE_INTERVAL_MS, train);
    const { seconds, ...results } = result.results;
    // The training is complete, so it is kept even if the server does not answer now. The report says so.
    const jobs = await client.jobs().catch(() => undefined);
    const disturbedBy = jobs && concurrentJobs(jobs, result.job);
    return { ...turn, job: result.job, seconds, usage, results, disturbedBy };
  } catch (error) {
    if (signal.aborted || !(error instanceof TilewrightError)) throw error;
    return { ...turn, code: error.code, message: error.message };
  }
}

/** Waits until no job runs. Throws the client's error if the server does not answer for two minutes. */
async function waitForOtherJobs(
  client: Client,
  signal: AbortSignal,
  onWait: (progress: Progress) => void,
): Promise<void> {
  let silentSince: number | undefined;
  for (;;) {
    try {
      const running = await runningJob(client);
      if (!running) return;
      silentSince = undefined;
      onWait(running);
    } catch (error) {
      silentSince ??= performance.now();
      if (!(error instanceof TilewrightError) || performance.now() - silentSince > SERVER_TIMEOUT_MS)
        throw error;
    }
    await pause(POLL_INTERVAL_MS, signal);
  }
}

const runningJob = async (client: Client) => (await client.jobs()).find(({ status }) => !hasEnded(status));

/** Returns the ids of the jobs that ran at the same time as the job `id`. */
export function concurrentJobs(
  jobs: (Pick<JobDocument, 'jobID'> & Partial<Pick<JobDocument, 'started' | 'finished'>>)[],
  id: string,
): string[] {
  const own = jobs.find(({ jobID }) => jobID === id);
  if (!own?.started || !own.finished) return [];
  const [from, to] = [Date.parse(own.started), Date.parse(own.finished)];
  return jobs
    .filter(
      ({ jobID, started, finished }) =>
        jobID !== id &&
        started !== undefined &&
        Date.parse(started) < to &&
        (finished === undefined || Date.parse(finished) > from),
    )
    .map(({ jobID }) => jobID);
}

/**
 * Measures the bytes a second that idle nodes send; undefined if no node counts them. The client polls a job as it does during a training,
 * because the answers count too. Repeats the measurement if a job runs at its end.
 */
async function measureIdleRate(
  client: Client,
  job: string,
  read: ReadUsage,
  signal: AbortSignal,
  attempt = 1,
): Promise<number | undefined> {
  if ((await read()).every(({ network }) => network === undefined)) return undefined;
  let isQuiet = true;
  const { usage } = await measureUsage(read, MEASURE_INTERVAL_MS, async () => {
    for (const until = performance.now() + IDLE_PHASE_MS; performance.now() < until; ) {
      await client.job(job);
      await pause(MEASURE_INTERVAL_MS, signal);
    }
    isQuiet = !(await runningJob(client));
  });
  if (isQuiet || attempt === MAX_IDLE_ATTEMPTS) return usage.sentBytes! / usage.seconds;
  await waitForOtherJobs(client, signal, () => undefined);
  return measureIdleRate(client, job, read, signal, attempt + 1);
}

/** Throws the reason of the signal. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}
