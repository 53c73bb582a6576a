/**
 * Trains one model on the patches of all ranks of a ring: synchronous data parallelism. In every step each rank computes the gradients of
 * its own batch; their mean, weighted by the values that count, updates the weights of every rank.
 */

import { crc32 } from 'node:zlib';
import type { Tensor, Variable } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { randomStream, shuffledOrder, streamSeed } from '../../utils/random.js';
import { augmentedBatch, predictPatches } from '../batches.js';
import { fitLinear, joinStatistics, type PlaceStatistics, simplestCandidate } from '../candidates.js';
import { diverged, trainingFailed } from '../errors.js';
import {
  type EpochLosses,
  historyStatistics,
  initialFitStatistics,
  linearPredictor,
  maskedPairs,
  type Predictor,
  type SquaredErrors,
  squaredErrors,
  targetStatistics,
} from '../evaluation.js';
import type { DisplayRange } from '../image-metrics.js';
import { asVariables, cosineLearningRate } from '../learner.js';
import { type ModelSpec, startsWithLinearFit, withHistory } from '../models/spec.js';
import {
  concatPatches,
  filledOnly,
  type Patches,
  type TrainValidationPatches,
  withoutHistoryPlanes,
} from '../patches.js';
import { type ModelChoice, reportOf } from '../report.js';
import { addSufficientStatistics, type LinearModel, ridge } from '../ridge-regression.js';
import {
  afterChoice,
  bandsSuffice,
  choiceOf,
  chooseLinear,
  type HistoryDataset,
  hasHistory,
  hasPlane,
  historyBaselines,
  type LinearChoice,
  linearModel,
  type NetworkCandidate,
  NOTHING_TO_CHOOSE,
  networkCandidate,
  placeStatistics,
  questionErrors,
} from '../selection.js';
import { scoreTile, type TileImages } from '../tile-scores.js';
import {
  bestEpoch,
  createLearner,
  groupErrors,
  lossesOf,
  stateAfter,
  type TrainingSets,
  WeightsSnapshot,
} from '../training-loop.js';
import { type CheckpointLocation, RankCheckpoints, type ResumePoint } from './checkpoints.js';
import type {
  BytesTransferred,
  CellScore,
  DataParallelResult,
  RankCell,
  RankContribution,
} from './messages.js';
import { allGather, allReduceWeightedMean, type ProcessGroup } from './ring.js';

/** Returns the weighted mean of tensors over all ranks, in one exchange. */
async function allReduceTensorMean(
  tf: Tf,
  ring: ProcessGroup,
  tensors: Tensor[],
  weight: number,
): Promise<Tensor[]> {
  const flat = new Float32Array(tensors.reduce((sum, { size }) => sum + size, 0));
  let to = 0;
  for (const tensor of tensors) {
    flat.set(await tensor.data<'float32'>(), to);
    to += tensor.size;
  }
  const mean = await allReduceWeightedMean(ring, flat, weight);
  let from = 0;
  return tensors.map(({ shape, size }) => {
    from += size;
    return tf.tensor(mean.slice(from - size, from), shape);
  });
}

/** Moving averages of a batch normalisation layer, which inference uses. */
interface RunningStatistics {
  mean: Variable;
  variance: Variable;
}

function runningStatistics(model: LayersModel): RunningStatistics[] {
  return model.layers
    .filter((layer) => layer.getClassName() === 'BatchNormalization')
    .map((layer) => {
      const [mean, variance] = asVariables(layer.nonTrainableWeights);
      return { mean, variance };
    });
}

/**
 * Replaces the moments by those of the values of all ranks together: the variance is the mean of the variances plus the mean of the
 * squared distances of the means from their mean (law of total variance).
 */
export async function allReduceRunningStatistics(
  tf: Tf,
  ring: ProcessGroup,
  moments: readonly RunningStatistics[],
  weight: number,
): Promise<void> {
  if (moments.length === 0 || ring.size === 1) return;
  const means = moments.map(({ mean }) => mean);
  const pooled = await allReduceTensorMean(tf, ring, means, weight);
  const spreads = moments.map(({ mean, variance }, i) =>
    tf.tidy(() => tf.add(variance, tf.squaredDifference(mean, pooled[i]))),
  );
  const variances = await allReduceTensorMean(tf, ring, spreads, weight);
  moments.forEach(({ mean, variance }, i) => {
    mean.assign(pooled[i]);
    variance.assign(variances[i]);
  });
  tf.dispose([...pooled, ...spreads, ...variances]);
}

export interface DataParallelOptions {
  /** Default: the value of the model. */
  epochs?: number;
  /** Stops if the selection loss has not improved for this number of epochs. */
  patience?: number;
  seed: number;
  /** Checkpoint files of this rank. Either all ranks save checkpoints, or none. */
  checkpoint?: CheckpointLocation;
  /** Both callbacks are awaited. */
  onBegin?: (beginning: ResumePoint) => void | Promise<void>;
  onEpoch?: (loss: EpochLosses) => void | Promise<void>;
}

/** Patches of one cell. */
export interface CellPatches extends RankCell {
  dataset: TrainValidationPatches;
  /** Files that are read again at the end to score entire tiles. Default: no tile scores. */
  source?: TileImages;
}

/**
 * Trains one model on the cells of all ranks, and scores it at each cell. If the cells have histories, the simplest candidate serves that
 * leaving out dates at all cells at once supports (`trainChosen` does the same for one cell). The caller must dispose the model.
 */
export async function trainDataParallel(
  tf: Tf,
  plain: ModelSpec,
  cells: CellPatches[],
  bytesRead: number,
  ring: ProcessGroup,
  options: DataParallelOptions,
): Promise<{ model: LayersModel; trained: DataParallelResult }> {
  const started = performance.now();
  const all = cells.map(({ dataset }) => dataset);
  const region = all.every(hasHistory) ? await chooseInRegion(tf, plain, all, ring, options) : undefined;
  const datasets = region ? all : all.map((dataset) => withoutHistoryPlanes(plain, dataset));
  const spec = region ? region.spec : plain;
  const network = region?.choice.serves === 'regional' || !region;
  const learned: RingTraining = network
    ? await trainOnRing(
        tf,
        spec,
        { cells: datasets, validation: [datasets.map(({ validation }) => validation)] },
        ring,
        { ...options, ...region?.start },
      )
    : { model: region.linearModel(), losses: [], bestEpoch: 0, ...NO_STEPS, before: NO_TRAFFIC };
  // The trainings for the choice have exchanged gradients too.
  const steps = learned.steps + (region?.halves.steps ?? 0);
  const parameters = Math.max(learned.parameters, region?.halves.parameters ?? 0);
  try {
    const scored: CellScore[] = [];
    for (const [i, cell] of cells.entries())
      scored.push(await scoreOf(tf, spec, learned.model, { ...cell, dataset: datasets[i]! }, region));
    const own: RankContribution = {
      places: scored,
      patches: datasets.reduce((sum, { train }) => sum + train.count, 0),
      bytesRead,
    };
    const shares = await allGather(ring, own);
    // Gathered last, so that only these few bytes are missing from the totals.
    const { before } = learned;
    const bytes = await allGather<BytesTransferred>(ring, {
      bytesSent: before.bytesSent + ring.sent,
      bytesReceived: before.bytesReceived + ring.received,
    });
    const { model, before: _, ...facts } = learned;
    return {
      model,
      trained: {
        ...facts,
        ...{ steps, parameters },
        members: shares.map((share, member) => ({ ...share, ...bytes[member]! })),
        ...(region && { choice: region.choice }),
        seconds: (performance.now() - started) / 1000,
      },
    };
  } catch (error) {
    learned.model.dispose();
    throw error;
  }
}

const NO_TRAFFIC: BytesTransferred = { bytesSent: 0, bytesReceived: 0 };
const NO_STEPS = { steps: 0, parameters: 0 };

/** The choice between the candidates of a region, the same on all ranks. */
interface RegionChoice {
  spec: ModelSpec;
  choice: ModelChoice;
  linear: LinearChoice;
  start: Pick<RingOptions, 'linear' | 'fallback' | 'lastEpoch' | 'onEpoch'>;
  /** Steps of the trainings that the choice took, and the values exchanged in each. */
  halves: typeof NO_STEPS;
  /** Builds the linear candidate that serves. */
  linearModel(): LayersModel;
}

/** Undefined if a model of the bands is to be trained, see `bandsSuffice`. */
async function chooseInRegion(
  tf: Tf,
  plain: ModelSpec,
  datasets: HistoryDataset[],
  ring: ProcessGroup,
  options: DataParallelOptions,
): Promise<RegionChoice | undefined> {
  const spec = withHistory(plain);
  const own = joinStatistics(datasets.map((dataset) => placeStatistics(plain, dataset)));
  const region = joinStatistics(await allGather(ring, own));
  if (bandsSuffice(plain, region)) return undefined;
  const linear = chooseLinear(spec, region);
  const halves = { ...NO_STEPS };
  const network = await ringCandidate(tf, spec, datasets, ring, linear, region, options, halves);
  const candidates = [...linear.candidates, ...(network ? [network.candidate] : [])];
  const { name } = region.folds.length > 0 ? simplestCandidate(candidates) : NOTHING_TO_CHOOSE;
  const { use } = datasets[0]!.history;
  return {
    spec,
    linear,
    halves,
    choice: choiceOf(name, candidates, linear, region, { use, dates: [] }),
    start: {
      ...{ linear: linear.models.ridge, fallback: linear.fallback.model },
      ...(network && {
        lastEpoch: network.lastEpoch,
        onEpoch: afterChoice(options.epochs ?? spec.epochs, network.lastEpoch, options.onEpoch),
      }),
    },
    linearModel: () => linearModel(tf, spec, linear, name, options.seed),
  };
}

/**
 * Estimates the errors of a network of the region, as `networkCandidate` does for one place. Adds their steps to `taken`.
 * Undefined if a rank has too few dates.
 */
async function ringCandidate(
  tf: Tf,
  spec: ModelSpec,
  datasets: HistoryDataset[],
  ring: ProcessGroup,
  linear: LinearChoice,
  region: PlaceStatistics,
  options: DataParallelOptions,
  taken: typeof NO_STEPS,
): Promise<NetworkCandidate | undefined> {
  return networkCandidate(
    spec,
    region,
    linear,
    { name: 'regional', epochs: options.epochs, onEpoch: options.onEpoch },
    async (chosen, { epochs, onEpoch }) => {
      const days = datasets[0]!.history.days;
      // Groups by their position among those with samples.
      const groups = chosen.map((group) => days.indexOf(region.folds[group]!.day));
      const halves = datasets.map(({ history }) => history.leaveOut(groups));
      const usable = halves.filter(({ train, scored }) => train.count > 0 && scored.flat().length > 0);
      const isUsable = await allGather(ring, usable.length > 0);
      if (!isUsable.every((is) => is)) return undefined;
      const has = hasPlane(spec);
      const sums = await allGather(
        ring,
        usable.map(({ train }) => historyStatistics(train, has).withHistory).reduce(addSufficientStatistics),
      );
      const known = sums.reduce(addSufficientStatistics);
      // The dates that remain have no history.
      if (known.count === 0) return undefined;
      const line = fitLinear(spec, known, 'ridge', linear.settings);
      const validation = groups.map((_, group) => halves.flatMap(({ scored }) => scored[group]!));
      const { model, losses, steps, parameters } = await trainOnRing(
        tf,
        spec,
        { cells: usable, validation },
        ring,
        {
          ...{ seed: options.seed, epochs, onEpoch },
          ...{ linear: line, fallback: linear.fallback.model },
        },
      );
      model.dispose();
      taken.steps += steps;
      taken.parameters = parameters;
      const predict = linearPredictor(line);
      const start = await meanErrors(ring, validation, predict);
      return losses.map((loss) => groupErrors(loss).map((error, group) => error - start[group]!));
    },
  );
}

/** Returns the mean squared errors of sets of patches over all ranks. */
async function meanErrors(ring: ProcessGroup, sets: Patches[][], predict: Predictor): Promise<number[]> {
  const all = await allGather(
    ring,
    sets.map((some) => squaredErrors(some, predict)),
  );
  return sets.map((_, i) => meanSquare(all.map((rank) => rank[i]!)));
}

interface RingOptions extends DataParallelOptions {
  /** The linear function from which the model starts. Default: the ridge regression of the training patches of all ranks. */
  linear?: LinearModel;
  fallback?: LinearModel;
  /** The epoch that is kept and after which the training ends. Default: the best one on the selection patches. */
  lastEpoch?: number;
}

/** The patches of the cells of a rank, and the groups of sets that are scored after each epoch, the same groups on all ranks. */
interface RingSets extends Pick<TrainingSets, 'validation'> {
  cells: Pick<TrainValidationPatches, 'train' | 'selection'>[];
}

interface RingTraining extends Pick<DataParallelResult, 'losses' | 'bestEpoch' | 'steps' | 'parameters'> {
  model: LayersModel;
  /** Traffic before the checkpoint from which the training resumed. */
  before: BytesTransferred;
}

/**
 * Trains a fresh model with Adam, like `trainModel`, on the cells of all ranks. An epoch uses every patch once, on all ranks in the same
 * number of steps: the number that the rank with the most patches needs for batches of the size of the model. The other ranks spread
 * their patches evenly over these steps, so that every step uses all cells; a rank without a patch for a step contributes with weight 0.
 *
 * With checkpoints, training resumes from the last one that all ranks have, to the same weights, bit for bit.
 *
 * Batch normalisation uses the statistics of the own batch of a rank; after every epoch its moving averages are averaged over the ranks,
 * weighted by patches. So all ranks have the same weights, bit for bit, which is checked after each epoch. Throws TW_TRAIN_DIVERGED and
 * the errors of the ring. The caller must dispose the model.
 */
async function trainOnRing(
  tf: Tf,
  spec: ModelSpec,
  { cells, validation }: RingSets,
  ring: ProcessGroup,
  options: RingOptions,
): Promise<RingTraining> {
  const { epochs = spec.epochs, patience, seed, checkpoint, onBegin, onEpoch, lastEpoch } = options;
  const train = concatPatches(cells.map(({ train }) => ({ ...train })));
  const weightOf = countedValues(train);
  const weight = sumOf(Array.from({ length: train.count }, (_, n) => weightOf(n)));
  const starts = await allGather(ring, {
    patches: train.count,
    weight,
    fit: startsWithLinearFit(spec) && !options.linear ? initialFitStatistics(train) : undefined,
  });
  const totalWeight = sumOf(starts.map((one) => one.weight));
  const fits = starts.flatMap(({ fit }) => fit ?? []);
  const linear =
    options.linear ?? (fits.length > 0 ? ridge(fits.reduce(addSufficientStatistics)) : undefined);
  const stepsPerEpoch = Math.max(...starts.map((one) => Math.ceil(one.patches / spec.batchSize)));
  const steps = epochs * stepsPerEpoch;
  const learner = createLearner(tf, spec, seed, { linear, fallback: options.fallback });
  const moments = runningStatistics(learner.model);
  const random = randomStream(streamSeed(seed, ring.index));
  const best = new WeightsSnapshot(tf, learner.model);
  const variables = () => [...learner.stateVariables(), ...best.variables];
  const checkpoints = checkpoint && new RankCheckpoints(ring, variables, checkpoint);
  let exchangedValues = 0;
  const selected = cells.flatMap(({ selection }) => selection ?? []);
  const startLoss = async () => {
    const all = await allGather(ring, sumOfSquares(tf, learner.model, selected));
    const loss = meanSquare(all);
    return Number.isNaN(loss) ? undefined : loss;
  };
  try {
    const resumed = await checkpoints?.resume(tf);
    const saved = resumed?.state;
    if (saved) random.state = saved.random;
    const losses = saved?.losses ?? [];
    const initial = saved ? saved.initial : await startLoss();
    let step = saved?.step ?? 0;
    const firstStep = step;
    const before = saved?.traffic ?? { bytesSent: 0, bytesReceived: 0 };
    const traffic = (): BytesTransferred => ({
      bytesSent: before.bytesSent + ring.sent,
      bytesReceived: before.bytesReceived + ring.received,
    });
    if (resumed) await onBegin?.(resumed.beginning);
    for (let epoch = losses.length + 1; epoch <= epochs; epoch++) {
      const order = shuffledOrder(train.count, random.next);
      let sum = 0;
      for (let part = 0; part < stepsPerEpoch; part++) {
        const edge = (at: number) => Math.floor((at * train.count) / stepsPerEpoch);
        const chosen = order.subarray(edge(part), edge(part + 1));
        const weight = sumOf(Array.from(chosen, weightOf));
        const reduceGradients = async (gradients: Tensor[]) => {
          const mean = await allReduceTensorMean(tf, ring, gradients, weight);
          exchangedValues += gradients.reduce((all, { size }) => all + size, 0);
          tf.dispose(gradients);
          return mean;
        };
        // A rank without a patch for this step computes one that does not count, to take part in the exchange.
        const batch = augmentedBatch(tf, train, weight > 0 ? chosen : order.subarray(0, 1), random.next);
        const learningRate = cosineLearningRate(spec, step++, steps);
        const loss = await learner
          .step(batch, { learningRate, step, reduceGradients })
          .finally(() => tf.dispose(Object.values(batch)));
        if (weight === 0) continue;
        if (!Number.isFinite(loss)) throw diverged(epoch);
        sum += weight * loss;
      }
      await allReduceRunningStatistics(tf, ring, moments, train.count);
      const reports = await allGather(ring, {
        loss: sum,
        validation: validation.map((sets) => sumOfSquares(tf, learner.model, sets)),
        selection: sumOfSquares(tf, learner.model, selected),
        weights: await checksumOf(learner.model),
        ...(epoch < epochs && checkpoints?.isDue && { keep: true }),
      });
      if (reports.some(({ weights }) => weights !== reports[0].weights))
        throw trainingFailed(`the nodes hold different weights after epoch ${epoch}`);
      const scored = lossesOf(
        validation.map((_, group) => meanSquare(reports.map((one) => one.validation[group]!))),
      );
      if (!Number.isFinite(scored.validation)) throw diverged(epoch);
      const selection = meanSquare(reports.map((one) => one.selection));
      losses.push({
        epoch,
        train: sumOf(reports.map(({ loss }) => loss)) / totalWeight,
        ...scored,
        ...(!Number.isNaN(selection) && { selection }),
      });
      const { isKept, isLast } = stateAfter(losses, initial, { epochs, patience, lastEpoch });
      if (isKept) best.save();
      if (reports[0].keep && !isLast)
        await checkpoints?.write({ losses, initial, random: random.state, step, traffic: traffic() });
      await onEpoch?.(losses.at(-1)!);
      if (isLast) break;
    }
    best.restore();
    return {
      ...{ model: learner.model, losses, before },
      bestEpoch: lastEpoch ?? bestEpoch(losses, initial),
      steps: step,
      parameters: exchangedValues / (step - firstStep),
    };
  } catch (error) {
    learner.model.dispose();
    throw error;
  } finally {
    best.dispose();
    learner.dispose();
  }
}

/** Returns the number of values of a patch that count in the loss: its pixels with a target, or 1 for a mean. */
function countedValues({ count, targetMask }: Patches): (patch: number) => number {
  if (!targetMask) return () => 1;
  const pixels = targetMask.length / count;
  return (patch) =>
    targetMask.subarray(patch * pixels, (patch + 1) * pixels).reduce((sum, one) => sum + one, 0);
}

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);

async function checksumOf(model: LayersModel): Promise<number> {
  let sum = 0;
  for (const variable of asVariables(model.weights)) {
    const { buffer, byteOffset, byteLength } = await variable.data<'float32'>();
    sum = crc32(new Uint8Array(buffer, byteOffset, byteLength), sum);
  }
  return sum;
}

/** Returns the sum of squared errors over all values of these sets that count, and the number of values. */
const sumOfSquares = (tf: Tf, model: LayersModel, sets: Patches[]): SquaredErrors =>
  squaredErrors(sets, (set) => predictPatches(tf, model, set));

const meanSquare = (all: SquaredErrors[]) =>
  sumOf(all.map(({ squares }) => squares)) / sumOf(all.map(({ values }) => values));

async function scoreOf(
  tf: Tf,
  spec: ModelSpec,
  model: LayersModel,
  { geocode, tiles, dataset, source }: CellPatches,
  region: RegionChoice | undefined,
): Promise<CellScore> {
  const score =
    source && ((model: LayersModel, range: DisplayRange) => scoreTile(tf, model, spec, range, source));
  const ofHistory = region && historyBaselines(spec, region.linear);
  const { report, spread } = await reportOf(tf, model, spec, dataset, score, ofHistory);
  const train = filledOnly(dataset.train);
  return {
    geocode,
    tiles,
    ...report,
    ...(ofHistory &&
      hasHistory(dataset) && { questions: questionErrors(tf, spec, model, dataset, ofHistory) }),
    spread: { train: targetStatistics(maskedPairs(train, train.targets).truth), validation: spread },
  };
}
