/** Stored classifiers: their card, which describes training and accuracy, and the bands of a tile that they read. */
import { createHash } from 'node:crypto';
import { gridByName } from '../../grid/index.js';
import { type Filter, toCql2Json } from '../../query/index.js';
import { nearestBand, spectralTags } from '../../raster/index.js';
import {
  commonCell,
  type GroupRecord,
  type ModelRecord,
  modelId,
  newVersion,
  type Storage,
  type TileRecord,
  type TileSource,
  versionsOf,
} from '../../storage/index.js';
import { version as softwareVersion } from '../../version.js';
import { NO_SPECTRUM } from '../analysis.js';
import { patchSide } from '../cnn/net.js';
import type { Sizes } from '../methods/dense-network.js';
import { type AnalysedBand, spectralGroups, type TileSpectrum } from '../tile-spectrum.js';
import type { LabelledTileFacts } from './dataset.js';
import type { ClassifierName } from './fit.js';
import type { LabelledSquares, TrainingFacts } from './map-fit.js';
import type { AccuracyScores, Calibration } from './selection.js';

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
  /** Classes in the order of the outputs, with the labelled pixels and squares of ground that trained them. */
  classes: { code: number; name: string; pixels: number; squares: number }[];
  split: string;
  /** Squares of ground with labels, all of which trained it. */
  labelled: LabelledSquares;
  /** Accuracy of classifiers that were trained without the pixels they are scored on. */
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

type NewClassifier = Omit<
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
    .update(`${read}: ${card.seed} ${pixels} ${classes.map((one) => `${one.code} ${one.pixels}`).join()}`)
    .digest('hex')
    .slice(0, 16);
  return storage.models.put(
    { ...identity, version: card.version, card, score: { error: 1 - oa, data: validated } },
    { ...files, 'card.json': Buffer.from(JSON.stringify(card, null, 2)) },
  );
}

/** Largest distance of the centre of a band from that of a model's band. If the model's band has a FWHM, the limit is half of it. */
const MAX_BAND_DISTANCE_NM = 5;
/** Largest relative difference between pixels of one size. */
const SIZE_TOLERANCE = 0.01;
const OTHER_SIZE = 'their pixels have another size than those that the model was trained on';

/** Returns the bands in the order of the model's bands, or the reason why the classifier does not apply to the tile. */
export function inputBands(tile: TileRecord, card: ClassifierCard): TileSpectrum | string {
  const [group] = spectralGroups(tile.groups);
  if (!group) return NO_SPECTRUM;
  if (patchSide(card.classifier) > 1 && !hasPixelSize(tile, group, card)) return OTHER_SIZE;
  const bands = matchBands(group, card.bands);
  const missing = card.bands[bands.indexOf(-1)];
  if (missing) return `they have no good band at ${missing.wavelength.toFixed(1)} nm, which the model reads`;
  return { group, bands };
}

/**
 * Returns a different band for each band of a model, -1 if none matches. If detectors overlap, several bands can be near: the band with the
 * name of the model's band is preferred, then the nearest band.
 */
function matchBands(group: GroupRecord, wanted: readonly AnalysedBand[]): number[] {
  const unused = group.bands.map(({ wavelength, fwhm, good, validPercent }) => ({
    ...spectralTags({ wavelength, fwhm }),
    ...((good === false || validPercent === 0) && { good: false as const }),
  }));
  const limitOf = ({ fwhm }: AnalysedBand) => (fwhm === undefined ? MAX_BAND_DISTANCE_NM : fwhm / 2);
  const take = (band: number) => {
    // `nearestBand` ignores bands that are not good.
    if (band >= 0) unused[band] = { ...unused[band], good: false };
    return band;
  };
  const named = wanted.map((one) => {
    const band = group.bands.findIndex(({ name }) => name === one.name);
    const { wavelength = Infinity, good } = unused[band] ?? {};
    const isNear = Math.abs(wavelength - one.wavelength) <= limitOf(one);
    return take(isNear && good !== false ? band : -1);
  });
  return wanted.map((one, i) =>
    named[i] >= 0 ? named[i] : take(nearestBand(unused, one.wavelength, limitOf(one))),
  );
}

/** True if the pixels have the height of those that trained the classifier, or if that height is unknown. */
function hasPixelSize(
  { grid, geocode }: TileRecord,
  { height: rows }: GroupRecord,
  card: Pick<ClassifierCard, 'grid' | 'pixelHeight'>,
): boolean {
  if (card.pixelHeight === undefined) return true;
  const own = pixelHeight({ grid, geocode, rows });
  return grid === card.grid && Math.abs(own / card.pixelHeight - 1) <= SIZE_TOLERANCE;
}
