/** Stores classifiers with a card that describes their training and accuracy. */
import { createHash } from 'node:crypto';
import { gridByName } from '../../grid/index.js';
import { type Filter, toCql2Json } from '../../query/index.js';
import {
  commonCell,
  type ModelRecord,
  modelId,
  newVersion,
  type Storage,
  type TileRecord,
  type TileSource,
  versionsOf,
} from '../../storage/index.js';
import { version as softwareVersion } from '../../version.js';
import type {
  AccuracyScores,
  Calibration,
  ClassifierName,
  LabelledTileFacts,
  TrainingFacts,
} from '../classification/index.js';
import type { Sizes } from '../pixel-methods/index.js';
import type { AnalysedBand } from '../spectrum-reading/index.js';

/** Kind of model of all classifiers, and the start of their ids. */
export const CLASSIFIER = 'classifier' as const;

export interface ClassifierCard {
  model: typeof CLASSIFIER;
  classifier: ClassifierName;
  /** Regularization strength: the shrinkage of `lda`, the L2 penalty of `logistic` and `mlp`, the weight decay of networks. */
  strength: number;
  collection: string;
  grid: LabelledTileFacts['grid'];
  /** The smallest cell that holds all labelled tiles, or `world`. */
  geocode: string;
  version: string;
  /** The job that trained it. */
  job: string;
  /** The filter that selected the tiles, as CQL2 JSON. */
  filter: unknown;
  /** Tiles with labelled pixels; `datetime` is RFC 3339. */
  data: { id: string; version: string; datetime: string }[];
  parent: null;
  /** Sources of the training tiles. The classifier applies to tiles of these sources. */
  sources: TileSource[];
  /** Input bands, in their order. */
  bands: AnalysedBand[];
  /** Height of a pixel in the unit of the grid, for classifiers that read neighbouring pixels; absent if an older version trained it. */
  pixelHeight?: number;
  /** Number of values of each layer, from bands to classes; for a network that an engine trained, only bands and classes. */
  sizes: Sizes;
  /** Present if an engine trained it. */
  training?: TrainingFacts;
  /** Classes in the order of the outputs. Validation pixels did not train the scored classifier, but they do train this one. */
  classes: { code: number; name: string; train: number; validation: number }[];
  split: string;
  metrics: { validation: AccuracyScores };
  /** Scores of the baselines and of other candidates on the same pixels. */
  baseline: Record<string, Pick<AccuracyScores, 'oa' | 'aa' | 'kappa'>>;
  calibration: Calibration;
  seed: number;
  seconds: number;
  /** RFC 3339. */
  createdAt: string;
  softwareVersion: string;
}

export type NewClassifier = Omit<
  ClassifierCard,
  | 'model'
  | 'grid'
  | 'geocode'
  | 'version'
  | 'filter'
  | 'data'
  | 'sources'
  | 'parent'
  | 'createdAt'
  | 'softwareVersion'
> & { filter: Filter; tiles: LabelledTileFacts[] };

/** Height of the pixels of a tile in the unit of its grid. */
export function pixelHeight({
  grid,
  geocode,
  rows,
}: Pick<TileRecord, 'grid' | 'geocode'> & { rows: number }) {
  const { north, south } = gridByName(grid).bounds(geocode);
  return (north - south) / rows;
}

/** Durable when it resolves. Returns the version that an interrupted run of the same job has stored, if there is one. */
export async function storeClassifier(
  storage: Storage,
  { tiles, filter, ...about }: NewClassifier,
  files: Record<string, Uint8Array>,
): Promise<Pick<ModelRecord, 'id' | 'version'>> {
  const { grid } = tiles[0];
  const { collection } = about;
  const geocode = commonCell(tiles.map((tile) => tile.geocode));
  const identity = { model: CLASSIFIER, collection, grid, geocode };
  const known = await storage.models.scan(modelId(CLASSIFIER, collection, grid, geocode));
  const stored = known?.record ? versionsOf(known.record) : [];
  const own = stored.find(({ card }) => (card as ClassifierCard).job === about.job);
  if (own) return { id: own.id, version: own.version };
  const card: ClassifierCard = {
    ...identity,
    ...about,
    version: newVersion(),
    parent: null,
    filter: toCql2Json(filter),
    sources: [...new Set(tiles.map(({ source }) => source))].sort(),
    data: tiles.map(({ id, version, start }) => ({ id, version, datetime: new Date(start).toISOString() })),
    createdAt: new Date().toISOString(),
    softwareVersion,
  };
  const { oa, pixels, classes } = card.metrics.validation;
  const read = `${card.sources.join()} of ${card.bands.map(({ wavelength }) => wavelength).join()}`;
  const validated = createHash('sha256')
    .update(`${read}: ${pixels} ${classes.map((one) => `${one.code} ${one.pixels}`).join()}`)
    .digest('hex')
    .slice(0, 16);
  return storage.models.put(
    { ...identity, version: card.version, card, score: { error: 1 - oa, data: validated } },
    { ...files, 'card.json': Buffer.from(JSON.stringify(card, null, 2)) },
  );
}
