/** Chooses the model of a place that has a history, trains it if it is a network, and scores it for each question that it is asked. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import { predictPatches } from './batches.js';
import {
  type Candidate,
  chooseRidge,
  type FoldStatistics,
  fitLinear,
  linearCandidates,
  meanOf,
  type RidgeSettings,
  simplestCandidate,
} from './candidates.js';
import {
  type HistoryBaselines,
  historyStatistics,
  linearPredictor,
  maskedPairs,
  type Predictor,
  targetStatistics,
} from './evaluation.js';
import { buildModel } from './models/network.js';
import { historyLayout, type ModelSpec, withHistory } from './models/spec.js';
import {
  concatPatches,
  type DatedPatches,
  type Patches,
  type TrainValidationPatches,
  withoutHistory,
} from './patches.js';
import { type ModelChoice, type Question, type QuestionErrors, reportOf } from './report.js';
import { addSufficientStatistics, type LinearModel, type SufficientStatistics } from './ridge-regression.js';
import { type TrainOptions, type TrainResult, trainModel } from './training-loop.js';

/** Sums of a place from which its linear candidates are fitted. */
export interface PlaceStatistics {
  folds: FoldStatistics[];
  all: SufficientStatistics;
}

/** The patches of a place that has a history. */
type HistoryDataset = TrainValidationPatches & Required<Pick<TrainValidationPatches, 'history'>>;

export const hasHistory = (dataset: TrainValidationPatches): dataset is HistoryDataset =>
  dataset.history !== undefined;

const hasPlane = (spec: ModelSpec) => spec.inputs.length + historyLayout(spec).has;

/** Sums over the training patches, with each group of dates left out in turn. Groups without a patch on either side are omitted. */
export function placeStatistics(plain: ModelSpec, { train, history }: HistoryDataset): PlaceStatistics {
  const has = hasPlane(plain);
  const folds = history.days.flatMap((day, group): FoldStatistics[] => {
    const { train, scored } = history.leaveOut([group]);
    if (train.count === 0 || scored[0]!.length === 0) return [];
    const sums = scored[0]!.map((set) => historyStatistics(set, has));
    return [{ day, train: historyStatistics(train, has), scored: sums.reduce(addSufficientStatistics) }];
  });
  return { folds, all: historyStatistics(train, has) };
}

/** The linear candidates of a place: their errors in selection, and the functions that they fit to all of its dates. */
interface LinearChoice {
  settings: RidgeSettings;
  candidates: Candidate[];
  models: Record<'mean' | 'history' | 'ridge', LinearModel>;
  /** What predicts pixels without a history. */
  fallback: { name: 'mean' | 'ridge'; model: LinearModel };
}

/** `region`: sums of all places of a region, from which the ridge regression is fitted. Default: those of the place. */
function chooseLinear(spec: ModelSpec, place: PlaceStatistics, region = place): LinearChoice {
  const settings = chooseRidge(spec, region.folds);
  const own = linearCandidates(spec, place.folds, settings);
  const [mean, history] = own;
  const folds = place.folds.map((fold) => ({
    ...fold,
    train: region.folds.find(({ day }) => day === fold.day)!.train,
  }));
  const ridge = linearCandidates(spec, folds, settings)[2]!;
  const plain = { ...spec, history: false };
  const plainSettings = chooseRidge(plain, place.folds);
  const name = simplestCandidate(linearCandidates(plain, place.folds, plainSettings)).name as
    | 'mean'
    | 'ridge';
  return {
    settings,
    candidates: [mean!, history!, ridge],
    models: {
      mean: fitLinear(spec, place.all, 'mean', settings),
      history: fitLinear(spec, place.all, 'history', settings),
      ridge: fitLinear(spec, region.all, 'ridge', settings),
    },
    fallback: { name, model: fitLinear(plain, place.all, name, plainSettings) },
  };
}

/** A network as a candidate, and the epoch that the groups let choose. */
interface NetworkCandidate {
  candidate: Candidate;
  lastEpoch: number;
}

/**
 * Estimates the errors of a network of the place: two trainings with half of the epochs, each on half of the groups, are compared with the ridge
 * regression of the same half on the other groups. The error of each group is that of the ridge regression without this group, plus
 * the difference. Undefined if no training improves on the ridge regression, or with fewer than two groups.
 */
async function networkCandidate(
  tf: Tf,
  spec: ModelSpec,
  dataset: HistoryDataset,
  { settings, candidates, fallback }: LinearChoice,
  place: PlaceStatistics,
  { epochs = spec.epochs, ...options }: TrainOptions,
): Promise<NetworkCandidate | undefined> {
  const { history } = dataset;
  const ridge = candidates.at(-1)!;
  const differences = new Map<string, number>();
  const kept: number[] = [];
  const half = Math.max(1, Math.round(epochs / 2));
  for (const side of [0, 1]) {
    const groups = history.days.map((_, group) => group).filter((group) => group % 2 === side);
    const { train, scored } = history.leaveOut(groups);
    const known = scored.flat();
    if (train.count === 0 || known.length === 0) continue;
    const sums = historyStatistics(train, hasPlane(spec));
    const linear = fitLinear(spec, sums, 'ridge', settings);
    const all = concatPatches(known.map((set) => ({ ...set })));
    const { model, bestEpoch } = await trainModel(
      tf,
      spec,
      { ...dataset, train, selection: all, validation: all },
      {
        ...options,
        epochs: half,
        linear,
        fallback: fallback.model,
        checkpoint: undefined,
        scoreTile: undefined,
      },
    );
    try {
      kept.push(bestEpoch / half);
      const line = linearPredictor(linear);
      for (const [i, group] of groups.entries()) {
        const sets = scored[i]!;
        if (sets.length === 0) continue;
        const error = meanError(sets, (set) => predictPatches(tf, model, set)) - meanError(sets, line);
        differences.set(history.days[group]!, error);
      }
    } finally {
      model.dispose();
    }
  }
  const lastEpoch = Math.round(epochs * meanOf(kept));
  if (kept.length < 2 || lastEpoch === 0) return undefined;
  const errors = place.folds.map(({ day }, i) => Math.max(0, ridge.errors[i]! + (differences.get(day) ?? 0)));
  return { candidate: { name: 'own', errors, error: meanOf(errors) }, lastEpoch };
}

function meanError(sets: readonly Patches[], predict: Predictor): number {
  const sums = sets.map((set) => squaredErrors(set, predict(set)));
  const total = (of: 'squares' | 'values') => sums.reduce((sum, one) => sum + one[of], 0);
  return total('squares') / total('values');
}

function squaredErrors(set: Patches, values: Float32Array): { squares: number; values: number } {
  const { truth, predicted } = maskedPairs(set, values);
  return {
    squares: truth.reduce((sum, value, i) => sum + (value - predicted[i]!) ** 2, 0),
    values: truth.length,
  };
}

/**
 * Chooses among the candidates by leaving dates out, and trains the network only if it serves. The validation patches affect no choice.
 * Throws TW_TRAIN_DIVERGED.
 */
export async function trainChosen(
  tf: Tf,
  plain: ModelSpec,
  dataset: HistoryDataset,
  options: TrainOptions & { region?: PlaceStatistics; dates: string[] },
): Promise<TrainResult> {
  const started = performance.now();
  const spec = withHistory(plain);
  const place = placeStatistics(plain, dataset);
  const linear = chooseLinear(spec, place, options.region);
  const network =
    place.folds.length > 1 ? await networkCandidate(tf, spec, dataset, linear, place, options) : undefined;
  const candidates = [...linear.candidates, ...(network ? [network.candidate] : [])];
  const { name } = simplestCandidate(candidates);
  const { history } = dataset;
  const choice: ModelChoice = {
    serves: name,
    fallback: linear.fallback.name,
    days: place.folds.map(({ day }) => day),
    candidates,
    ridge: linear.settings,
    history: { use: history.use, dates: options.dates },
  };
  const ofHistory = historyBaselines(spec, linear);
  const trained =
    network && name === 'own'
      ? await trainModel(tf, spec, dataset, {
          ...options,
          linear: linear.models.ridge,
          fallback: linear.fallback.model,
          lastEpoch: network.lastEpoch,
          ofHistory,
        })
      : await linearModel(tf, spec, dataset, linear.models[name as 'ridge'], linear, options, ofHistory);
  return {
    ...trained,
    choice,
    questions: questionErrors(tf, spec, trained.model, dataset, ofHistory),
    seconds: (performance.now() - started) / 1000,
  };
}

async function linearModel(
  tf: Tf,
  spec: ModelSpec,
  dataset: HistoryDataset,
  line: LinearModel,
  { fallback }: LinearChoice,
  { seed, scoreTile }: TrainOptions,
  ofHistory: HistoryBaselines,
): Promise<TrainResult> {
  const model = buildModel(tf, { ...spec, layers: [] }, seed, line, fallback.model);
  const { report, held, spread } = await reportOf(tf, model, spec, dataset, scoreTile, ofHistory);
  return {
    ...report,
    model,
    losses: [],
    bestEpoch: 0,
    ...(spec.target.kind === 'mean' && { predictions: held }),
    spread,
    seconds: 0,
  };
}

function historyBaselines(spec: ModelSpec, { models, fallback }: LinearChoice): HistoryBaselines {
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

function questionErrors(
  tf: Tf,
  spec: ModelSpec,
  model: LayersModel,
  { history }: HistoryDataset,
  baselines: HistoryBaselines,
): QuestionErrors[] {
  const ask = (question: Question, sets: readonly DatedPatches[], isKnown: boolean): QuestionErrors[] =>
    sets.map(({ datetime, patches }) => {
      const set = isKnown ? patches : withoutHistory(spec, patches);
      const sum = (predict: Predictor) => squaredErrors(set, predict(set)).squares;
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
