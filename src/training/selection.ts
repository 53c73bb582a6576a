/** Chooses the model of a place that has a history, trains it if it is a network, and scores it for each question that it is asked. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import { predictPatches } from './batches.js';
import {
  type Candidate,
  type CandidateName,
  chooseRidge,
  fitLinear,
  type LinearName,
  linearCandidates,
  meanOf,
  type PlaceStatistics,
  type RidgeSettings,
  servedSpec,
  simplestCandidate,
} from './candidates.js';
import { baseNotUsable } from './errors.js';
import {
  type HistoryBaselines,
  historyStatistics,
  linearPredictor,
  maskedPairs,
  meanError,
  type Predictor,
  squaredErrors,
  targetStatistics,
} from './evaluation.js';
import { buildModel } from './models/network.js';
import { historyLayout, type ModelSpec, withHistory } from './models/spec.js';
import { setWeights } from './models/weights.js';
import { type DatedPatches, type TrainValidationPatches, withoutHistory } from './patches.js';
import {
  type HistoryChoice,
  type ModelChoice,
  type Question,
  type QuestionErrors,
  reportOf,
  type TrainedCell,
} from './report.js';
import { addSufficientStatistics, type LinearModel } from './ridge-regression.js';
import { fitModel, groupErrors, type TrainOptions, type TrainResult, trainModel } from './training-loop.js';
import { readSourceWeights, type SourceModelFiles } from './warm-start.js';

/** The patches of a place that has a history. */
export type HistoryDataset = TrainValidationPatches & Required<Pick<TrainValidationPatches, 'history'>>;

export const hasHistory = (dataset: TrainValidationPatches): dataset is HistoryDataset =>
  dataset.history !== undefined;

/** The input plane that says where a pixel has a history. */
export const hasPlane = (spec: ModelSpec) => spec.inputs.length + historyLayout(spec).has;

/** Sums over the training patches, with each group of dates left out in turn. Groups without a sample on either side are omitted. */
export function placeStatistics(plain: ModelSpec, { train, history }: HistoryDataset): PlaceStatistics {
  const has = hasPlane(plain);
  const folds = history.days.flatMap((day, group) => {
    const { train, scored } = history.leaveOut([group]);
    if (train.count === 0 || scored[0]!.length === 0) return [];
    const sums = scored[0]!
      .map((set) => historyStatistics(set, has).withHistory)
      .reduce(addSufficientStatistics);
    return sums.count > 0 ? [{ day, scored: sums, ...historyStatistics(train, has) }] : [];
  });
  const reading = folds.filter((fold) => fold.withHistory.count > 0);
  const readsHistory = reading.length > 0;
  return {
    folds: readsHistory
      ? reading.map(({ day, withHistory: train, scored }) => ({ day, train, scored }))
      : folds.map(({ day, all: train, scored }) => ({ day, train, scored })),
    readsHistory,
    ...historyStatistics(train, has),
  };
}

/**
 * True if the bands predict the dates of a place or region better than its mean and its history do, where too few dates let a network read
 * a history. A model of the bands is then chosen on ground that is left out.
 */
export function bandsSuffice(plain: ModelSpec, statistics: PlaceStatistics): boolean {
  if (statistics.readsHistory || statistics.folds.length === 0) return false;
  return simplestCandidate(chooseLinear(withHistory(plain), statistics).candidates).name === 'ridge';
}

/** The linear candidates of a place: their errors in selection, and the functions that they fit to all of its dates. */
export interface LinearChoice {
  settings: RidgeSettings;
  candidates: Candidate[];
  models: Record<LinearName, LinearModel>;
  /** The function for pixels without a history. */
  fallback: { name: 'mean' | 'ridge'; model: LinearModel };
}

/** Chooses the settings of the ridge regression, and the function for pixels without a history, for a place or a region. */
export function chooseLinear(spec: ModelSpec, statistics: PlaceStatistics): LinearChoice {
  const { folds, withHistory, all } = statistics;
  const plain = { ...spec, history: false };
  const [settings, plainSettings] = [spec, plain].map((some) => chooseRidge(some, statistics)) as [
    RidgeSettings,
    RidgeSettings,
  ];
  const { name } =
    folds.length > 0 ? simplestCandidate(linearCandidates(plain, folds, plainSettings)) : NOTHING_TO_CHOOSE;
  const fallback = name as 'mean' | 'ridge';
  const samples = withHistory.count > 0 ? withHistory : all;
  return {
    settings,
    candidates: folds.length > 0 ? linearCandidates(spec, folds, settings) : [],
    models: {
      mean: fitLinear(spec, samples, 'mean', settings),
      history: fitLinear(spec, samples, 'history', settings),
      ridge: fitLinear(spec, samples, 'ridge', settings),
    },
    fallback: { name: fallback, model: fitLinear(plain, all, fallback, plainSettings) },
  };
}

type HalfTraining = Required<Pick<TrainOptions, 'epochs' | 'onEpoch'>>;

/** The part of the progress that the choice of a network takes: its two trainings have as many epochs as the last one. */
const CHOICE_SHARE = 0.5;

/** Reports the epochs of the training that follows a choice, as a part of `epochs`. */
export const afterChoice =
  (epochs: number, lastEpoch: number, onEpoch: TrainOptions['onEpoch']): TrainOptions['onEpoch'] =>
  (loss) =>
    onEpoch?.({ ...loss, epoch: epochs * (CHOICE_SHARE + ((1 - CHOICE_SHARE) * loss.epoch) / lastEpoch) });

/** A network as a candidate, and the epoch that the groups let choose. */
export interface NetworkCandidate {
  candidate: Candidate;
  lastEpoch: number;
}

/**
 * Estimates the errors of a network: two trainings with half of the epochs, each on half of the groups, are compared with the ridge
 * regression of the same half on the other groups. The error of each group is that of the ridge regression without this group, plus
 * the difference after the epoch that the other training chooses, so that no group chooses its own epoch. `trainWithout` trains without
 * some groups, and returns for each epoch the mean squared error of each of them less that of the ridge regression; undefined if it has too
 * few patches. Returns undefined if the network cannot be trained or reads no history, or if no epoch of one of the trainings improves on
 * the ridge regression: on the groups of the other training the network then has the error of the regression, and on its own no less in
 * the mean.
 */
export async function networkCandidate(
  spec: ModelSpec,
  { folds, readsHistory }: PlaceStatistics,
  { candidates }: LinearChoice,
  { name, epochs = spec.epochs, onEpoch }: Pick<TrainOptions, 'epochs' | 'onEpoch'> & { name: CandidateName },
  trainWithout: (groups: number[], options: HalfTraining) => Promise<number[][] | undefined>,
): Promise<NetworkCandidate | undefined> {
  if (folds.length < 2 || !readsHistory) return undefined;
  const ridge = candidates.at(-1)!;
  const half = Math.max(1, Math.round(epochs / 2));
  const sides: { groups: number[]; byEpoch: number[][]; best: number }[] = [];
  for (const side of [0, 1]) {
    const groups = folds.map((_, group) => group).filter((group) => group % 2 === side);
    const trained = await trainWithout(groups, {
      epochs: half,
      onEpoch: (loss) => onEpoch?.({ ...loss, epoch: (side * half + loss.epoch) * CHOICE_SHARE }),
    });
    if (!trained) return undefined;
    // Before the first epoch, the network is the ridge regression.
    const byEpoch = [groups.map(() => 0), ...trained];
    const means = byEpoch.map(meanOf);
    const best = means.indexOf(Math.min(...means));
    if (best === 0) return undefined;
    sides.push({ groups, byEpoch, best });
  }
  const errors = ridge.errors.slice();
  for (const [side, { groups, byEpoch }] of sides.entries()) {
    const { best } = sides[1 - side]!;
    for (const [i, group] of groups.entries())
      errors[group] = Math.max(0, errors[group]! + byEpoch[best]![i]!);
  }
  const lastEpoch = Math.round((epochs * meanOf(sides.map(({ best }) => best))) / half);
  return { candidate: { name, errors, error: meanOf(errors) }, lastEpoch };
}

/** The network of one place. */
function placeCandidate(
  tf: Tf,
  spec: ModelSpec,
  dataset: HistoryDataset,
  linear: LinearChoice,
  place: PlaceStatistics,
  options: TrainOptions,
): Promise<NetworkCandidate | undefined> {
  const { history } = dataset;
  // Groups by their position among those with samples.
  const numbers = place.folds.map(({ day }) => history.days.indexOf(day));
  return networkCandidate(
    spec,
    place,
    linear,
    { name: 'own', epochs: options.epochs, onEpoch: options.onEpoch },
    async (groups, { epochs, onEpoch }) => {
      const { train, scored } = history.leaveOut(groups.map((group) => numbers[group]!));
      if (train.count === 0 || scored.some((sets) => sets.length === 0)) return undefined;
      const sums = historyStatistics(train, hasPlane(spec)).withHistory;
      // The only date that remains has no history.
      if (sums.count === 0) return undefined;
      const line = fitLinear(spec, sums, 'ridge', linear.settings);
      const { model, losses } = await fitModel(
        tf,
        spec,
        { train, validation: scored },
        {
          ...{ seed: options.seed, epochs, onEpoch },
          ...{ linear: line, fallback: linear.fallback.model },
        },
      );
      model.dispose();
      const start = scored.map((sets) => meanError(sets, linearPredictor(line)));
      return losses.map((loss) => groupErrors(loss).map((error, group) => error - start[group]!));
    },
  );
}

/** The choice between models that read history, as the model card describes it. */
export const choiceOf = (
  serves: CandidateName,
  candidates: Candidate[],
  { fallback, settings }: LinearChoice,
  { folds }: PlaceStatistics,
  history: Pick<HistoryChoice, 'use' | 'dates'>,
): ModelChoice => ({
  serves,
  candidates,
  history: {
    ...history,
    groups: folds.map(({ day }) => day),
    fallback: fallback.name,
    ridge: settings,
  },
});

/** Serves if no date could be left out, such as where clouds hide all dates but one. */
export const NOTHING_TO_CHOOSE = { name: 'mean' } as const;

/**
 * Chooses among the candidates by leaving dates out, and trains the network only if it serves. The validation patches affect no choice.
 * Throws TW_TRAIN_DIVERGED.
 */
export async function trainChosen(
  tf: Tf,
  plain: ModelSpec,
  dataset: HistoryDataset,
  place: PlaceStatistics,
  options: TrainOptions & { dates: string[] },
): Promise<TrainResult> {
  const started = performance.now();
  const spec = withHistory(plain);
  const linear = chooseLinear(spec, place);
  const network = await placeCandidate(tf, spec, dataset, linear, place, options);
  const candidates = [...linear.candidates, ...(network ? [network.candidate] : [])];
  const { name } = place.folds.length > 0 ? simplestCandidate(candidates) : NOTHING_TO_CHOOSE;
  const { use } = dataset.history;
  const ofHistory = historyBaselines(spec, linear);
  const trained =
    network && name === 'own'
      ? await trainModel(tf, spec, dataset, {
          ...options,
          linear: linear.models.ridge,
          fallback: linear.fallback.model,
          lastEpoch: network.lastEpoch,
          onEpoch: afterChoice(options.epochs ?? spec.epochs, network.lastEpoch, options.onEpoch),
          ofHistory,
        })
      : await untrained(
          tf,
          spec,
          dataset,
          linearModel(tf, spec, linear, name, options.seed),
          options.scoreTile,
          ofHistory,
        );
  return {
    ...trained,
    choice: choiceOf(name, candidates, linear, place, { use, dates: options.dates }),
    questions: questionErrors(tf, spec, trained.model, dataset, ofHistory),
    seconds: (performance.now() - started) / 1000,
  };
}

/** Loads the base model of a region, which reads history. The caller must dispose it. */
export async function loadBase(
  tf: Tf,
  plain: ModelSpec,
  { base, choice, seed }: { base: SourceModelFiles; choice: ModelChoice; seed: number },
): Promise<LayersModel> {
  const model = buildModel(tf, servedSpec(plain, choice), seed);
  const read = await readSourceWeights(base, model);
  if ('reason' in read) {
    model.dispose();
    throw baseNotUsable(base.id, read.reason);
  }
  setWeights(tf, model, read.values);
  return model;
}

/** Scores the base model of a region, which reads history, at one of its places. The caller must dispose the model. */
export async function scoreBase(
  tf: Tf,
  plain: ModelSpec,
  dataset: HistoryDataset,
  { base, choice }: { base: SourceModelFiles; choice: ModelChoice },
  { seed, scoreTile, dates }: Pick<TrainOptions, 'seed' | 'scoreTile'> & { dates: string[] },
): Promise<TrainResult & Pick<TrainedCell, 'adaptation'>> {
  const spec = withHistory(plain);
  const model = await loadBase(tf, plain, { base, choice, seed });
  const linear = chooseLinear(spec, placeStatistics(plain, dataset));
  const ofHistory = historyBaselines(spec, linear);
  const result = await untrained(tf, spec, dataset, model, scoreTile, ofHistory);
  return {
    ...result,
    choice: { ...choice, history: { ...choice.history!, dates } },
    questions: questionErrors(tf, spec, model, dataset, ofHistory),
    adaptation: {
      base: { id: base.id, version: base.version },
      ...{ factor: 0, patches: dataset.train.count, others: 0 },
      errors: { base: result.metrics.validation },
    },
  };
}

/** Builds the model of a linear candidate. */
export const linearModel = (
  tf: Tf,
  spec: ModelSpec,
  { models, fallback }: LinearChoice,
  name: CandidateName,
  seed: number,
): LayersModel => buildModel(tf, { ...spec, layers: [] }, seed, models[name as LinearName], fallback.model);

/** The result for a model that no epoch has changed. */
async function untrained(
  tf: Tf,
  spec: ModelSpec,
  dataset: HistoryDataset,
  model: LayersModel,
  scoreTile: TrainOptions['scoreTile'],
  ofHistory: HistoryBaselines,
): Promise<TrainResult> {
  const { report, held, spread } = await reportOf(tf, model, spec, dataset, scoreTile, ofHistory);
  return {
    ...report,
    ...{ model, losses: [], bestEpoch: 0, spread, seconds: 0 },
    ...(spec.target.kind === 'mean' && { predictions: held }),
  };
}

export function historyBaselines(spec: ModelSpec, { models, fallback }: LinearChoice): HistoryBaselines {
  const options = { has: hasPlane(spec), fallback: fallback.model };
  const { nearest } = historyLayout(spec);
  const weights = models.mean.weights.map((row) =>
    row.map((_, plane) => (plane === spec.inputs.length + nearest ? 1 : 0)),
  );
  return {
    mean: linearPredictor(models.mean),
    history: linearPredictor(models.history, options),
    nearest: linearPredictor({ weights, bias: models.mean.bias.map(() => 0) }, options),
    linear: linearPredictor(models.ridge, options),
  };
}

export function questionErrors(
  tf: Tf,
  spec: ModelSpec,
  model: LayersModel,
  { history }: HistoryDataset,
  baselines: HistoryBaselines,
): QuestionErrors[] {
  const ask = (question: Question, sets: readonly DatedPatches[], isKnown: boolean): QuestionErrors[] =>
    sets.map(({ datetime, patches }) => {
      const set = isKnown ? patches : withoutHistory(spec, patches);
      const sum = (predict: Predictor) => squaredErrors([set], predict).squares;
      return {
        ...{ question, datetime },
        values: targetStatistics(maskedPairs(set, set.targets).truth).count,
        model: sum((patches) => predictPatches(tf, model, patches)),
        mean: sum(baselines.mean),
        history: sum(baselines.history),
        nearest: sum(baselines.nearest),
        linear: sum(baselines.linear),
      };
    });
  return [
    ...ask('otherGround', history.otherGround, false),
    ...ask('otherGroundKnown', history.otherGround, true),
    ...ask('otherDates', history.otherDates, true),
    ...ask('otherGroundAndDates', history.both, false),
    ...ask('otherGroundAndDatesKnown', history.both, true),
  ];
}
