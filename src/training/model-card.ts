/** The model card: where a model comes from, how it was trained, and its scores. */
import type { SelectedEngine } from '../engines/index.js';
import type { GridName } from '../grid/index.js';
import type { ModelScore } from '../storage/index.js';
import { plural } from '../utils/text.js';
import type { BandValueKind, TilePixels } from './cells.js';
import { datedOf, isComposite, parseDated } from './dates.js';
import { type HeldOutDates, isNearHeldOut } from './hold-out.js';
import type { FreezingSchedule } from './learner.js';
import { getModelSpec } from './models/builtin.js';
import { hasBatchNorm } from './models/spec.js';
import type { AdaptationProvenance, CellReport, TrainedCell, TrainingReport } from './report.js';
import type { WarmStartResult } from './warm-start.js';

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
  /** The last observation of a composite. */
  end?: string;
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

/** The members of a card that say on which dates the model was trained. */
type CardDates = Pick<CardSummary, 'data' | 'holdOut' | 'distributed' | 'adaptation' | 'transfer'>;

/**
 * Returns the dates that trained a model: those of its card without the ones that their place held out, those of the patches that other
 * places shared, and those of its parent and the models that the parent started from. Composites are intervals: `start/end`.
 */
export function trainingDates({ data, holdOut, distributed, adaptation, transfer }: CardDates): string[] {
  const ofPlaces = new Map(distributed?.places.map((place) => [place.geocode, place.holdOut]));
  const isTrained = ({ id, datetime }: CardTile) => {
    // The id of a tile ends with a letter for its grid and its geocode.
    const { days, from } = ofPlaces.get(id.slice(id.lastIndexOf('_') + 2)) ?? holdOut ?? {};
    return days ? !days.includes(datetime.slice(0, 10)) : !from || datetime < from;
  };
  const dates = data.filter(isTrained).map(({ datetime, end }) => (end ? `${datetime}/${end}` : datetime));
  return [...new Set([...dates, ...(adaptation?.dates ?? []), ...(transfer?.dates ?? [])])];
}

/** Returns a date of the training of a model that another training holds out, or that is close to one; undefined if none is. */
export function trainedOn(card: CardDates, heldOut: HeldOutDates): string | undefined {
  return trainingDates(card).find((date) => isNearHeldOut(heldOut, parseDated(date)));
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
  tiles: { id: string; version: string; start: number; end: number }[];
  /** Milliseconds since 1970. */
  createdAt: number;
}

export function cardTile({ id, version, ...tile }: ModelCardContext['tiles'][number]): CardTile {
  const [datetime, end] = [tile.start, tile.end].map((time) => new Date(time).toISOString());
  return { id, version, datetime: datetime!, ...(isComposite(datedOf(tile)) && { end: end! }) };
}

export function modelCard(
  { tiles, createdAt, parent = null, transfer, ...context }: ModelCardContext,
  { files: _files, start: _start, predictions, ...report }: TrainedCell,
): ModelCard {
  return {
    ...context,
    data: tiles.map(cardTile),
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
 * Score on the selection patches; undefined without any. Two sets of patches are equal if their true values have the same count, mean and
 * spread, bit for bit.
 */
export function selectionScore({ selection }: CardSummary): ModelScore | undefined {
  if (!selection) return undefined;
  const { count, mean, squares } = selection.spread;
  return { error: selection.mse, data: `${count} ${mean} ${squares}` };
}

/** Five decimal places: far below any error of a model, and short in a file. */
const rounded = (values: Float32Array) => Array.from(values, (value) => Number(value.toFixed(5)));

/**
 * The model that the training of a cell starts from. `none`: it starts fresh. `random`: the model of a cell of another cluster, as a
 * control. `similar`: the model of the most similar cell of its cluster. `probe`: the best on some of the patches of the cell, among the
 * models of several similar cells and a fresh one.
 */
export const TRANSFER_POLICIES = ['none', 'random', 'similar', 'probe'] as const;
export type TransferPolicy = (typeof TRANSFER_POLICIES)[number];

/** How a model came to the weights that its training started from. */
export interface TransferProvenance extends Omit<WarmStartResult, 'parent'> {
  policy: Exclude<TransferPolicy, 'none'>;
  fineTuning: FreezingSchedule;
  /** Version of the parent. */
  version?: string;
  /** The dates that trained the parent and the models that it started from, RFC 3339. */
  dates?: string[];
  /** Texture distance between the cell and the cell of the parent, as in `TextureIndex`. */
  distance?: number;
  /** The reason why it started fresh. */
  fresh?: string;
}

/** Report of a model that several nodes trained together. */
export interface DistributedReport {
  members: {
    node: string;
    places: number;
    /** Training patches, including their overlap. */
    patches: number;
    /**
     * Bytes over the connections of this rank to its neighbours, except for the last few. After a resume, bytes sent before the checkpoint
     * are included; bytes sent after it in the interrupted run are not.
     */
    bytesSent: number;
    bytesReceived: number;
    /** `bytesSent` divided by `leastBytes`; null for a single rank. */
    ratio: number | null;
  }[];
  /** Running nodes, with or without cells. Absent if an older version trained the model. */
  nodes?: number;
  steps: number;
  /** Values exchanged in each step: the trained weights. */
  parameters: number;
  /** Lower bound on the bytes that a rank sends in an all-reduce of float32: 2 (N - 1) / N x 4 x parameters x steps. */
  leastBytes: number;
  /** Scores of the model at each cell, beside baselines that are fitted to the cell. */
  places: ({ geocode: string } & CellReport)[];
}

/** Describes for people how many bytes a node sent, relative to the lower bound of an all-reduce. */
export function describeTraffic({ members, parameters, steps, nodes = 1 }: DistributedReport): string {
  const size = members.length;
  const work = `${plural(size, 'node')}, ${parameters} parameters, ${plural(steps, 'step')}`;
  const most = members.reduce((a, b) => (b.bytesSent > a.bytesSent ? b : a));
  if (most.ratio === null)
    return `${work}: nothing sent${nodes > 1 ? `, because one of ${nodes} nodes has ${most.places === 1 ? 'the only place' : `all ${most.places} places`}` : ''}`;
  const sent = (most.bytesSent / 1e6).toFixed(2);
  return `${work}: a node sent at most ${sent} MB, ${most.ratio.toFixed(3)} times 2 (N - 1) / N x 4 x parameters x steps`;
}
