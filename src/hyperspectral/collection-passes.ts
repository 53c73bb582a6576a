/** Passes over the tiles of all runs of a job: statistics, extreme pixels, and sums over the labelled pixels. */

import { gridByName } from '../grid/index.js';
import { createTransform, crsFromEpsg } from '../raster/index.js';
import type { TileRecord } from '../storage/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../utils/json-schema.js';
import { type AnalysedCollection, allGatherChecked, forEachTile } from './analysis.js';
import type { SpectrumFile } from './blocks.js';
import { tooFewPixels } from './errors.js';
import { type LabelSums, SETS, type SplitKind } from './labelled-pixels.js';
import { type Labels, openLabels, withLabels } from './labels.js';
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

/** Sums of some sets of labelled pixels. */
interface ClassStatistics extends BandStatistics {
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

/** Sums of all runs over sets of labelled pixels, with the same bits on any distribution of the tiles. */
export interface LabelledSums {
  /** Statistics of some sets together. Throws TW_ANALYSIS_TOO_FEW_PIXELS. */
  of(sets: readonly number[]): ClassStatistics;
  /** For each set: labelled pixels by code. */
  counts: Map<number, number>[];
}

export async function labelledSums(
  analysed: AnalysedCollection,
  labels: Labels,
  split: SplitKind,
): Promise<LabelledSums> {
  const bands = analysed.bands.length;
  const own = SETS.map(() => new SetSums(bands));
  const open = await openLabels(labels);
  await forEachTile(analysed, async (tile, file) => {
    const cell = { grid: tile.grid, geocode: tile.geocode };
    const found = await withLabels(analysed.context, open, tile, (labels) =>
      analysed.compute({ kind: 'label-sums', file, cell, labels, split }),
    );
    for (const [i, sums] of found?.entries() ?? []) if (sums.all.pixels > 0) own[i].add(file, sums);
  });
  const sent = own.map((set) => set.sent());
  const messages = await allGatherChecked(analysed.job, sent, checkSets);
  return {
    counts: SETS.map((_, set) => {
      const counts = new Map<number, number>();
      for (const message of messages)
        for (const [code, { pixels }] of Object.entries(message[set].classes))
          counts.set(Number(code), (counts.get(Number(code)) ?? 0) + pixels);
      return counts;
    }),
    of: (sets) => {
      const total = new SetSums(bands);
      for (const message of messages) for (const set of sets) total.addSent(message[set]);
      return total.statistics();
    },
  };
}
