/** Fine-tunes a base model on the patches of one cell, together with some patches of other cells. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import { randomStream, shuffledOrder } from '../utils/random.js';
import { augmentedBatch } from './batches.js';
import { readStateFile, writeStateFile } from './checkpoint.js';
import { diverged } from './errors.js';
import { cosineLearningRate } from './learner.js';
import type { ModelSpec } from './models/spec.js';
import { readWeights, setWeights, type WeightValues } from './models/weights.js';
import { concatPatches, type Patches, subsamplePatches } from './patches.js';
import { createLearner } from './training-loop.js';

/** Factor of the learning rate of a fresh training. Larger steps leave the base model at the cells where they do not help. */
const LEARNING_RATE_FACTOR = 0.2;
/** Fraction of the steps in which the learning rate rises. */
const WARMUP_FRACTION = 0.1;
/** Fraction of the epochs of a fresh training. With the patches of other cells, adaptation takes half of its steps. */
const EPOCHS_FRACTION = 1 / 3;

export const adaptationEpochs = (epochs: number): number => Math.max(1, Math.round(epochs * EPOCHS_FRACTION));

interface FineTuneOptions {
  epochs: number;
  seed: number;
  /** Takes steps as large as those of a fresh training, to learn ground that the base does not know. */
  fullSteps?: boolean;
  /** Called after each epoch with the mean loss of its steps and the current model. */
  onEpoch?: (epoch: number, loss: number, model: LayersModel) => void;
}

/**
 * Returns the weights after some epochs of steps of Adam, by default small ones, that begin at the weights of the base. The patches are
 * shuffled, and rotated and mirrored at random. The same arguments and engine give the same weights, bit for bit. Throws TW_TRAIN_DIVERGED.
 */
export async function fineTuneBase(
  tf: Tf,
  spec: ModelSpec,
  base: WeightValues[],
  patches: Patches,
  { epochs, seed, fullSteps = false, onEpoch }: FineTuneOptions,
): Promise<WeightValues[]> {
  // The few patches of a cell make poor statistics.
  const learner = createLearner(tf, spec, seed, { statistics: 'moving' });
  try {
    setWeights(tf, learner.model, base);
    const random = randomStream(seed);
    const steps = epochs * Math.ceil(patches.count / spec.batchSize);
    const warmUp = WARMUP_FRACTION * steps;
    const factor = fullSteps ? 1 : LEARNING_RATE_FACTOR;
    let step = 0;
    for (let epoch = 1; epoch <= epochs; epoch++) {
      const order = shuffledOrder(patches.count, random.next);
      let sum = 0;
      for (let from = 0; from < patches.count; from += spec.batchSize) {
        const batch = augmentedBatch(tf, patches, order.subarray(from, from + spec.batchSize), random.next);
        const ramp = Math.min(1, (step + 1) / (warmUp + 1));
        const learningRate = factor * ramp * cosineLearningRate(spec, step++, steps);
        const loss = await learner
          .step(batch, { learningRate, step })
          .finally(() => tf.dispose(Object.values(batch)));
        if (!Number.isFinite(loss)) throw diverged(epoch);
        sum += batch.size * loss;
      }
      onEpoch?.(epoch, sum / patches.count, learner.model);
    }
    const tuned = readWeights(learner.model);
    // The loss of a step belongs to the weights before it.
    if (!tuned.every(({ values }) => values.every(Number.isFinite))) throw diverged(epochs);
    return tuned;
  } finally {
    learner.model.dispose();
    learner.dispose();
  }
}

/**
 * Some training patches of one cell. Another cell trains on them together with its own while it adapts the base. Without them, the model
 * changes at will for land that the training ground of the cell does not show, although the base knows this land (rehearsal: Robins 1995,
 * "Catastrophic forgetting, rehearsal and pseudorehearsal").
 */
interface CellSample {
  /** Unique name of the cell. */
  cell: string;
  /** The dates of its training, RFC 3339. */
  dates: string[];
  patches: Patches;
}

/** Number of patches of other cells over that of own patches. */
const OTHERS_FRACTION = 1 / 2;
/** Maximum number of cells that share patches, so that a region of any size exchanges a few megabytes. */
const MAX_SHARING_CELLS = 24;

/** Passes over the patches of a cell that an adaptation takes, if other cells share enough patches; those count as fractions of a pass. */
export const adaptationPasses = (epochs: number): number => adaptationEpochs(epochs) * (1 + OTHERS_FRACTION);

/** Returns the cells that share patches, spread evenly over the cells of a region, and how many patches each one shares. */
export function sharingCells(
  { maxPatches }: Pick<ModelSpec, 'maxPatches'>,
  cells: readonly string[],
): { cells: string[]; patches: number } {
  const sorted = cells.toSorted();
  const count = Math.min(sorted.length, MAX_SHARING_CELLS);
  return {
    cells: Array.from({ length: count }, (_, i) => sorted[Math.floor((i * sorted.length) / count)]),
    patches: Math.ceil((OTHERS_FRACTION * maxPatches) / Math.max(1, count - 1)),
  };
}

/** Returns the training patches of a cell together with those of other cells. */
export function withOtherCells(
  cell: string,
  train: Patches,
  samples: CellSample[],
): { patches: Patches; others: number; dates: string[] } {
  const fromOthers = samples.filter((sample) => sample.cell !== cell);
  if (fromOthers.length === 0) return { patches: train, others: 0, dates: [] };
  const all = concatPatches(fromOthers.map(({ patches }) => patches));
  const others = subsamplePatches(all, Math.round(OTHERS_FRACTION * train.count));
  // Copies, because the sets become views of the result.
  const dates = [...new Set(fromOthers.flatMap((sample) => sample.dates))].sort();
  return { patches: concatPatches([{ ...train }, { ...others }]), others: others.count, dates };
}

/** Number of own patches at which a cell keeps half of its fine-tuning. Larger cells keep more. */
const HALF_KEPT_PATCHES = 60;

/**
 * The part of its fine-tuning that a cell keeps: n / (n + n0) for n own patches, a shrinkage towards the base that is stronger where a cell
 * has few patches. Without patches of other cells, which make a fine-tuning safe, it is half of that.
 */
export function keptFactor(patches: number, others: number): number {
  const safety = Math.min(1, 1 / 2 + others / (2 * OTHERS_FRACTION * patches));
  return (safety * patches) / (patches + HALF_KEPT_PATCHES);
}

const SAMPLES_TASK = 'samples of a region';
/** Members of patches that the learners read. */
const SAMPLE_ARRAYS = ['inputs', 'targets', 'targetMask', 'cloud'] as const;

/** A sample as JSON: the arrays are little-endian float32 in base64. */
export interface SampleMessage {
  cell: string;
  dates: string[];
  shape: Pick<Patches, 'count' | 'size' | 'inputBands' | 'targetBands'>;
  arrays: Partial<Record<(typeof SAMPLE_ARRAYS)[number], string>>;
}

export function encodeSample({ cell, dates, patches }: CellSample): SampleMessage {
  const { count, size, inputBands, targetBands } = patches;
  const base64 = ({ buffer, byteOffset, byteLength }: Float32Array) =>
    Buffer.from(buffer, byteOffset, byteLength).toString('base64');
  const arrays = SAMPLE_ARRAYS.flatMap((name) => (patches[name] ? [[name, base64(patches[name])]] : []));
  return { cell, dates, shape: { count, size, inputBands, targetBands }, arrays: Object.fromEntries(arrays) };
}

function decodeSample({ cell, dates, shape, arrays }: SampleMessage): CellSample {
  // A copy, because float32 views must be aligned to four bytes.
  const floats = (text: string) => new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer);
  const { inputs = '', targets = '', targetMask, cloud } = arrays;
  const patches = {
    ...shape,
    inputs: floats(inputs),
    targets: floats(targets),
    ...(targetMask !== undefined && { targetMask: floats(targetMask) }),
    ...(cloud !== undefined && { cloud: floats(cloud) }),
  };
  return { cell, dates, patches };
}

export const writeSamples = (path: string, samples: SampleMessage[]): Promise<void> =>
  writeStateFile(path, { task: SAMPLES_TASK, samples } as SampleState, []);

/** Returns the messages of a file; undefined if it is missing or damaged. */
export const readSampleMessages = async (path: string): Promise<SampleMessage[] | undefined> =>
  (await readStateFile<SampleState>(path, SAMPLES_TASK))?.state.samples;

interface SampleState {
  task: string;
  samples: SampleMessage[];
}

/** Returns the samples of a file; none if it is missing or damaged. */
export async function readSamples(path: string): Promise<CellSample[]> {
  return ((await readSampleMessages(path)) ?? []).map(decodeSample);
}
