/** The model card: where a model comes from, how it was trained, and its scores. */
import type { SelectedEngine } from '../../engines/index.js';
import type { GridName } from '../../grid/index.js';
import type { ModelScore } from '../../storage/index.js';
import type { BandValueKind, TilePixels } from '../data/index.js';
import type { AdaptationProvenance, TrainedCell, TrainingReport } from '../learners/index.js';
import { getModelSpec, hasBatchNorm } from '../models/index.js';
import type { DistributedReport } from './model-card-distributed-report.js';
import type { TransferProvenance } from './model-card-provenance.js';

/**
 * How the work is divided. `partitioned`: one model for each cell. `distributed`: one model for all cells, trained by all nodes.
 * `contained`: one model for each cell, in processes with limits. `regional`: one model for all cells, which is then adapted to each cell.
 */
export const TRAINING_MODES = ['partitioned', 'distributed', 'contained', 'regional'] as const;
export type TrainingMode = (typeof TRAINING_MODES)[number];

/** A tile that the model was trained or validated on. */
interface CardTile {
  id: string;
  version: string;
  /** RFC 3339. */
  datetime: string;
}

/**
 * `displayRange` and `holdOut` are absent in cards of older versions, whose held-out ground may touch training ground of other cells.
 * They are also absent for one model of many cells, which has them per cell in `distributed`.
 */
export interface ModelCard extends Omit<TrainingReport, 'bestEpoch'> {
  model: string;
  collection: string;
  grid: GridName;
  geocode: string;
  version: string;
  mode: TrainingMode;
  /** The job that trained it. */
  job: string;
  /** The filter that selected the data, as CQL2 JSON. */
  filter: unknown;
  data: CardTile[];
  /** Id of the model that its weights started from; null if it started fresh. */
  parent: string | null;
  /** Present if the job requested a start from another model. */
  transfer?: TransferProvenance;
  engine: SelectedEngine;
  seed: number;
  /**
   * Statistics that batch normalisation used in training, if the model has it: of each batch, or of each node's own part of a batch.
   * Inference uses moving averages.
   */
  batchNorm?: 'batch' | 'local';
  /** Pixel size of the training, at which the model reads tiles. Absent in cards of older versions. */
  pixelSize?: TilePixels;
  /** Absent in cards of older versions, whose values are reflectance. */
  values?: BandValueKind;
  /** Passes over the training patches. */
  epochs: number;
  /** The epoch whose weights are kept; 0 if none was better than the start. Absent in cards of older versions, which kept the last one. */
  bestEpoch?: number;
  /** Values of the validation patches, by index. Absent if a patch has more than one value. */
  predictions?: { truth: number[]; predicted: number[] };
  /** Present for a model that was adapted from the base model of a region. */
  adaptation?: AdaptationProvenance;
  /** Present for one model of many cells, trained by several nodes. */
  distributed?: DistributedReport;
  /** RFC 3339. */
  createdAt: string;
  softwareVersion: string;
}

/** The part of a card in the catalogue. Members that grow with epochs and patches are only in the file. */
export type CardSummary = Omit<ModelCard, 'losses' | 'predictions'>;

export function cardSummary({
  losses: _losses,
  predictions: _predictions,
  ...summary
}: ModelCard): CardSummary {
  return summary;
}

/** Properties of a model that the caller adds to the results of its training. */
export interface ModelCardContext
  extends Omit<
    ModelCard,
    | keyof TrainingReport
    | 'data'
    | 'parent'
    | 'batchNorm'
    | 'epochs'
    | 'bestEpoch'
    | 'predictions'
    | 'adaptation'
    | 'createdAt'
  > {
  /** Default: it started fresh. */
  parent?: string | null;
  tiles: { id: string; version: string; start: number }[];
  /** Milliseconds since 1970. */
  createdAt: number;
}

export function modelCard(
  { tiles, createdAt, parent = null, transfer, ...context }: ModelCardContext,
  { files: _files, start: _start, predictions, ...report }: TrainedCell,
): ModelCard {
  return {
    ...context,
    data: tiles.map(({ id, version, start }) => ({ id, version, datetime: new Date(start).toISOString() })),
    parent,
    ...(transfer && { transfer }),
    ...(hasBatchNorm(getModelSpec(context.model)) && {
      batchNorm: context.mode === 'distributed' ? 'local' : 'batch',
    }),
    ...report,
    ...(predictions && {
      predictions: { truth: rounded(predictions.truth), predicted: rounded(predictions.predicted) },
    }),
    createdAt: new Date(createdAt).toISOString(),
  };
}

/**
 * Score on the validation patches. Two sets of patches are equal if their true values have the same count, mean and spread, bit for bit.
 */
export function validationScore({ metrics, spread: { count, mean, squares } }: CardSummary): ModelScore {
  return { error: metrics.validation.mse, data: `${count} ${mean} ${squares}` };
}

/** Five decimal places: far below any error of a model, and short in a file. */
const rounded = (values: Float32Array) => Array.from(values, (value) => Number(value.toFixed(5)));
