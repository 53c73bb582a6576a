/** Combines the results of the ranks of a distributed training into a report and pooled scores. */
import { plural } from '../../plural.js';
import { type Metrics, pooledScore, pooledTargetStatistics, pooledTile } from '../evaluation/index.js';
import type { TrainedCell } from '../loop/index.js';
import type { DistributedReport } from '../registry/index.js';
import type { CellScore, DataParallelResult } from './rank-messages.js';

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
  const pooled = (side: 'train' | 'validation', of: (cell: CellScore) => Metrics) =>
    pooledScore(
      cells.map(({ spread }) => spread[side]),
      cells.map(of),
    );
  const tile = pooledTile(cells);
  const counts = (side: 'train' | 'validation') => cells.reduce((sum, { patches }) => sum + patches[side], 0);
  return {
    files: files!,
    epochs: losses.length,
    losses,
    bestEpoch,
    metrics: {
      train: pooled('train', ({ metrics }) => metrics.train),
      validation: pooled('validation', ({ metrics }) => metrics.validation),
      ...(tile && { tile }),
    },
    spread: pooledTargetStatistics(cells.map(({ spread }) => spread.validation)),
    baseline: {
      mean: pooled('validation', ({ baseline }) => baseline.mean),
      linear: pooled('validation', ({ baseline }) => baseline.linear),
      ...(cells[0].baseline.unchanged && {
        unchanged: pooled('validation', ({ baseline }) => baseline.unchanged!),
        nearest: pooled('validation', ({ baseline }) => baseline.nearest!),
        median: pooled('validation', ({ baseline }) => baseline.median!),
      }),
    },
    patches: { train: counts('train'), validation: counts('validation') },
    split: `${plural(cells.length, 'place')}, each divided as for a model of its own`,
    bytesRead: members.reduce((sum, { bytesRead }) => sum + bytesRead, 0),
    seconds,
  };
}

const cellsOf = ({ members }: DataParallelResult) =>
  members.flatMap(({ places }) => places).sort((a, b) => (a.geocode < b.geocode ? -1 : 1));
