/**
 * Adapts the base model of a region to one cell, in two steps: all cells are fine-tuned before it is known how much of its fine-tuning
 * each one keeps.
 */
import { createHash } from 'node:crypto';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { LoadedEngine, Tf } from '../../engines/index.js';
import type { Window } from '../../raster/index.js';
import { version as software } from '../../version.js';
import {
  adaptationEpochs,
  fineTuneBase,
  interpolateWeights,
  measureAgreement,
  type UpdateAgreement,
} from '../adaptation/index.js';
import { baseNotUsable, diverged } from '../errors.js';
import { type DateError, type EpochLosses, evaluateValidation, type Metrics } from '../evaluation/index.js';
import {
  readStateFile,
  reportOf,
  type ScoreTile,
  type TrainedCell,
  trainModel,
  writeStateFile,
} from '../learners/index.js';
import { buildModel, type ModelSpec, saveModel, setWeights, type WeightValues } from '../models/index.js';
import type { TrainValidationPatches } from '../patches/index.js';
import { readSourceWeights } from '../warm-start/index.js';
import type { AdaptationStep, TrainCellTask } from './train-cell-task.js';

/** A fine-tuned cell, as it is kept between the two steps. */
interface TunedState extends UpdateAgreement {
  task: string;
  losses: EpochLosses[];
  /** Duration of the fine-tuning, without the fresh model. */
  seconds: number;
  /** Score of a fresh model on the validation patches; absent if none was trained, null if its training diverged. */
  fresh?: Metrics | null;
}

/** `seconds` is the duration of the fine-tuning. */
type Adapted = Omit<TrainedCell, 'bytesRead'>;

/** Returns the reason why a cell cannot adapt a base that has trained on its validation ground; undefined if it has not. */
export function groundSeenByBase(
  { holdOut }: TrainValidationPatches,
  { base, heldOut }: AdaptationStep,
): string | undefined {
  if (!heldOut || isWithin(holdOut.window!, heldOut)) return undefined;
  return `its validation ground is on the ${holdOut.side} side, where the base model ${base.id} was trained; train another base, or use the same dates`;
}

function isWithin(inner: Window, outer: Window): boolean {
  return (
    inner.column >= outer.column &&
    inner.row >= outer.row &&
    inner.column + inner.width <= outer.column + outer.width &&
    inner.row + inner.height <= outer.row + outer.height
  );
}

/** First step: returns the agreement of the halves. Throws TW_TRAIN_BASE, TW_TRAIN_DIVERGED. */
export async function fineTuneCell(
  engine: LoadedEngine,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  task: TrainCellTask,
  adaptation: AdaptationStep,
  onEpoch: (epoch: EpochLosses) => void,
): Promise<UpdateAgreement> {
  return withBase(engine, spec, task, adaptation, async (model, base) => {
    const { patches, half, agreement } = (
      await tuned(engine, spec, dataset, model, base, task, adaptation, onEpoch)
    ).state;
    return { patches, half, agreement };
  });
}

/** Second step: the model between the base and its fine-tuning. */
export async function interpolateCell(
  engine: LoadedEngine,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  task: TrainCellTask,
  adaptation: AdaptationStep & { step: 'interpolate' },
  scoreTile: ScoreTile,
  dateErrorsOf: (model: LayersModel) => Promise<DateError[] | undefined>,
): Promise<Adapted> {
  const { tf } = engine;
  return withBase(engine, spec, task, adaptation, async (model, base) => {
    // A file that a power cut has damaged is made again.
    const { state, weights } = await tuned(engine, spec, dataset, model, base, task, adaptation, () => {});
    const { factor, shrinkage, base: source } = adaptation;
    setWeights(tf, model, base);
    const baseError = evaluateValidation(tf, model, dataset);
    setWeights(tf, model, interpolateWeights(base, weights, factor));
    const { report, held, spread } = await reportOf(tf, model, spec, dataset, scoreTile);
    const dateErrors = await dateErrorsOf(model);
    return {
      ...report,
      ...(dateErrors && { dateErrors }),
      files: await saveModel(tf, model),
      losses: state.losses,
      seconds: state.seconds,
      epochs: state.losses.length,
      bestEpoch: state.losses.length,
      ...(spec.target.kind === 'mean' && { predictions: held }),
      spread,
      adaptation: {
        base: { id: source.id, version: source.version },
        shrinkage,
        factor,
        patches: state.patches,
        agreement: state.agreement,
        errors: { base: baseError, ...(state.fresh && { fresh: state.fresh }) },
      },
    };
  });
}

/** Builds a model, and reads the weights of the base. */
async function withBase<Result>(
  { tf }: LoadedEngine,
  spec: ModelSpec,
  { seed }: TrainCellTask,
  { base }: AdaptationStep,
  work: (model: LayersModel, base: WeightValues[]) => Promise<Result>,
): Promise<Result> {
  const model = buildModel(tf, spec, seed);
  try {
    const read = await readSourceWeights(base, model);
    if ('reason' in read) throw baseNotUsable(base.id, read.reason);
    return await work(model, read.values);
  } finally {
    model.dispose();
  }
}

/** Returns the fine-tuned cell, from its file if there is one. */
async function tuned(
  engine: LoadedEngine,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  model: LayersModel,
  base: WeightValues[],
  task: TrainCellTask,
  { file, withFresh }: AdaptationStep,
  onEpoch: (epoch: EpochLosses) => void,
): Promise<{ state: TunedState; weights: WeightValues[] }> {
  const { tf } = engine;
  const name = fingerprint(engine, task, base, withFresh);
  const found = await readStateFile<TunedState>(file, name);
  const complete = async (state: TunedState, weights: WeightValues[]) => {
    if (!withFresh || state.fresh !== undefined) return { state, weights };
    const scored = { ...state, fresh: await freshScore(tf, spec, dataset, task) };
    await writeTuned(file, scored, weights);
    return { state: scored, weights };
  };
  if (found) return complete(found.state, sliceWeights(base, found.values));
  const started = performance.now();
  const { seed } = task;
  const total = task.epochs ?? spec.epochs;
  const epochs = adaptationEpochs(total);
  const losses: EpochLosses[] = [];
  const weights = await fineTuneBase(tf, spec, base, dataset.train, {
    epochs,
    seed,
    onEpoch: (epoch, loss, current) => {
      losses.push({ epoch, train: loss, validation: evaluateValidation(tf, current, dataset).mse });
      onEpoch(losses.at(-1)!);
    },
  });
  const agreement = await measureAgreement(tf, spec, base, model, dataset, { epochs, seed });
  const seconds = (performance.now() - started) / 1000;
  if (!Number.isFinite(agreement.agreement)) throw diverged(epochs);
  const state: TunedState = { task: name, ...agreement, losses, seconds };
  // Before the fresh model, which is only compared and may fail.
  await writeTuned(file, state, weights);
  return complete(state, weights);
}

const writeTuned = (file: string, state: TunedState, weights: WeightValues[]) =>
  writeStateFile(
    file,
    state,
    weights.map(({ values }) => values),
  );

/** Returns null if the training diverges. */
async function freshScore(
  tf: Tf,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  { seed, epochs, patience }: TrainCellTask,
): Promise<Metrics | null> {
  try {
    const { model, metrics } = await trainModel(tf, spec, dataset, { seed, epochs, patience });
    model.dispose();
    return metrics.validation;
  } catch (error) {
    if (diverged.is(error)) return null;
    throw error;
  }
}

function sliceWeights(like: WeightValues[], bytes: Buffer): WeightValues[] {
  const { buffer } = Uint8Array.from(bytes);
  let from = 0;
  return like.map(({ shape, values: { length } }) => {
    const values = new Float32Array(buffer, 4 * from, length);
    from += length;
    return { shape, values };
  });
}

/** Digest of everything that affects the fine-tuning. */
function fingerprint(
  { name, version }: LoadedEngine,
  { model, seed, epochs, patience, dates, pairs, validationFrom }: TrainCellTask,
  base: WeightValues[],
  withFresh: boolean,
): string {
  const hash = createHash('sha256');
  const task = { model, seed, epochs, patience, dates, pairs, validationFrom, withFresh };
  hash.update(JSON.stringify([software, name, version, task]));
  for (const { values } of base)
    hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  return hash.digest('hex');
}
