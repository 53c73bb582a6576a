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
import { diverged, trainingFailed } from '../errors.js';
import { type EpochLosses, initialFitStatistics, maskedPairs, targetStatistics } from '../evaluation.js';
import type { DisplayRange } from '../image-metrics.js';
import { asVariables, cosineLearningRate } from '../learner.js';
import { type ModelSpec, startsWithLinearFit } from '../models/spec.js';
import { concatPatches, filledOnly, type Patches, type TrainValidationPatches } from '../patches.js';
import { reportOf } from '../report.js';
import { addSufficientStatistics, ridge } from '../ridge-regression.js';
import { scoreTile, type TileImages } from '../tile-scores.js';
import { bestEpoch, createLearner, hasStalled, WeightsSnapshot } from '../training-loop.js';
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
export async function trainDataParallel(
  tf: Tf,
  spec: ModelSpec,
  cells: CellPatches[],
  bytesRead: number,
  ring: ProcessGroup,
  { epochs = spec.epochs, patience, seed, checkpoint, onBegin, onEpoch }: DataParallelOptions,
): Promise<{ model: LayersModel; trained: DataParallelResult }> {
  const started = performance.now();
  const train = concatPatches(cells.map(({ dataset }) => dataset.train));
  const weightOf = countedValues(train);
  const weight = sumOf(Array.from({ length: train.count }, (_, n) => weightOf(n)));
  const starts = await allGather(ring, {
    patches: train.count,
    weight,
    fit: startsWithLinearFit(spec) ? initialFitStatistics(train) : undefined,
  });
  const totalWeight = sumOf(starts.map((one) => one.weight));
  const fits = starts.flatMap(({ fit }) => fit ?? []);
  const linear = fits.length > 0 ? ridge(fits.reduce(addSufficientStatistics)) : undefined;
  const stepsPerEpoch = Math.max(...starts.map((one) => Math.ceil(one.patches / spec.batchSize)));
  const steps = epochs * stepsPerEpoch;
  const learner = createLearner(tf, spec, seed, { linear });
  const moments = runningStatistics(learner.model);
  const random = randomStream(streamSeed(seed, ring.index));
  const best = new WeightsSnapshot(tf, learner.model);
  const variables = () => [...learner.stateVariables(), ...best.variables];
  const checkpoints = checkpoint && new RankCheckpoints(ring, variables, checkpoint);
  let exchangedValues = 0;
  const selected = cells.flatMap(({ dataset }) => dataset.selection ?? []);
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
        validation: sumOfSquares(
          tf,
          learner.model,
          cells.map(({ dataset }) => dataset.validation),
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
        epoch,
        train: sumOf(reports.map(({ loss }) => loss)) / totalWeight,
        validation,
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
    for (const cell of cells) scored.push(await scoreOf(tf, spec, learner.model, cell));
    const own: RankContribution = { places: scored, patches: train.count, bytesRead };
    const shares = await allGather(ring, own);
    // Gathered last, so that only these few bytes are missing from the totals.
    const bytes = await allGather(ring, traffic());
    return {
      model: learner.model,
      trained: {
        losses,
        bestEpoch: bestEpoch(losses, initial),
        steps: step,
        parameters: exchangedValues / (step - firstStep),
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

interface SumOfSquares {
  squares: number;
  values: number;
}

/** Returns the sum of squared errors over all values of these sets that count, and the number of values. */
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
