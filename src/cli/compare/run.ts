/** Trains a model in several modes on one server, run after run. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, hasEnded, type Progress } from '../../client/index.js';
import { TilewrightError } from '../../errors.js';
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
const LOOK_INTERVAL = 500;
/** How long the nodes are watched while nothing is trained, ms. */
const IDLE_PHASE = 10_000;
/** How long a server that does not answer is waited for, and the pause between two questions, ms. */
const SERVER_PATIENCE = 120_000;
const PAUSE = 1000;
/** How often the nodes are watched until no job disturbs it. */
const MOST_TRIES = 3;

/**
 * Trains in each mode with each seed; nothing is stored. One epoch before that does not count: in it every node chooses its engine, and
 * data that cannot be trained on fail early. A run waits for other jobs to end. A run that fails is in the comparison, and the next one
 * follows. Throws what the first epoch throws, such as TW_TRAIN_NOTHING, and TW_CLIENT_UNREACHABLE if the server stays away.
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
  const quiet = (what: string) =>
    otherJobsEnd(client, signal, (progress) => onProgress(`${what}, waiting for another job`, progress));
  await quiet('warm-up');
  const warmUp = await train('warm-up', modes[0]!, seeds[0]!, 1);
  const idleBytesPerSecond = await idleRate(client, warmUp.job, read, signal);
  const comparison: Comparison = {
    ...{ model: inputs.model, modes, seeds, runs: [], failed: [] },
    ...(idleBytesPerSecond !== undefined && { idleBytesPerSecond }),
  };
  const all = turns(modes, seeds);
  for (const [i, { mode, seed }] of all.entries()) {
    const what = `${i + 1} of ${all.length}, ${mode}, seed ${seed}`;
    await quiet(what);
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
  train: () => Promise<{ job: string; results: TrainResults & { seconds: number } }>,
): Promise<ComparedRun | FailedRun> {
  try {
    const { result, usage } = await withUsage(read, LOOK_INTERVAL, train);
    const { seconds, ...results } = result.results;
    const disturbedBy = await jobsBeside(client, result.job).catch(() => []);
    return { ...turn, job: result.job, seconds, usage, results, disturbedBy };
  } catch (error) {
    if (signal.aborted || !(error instanceof TilewrightError)) throw error;
    return { ...turn, code: error.code, message: error.message };
  }
}

/** Waits until no job runs, and for a server that does not answer. Throws TW_CLIENT_UNREACHABLE. */
async function otherJobsEnd(
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
      if (!(error instanceof TilewrightError) || performance.now() - silentSince > SERVER_PATIENCE)
        throw error;
    }
    await pause(PAUSE, signal);
  }
}

const runningJob = async (client: Client) => (await client.jobs()).find(({ status }) => !hasEnded(status));

/** Ids of other jobs that ran while a job did. */
async function jobsBeside(client: Client, id: string): Promise<string[]> {
  const jobs = await client.jobs();
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
 * Bytes a second that are sent anyway; undefined if no node counts them. The client asks as often as in a training, because its answers
 * count too. Tries again if a job runs at the end.
 */
async function idleRate(
  client: Client,
  job: string,
  read: ReadUsage,
  signal: AbortSignal,
  tries = 1,
): Promise<number | undefined> {
  if ((await read()).every(({ network }) => network === undefined)) return undefined;
  let isQuiet = true;
  const { usage } = await withUsage(read, LOOK_INTERVAL, async () => {
    for (const until = performance.now() + IDLE_PHASE; performance.now() < until; ) {
      await client.job(job);
      await pause(LOOK_INTERVAL, signal);
    }
    isQuiet = !(await runningJob(client));
  });
  if (isQuiet || tries === MOST_TRIES) return usage.sentBytes! / usage.seconds;
  await otherJobsEnd(client, signal, () => undefined);
  return idleRate(client, job, read, signal, tries + 1);
}

/** Throws the reason of the signal. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}
