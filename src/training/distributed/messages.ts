/** The requests that the process of a rank answers, and the report and scores that the results of all ranks give. */
import type { Handler } from '../../engines/index.js';
import { plural } from '../../utils/text.js';
import {
  type EpochLosses,
  pooledBaselines,
  pooledScore,
  pooledSelection,
  pooledTargetStatistics,
  pooledTile,
  skillOf,
  type TargetStatistics,
} from '../evaluation.js';
import type { DistributedReport, ModelCardContext } from '../model-card.js';
import type { ModelFiles } from '../models/weights.js';
import type { CellReport, ModelChoice, TrainedCell } from '../report.js';
import type { DatasetTask, TrainCellTask, TrainingError } from '../train-task.js';
import type { CheckpointLocation, ResumePoint } from './checkpoints.js';
import type { RankInfo } from './ring.js';

/** Identity of a cell. */
export interface RankCell {
  geocode: string;
  /** Tiles that the cell is trained and validated on. */
  tiles: ModelCardContext['tiles'];
}

/** The cells of one node. */
export interface ReadCellsRequest {
  model: string;
  places: (RankCell & Pick<TrainCellTask, 'id'> & DatasetTask)[];
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
  /** Present if the cells have histories. */
  choice?: ModelChoice;
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

/** `names`: the names of the ranks. `nodes`: the number of running nodes. */
export function distributedReport(
  trained: DataParallelResult,
  names: string[],
  nodes: number,
): DistributedReport {
  const { members, steps, parameters } = trained;
  const size = members.length;
  const leastBytes = ((2 * (size - 1)) / size) * 4 * parameters * steps;
  return {
    members: members.map(({ places, patches, bytesSent, bytesReceived }, i) => ({
      node: names[i]!,
      places: places.length,
      patches,
      bytesSent,
      bytesReceived,
      ratio: size > 1 ? bytesSent / leastBytes : null,
    })),
    nodes,
    steps,
    parameters,
    leastBytes,
    places: cellsOf(trained).map(({ tiles: _tiles, spread: _spread, ...report }) => report),
  };
}

/** The scores over the patches of all cells. */
export function pooledCellScores(trained: DataParallelResult): TrainedCell {
  const { files, losses, bestEpoch, members, seconds, choice } = trained;
  const cells = cellsOf(trained);
  const truths = (side: 'train' | 'validation') => cells.map(({ spread }) => spread[side]);
  const score = (side: 'train' | 'validation') =>
    pooledScore(
      truths(side),
      cells.map(({ metrics }) => metrics[side]),
    );
  const counts = (side: 'train' | 'validation') => cells.reduce((sum, { patches }) => sum + patches[side], 0);
  const tile = pooledTile(cells);
  const selection = pooledSelection(cells.flatMap((cell) => cell.selection ?? []));
  return {
    files: files!,
    epochs: losses.length,
    losses,
    bestEpoch,
    metrics: { train: score('train'), validation: score('validation'), ...(tile && { tile }) },
    ...(selection && { selection }),
    spread: pooledTargetStatistics(truths('validation')),
    baseline: pooledBaselines(truths('validation'), cells),
    skill: skillOf(
      cells.map(({ metrics, baseline, spread: { validation } }) => ({
        model: validation.count * metrics.validation.mse,
        mean: validation.count * baseline.mean.mse,
      })),
    ),
    ...(cells[0]!.trainingMean !== undefined && {
      trainingMean: pooledTargetStatistics(truths('train')).mean,
    }),
    patches: { train: counts('train'), validation: counts('validation') },
    split: `${plural(cells.length, 'place')}, each divided as for a model of its own`,
    bytesRead: members.reduce((sum, { bytesRead }) => sum + bytesRead, 0),
    seconds,
    ...(choice && { choice }),
  };
}

const cellsOf = ({ members }: DataParallelResult) =>
  members.flatMap(({ places }) => places).sort((a, b) => (a.geocode < b.geocode ? -1 : 1));
