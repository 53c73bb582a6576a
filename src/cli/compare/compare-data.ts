/** The data of a comparison: trainings of one model in several modes with the same seeds. */
import type { TrainingMode, TrainResults } from '../../training/index.js';
import type { Usage } from './compare-usage.js';

export interface ComparedRun {
  mode: TrainingMode;
  seed: number;
  job: string;
  /** From the job's start to its end. */
  seconds: number;
  usage: Usage;
  results: TrainResults;
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
