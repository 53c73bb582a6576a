/**
 * Trains one model on the patches of all members of a ring: synchronous data parallel. In every step each member works out the
 * gradients of its own batch; the mean of all, weighted by the values that count, moves the weights of every member alike.
 */
import { crc32 } from 'node:zlib';
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { randomStream, shuffledOrder } from '../../random.js';
import { diverged, trainingFailed } from '../errors.js';
import {
  type DisplayRange,
  type EpochLosses,
  initialFitStatistics,
  maskedPairs,
  scoreTile,
  type TileImages,
  targetStatistics,
} from '../evaluation/index.js';
import { predictPatches } from '../inference/index.js';
import {
  asVariables,
  bestEpoch,
  cosineLearningRate,
  createLearner,
  hasStalled,
  reportOf,
  WeightsSnapshot,
} from '../loop/index.js';
import { type ModelSpec, startsWithLinearFit } from '../models/index.js';
import {
  augmentedBatch,
  concatPatches,
  filledOnly,
  type Patches,
  type TrainValidationPatches,
} from '../patches/index.js';
import { addSufficientStatistics, ridge } from '../ridge-regression.js';
import { type CheckpointLocation, RankCheckpoints, type ResumePoint } from './rank-checkpoints.js';
import type {
  BytesTransferred,
  CellScore,
  DataParallelResult,
  RankCell,
  RankContribution,
} from './rank-messages.js';
import { allGather, type ProcessGroup } from './ring-all-reduce.js';
import { allReduceRunningStatistics, allReduceTensorMean, runningStatistics } from './tensor-all-reduce.js';

export interface DataParallelOptions {
  /** Default: the model's. */
  epochs?: number;
  /** Stops if the selection loss has not improved for this number of epochs. */
  patience?: number;
  seed: number;
  /** Where this member keeps the training as it stands. All members keep it, or none. */
  checkpoint?: CheckpointLocation;
  /** Both are waited for. */
  onBegin?: (beginning: ResumePoint) => void | Promise<void>;
  onEpoch?: (loss: EpochLosses) => void | Promise<void>;
}

/** Patches of one place. */
export interface CellPatches extends RankCell {
  dataset: TrainValidationPatches;
  /** Files that are read again at the end to score whole tiles. Default: whole tiles are not scored. */
  source?: TileImages;
}

/**
 * Trains a fresh model with Adam, as `trainModel` does, on the places of all members. An epoch shows every patch once, on all members
 * in the same number of steps: as many as the member with the most patches needs for batches of the model's size. The others spread
 * theirs evenly over them, so that every step is made of all places; in a step for which a member has none, it counts nothing.
 *
 * With checkpoints, it goes on from the last one that all members have, to the same weights, bit for bit.
 *
 * Batch normalisation takes the statistics of a member's own batch; its moving averages are pooled over the members, weighted by
 * patches, after every epoch. So all members hold the same weights, bit for bit, which is checked after each epoch. Throws TW_TRAIN_DIVERGED,
 * and what the ring throws. Dispose the model.
 */
export async function trainDataParallel(
  tf: Tf,
  spec: ModelSpec,
  places: CellPatches[],
  bytesRead: number,
  ring: ProcessGroup,
  { epochs = spec.epochs, patience, seed, checkpoint, onBegin, onEpoch }: DataParallelOptions,
): Promise<{ model: LayersModel; trained: DataParallelResult }> {
  const started = performance.now();
  const train = concatPatches(places.map(({ dataset }) => dataset.train));
  const weightOf = countedValues(train);
  const weight = sumOf(Array.from({ length: train.count }, (_, n) => weightOf(n)));
  const starts = await allGather(ring, {
    patches: train.count,
    weight,
    line: startsWithLinearFit(spec) ? initialFitStatistics(train) : undefined,
  });
  const totalWeight = sumOf(starts.map((one) => one.weight));
  const lines = starts.flatMap(({ line }) => line ?? []);
  const straight = lines.length > 0 ? ridge(lines.reduce(addSufficientStatistics)) : undefined;
  const stepsAnEpoch = Math.max(...starts.map((one) => Math.ceil(one.patches / spec.batchSize)));
  const steps = epochs * stepsAnEpoch;
  const learner = createLearner(tf, spec, seed, straight);
  const moments = runningStatistics(learner.model);
  const random = randomStream(seed + ring.index);
  const best = new WeightsSnapshot(tf, learner.model);
  const variables = () => [...learner.stateVariables(), ...best.variables];
  const checkpoints = checkpoint && new RankCheckpoints(ring, variables, checkpoint);
  let exchanged = 0;
  const selected = places.flatMap(({ dataset }) => dataset.selection ?? []);
  const startLoss = async () => {
    const all = await allGather(ring, sumOfSquares(tf, learner.model, selected));
    const loss = meanSquare(all);
    return Number.isNaN(loss) ? undefined : loss;
  };
  try {
    const begun = await checkpoints?.resume(tf);
    const kept = begun?.state;
    if (kept) random.state = kept.random;
    const losses = kept?.losses ?? [];
    const initial = kept ? kept.initial : await startLoss();
    let step = kept?.step ?? 0;
    const firstStep = step;
    const before = kept?.traffic ?? { bytesSent: 0, bytesReceived: 0 };
    const traffic = (): BytesTransferred => ({
      bytesSent: before.bytesSent + ring.sent,
      bytesReceived: before.bytesReceived + ring.received,
    });
    if (begun) await onBegin?.(begun.beginning);
    for (let epoch = losses.length + 1; epoch <= epochs; epoch++) {
      const order = shuffledOrder(train.count, random.next);
      let sum = 0;
      for (let part = 0; part < stepsAnEpoch; part++) {
        const edge = (at: number) => Math.floor((at * train.count) / stepsAnEpoch);
        const chosen = order.subarray(edge(part), edge(part + 1));
        const weight = sumOf(Array.from(chosen, weightOf));
        const reduceGradients = async (gradients: Tensor[]) => {
          const mean = await allReduceTensorMean(tf, ring, gradients, weight);
          exchanged += gradients.reduce((all, { size }) => all + size, 0);
          tf.dispose(gradients);
          return mean;
        };
        // Without a patch of its own it goes along with one that does not count.
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
        validation: sumOfSquares(
          tf,
          learner.model,
          places.map(({ dataset }) => dataset.validation),
        ),
        selection: sumOfSquares(tf, learner.model, selected),
        weights: await checksumOf(learner.model),
        ...(epoch < epochs && checkpoints?.isDue && { keep: true }),
      });
      if (reports.some(({ weights }) => weights !== reports[0].weights))
        throw trainingFailed(`the nodes hold different weights after epoch ${epoch}`);
      const validation = meanSquare(reports.map((one) => one.validation));
      if (!Number.isFinite(validation)) throw diverged(epoch);
      const selection = meanSquare(reports.map((one) => one.selection));
      losses.push({
        ...{ epoch, train: sumOf(reports.map(({ loss }) => loss)) / totalWeight, validation },
        ...(!Number.isNaN(selection) && { selection }),
      });
      if (bestEpoch(losses, initial) === epoch) best.save();
      const isLast = epoch === epochs || hasStalled(losses, initial, patience);
      if (reports[0].keep && !isLast)
        await checkpoints?.write({ losses, initial, random: random.state, step, traffic: traffic() });
      await onEpoch?.(losses.at(-1)!);
      if (isLast) break;
    }
    best.restore();
    const scored: CellScore[] = [];
    for (const place of places) scored.push(await scoreOf(tf, spec, learner.model, place));
    const own: RankContribution = { places: scored, patches: train.count, bytesRead };
    const shares = await allGather(ring, own);
    // Last, so that they are of all that the training has sent but these few bytes.
    const bytes = await allGather(ring, traffic());
    return {
      model: learner.model,
      trained: {
        losses,
        bestEpoch: bestEpoch(losses, initial),
        steps: step,
        parameters: exchanged / (step - firstStep),
        members: shares.map((share, member) => ({ ...share, ...bytes[member] })),
        seconds: (performance.now() - started) / 1000,
      },
    };
  } catch (error) {
    learner.model.dispose();
    throw error;
  } finally {
    best.dispose();
    learner.dispose();
  }
}

/** Returns the number of values of a patch that count in the loss: its pixels with a target, or one for a mean. */
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

interface SumOfSquares {
  squares: number;
  values: number;
}

/** Sum of the squared errors over all values in these sets that count, and the number of values. */
function sumOfSquares(tf: Tf, model: LayersModel, sets: Patches[]): SumOfSquares {
  let squares = 0;
  let values = 0;
  for (const set of sets) {
    const pairs = maskedPairs(set, predictPatches(tf, model, set));
    pairs.truth.forEach((truth, i) => {
      squares += (truth - pairs.predicted[i]) ** 2;
    });
    values += pairs.truth.length;
  }
  return { squares, values };
}

const meanSquare = (all: SumOfSquares[]) =>
  sumOf(all.map(({ squares }) => squares)) / sumOf(all.map(({ values }) => values));

async function scoreOf(
  tf: Tf,
  spec: ModelSpec,
  model: LayersModel,
  { geocode, tiles, dataset, source }: CellPatches,
): Promise<CellScore> {
  const score =
    source && ((model: LayersModel, range: DisplayRange) => scoreTile(tf, model, spec, range, source));
  const { report, spread } = await reportOf(tf, model, spec, dataset, score);
  const train = filledOnly(dataset.train);
  return {
    geocode,
    tiles,
    ...report,
    spread: { train: targetStatistics(maskedPairs(train, train.targets).truth), validation: spread },
  };
}
