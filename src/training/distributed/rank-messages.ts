/** The requests that the process of a rank answers, and the result of the training. */

import type { Handler } from '../../engines/index.js';
import type { EpochLosses, TargetStatistics } from '../evaluation/index.js';
import type { CellReport } from '../learners/index.js';
import type { ModelFiles } from '../models/index.js';
import type { ModelCardContext } from '../registry/index.js';
import type { TrainCellTask, TrainingError } from '../train-cell/index.js';
import type { CheckpointLocation, ResumePoint } from './rank-checkpoints.js';
import type { RankInfo } from './ring-connection.js';

/** Identity of a cell. */
export interface RankCell {
  geocode: string;
  /** Tiles that the cell is trained and validated on. */
  tiles: ModelCardContext['tiles'];
}

/** The cells of one node. */
export interface ReadCellsRequest {
  model: string;
  places: (RankCell & Pick<TrainCellTask, 'id' | 'dates' | 'pairs' | 'validationFrom'>)[];
}

/** The usable cells, and the others with reasons. */
export interface ReadCellsResult {
  usable: string[];
  /** Training patches, including their overlap. */
  patches: number;
  skipped: { id: string; reason: string }[];
  failed: ({ id: string } & TrainingError)[];
}

export interface TrainRankRequest extends RankInfo {
  seed: number;
  epochs?: number;
  patience?: number;
  checkpoint: CheckpointLocation;
  /** True if every rank returns the files of the model, not only the first one. */
  returnsFiles?: boolean;
}

/** Scores of the model at one cell. Display range and baselines are fitted to the training patches of that cell. */
export interface CellScore extends RankCell, CellReport {
  /** Statistics of the true values. */
  spread: { train: TargetStatistics; validation: TargetStatistics };
}

/** Contribution of one rank. */
export interface RankContribution {
  places: CellScore[];
  /** Training patches, including their overlap. */
  patches: number;
  bytesRead: number;
}

export interface DataParallelResult {
  /** The first rank returns the files, or all ranks on request. All other members are equal on all ranks. */
  files?: ModelFiles;
  losses: EpochLosses[];
  /** The epoch whose weights are kept. */
  bestEpoch: number;
  steps: number;
  /** Values exchanged in each step. */
  parameters: number;
  members: (RankContribution & BytesTransferred)[];
  seconds: number;
}

/** Bytes over the connections of a rank, including those before the checkpoint from which it resumed. */
export interface BytesTransferred {
  bytesSent: number;
  bytesReceived: number;
}

/** File descriptors of the connections to the ranks before and after this one. */
export const PREVIOUS_RANK_FD = 4;
export const NEXT_RANK_FD = 5;

export type RankHandlers = {
  read: Handler<ReadCellsRequest, ReadCellsResult>;
  train: Handler<TrainRankRequest, DataParallelResult, { begins: ResumePoint } | { epoch: EpochLosses }>;
  /** Sent when the model is stored. Resolves when the other ranks leave as well. */
  leave: Handler<undefined, void>;
};
