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
import { addLineSums, ridge, startSums } from '../evaluation/baselines.js';
import { displayRange } from '../evaluation/display-range.js';
import { baselinesOf, countingPairs, evaluate } from '../evaluation/evaluate.js';
import { type EpochLoss, spreadOf } from '../evaluation/metrics.js';
import { scoreTile, type TileSource } from '../evaluation/tile-scores.js';
import { predict } from '../inference/predict-patches.js';
import { bestEpoch, hasStalled, WeightsCopy } from '../loop/early-stopping.js';
import { variablesOf } from '../loop/learner.js';
import { learnerOf, rateAt } from '../loop/train-model.js';
import { beginsWithLine, type ModelSpec } from '../models/model-spec.js';
import { batchOf } from '../patches/batches.js';
import { joinPatches } from '../patches/concat-patches.js';
import { filledOnly, type PatchDataset, type PatchSet } from '../patches/patches.js';
import { type Beginning, type KeptTraining, MemberCheckpoints } from './rank-checkpoints.js';
import type { MemberPlace, MemberShare, PlaceScore, Traffic, TrainedTogether } from './rank-messages.js';
import { allGather, type Ring } from './ring-all-reduce.js';
import { meanOf, movingMoments, poolMoments } from './tensor-all-reduce.js';

export interface TogetherOptions {
  /** Default: the model's. */
  epochs?: number;
  /** Stops if the selection loss has not improved for this number of epochs. */
  patience?: number;
  seed: number;
  /** Where this member keeps the training as it stands. All members keep it, or none. */
  checkpoint?: KeptTraining;
  /** Both are waited for. */
  onBegin?: (beginning: Beginning) => void | Promise<void>;
  onEpoch?: (loss: EpochLoss) => void | Promise<void>;
}

/** Patches of one place. */
export interface PlacePatches extends MemberPlace {
  dataset: PatchDataset;
  /** Files that are read again at the end to score whole tiles. Default: whole tiles are not scored. */
  source?: TileSource;
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
export async function trainTogether(
  tf: Tf,
  spec: ModelSpec,
  places: PlacePatches[],
  bytesRead: number,
  ring: Ring,
  { epochs = spec.epochs, patience, seed, checkpoint, onBegin, onEpoch }: TogetherOptions,
): Promise<{ model: LayersModel; trained: TrainedTogether }> {
  const started = performance.now();
  const train = joinPatches(places.map(({ dataset }) => dataset.train));
  const weightOf = countedValues(train);
  const weight = sumOf(Array.from({ length: train.count }, (_, n) => weightOf(n)));
  const starts = await allGather(ring, {
    patches: train.count,
    weight,
    line: beginsWithLine(spec) ? startSums(train) : undefined,
  });
  const totalWeight = sumOf(starts.map((one) => one.weight));
  const lines = starts.flatMap(({ line }) => line ?? []);
  const straight = lines.length > 0 ? ridge(lines.reduce(addLineSums)) : undefined;
  const stepsAnEpoch = Math.max(...starts.map((one) => Math.ceil(one.patches / spec.batchSize)));
  const steps = epochs * stepsAnEpoch;
  const learner = learnerOf(tf, spec, seed, straight);
  const moments = movingMoments(learner.model);
  const random = randomStream(seed + ring.index);
  const best = new WeightsCopy(tf, learner.model);
  const variables = () => [...learner.state(), ...best.variables];
  const checkpoints = checkpoint && new MemberCheckpoints(ring, variables, checkpoint);
  let exchanged = 0;
  const selected = places.flatMap(({ dataset }) => dataset.selection ?? []);
  const startLoss = async () => {
    const all = await allGather(ring, squaresOf(tf, learner.model, selected));
    const loss = meanSquare(all);
    return Number.isNaN(loss) ? undefined : loss;
  };
  try {
    const begun = await checkpoints?.goOn(tf);
    const kept = begun?.state;
    if (kept) random.state = kept.random;
    const losses = kept?.losses ?? [];
    const initial = kept ? kept.initial : await startLoss();
    let step = kept?.step ?? 0;
    const firstStep = step;
    const before = kept?.traffic ?? { bytesSent: 0, bytesReceived: 0 };
    const traffic = (): Traffic => ({
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
        const share = async (gradients: Tensor[]) => {
          const mean = await meanOf(tf, ring, gradients, weight);
          exchanged += gradients.reduce((all, { size }) => all + size, 0);
          tf.dispose(gradients);
          return mean;
        };
        // Without a patch of its own it goes along with one that does not count.
        const batch = batchOf(tf, train, weight > 0 ? chosen : order.subarray(0, 1), random.next);
        const rate = rateAt(spec, step++, steps);
        const loss = await learner
          .step(batch, { rate, step, share })
          .finally(() => tf.dispose(Object.values(batch)));
        if (weight === 0) continue;
        if (!Number.isFinite(loss)) throw diverged(epoch);
        sum += weight * loss;
      }
      await poolMoments(tf, ring, moments, train.count);
      const reports = await allGather(ring, {
        loss: sum,
        validation: squaresOf(
          tf,
          learner.model,
          places.map(({ dataset }) => dataset.validation),
        ),
        selection: squaresOf(tf, learner.model, selected),
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
      if (bestEpoch(losses, initial) === epoch) best.keep();
      const isLast = epoch === epochs || hasStalled(losses, initial, patience);
      if (reports[0].keep && !isLast)
        await checkpoints?.write({ losses, initial, random: random.state, step, traffic: traffic() });
      await onEpoch?.(losses.at(-1)!);
      if (isLast) break;
    }
    best.restore();
    const scored: PlaceScore[] = [];
    for (const place of places) scored.push(await scoreOf(tf, spec, learner.model, place));
    const own: MemberShare = { places: scored, patches: train.count, bytesRead };
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
function countedValues({ count, counts }: PatchSet): (patch: number) => number {
  if (!counts) return () => 1;
  const pixels = counts.length / count;
  return (patch) => counts.subarray(patch * pixels, (patch + 1) * pixels).reduce((sum, one) => sum + one, 0);
}

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);

async function checksumOf(model: LayersModel): Promise<number> {
  let sum = 0;
  for (const variable of variablesOf(model.weights)) {
    const { buffer, byteOffset, byteLength } = await variable.data<'float32'>();
    sum = crc32(new Uint8Array(buffer, byteOffset, byteLength), sum);
  }
  return sum;
}

interface Squares {
  squares: number;
  values: number;
}

/** Sum of the squared errors over all values in these sets that count, and the number of values. */
function squaresOf(tf: Tf, model: LayersModel, sets: PatchSet[]): Squares {
  let squares = 0;
  let values = 0;
  for (const set of sets) {
    const pairs = countingPairs(set, predict(tf, model, set));
    pairs.truth.forEach((truth, i) => {
      squares += (truth - pairs.predicted[i]) ** 2;
    });
    values += pairs.truth.length;
  }
  return { squares, values };
}

const meanSquare = (all: Squares[]) =>
  sumOf(all.map(({ squares }) => squares)) / sumOf(all.map(({ values }) => values));

async function scoreOf(
  tf: Tf,
  spec: ModelSpec,
  model: LayersModel,
  { geocode, tiles, dataset, source }: PlacePatches,
): Promise<PlaceScore> {
  const { train, validation, counts, split, holdOut } = dataset;
  const range = displayRange(train);
  const score = (patches: PatchSet, values: Float32Array) => evaluate(patches, values, range);
  const spread = (patches: PatchSet) => spreadOf(countingPairs(patches, patches.targets).truth);
  return {
    geocode,
    tiles,
    patches: counts,
    split,
    holdOut,
    metrics: {
      train: score(filledOnly(train), predict(tf, model, train)),
      validation: score(validation, predict(tf, model, validation)),
      ...(range && source && { tile: await scoreTile(tf, model, spec, range, source) }),
    },
    ...(range && { displayRange: range }),
    spread: { train: spread(filledOnly(train)), validation: spread(validation) },
    baseline: baselinesOf(spec.target, dataset, range),
  };
}
