/** Measures of accuracy: of the cells that a run has trained, of the cells that all runs share, and their spread over runs. */
import { median } from '../../html/index.js';
import { type ModelMetrics, summariseReasons, type TrainResults } from '../../training/index.js';
import type { PlaceErrors } from '../../utils/bootstrap.js';
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
  /** The error that modes are compared by. Absent for measures without a verdict. */
  error?(value: number): number;
}

/**
 * Measures on the validation patches. MS-SSIM is measured on whole tiles, because its five scales need 176 pixels; it has no verdict,
 * because tiles include training ground. R2 has none either, because it depends on the variance of the place. PSNR is in dB.
 */
const MEASURES = {
  MSE: { of: ({ validation }) => validation.mse, error: (value) => value },
  RMSE: { of: ({ validation }) => validation.mse && Math.sqrt(validation.mse) },
  R2: { of: ({ validation }) => validation.r2 },
  'MS-SSIM': { of: ({ tile }) => tile?.msSsim?.value },
  PSNR: {
    of: ({ validation }) => validation.images && validation.psnr,
    error: (value) => 10 ** (-value / 10),
  },
  SSIM: { of: ({ validation }) => validation.images && validation.ssim, error: (value) => 1 - value },
} as const satisfies Record<string, MeasureOf>;
export type Measure = keyof typeof MEASURES;

/** The measures of each model: those of the paper's Table 4, and MSE, RMSE and R2. */
export const MEASURES_OF: Record<string, [Measure, ...Measure[]]> = {
  ndvi: ['MSE', 'RMSE', 'R2'],
  ndmi: ['MSE', 'RMSE', 'R2', 'MS-SSIM'],
  'cloud-removal': ['MSE', 'RMSE', 'PSNR', 'SSIM', 'MS-SSIM'],
};

/** Returns undefined for NaN too, which is null in JSON. */
export const measureValue = (measure: Measure, metrics: Pick<ModelMetrics, 'validation' | 'tile'>) =>
  (MEASURES[measure] as MeasureOf).of(metrics) ?? undefined;

/** The score of all patches as one set, or of all tiles for MS-SSIM. Undefined if the run has none. */
export const pooledMeasure = ({ pooled }: TrainResults, measure: Measure) =>
  pooled ? measureValue(measure, { validation: pooled.model, tile: pooled.tile }) : undefined;

/** The measures of a model that have a verdict. */
export const comparedMeasures = (model: string): Measure[] =>
  MEASURES_OF[model]!.filter((measure) => (MEASURES[measure] as MeasureOf).error);

/** Errors by cell over several runs, of the cells in `cells`. For a measure with a verdict. */
export function placeErrors(runs: CellScores[], cells: ReadonlySet<string>, measure: Measure): PlaceErrors {
  const { error } = MEASURES[measure] as MeasureOf;
  const errorsOf = (cell: string) =>
    runs.flatMap((scores) => {
      const metrics = scores.get(cell);
      const value = metrics && measureValue(measure, metrics);
      return value === undefined ? [] : [error!(value)];
    });
  return new Map([...cells].map((cell) => [cell, errorsOf(cell)]));
}

/** The median over cells; undefined if none has the measure. */
export function medianMeasure(scores: CellScores, measure: Measure): number | undefined {
  const values = [...scores.values()].flatMap((metrics) => measureValue(measure, metrics) ?? []);
  return values.length > 0 ? median(values) : undefined;
}

type Runs = Pick<Comparison, 'runs'>;

const nameOf = ({ mode, seed }: ComparedRun) => `${mode}, seed ${seed}`;

const patchesOf = ({ results }: ComparedRun) =>
  new Map(trainedCells(results).map(({ key, patches }) => [key, patches]));

type PatchCounts = ReturnType<typeof trainedCells>[number]['patches'];

const isChanged = (before: PatchCounts, now: PatchCounts) =>
  before && now && (before.train !== now.train || before.validation !== now.validation);

/** Keys of the cells that all runs have trained, with the same numbers of patches. */
export function commonCells({ runs }: Runs): Set<string> {
  const [first = new Map<string, PatchCounts>(), ...others] = runs.map(patchesOf);
  return new Set(
    [...first].flatMap(([key, patches]) =>
      others.every((other) => other.has(key) && !isChanged(patches, other.get(key))) ? [key] : [],
    ),
  );
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
  const known = patchesOf(first);
  return others.flatMap((run) => {
    const own = patchesOf(run);
    const missing = [...known.keys()].filter((key) => !own.has(key));
    const added = [...own.keys()].filter((key) => !known.has(key));
    const changed = [...own].flatMap(([key, now]) => (isChanged(known.get(key), now) ? [key] : []));
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

/** The warnings of the trainings, each once. */
export const trainingWarnings = ({ runs }: Runs): string[] => [
  ...new Set(runs.flatMap(({ results }) => results.warnings ?? [])),
];

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
