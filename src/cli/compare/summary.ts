/** Medians and ranges of the runs of each mode, and the verdicts on pairs of modes. */
import type { Metrics, TrainingMode } from '../../training/index.js';
import { comparePlaces, type PlaceComparison } from '../../utils/bootstrap.js';
import {
  cellLabels,
  cellScores,
  commonCells,
  comparedMeasures,
  computeSpread,
  describeDifferences,
  MEASURES_OF,
  type Measure,
  measureValue,
  medianMeasure,
  placeErrors,
  pooledMeasure,
  type Spread,
  spreadText,
} from './measures.js';
import type { ComparedRun, Comparison } from './runs.js';
import type { Usage } from './usage.js';

/** Figures of the cost of a run; undefined if a node does not count its child processes, or if no node counts bytes. */
const COSTS = {
  seconds: ({ seconds }) => seconds,
  /** All nodes with their processes. */
  cpuSeconds: ofTree((usage) => usage.cpuSeconds),
  /** Cores in use, the mean of the nodes. */
  cores: ofTree((usage) => usage.cpuSeconds / usage.seconds / usage.nodes.length),
  /** The node with the highest peak. */
  peakMemoryBytes: ofTree(({ nodes }) => Math.max(...nodes.map(({ peakMemoryBytes }) => peakMemoryBytes))),
  netBytes,
} satisfies Record<string, CostOf>;
export type Cost = keyof typeof COSTS;

type CostOf = (run: ComparedRun, idleBytesPerSecond?: number) => number | undefined;

function ofTree(of: (usage: Usage) => number): CostOf {
  return ({ usage }) => (usage.includesChildren ? of(usage) : undefined);
}

export interface ModeSummary {
  mode: TrainingMode;
  costs: Record<Cost, Spread>;
  /** All validation patches as one set. Empty if the runs did not train on the same data. */
  pooled: Partial<Record<Measure, Spread>>;
  /** Medians over the cells that all runs have. */
  medians: Partial<Record<Measure, Spread>>;
}

interface CellSummary {
  cell: string;
  modes: { mode: TrainingMode; measures: Partial<Record<Measure, Spread>> }[];
}

export const runsOfMode = ({ runs }: Pick<Comparison, 'runs'>, mode: TrainingMode) =>
  runs.filter((run) => run.mode === mode);

/** Sent bytes beyond those that idle nodes send, 0 if there are not more; undefined if they are not counted. */
export function netBytes({ usage }: ComparedRun, idleBytesPerSecond = 0): number | undefined {
  return usage.sentBytes === undefined
    ? undefined
    : Math.max(0, usage.sentBytes - idleBytesPerSecond * usage.seconds);
}

export function modeSummary(comparison: Comparison, mode: TrainingMode): ModeSummary {
  const { model, idleBytesPerSecond } = comparison;
  const runs = runsOfMode(comparison, mode);
  const spread = (of: (run: ComparedRun) => number | undefined) =>
    computeSpread(runs.flatMap((run) => of(run) ?? []));
  const costs = Object.entries(COSTS).map(([name, of]) => [
    name,
    spread((run) => of(run, idleBytesPerSecond)),
  ]);
  const isOneSet = describeDifferences(comparison).length === 0;
  const common = commonCells(comparison);
  const scores = new Map(
    runs.map((run) => [run, new Map([...cellScores(run.results)].filter(([key]) => common.has(key)))]),
  );
  return {
    mode,
    costs: Object.fromEntries(costs) as ModeSummary['costs'],
    pooled: spreadsOf(model, (measure) =>
      spread(({ results }) => (isOneSet ? pooledMeasure(results, measure) : undefined)),
    ),
    medians: spreadsOf(model, (measure) => spread((run) => medianMeasure(scores.get(run)!, measure))),
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

/** How the errors of the models of `mode` compare with those of `than`, at the cells that all runs have. */
export interface ModeVerdict extends PlaceComparison {
  mode: TrainingMode;
  than: TrainingMode;
  measure: Measure;
}

/** Compares every pair of modes by each measure that has a verdict, over the seeds that both modes have. */
export function verdicts(comparison: Comparison): ModeVerdict[] {
  const { model, modes } = comparison;
  const common = commonCells(comparison);
  return modes.flatMap((mode, i) =>
    modes.slice(i + 1).flatMap((than) => {
      const pairs = runPairs(comparison, mode, than);
      return comparedMeasures(model).map((measure) => {
        const [ours, theirs] = [0, 1].map((side) =>
          placeErrors(
            pairs.map((pair) => cellScores(pair[side]!.results)),
            common,
            measure,
          ),
        );
        return { mode, than, measure, ...comparePlaces(ours!, theirs!) };
      });
    }),
  );
}

/** The runs of two modes with the same seeds. */
function runPairs(
  comparison: Pick<Comparison, 'runs'>,
  mode: TrainingMode,
  than: TrainingMode,
): [ComparedRun, ComparedRun][] {
  const others = runsOfMode(comparison, than);
  return runsOfMode(comparison, mode).flatMap((run): [ComparedRun, ComparedRun][] => {
    const other = others.find(({ seed }) => seed === run.seed);
    return other ? [[run, other]] : [];
  });
}

/** Ratios of a cost between the runs of two modes with the same seeds. A pair is left out unless both costs are positive. */
export function costRatios(
  { idleBytesPerSecond, ...comparison }: Comparison,
  cost: Cost,
  mode: TrainingMode,
  than: TrainingMode,
): Spread {
  const ratios = runPairs(comparison, mode, than).flatMap((pair) => {
    const [costOfMode, costOfOther] = pair.map((run) => COSTS[cost](run, idleBytesPerSecond) ?? 0);
    return costOfMode! > 0 && costOfOther! > 0 ? [costOfMode! / costOfOther!] : [];
  });
  return computeSpread(ratios);
}
