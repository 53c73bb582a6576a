/** Medians and ranges of the runs of each mode. */
import type { Metrics, TrainingMode } from '../../training/index.js';
import {
  cellLabels,
  cellScores,
  commonCells,
  computeSpread,
  describeDifferences,
  MEASURES_OF,
  type Measure,
  meanMeasure,
  measureValue,
  pooledMeasure,
  type Spread,
  spreadText,
  wins,
} from './measures.js';
import type { ComparedRun, Comparison } from './runs.js';
import type { Usage } from './usage.js';

export interface ModeSummary {
  mode: TrainingMode;
  seconds: Spread;
  /** All nodes with their processes. This and the next two fields have no values if a node does not count its child processes. */
  cpuSeconds: Spread;
  /** Cores in use, the mean of the nodes. */
  cores: Spread;
  /** The node with the highest peak. */
  peakMemoryBytes: Spread;
  /** Bytes sent, minus the bytes that idle nodes send in the same time. No values if no node counts bytes. */
  netBytes: Spread;
  /** All validation patches as one set. Empty if the runs did not train on the same data. */
  pooled: Partial<Record<Measure, Spread>>;
  /** Means over the cells that all runs have. */
  means: Partial<Record<Measure, Spread>>;
}

interface CellSummary {
  cell: string;
  modes: { mode: TrainingMode; measures: Partial<Record<Measure, Spread>> }[];
}

export const runsOfMode = ({ runs }: Pick<Comparison, 'runs'>, mode: TrainingMode) =>
  runs.filter((run) => run.mode === mode);

/** Sent bytes minus those that idle nodes send; undefined if they are not counted. */
export function netBytes({ usage }: ComparedRun, idleBytesPerSecond = 0): number | undefined {
  return usage.sentBytes === undefined ? undefined : usage.sentBytes - idleBytesPerSecond * usage.seconds;
}

export function modeSummary(comparison: Comparison, mode: TrainingMode): ModeSummary {
  const { model, idleBytesPerSecond } = comparison;
  const runs = runsOfMode(comparison, mode);
  const spread = (of: (run: ComparedRun) => number | undefined) =>
    computeSpread(runs.flatMap((run) => of(run) ?? []));
  const ofTree = (of: (usage: Usage) => number) =>
    spread(({ usage }) => (usage.includesChildren ? of(usage) : undefined));
  const isOneSet = describeDifferences(comparison).length === 0;
  const common = commonCells(comparison);
  const scores = new Map(
    runs.map((run) => [run, new Map([...cellScores(run.results)].filter(([key]) => common.has(key)))]),
  );
  return {
    mode,
    seconds: spread(({ seconds }) => seconds),
    cpuSeconds: ofTree((usage) => usage.cpuSeconds),
    cores: ofTree((usage) => usage.cpuSeconds / usage.seconds / usage.nodes.length),
    peakMemoryBytes: ofTree((usage) =>
      Math.max(...usage.nodes.map(({ peakMemoryBytes }) => peakMemoryBytes)),
    ),
    netBytes: spread((run) => netBytes(run, idleBytesPerSecond)),
    pooled: spreadsOf(model, (measure) =>
      spread(({ results }) => (isOneSet ? pooledMeasure(results, measure) : undefined)),
    ),
    means: spreadsOf(model, (measure) => spread((run) => meanMeasure(scores.get(run)!, measure))),
  };
}

/** The measures of a model that have values. */
function spreadsOf(model: string, of: (measure: Measure) => Spread): Partial<Record<Measure, Spread>> {
  const spreads = MEASURES_OF[model]!.map((measure) => [measure, of(measure)] as const);
  return Object.fromEntries(spreads.filter(([, { count }]) => count > 0));
}

/** Names of the baselines, as in the documentation. */
const BASELINES = {
  linear: 'ridge regression',
  mean: 'training mean',
  unchanged: 'unchanged cloudy date',
  nearest: 'nearest clear date',
  median: 'median of clear dates',
} as const;

/** Errors of the baselines, all cells as one set. They are the same for all modes, so the first mode with runs is used. */
function baselinesOf(comparison: Comparison): { name: string; mse: Spread }[] {
  const mode = comparison.modes.find((one) => runsOfMode(comparison, one).length > 0);
  const runs = mode ? runsOfMode(comparison, mode) : [];
  const pooled = runs.flatMap(({ results }) => results.pooled ?? []);
  return Object.entries(BASELINES).flatMap(([key, name]) => {
    const values = pooled.flatMap((one) => (one[key as keyof typeof one] as Metrics | undefined)?.mse ?? []);
    return values.length > 0 ? [{ name, mse: computeSpread(values) }] : [];
  });
}

/** The baselines in a sentence; empty if no run has ended. */
export function baselinesText(comparison: Comparison): string {
  const texts = baselinesOf(comparison).map(({ name, mse }) => `${name} ${spreadText(mse)}`);
  return texts.length > 0
    ? `MSE of simple predictors on the same patches, all places as one set: ${texts.join(', ')}.`
    : '';
}

/** Cells in the order of their names. */
export function cellSummaries(comparison: Comparison): CellSummary[] {
  const { model, modes } = comparison;
  const scores = modes.map((mode) => runsOfMode(comparison, mode).map(({ results }) => cellScores(results)));
  const keys = new Set(scores.flat().flatMap((one) => [...one.keys()]));
  const name = cellLabels(comparison);
  return [...keys].sort().map((key) => ({
    cell: name(key),
    modes: modes.map((mode, i) => ({
      mode,
      measures: spreadsOf(model, (measure) =>
        computeSpread(
          scores[i]!.flatMap((run) => {
            const metrics = run.get(key);
            return (metrics && measureValue(measure, metrics)) ?? [];
          }),
        ),
      ),
    })),
  }));
}

/** Counts the cells in which the model of `mode` is better than the model of `than`, over all seeds that both modes have. */
export function countWins(
  comparison: Comparison,
  mode: TrainingMode,
  than: TrainingMode,
  measure: Measure,
): { won: number; of: number } {
  const counts = runsOfMode(comparison, mode).flatMap(({ seed, results }) => {
    const other = runsOfMode(comparison, than).find((run) => run.seed === seed);
    return other ? [wins(cellScores(results), cellScores(other.results), measure)] : [];
  });
  return {
    won: counts.reduce((sum, { won }) => sum + won, 0),
    of: counts.reduce((sum, { of }) => sum + of, 0),
  };
}
