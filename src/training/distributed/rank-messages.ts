/** The requests that the process of a node in a distributed training answers, and the result of the training. */

import type { Handler } from '../../engines/index.js';
import type { EpochLosses, TargetStatistics } from '../evaluation/index.js';
import type { CellReport } from '../loop/index.js';
import type { ModelFiles } from '../models/index.js';
import type { ModelCardContext } from '../registry/index.js';
import type { TrainCellTask, TrainingError } from '../workers/index.js';
import type { CheckpointLocation, ResumePoint } from './rank-checkpoints.js';
import type { RankInfo } from './ring-connection.js';

/** What is said of a place. */
export interface RankCell {
  geocode: string;
  /** Those that it is trained and validated on. */
  tiles: ModelCardContext['tiles'];
}

/** The places of one node. */
export interface ReadCellsRequest {
  model: string;
  places: (RankCell & Pick<TrainCellTask, 'id' | 'dates' | 'pairs' | 'validationFrom'>)[];
}

/** What of them can be trained on. */
export interface ReadCellsResult {
  usable: string[];
  /** Patches for training, with their overlap. */
  patches: number;
  skipped: { id: string; reason: string }[];
  failed: ({ id: string } & TrainingError)[];
}

export interface TrainRankRequest extends RankInfo {
  seed: number;
  epochs?: number;
  patience?: number;
  checkpoint: CheckpointLocation;
}

/** Scores of the model at one cell. Display range and baselines are fitted to the training patches of that cell. */
export interface CellScore extends RankCell, CellReport {
  /** Statistics of the true values. */
  spread: { train: TargetStatistics; validation: TargetStatistics };
}

/** One member's part in it. */
export interface RankContribution {
  places: CellScore[];
  /** Patches for training, with their overlap. */
  patches: number;
  bytesRead: number;
}

export interface DataParallelResult {
  /** The same at all members, but for the files: only the first gives them. */
  files?: ModelFiles;
  losses: EpochLosses[];
  /** The epoch whose weights are kept. */
  bestEpoch: number;
  steps: number;
  /** Numbers that are exchanged in a step. */
  parameters: number;
  members: (RankContribution & BytesTransferred)[];
  seconds: number;
}

/** Bytes that went over a member's connections, also before the checkpoint from which it went on. */
export interface BytesTransferred {
  bytesSent: number;
  bytesReceived: number;
}

/** Its file descriptors, to the members before and after it. */
export const PREVIOUS_RANK_FD = 4;
export const NEXT_RANK_FD = 5;

export type RankHandlers = {
  read: Handler<ReadCellsRequest, ReadCellsResult>;
  train: Handler<TrainRankRequest, DataParallelResult, { begins: ResumePoint } | { epoch: EpochLosses }>;
  /** Sent when the model is stored. Resolves when the other members leave as well. */
  leave: Handler<undefined, void>;
};
