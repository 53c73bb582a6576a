/** The model card: where a model comes from, how it was trained, and how good it is. */

import type { SelectedEngine } from '../../engines/index.js';
import type { GridName } from '../../grid/index.js';
import type { ModelScore } from '../../storage/index.js';
import type { BandValueKind, TilePixels } from '../data/trained-pixels.js';
import type { DistributedReport } from '../distributed/distributed-report.js';
import type { Baselines } from '../evaluation/baselines.js';
import type { DisplayRange } from '../evaluation/display-range.js';
import type { EpochLosses, ModelMetrics, TargetStatistics } from '../evaluation/metrics.js';
import type { TrainingMode } from '../jobs/train-options.js';
import { getModelSpec } from '../models/builtin-models.js';
import { hasBatchNorm } from '../models/model-spec.js';
import type { AppliedHoldOut } from '../patches/patches.js';
import type { TransferProvenance } from '../transfer/provenance.js';
import type { TrainedCell } from '../workers/training-messages.js';

/** A tile that the model was trained or validated on. */
export interface CardTile {
  id: string;
  version: string;
  /** RFC 3339. */
  datetime: string;
}

export interface ModelCard {
  model: string;
  collection: string;
  grid: GridName;
  geocode: string;
  version: string;
  /** How the work was shared out. */
  mode: TrainingMode;
  /** The job that trained it. */
  job: string;
  /** The filter that picked the data, as CQL2 JSON. */
  filter: unknown;
  data: CardTile[];
  /** Id of the model that its weights started from; null where it started fresh. */
  parent: string | null;
  /** How it came to that, where it was asked to start from another. */
  transfer?: TransferProvenance;
  engine: SelectedEngine;
  seed: number;
  /**
   * Where the net has batch normalisation, what it was trained by: the statistics of each batch, or of each node's own part of it. It
   * predicts by moving averages.
   */
  batchNorm?: 'batch' | 'local';
  /** Pixel size of the training, at which the model reads tiles. Cards of older versions of the program have none. */
  pixelSize?: TilePixels;
  /** The kind of values of the bands. Cards of older versions do not have it; their values are reflectance. */
  values?: BandValueKind;
  /** Passes over the training patches. */
  epochs: number;
  /** The epoch whose weights are kept, 0 if none was better than the start. Absent in cards of older versions, which kept the last one. */
  bestEpoch?: number;
  /** Counted side by side, without the overlap that training uses. */
  patches: { train: number; validation: number };
  split: string;
  /** Absent for a model of several places (see `distributed.places`), and in cards of older versions, whose held-out ground may touch training ground of other places. */
  holdOut?: AppliedHoldOut;
  losses: EpochLosses[];
  metrics: ModelMetrics;
  /**
   * The values that images are rendered with for their scores, see display-range.ts. Absent if a patch has one value, in cards of older
   * versions, and for one model of many places, each of which has its own in `distributed`.
   */
  displayRange?: DisplayRange;
  /** Of the validation patches, by index; absent where a patch has more than one value. */
  predictions?: { truth: number[]; predicted: number[] };
  /** Of the true values in the validation patches. */
  spread: TargetStatistics;
  /** On the same validation patches. */
  baseline: Baselines;
  seconds: number;
  /** Bytes of the files that it needs, also where another model of the place had read them. */
  bytesRead: number;
  /** Of one model for many places, trained on many nodes. */
  distributed?: DistributedReport;
  /** RFC 3339. */
  createdAt: string;
  softwareVersion: string;
}

/** What the catalogue keeps of a card; what grows with epochs and patches is in the file alone. */
export type CardSummary = Omit<ModelCard, 'losses' | 'predictions'>;

export function cardSummary({
  losses: _losses,
  predictions: _predictions,
  ...summary
}: ModelCard): CardSummary {
  return summary;
}

/** What the caller knows of a model beside its training. */
export type ModelCardContext = Pick<
  ModelCard,
  | 'model'
  | 'collection'
  | 'grid'
  | 'geocode'
  | 'version'
  | 'mode'
  | 'distributed'
  | 'pixelSize'
  | 'values'
  | 'job'
  | 'filter'
  | 'engine'
  | 'seed'
  | 'softwareVersion'
> & {
  /** Default: it started fresh. */
  parent?: string | null;
  transfer?: TransferProvenance;
  tiles: { id: string; version: string; start: number }[];
  /** Milliseconds since 1970. */
  createdAt: number;
};

export function modelCard(
  { tiles, createdAt, parent = null, transfer, ...context }: ModelCardContext,
  trained: TrainedCell,
): ModelCard {
  const {
    epochs,
    bestEpoch,
    patches,
    split,
    holdOut,
    losses,
    metrics,
    displayRange,
    predictions,
    spread,
    baseline,
  } = trained;
  const { seconds, bytesRead } = trained;
  return {
    ...context,
    data: tiles.map(({ id, version, start }) => ({ id, version, datetime: new Date(start).toISOString() })),
    parent,
    ...(transfer && { transfer }),
    ...(hasBatchNorm(getModelSpec(context.model)) && {
      batchNorm: context.mode === 'distributed' ? 'local' : 'batch',
    }),
    epochs,
    bestEpoch,
    patches,
    split,
    ...(holdOut && { holdOut }),
    losses,
    metrics,
    ...(displayRange && { displayRange }),
    ...(predictions && {
      predictions: { truth: rounded(predictions.truth), predicted: rounded(predictions.predicted) },
    }),
    spread,
    baseline,
    seconds,
    bytesRead,
    createdAt: new Date(createdAt).toISOString(),
  };
}

/** By the validation patches. They are the same where their true values are as many and spread alike to the last bit. */
export function validationScore({ metrics, spread: { count, mean, squares } }: CardSummary): ModelScore {
  return { error: metrics.validation.mse, data: `${count} ${mean} ${squares}` };
}

/** To the fifth digit: far below any error of a model, and short in a file. */
const rounded = (values: Float32Array) => Array.from(values, (value) => Number(value.toFixed(5)));
