/** What the runs of a comparison say together. */
import type { Metrics, TrainingMode, TrainResults } from '../../training/index.js';
import type { ComparedRun, Comparison } from './comparison.js';
import { MEASURES_OF, type Measure, meanOf, measureOf, scoresOf, wins } from './measures.js';
import { commonScores, haveSamePlaces } from './places.js';
import { type Spread, spreadOf, spreadText } from './spread.js';
import type { Usage } from './usage.js';

export interface ModeSummary {
  mode: TrainingMode;
  seconds: Spread;
  /** All nodes with their processes. As the next two, of no values if a node does not count its processes. */
  cpuSeconds: Spread;
  /** Cores in use, the mean of the nodes. */
  cores: Spread;
  /** Of the node that had the most. */
  peakMemoryBytes: Spread;
  /** Beyond what the nodes send anyway; of no values where no node counts bytes. */
  netBytes: Spread;
  /** All validation patches as one set. Without measures if the runs have other places. */
  pooled: Partial<Record<Measure, Spread>>;
  /** Means over the places that all runs have. */
  means: Partial<Record<Measure, Spread>>;
}

export interface PlaceSummary {
  place: string;
  modes: { mode: TrainingMode; measures: Partial<Record<Measure, Spread>> }[];
}

export const runsOf = ({ runs }: Pick<Comparison, 'runs'>, mode: TrainingMode) =>
  runs.filter((run) => run.mode === mode);

/** Bytes sent beyond what is sent while nothing is trained; undefined if they are not counted. */
export function netBytes({ usage }: ComparedRun, idleBytesPerSecond = 0): number | undefined {
  return usage.sentBytes === undefined ? undefined : usage.sentBytes - idleBytesPerSecond * usage.seconds;
}

export function summaryOf(comparison: Comparison, mode: TrainingMode): ModeSummary {
  const { model, idleBytesPerSecond } = comparison;
  const runs = runsOf(comparison, mode);
  const spread = (of: (run: ComparedRun) => number | undefined) =>
    spreadOf(runs.flatMap((run) => of(run) ?? []));
  const ofTree = (of: (usage: Usage) => number) =>
    spread(({ usage }) => (usage.includesChildren ? of(usage) : undefined));
  const isOneSet = haveSamePlaces(comparison);
  const byMeasure = (of: (run: ComparedRun, measure: Measure) => number | undefined) =>
    Object.fromEntries(
      MEASURES_OF[model]!.map((measure) => [measure, spread((run) => of(run, measure))] as const).filter(
        ([, { count }]) => count > 0,
      ),
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
    pooled: byMeasure(({ results }, measure) => (isOneSet ? pooledMeasure(results, measure) : undefined)),
    means: byMeasure((run, measure) => finite(meanOf(commonScores(comparison, run), measure))),
  };
}

const finite = (value: number) => (Number.isFinite(value) ? value : undefined);

function pooledMeasure({ pooled }: TrainResults, measure: Measure): number | undefined {
  return pooled ? measureOf(measure, { validation: pooled.model, tile: pooled.tile }) : undefined;
}

/** Names of the baselines, as the documentation has them. */
const BASELINES = {
  linear: 'ridge regression',
  mean: 'training mean',
  unchanged: 'cloudy date as it is',
  nearest: 'nearest clear date',
  median: 'median of clear dates',
} as const;

/** Errors of the baselines on the same patches, all places as one set: those of the first mode that has runs, because each place has its own. */
function baselinesOf(comparison: Comparison): { name: string; mse: Spread }[] {
  const mode = comparison.modes.find((one) => runsOf(comparison, one).length > 0);
  const runs = mode ? runsOf(comparison, mode) : [];
  const pooled = runs.flatMap(({ results }) => results.pooled ?? []);
  return Object.entries(BASELINES).flatMap(([key, name]) => {
    const values = pooled.flatMap((one) => (one[key as keyof typeof one] as Metrics | undefined)?.mse ?? []);
    return values.length > 0 ? [{ name, mse: spreadOf(values) }] : [];
  });
}

/** The baselines in a sentence; empty if no run has ended. */
export function baselinesText(comparison: Comparison): string {
  const texts = baselinesOf(comparison).map(({ name, mse }) => `${name} ${spreadText(mse)}`);
  return texts.length > 0
    ? `MSE of simple predictors on the same patches, all places as one set: ${texts.join(', ')}.`
    : '';
}

/** Places in the order of their names. */
export function placesOf(comparison: Comparison): PlaceSummary[] {
  const { model, modes } = comparison;
  const scores = modes.map((mode) => runsOf(comparison, mode).map(({ results }) => scoresOf(results)));
  const places = new Set(scores.flat().flatMap((one) => [...one.keys()]));
  return [...places].sort().map((place) => ({
    place,
    modes: modes.map((mode, i) => ({
      mode,
      measures: Object.fromEntries(
        MEASURES_OF[model]!.map((measure) => {
          const values = scores[i]!.flatMap((run) => {
            const metrics = run.get(place);
            return (metrics && measureOf(measure, metrics)) ?? [];
          });
          return [measure, spreadOf(values)] as const;
        }).filter(([, { count }]) => count > 0),
      ),
    })),
  }));
}

/** At how many places, over all seeds that both have, the models of `mode` are better than those of `than`. */
export function winsOf(
  comparison: Comparison,
  mode: TrainingMode,
  than: TrainingMode,
  measure: Measure,
): { won: number; of: number } {
  const counts = runsOf(comparison, mode).flatMap(({ seed, results }) => {
    const other = runsOf(comparison, than).find((run) => run.seed === seed);
    return other ? [wins(scoresOf(results), scoresOf(other.results), measure)] : [];
  });
  return {
    won: counts.reduce((sum, { won }) => sum + won, 0),
    of: counts.reduce((sum, { of }) => sum + of, 0),
  };
}
