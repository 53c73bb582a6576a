/** Combines the results of the ranks of a distributed training into a report and pooled scores. */
import { plural } from '../../utils/plural.js';
import { pooledBaselines, pooledScore, pooledTargetStatistics, pooledTile } from '../evaluation/index.js';
import type { TrainedCell } from '../learners/index.js';
import type { DistributedReport } from '../registry/index.js';
import type { DataParallelResult } from './rank-messages.js';

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
  const { files, losses, bestEpoch, members, seconds } = trained;
  const cells = cellsOf(trained);
  const truths = (side: 'train' | 'validation') => cells.map(({ spread }) => spread[side]);
  const score = (side: 'train' | 'validation') =>
    pooledScore(
      truths(side),
      cells.map(({ metrics }) => metrics[side]),
    );
  const counts = (side: 'train' | 'validation') => cells.reduce((sum, { patches }) => sum + patches[side], 0);
  const tile = pooledTile(cells);
  return {
    files: files!,
    epochs: losses.length,
    losses,
    bestEpoch,
    metrics: { train: score('train'), validation: score('validation'), ...(tile && { tile }) },
    spread: pooledTargetStatistics(truths('validation')),
    baseline: pooledBaselines(truths('validation'), cells),
    patches: { train: counts('train'), validation: counts('validation') },
    split: `${plural(cells.length, 'place')}, each divided as for a model of its own`,
    bytesRead: members.reduce((sum, { bytesRead }) => sum + bytesRead, 0),
    seconds,
  };
}

const cellsOf = ({ members }: DataParallelResult) =>
  members.flatMap(({ places }) => places).sort((a, b) => (a.geocode < b.geocode ? -1 : 1));
