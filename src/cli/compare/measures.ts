/** Measures of accuracy: of the cells that a run has trained, of the cells that all runs share, and their spread over runs. */
import { median } from '../../html/index.js';
import { type ModelMetrics, summariseReasons, type TrainResults } from '../../training/index.js';
import type { ComparedRun, Comparison } from './runs.js';

/** Scores by the key of the cell, which is its collection and geocode. */
type CellScores = Map<string, ModelMetrics>;

/** The trained cells, whether each has its own model or all share one. */
export function trainedCells({ models }: Pick<TrainResults, 'models'>) {
  return models.flatMap(({ collection, distributed, geocode, metrics, patches }) =>
    (distributed?.places ?? [{ geocode, metrics, patches }]).map((place) => ({
      key: `${collection} ${place.geocode}`,
      metrics: place.metrics,
      patches: place.patches,
    })),
  );
}

export const cellScores = (results: Pick<TrainResults, 'models'>): CellScores =>
  new Map(trainedCells(results).map(({ key, metrics }) => [key, metrics]));

interface MeasureOf {
  /** Undefined if a cell lacks the measure, or if an older version computed it differently. */
  of(metrics: Pick<ModelMetrics, 'validation' | 'tile'>): number | undefined;
  /** True if lower values are better. */
  isError: boolean;
}

/** Measures on the validation patches. MS-SSIM is measured on whole tiles, because its five scales need 176 pixels. PSNR is in dB. */
export const MEASURES = {
  MSE: { of: ({ validation }) => validation.mse, isError: true },
  R2: { of: ({ validation }) => validation.r2, isError: false },
  'MS-SSIM': { of: ({ tile }) => tile?.msSsim?.value, isError: false },
  PSNR: { of: ({ validation }) => validation.images && validation.psnr, isError: false },
  SSIM: { of: ({ validation }) => validation.images && validation.ssim, isError: false },
} as const satisfies Record<string, MeasureOf>;
export type Measure = keyof typeof MEASURES;

/** The measures of each model: those of the paper's Table 4, and MSE and R2. The first one decides which mode is better for a cell. */
export const MEASURES_OF: Record<string, [Measure, ...Measure[]]> = {
  ndvi: ['MSE', 'R2'],
  ndmi: ['MSE', 'R2', 'MS-SSIM'],
  'cloud-removal': ['MSE', 'PSNR', 'SSIM', 'MS-SSIM'],
};

/** Returns undefined for NaN too, which is null in JSON. */
export const measureValue = (measure: Measure, metrics: Pick<ModelMetrics, 'validation' | 'tile'>) =>
  (MEASURES[measure] as MeasureOf).of(metrics) ?? undefined;

/** The score of all patches as one set, or of all tiles for MS-SSIM. Undefined if the run has none. */
export const pooledMeasure = ({ pooled }: TrainResults, measure: Measure) =>
  pooled ? measureValue(measure, { validation: pooled.model, tile: pooled.tile }) : undefined;

/** Counts the cells in which `ours` is better, and the cells in which both have this measure. */
export function wins(ours: CellScores, theirs: CellScores, measure: Measure): { won: number; of: number } {
  const { isError } = MEASURES[measure];
  const gains = [...ours].flatMap(([place, metrics]) => {
    const other = theirs.get(place);
    const [own, their] = [measureValue(measure, metrics), other && measureValue(measure, other)];
    return own === undefined || their === undefined ? [] : [isError ? their - own : own - their];
  });
  return { won: gains.filter((gain) => gain > 0).length, of: gains.length };
}

/** The mean over cells; undefined if none has the measure. */
export function meanMeasure(scores: CellScores, measure: Measure): number | undefined {
  const values = [...scores.values()].flatMap((metrics) => measureValue(measure, metrics) ?? []);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Number.isFinite(mean) ? mean : undefined;
}

type Runs = Pick<Comparison, 'runs'>;

const nameOf = ({ mode, seed }: ComparedRun) => `${mode}, seed ${seed}`;

/** Keys of the cells that all runs have trained. */
export function commonCells({ runs }: Runs): Set<string> {
  const all = runs.map(({ results }) => cellScores(results));
  const [first = new Map<string, unknown>(), ...others] = all;
  return new Set([...first.keys()].filter((key) => others.every((scores) => scores.has(key))));
}

/** Returns a function from the key of a cell to its name: the geocode, with the collection if the runs have several collections. */
export function cellLabels({ runs }: Runs): (key: string) => string {
  const collections = new Set(
    runs.flatMap(({ results }) => results.models.map(({ collection }) => collection)),
  );
  return (key) => (collections.size > 1 ? key : key.slice(key.indexOf(' ') + 1));
}

/** Sentences that say how the cells and patches of each run differ from those of the first run; no sentence for equal runs. */
export function describeDifferences(comparison: Runs): string[] {
  const [first, ...others] = comparison.runs;
  if (!first) return [];
  const name = cellLabels(comparison);
  const patchesOf = ({ results }: ComparedRun) =>
    new Map(trainedCells(results).map(({ key, patches }) => [key, patches]));
  const known = patchesOf(first);
  return others.flatMap((run) => {
    const own = patchesOf(run);
    const missing = [...known.keys()].filter((key) => !own.has(key));
    const added = [...own.keys()].filter((key) => !known.has(key));
    const changed = [...own.keys()].filter((key) => {
      const [before, now] = [known.get(key), own.get(key)];
      return before && now && (before.train !== now.train || before.validation !== now.validation);
    });
    const sentence = (how: string, keys: string[]) => {
      if (keys.length === 0) return [];
      const places = keys.length === 1 ? name(keys[0]!) : `${keys.length} places (such as ${name(keys[0]!)})`;
      return [`${nameOf(run)} ${how} ${places}`];
    };
    return [
      ...sentence(`did not train a place of ${nameOf(first)}:`, missing),
      ...sentence(`trained a place that ${nameOf(first)} did not:`, added),
      ...sentence(
        `has other patches than ${nameOf(first)}, because tiles were added or deleted, at`,
        changed,
      ),
    ];
  });
}

/** The reasons why cells have no model, from the first run of each mode, the most frequent first. */
export function excludedCellReasons({ runs, modes, model }: Comparison): string[] {
  const texts = modes.map((mode) => {
    const run = runs.find((one) => one.mode === mode);
    return { mode, reasons: run ? summariseReasons(run.results, [model]) : [] };
  });
  const isShared = texts.every(({ reasons }) => reasons.join() === texts[0]!.reasons.join());
  return isShared
    ? texts[0]!.reasons
    : texts.flatMap(({ mode, reasons }) => reasons.map((reason) => `${mode}: ${reason}`));
}

/** True if a cell failed in a run. */
export const hasFailedCells = ({ runs }: Runs) => runs.some(({ results }) => results.failed.length > 0);

export interface Spread {
  median: number;
  least: number;
  most: number;
  /** Number of values. */
  count: number;
}

/** Without values, all figures are NaN. */
export function computeSpread(values: number[]): Spread {
  if (values.length === 0) return { median: NaN, least: NaN, most: NaN, count: 0 };
  return {
    median: median(values),
    least: Math.min(...values),
    most: Math.max(...values),
    count: values.length,
  };
}

const MIN_RUNS = 3;

type Verdict = 'less' | 'more' | 'within the spread' | 'too few runs';

/** Returns `less` or `more` only if the ranges do not overlap and both have three runs. */
export function compareSpreads(ours: Spread, theirs: Spread): Verdict {
  if (Math.min(ours.count, theirs.count) < MIN_RUNS) return 'too few runs';
  if (ours.most < theirs.least) return 'less';
  return ours.least > theirs.most ? 'more' : 'within the spread';
}

/** Returns text such as `1.23 (1.20 to 1.31)`, or `-` without values. */
export function spreadText({ median, least, most, count }: Spread, write = digits): string {
  if (count === 0) return '-';
  return least === most ? write(median) : `${write(median)} (${write(least)} to ${write(most)})`;
}

/** A number with three significant digits. */
export const digits = (value: number): string =>
  Math.abs(value) < 0.01 && value !== 0 ? value.toExponential(2) : String(Number(value.toPrecision(3)));

/** Positive or negative bytes with a suitable unit. */
export function bytesText(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${digits(value / 1e9)} GB`;
  if (size >= 1e6) return `${digits(value / 1e6)} MB`;
  return size >= 1e3 ? `${digits(value / 1e3)} kB` : `${value.toFixed(0)} B`;
}
