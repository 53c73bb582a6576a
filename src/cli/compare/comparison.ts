/** Trainings of one model in several modes, by the same seeds: what was asked for and what came of it. */
import type { TrainingMode, TrainResults } from '../../training/index.js';
import type { Usage } from './usage.js';

export interface ComparedRun {
  mode: TrainingMode;
  seed: number;
  job: string;
  /** From the job's start to its end. */
  seconds: number;
  usage: Usage;
  results: TrainResults;
}

export interface FailedRun {
  mode: TrainingMode;
  seed: number;
  code: string;
  message: string;
}

export interface Comparison {
  model: string;
  /** Those that are compared; the others are compared with the first. */
  modes: TrainingMode[];
  seeds: number[];
  runs: ComparedRun[];
  failed: FailedRun[];
  /** Bytes that the nodes send in a second while nothing is trained; absent if no node counts them. */
  idleRate?: number;
}

/** Each mode once for each seed. The order turns round with each seed, so that what changes on the machine meanwhile meets all modes. */
export function turns(modes: TrainingMode[], seeds: number[]): { mode: TrainingMode; seed: number }[] {
  return seeds.flatMap((seed, i) =>
    (i % 2 === 0 ? modes : modes.toReversed()).map((mode) => ({ mode, seed })),
  );
}
