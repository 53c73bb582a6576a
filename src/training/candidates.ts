/**
 * The choice between simple and complex models of one place: the mean of the training, the history, a ridge regression, and networks. Dates
 * are left out in turn. The best of the first three serves, unless a network is better by more than one standard error (the rule of
 * Breiman et al. 1984).
 */
import { historyLayout, type ModelSpec, withHistory } from './models/spec.js';
import {
  addSufficientStatistics,
  type LinearModel,
  linearError,
  pickFeatures,
  ridge,
  type SufficientStatistics,
} from './ridge-regression.js';

/** From the simplest to the most complex. `regional`: the base model of a region; `adapted`: the base as the place has adapted it. */
export const CANDIDATES = ['mean', 'history', 'ridge', 'regional', 'adapted', 'own'] as const;
export type CandidateName = (typeof CANDIDATES)[number];

/** A candidate with its errors in selection. */
export interface Candidate {
  name: CandidateName;
  /** Mean squared error, the mean over the groups of dates that were left out. */
  error: number;
  /** For each group. */
  errors: number[];
}

/** Sums over the samples of a place or of a region, with one group of dates left out, and over those of the group. */
export interface FoldStatistics {
  /** The first day of the group. */
  day: string;
  train: SufficientStatistics;
  scored: SufficientStatistics;
}

/** The candidates that are linear functions of the input planes; the others are networks. */
const LINEAR = ['mean', 'history', 'ridge'] as const satisfies CandidateName[];
export type LinearName = (typeof LINEAR)[number];
export const isLinear = (name: CandidateName): boolean => (LINEAR as readonly CandidateName[]).includes(name);

/** The specification of the model that a choice serves: its inputs and layers. */
export function servedSpec(
  plain: ModelSpec,
  choice?: { serves: CandidateName; history?: object },
): ModelSpec {
  if (!choice?.history) return plain;
  const spec = withHistory(plain);
  return isLinear(choice.serves) ? { ...spec, architecture: 'Linear regression', layers: [] } : spec;
}

/** Settings of a ridge regression. */
export interface RidgeSettings {
  /** The input planes that it reads, as numbers. */
  planes: number[];
  /** Penalty for each sample. */
  penalty: number;
}

/** Penalties for each sample, on standardised features: from hardly any to one that leaves little but the history. */
const PENALTIES = [1e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3, 10];
/** Minimum number of groups for the one-standard-error rule. */
const MIN_GROUPS = 4;

export const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Sets of input planes from which a ridge regression chooses, the smallest first. */
export function planeSets(spec: ModelSpec): number[][] {
  const bands = spec.inputs.map((_, b) => b);
  if (!spec.history) return [bands];
  const { mean, spread, bands: first } = historyLayout(spec);
  const at = (plane: number) => spec.inputs.length + plane;
  const means = Array.from({ length: spread - first }, (_, b) => at(first + b));
  const small = [...bands, at(mean)];
  const wide = [...small, ...means];
  // The nearest date is another one when a date is left out, so its weight cannot be chosen in this way.
  return [small, wide, [...wide, at(spread)]];
}

/** Fits one of the linear candidates to sums over all input planes. `mean` reads nothing; `history` returns the mean of the other dates. */
export function fitLinear(
  spec: ModelSpec,
  sums: SufficientStatistics,
  name: LinearName,
  { planes, penalty }: RidgeSettings,
): LinearModel {
  const none = sums.x.map(() => 0);
  if (name === 'mean')
    return { weights: sums.y.map(() => none), bias: sums.y.map((sum) => sum / sums.count) };
  const towards = historyWeights(spec, none);
  if (name === 'history') return { weights: sums.y.map(() => towards), bias: sums.y.map(() => 0) };
  const { weights, bias } = ridge(
    pickFeatures(sums, planes),
    penalty * sums.count,
    planes.map((plane) => towards[plane]!),
  );
  return { weights: weights.map((row) => none.map((_, plane) => row[planes.indexOf(plane)] ?? 0)), bias };
}

/** A ridge regression is shrunk towards the history, or towards the mean where models read none. */
function historyWeights(spec: ModelSpec, none: number[]): number[] {
  if (!spec.history) return none;
  const plane = spec.inputs.length + historyLayout(spec).mean;
  return none.map((_, p) => (p === plane ? 1 : 0));
}

/**
 * Returns the settings with the least error over the groups that are left out; the default without groups. If the rows without a group have
 * no history, the regression reads the bands only.
 */
export function chooseRidge(
  spec: ModelSpec,
  { folds, readsHistory }: Pick<PlaceStatistics, 'folds' | 'readsHistory'>,
): RidgeSettings {
  const sets = planeSets(readsHistory ? spec : { ...spec, history: false });
  let best = { settings: { planes: sets[0]!, penalty: 1 }, error: Infinity };
  if (folds.length === 0) return best.settings;
  for (const planes of sets)
    for (const penalty of PENALTIES) {
      const settings = { planes, penalty };
      const error = meanOf(linearErrors(spec, folds, 'ridge', settings));
      if (error < best.error) best = { settings, error };
    }
  return best.settings;
}

/** The errors of a linear candidate on each group, fitted without it. */
function linearErrors(
  spec: ModelSpec,
  folds: readonly FoldStatistics[],
  name: LinearName,
  settings: RidgeSettings,
): number[] {
  return folds.map(({ train, scored }) => linearError(scored, fitLinear(spec, train, name, settings)));
}

/** Returns the linear candidates, which read history only if the spec has it. */
export function linearCandidates(
  spec: ModelSpec,
  folds: readonly FoldStatistics[],
  settings: RidgeSettings,
): Candidate[] {
  const names = LINEAR.filter((name) => spec.history || name !== 'history');
  return names.map((name) => {
    const errors = linearErrors(spec, folds, name, settings);
    return { name, errors, error: meanOf(errors) };
  });
}

/**
 * Returns the best of the linear candidates, or a network that is better by more than one standard error, that of the paired differences
 * over the groups; of networks within one standard error of the best, the simplest. With fewer than four groups a network must be better on
 * each of them. The linear candidates have no such advantage among each other: with few dates, one standard error is so large that the
 * mean of the training would serve where the history has a third of its error. `candidates`: the simplest first, at least one linear.
 */
export function simplestCandidate(candidates: readonly Candidate[]): Candidate {
  const least = (some: readonly Candidate[]) => some.reduce((a, b) => (b.error < a.error ? b : a));
  const linear = least(candidates.filter(({ name }) => isLinear(name)));
  const networks = candidates.filter(({ name }) => !isLinear(name));
  const best = least([linear, ...networks]);
  const groups = best.errors.length;
  if (groups >= MIN_GROUPS)
    return [linear, ...networks].find((candidate) => isWithinOneError(candidate, best)) ?? best;
  const isBetter = groups > 0 && best.errors.every((error, i) => error < linear.errors[i]!);
  return isBetter ? best : linear;
}

function isWithinOneError({ errors }: Candidate, best: Candidate): boolean {
  const differences = errors.map((error, i) => error - best.errors[i]!);
  const mean = meanOf(differences);
  const squares = differences.reduce((sum, one) => sum + (one - mean) ** 2, 0);
  const n = differences.length;
  return mean <= Math.sqrt(squares / (n - 1) / n);
}

/** Sums of a place or a region from which its linear candidates are fitted. */
export interface PlaceStatistics {
  folds: FoldStatistics[];
  /** False if the rows that train have no history while a group is left out, because only one other date remains. */
  readsHistory: boolean;
  /** Over the training samples with a history, and over all. */
  withHistory: SufficientStatistics;
  all: SufficientStatistics;
}

/**
 * Joins the sums of places by their days, as if their samples were one set. A place without a day has all its samples in training. Places
 * whose rows have no history without a day train nothing then, if others have one.
 */
export function joinStatistics(places: readonly PlaceStatistics[]): PlaceStatistics {
  const days = [...new Set(places.flatMap(({ folds }) => folds.map(({ day }) => day)))].sort();
  const sum = (all: readonly SufficientStatistics[]) => all.reduce(addSufficientStatistics);
  const readsHistory = places.some((place) => place.readsHistory);
  return {
    folds: days.map((day) => {
      const folds = places.map((place) => place.folds.find((fold) => fold.day === day));
      const train = places.flatMap((place, i) => {
        if (!folds[i]) return place.withHistory;
        return place.readsHistory === readsHistory ? folds[i].train : [];
      });
      return { day, train: sum(train), scored: sum(folds.flatMap((fold) => fold?.scored ?? [])) };
    }),
    readsHistory,
    withHistory: sum(places.map(({ withHistory }) => withHistory)),
    all: sum(places.map(({ all }) => all)),
  };
}
