/** Passes over the tiles of all runs of a job: statistics, extreme pixels, and sums over the labelled pixels. */

import { gridByName } from '../grid/index.js';
import { createTransform, crsFromEpsg } from '../raster/index.js';
import type { TileRecord } from '../storage/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../utils/json-schema.js';
import { type AlikeCollection, type AnalysedCollection, allGatherChecked, forEachTile } from './analysis.js';
import type { SpectrumFile } from './blocks.js';
import { tooFewPixels } from './errors.js';
import { ALL, type Folds, type LabelSums, mayTrain, type SquareCounts } from './labelled-pixels.js';
import { LABELS_OF_MAP, type Labels, openLabels, withLabels } from './labels.js';
import {
  type BandStatistics,
  CLASS_SUMS,
  type ClassMean,
  ClassSums,
  type SentClassSums,
  type SentSumsByEncoding,
  SUMS_BY_ENCODING_SCHEMA,
  type SummedQuantity,
  SumsByEncoding,
  type ValueEncoding,
} from './sums.js';
import type { Extreme } from './tile-passes.js';

const checkSums = messageCheck(listOf(listOf(SUMS_BY_ENCODING_SCHEMA)));

/**
 * Returns mean and covariance of each wanted quantity, with the same bits in all runs and on any distribution of the tiles. Reads each tile
 * once, and reports progress up to half of the job. Throws TW_ANALYSIS_TOO_FEW_PIXELS.
 */
export async function collectionStatistics(
  analysed: AnalysedCollection,
  wanted: readonly SummedQuantity[],
): Promise<BandStatistics[]> {
  const { job, bands, tiles, counts } = analysed;
  const own = wanted.map(() => new SumsByEncoding(bands.length));
  job.message(`reading ${bands.length} bands of ${tiles} tiles`);
  await forEachTile(analysed, async (_, file) => {
    const found = await analysed.compute({ kind: 'sums', file, of: wanted });
    for (const [i, sums] of found.entries()) {
      // A difference has no offset.
      const offsets = wanted[i] === 'pixels' ? file.offsets : file.offsets.map(() => 0);
      own[i].add({ scales: file.scales, offsets }, sums);
    }
    job.progress({ share: (counts.tiles + 1) / tiles / 2 });
  });
  const total = wanted.map(() => new SumsByEncoding(bands.length));
  const sent = own.map((one) => one.sent());
  for (const sums of await allGatherChecked(job, sent, checkSums))
    for (const [i, one] of sums.entries()) total[i].addSent(one);
  return total.map((sums, i) => {
    if (wanted[i] === 'differences' && sums.count < 2) throw tooFewPixels(sums.count, 'pairs of neighbours');
    return sums.statistics();
  });
}

export interface ExtremePixel extends Extreme {
  /** Id of its tile. */
  tile: string;
  /** Longitude and latitude of its centre, degrees. Absent if an older node found it. */
  position?: [number, number];
}

export const LON_LAT_SCHEMA = { type: 'array', items: NUMBER, minItems: 2, maxItems: 2 };
const PIXEL_SCHEMA = objectOf(
  { value: NUMBER, pixel: COUNT, tile: TEXT, spectrum: listOf(NUMBER) },
  { position: LON_LAT_SCHEMA },
);
const checkPixels = messageCheck(listOf({ anyOf: [{ type: 'null' }, PIXEL_SCHEMA] }));

/**
 * Returns one pixel for each of `rows` functions, null if no tile has one. Ties go to the first tile and pixel in order, so the result does
 * not depend on the distribution of the tiles. `search` finds the pixels of one tile.
 */
export async function extremePixels(
  analysed: AnalysedCollection,
  rows: number,
  search: (tile: TileRecord, file: SpectrumFile) => Promise<readonly (Extreme | undefined)[]>,
): Promise<(ExtremePixel | null)[]> {
  const best = new Array<ExtremePixel | null>(rows).fill(null);
  const take = (found: readonly (ExtremePixel | null | undefined)[]) => {
    for (const [row, one] of found.entries()) if (one && isBefore(one, best[row])) best[row] = one;
  };
  await forEachTile(analysed, async (tile, file) => {
    const found = await search(tile, file);
    take(found.map((one) => one && { ...one, tile: tile.id, position: centreOf(tile, file, one.pixel) }));
  });
  for (const found of await allGatherChecked(analysed.job, best, checkPixels)) take(found);
  return best;
}

function isBefore(a: ExtremePixel, b: ExtremePixel | null | undefined): boolean {
  if (!b || a.value !== b.value) return !b || a.value > b.value;
  return a.tile === b.tile ? a.pixel < b.pixel : a.tile < b.tile;
}

/** Longitude and latitude of the centre of a pixel, counted row by row, to about 0.1 m. */
function centreOf(
  { grid, geocode }: TileRecord,
  { width, height }: SpectrumFile,
  pixel: number,
): [number, number] {
  const { epsg, bounds } = gridByName(grid);
  const { west, south, east, north } = bounds(geocode);
  const x = west + (((pixel % width) + 0.5) / width) * (east - west);
  const y = north - ((Math.floor(pixel / width) + 0.5) / height) * (north - south);
  const [longitude, latitude] = createTransform(crsFromEpsg(epsg), 'EPSG:4326')(x, y);
  return [Number(longitude.toFixed(6)), Number(latitude.toFixed(6))];
}

/** Sums over the labelled pixels of a training. */
export interface ClassStatistics extends BandStatistics {
  /** By ascending code. */
  classes: ClassMean[];
}

interface SentSet {
  all: SentSumsByEncoding[];
  classes: SentClassSums;
}

const checkSets = messageCheck(
  listOf(objectOf({ all: listOf(SUMS_BY_ENCODING_SCHEMA), classes: CLASS_SUMS })),
);

/** Invariant: `all` and `classes` are sums over the same pixels. */
class SetSums {
  private readonly all: SumsByEncoding;
  private readonly classes = new ClassSums();

  constructor(bands: number) {
    this.all = new SumsByEncoding(bands);
  }

  add(encoding: ValueEncoding, { all, classes }: LabelSums): void {
    this.all.add(encoding, all);
    this.classes.add(classes);
  }

  addSent({ all, classes }: SentSet): void {
    this.all.addSent(all);
    this.classes.addSent(classes);
  }

  sent(): SentSet {
    return { all: this.all.sent(), classes: this.classes.sent() };
  }

  /** Throws TW_ANALYSIS_TOO_FEW_PIXELS. */
  statistics(): ClassStatistics {
    return { ...this.all.statistics(), classes: this.classes.means() };
  }
}

const checkCounts = messageCheck(listOf(objectOf({ square: TEXT, code: COUNT, pixels: COUNT })));

/** Counts the labelled pixels of each square of the least side, in all runs. */
export async function squareCounts(analysed: AlikeCollection, labels: Labels): Promise<SquareCounts> {
  const own: { square: string; code: number; pixels: number }[] = [];
  const open = await openLabels(labels);
  await forEachTile(analysed, async (tile, file) => {
    const cell = { grid: tile.grid, geocode: tile.geocode };
    const found = await withLabels(analysed.context, open, tile, (labels) => {
      if (labels.isMap) analysed.job.log('warning', `${tile.id}: ${LABELS_OF_MAP}`);
      return analysed.compute({ kind: 'label-counts', file, cell, labels, pixel: analysed.pixel });
    });
    for (const [square, codes] of found ?? [])
      for (const [code, pixels] of codes) own.push({ square, code, pixels });
  });
  const counts: SquareCounts = new Map();
  for (const { square, code, pixels } of (await allGatherChecked(analysed.job, own, checkCounts)).flat()) {
    const codes = counts.get(square) ?? new Map<number, number>();
    counts.set(square, codes.set(code, (codes.get(code) ?? 0) + pixels));
  }
  return counts;
}

/** Returns the statistics of a training over all runs, with the same bits on any distribution of the tiles. */
export type LabelledSums = (training: number) => ClassStatistics;

/** The returned function throws TW_ANALYSIS_TOO_FEW_PIXELS. */
export async function labelledSums(
  analysed: AnalysedCollection,
  labels: Labels,
  folds: Folds,
): Promise<LabelledSums> {
  const bands = analysed.bands.length;
  const own = Array.from({ length: ALL + 1 }, () => new SetSums(bands));
  const open = await openLabels(labels);
  await forEachTile(analysed, async (tile, file) => {
    const cell = { grid: tile.grid, geocode: tile.geocode };
    const found = await withLabels(analysed.context, open, tile, (labels) =>
      analysed.compute({ kind: 'label-sums', file, cell, labels, folds }),
    );
    for (const sums of found ?? [])
      for (const [training, set] of own.entries()) if (mayTrain(sums.near, training)) set.add(file, sums);
  });
  const sent = own.map((set) => set.sent());
  const messages = await allGatherChecked(analysed.job, sent, checkSets);
  const statistics = new Map<number, ClassStatistics>();
  return (training) => {
    const known = statistics.get(training);
    if (known) return known;
    const total = new SetSums(bands);
    for (const message of messages) total.addSent(message[training]);
    const found = total.statistics();
    statistics.set(training, found);
    return found;
  };
}
