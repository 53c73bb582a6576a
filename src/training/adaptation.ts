/** Adapts the base model of a region to one cell. */

import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { LoadedEngine, Tf } from '../engines/index.js';
import type { Window } from '../raster/index.js';
import type { DateError } from './date-errors.js';
import { baseNotUsable, diverged } from './errors.js';
import { type EpochLosses, evaluateValidation, type Metrics } from './evaluation.js';
import { adaptationEpochs, fineTuneBase, keptFactor, readSamples, withOtherCells } from './fine-tuning.js';
import { buildModel } from './models/network.js';
import type { ModelSpec } from './models/spec.js';
import { saveModel, setWeights, type WeightValues } from './models/weights.js';
import type { TrainValidationPatches } from './patches.js';
import { reportOf, type ScoreTile, type TrainedCell } from './report.js';
import type { AdaptationStep, FineTuneStep, TrainCellTask } from './train-task.js';
import { trainModel } from './training-loop.js';
import { readSourceWeights } from './warm-start.js';

/**
 * Returns weights between those of a base model and of its fine-tuning (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models").
 * `factor` 0 gives the weights of the base, and 1 those of the fine-tuning, bit for bit.
 */
export function interpolateWeights(
  base: WeightValues[],
  tuned: WeightValues[],
  factor: number,
): WeightValues[] {
  if (factor === 0) return base;
  if (factor === 1) return tuned;
  return base.map(({ shape, values }, i) => ({
    shape,
    values: values.map((value, k) => value + factor * (tuned[i].values[k] - value)),
  }));
}

/** Returns the reason why a cell cannot adapt a base that has trained on its validation ground; undefined if it has not. */
export function groundSeenByBase(
  { holdOut }: TrainValidationPatches,
  { base, heldOut }: AdaptationStep,
): string | undefined {
  if (!heldOut || isWithin(holdOut.window!, heldOut)) return undefined;
  return `the validation ground is on the ${holdOut.side} side, where the base model ${base.id} was trained; train another base, or use the same dates`;
}

function isWithin(inner: Window, outer: Window): boolean {
  return (
    inner.column >= outer.column &&
    inner.row >= outer.row &&
    inner.column + inner.width <= outer.column + outer.width &&
    inner.row + inner.height <= outer.row + outer.height
  );
}

interface AdaptOptions {
  scoreTile: ScoreTile;
  dateErrorsOf(model: LayersModel): Promise<DateError[] | undefined>;
  onEpoch(epoch: EpochLosses): void;
  /** Returns the seconds since the start of the task. */
  elapsed(): number;
}

/**
 * Fine-tunes the base on the patches of the cell and of other cells. The duration in the results does not include the fresh model.
 * Throws TW_TRAIN_BASE, TW_TRAIN_DIVERGED.
 */
export async function adaptCell(
  { tf }: LoadedEngine,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  task: TrainCellTask,
  { base: source, samples, withFresh, hasChanged }: AdaptationStep & FineTuneStep,
  { scoreTile, dateErrorsOf, onEpoch, elapsed }: AdaptOptions,
): Promise<Omit<TrainedCell, 'bytesRead'>> {
  const { seed } = task;
  const model = buildModel(tf, spec, seed);
  try {
    const read = await readSourceWeights(source, model);
    if ('reason' in read) throw baseNotUsable(source.id, read.reason);
    const base = read.values;
    const name = task.cell ?? task.id;
    const { patches, others, dates } = withOtherCells(name, dataset.train, await readSamples(samples));
    const losses: EpochLosses[] = [];
    const tuned = await fineTuneBase(tf, spec, base, patches, {
      epochs: adaptationEpochs(task.epochs ?? spec.epochs),
      ...{ seed, fullSteps: hasChanged },
      onEpoch: (epoch, loss, current) => {
        losses.push({ epoch, train: loss, validation: evaluateValidation(tf, current, dataset).mse });
        onEpoch(losses.at(-1)!);
      },
    });
    setWeights(tf, model, base);
    const baseError = evaluateValidation(tf, model, dataset);
    // A base that does not know the changed ground would pull the model back.
    const factor = hasChanged ? 1 : keptFactor(dataset.train.count, others);
    setWeights(tf, model, interpolateWeights(base, tuned, factor));
    const { report, held, spread } = await reportOf(tf, model, spec, dataset, scoreTile);
    const files = await saveModel(tf, model);
    const seconds = elapsed();
    const dateErrors = await dateErrorsOf(model);
    const fresh = withFresh ? await freshScore(tf, spec, dataset, task) : undefined;
    return {
      ...report,
      ...(dateErrors && { dateErrors }),
      files,
      losses,
      seconds,
      epochs: losses.length,
      bestEpoch: losses.length,
      ...(spec.target.kind === 'mean' && { predictions: held }),
      spread,
      adaptation: {
        base: { id: source.id, version: source.version },
        factor,
        patches: dataset.train.count,
        others,
        ...(dates.length > 0 && { dates }),
        errors: { base: baseError, ...(fresh && { fresh }) },
      },
    };
  } finally {
    model.dispose();
  }
}

/** Returns undefined if the training diverges. */
async function freshScore(
  tf: Tf,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  { seed, epochs, patience }: TrainCellTask,
): Promise<Metrics | undefined> {
  try {
    const { model, metrics } = await trainModel(tf, spec, dataset, { seed, epochs, patience });
    model.dispose();
    return metrics.validation;
  } catch (error) {
    if (diverged.is(error)) return undefined;
    throw error;
  }
}
