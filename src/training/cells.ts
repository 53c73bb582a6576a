/** Cells to train on: one cell of one collection with all of its dates, and the reasons why a cell cannot be trained. */
import { type BandIndex, findBands } from '../expressions/index.js';
import { type GridName, gridByName, shareOfCell } from '../grid/index.js';
import { imageKey, Mask, readImage } from '../raster/index.js';
import { type GroupRecord, pinTiles, type Storage, type TileRecord } from '../storage/index.js';
import { plural } from '../utils/text.js';
import {
  type AcquisitionFiles,
  type AcquisitionPixels,
  type BandSource,
  clearMask,
  coarsenMask,
  type DatePair,
  differInSize,
} from './acquisitions.js';
import { datedOf } from './dates.js';
import { heldOutDates } from './hold-out.js';
import { type LabelledImage, labelImages } from './labelled-images.js';
import { getModelSpec } from './models/builtin.js';
import { type BandName, type ModelSpec, requiredBands } from './models/spec.js';
import { tooFewPatches } from './patches.js';
import { priorDates } from './prior.js';

export interface TrainingCell {
  collection: string;
  grid: GridName;
  geocode: string;
  /** From the earliest to the latest. */
  tiles: TileRecord[];
}

/** Key that is unique among all cells. */
export const trainingCellKey = ({
  collection,
  grid,
  geocode,
}: Pick<TrainingCell, 'collection' | 'grid' | 'geocode'>): string => `${collection} ${grid} ${geocode}`;

/** Name of the tiles that one model can be trained on: of one collection and grid, with one kind of values. */
export const regionName = (
  { collection, grid }: Pick<TrainingCell, 'collection' | 'grid'>,
  values: BandValueKind,
): string => (values === 'reflectance' ? `${collection} (${grid})` : `${collection} (${grid}, ${values})`);

export function groupTilesByCell(tiles: TileRecord[]): TrainingCell[] {
  const cells = new Map<string, TrainingCell>();
  for (const tile of tiles) {
    const { collection, grid, geocode } = tile;
    const key = trainingCellKey(tile);
    const cell = cells.get(key) ?? { collection, grid, geocode, tiles: [] };
    cell.tiles.push(tile);
    cells.set(key, cell);
  }
  for (const cell of cells.values()) cell.tiles.sort((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1));
  return [...cells.values()].sort((a, b) => (a.geocode < b.geocode ? -1 : a.geocode > b.geocode ? 1 : 0));
}

/** Maximum time between a clear date and the cloudy date it is paired with. */
const MAX_PAIR_DISTANCE_MS = 30 * 86_400_000;
/** Range of the cloud cover of a cloudy date, and minimum pixel coverage of both dates, in percent. */
const CLOUDY_PERCENT = { least: 5, most: 60 };
const MIN_COVERAGE_PERCENT = 95;

const MIXED_VALUES =
  'some bands hold 8-bit numbers without a scale and others reflectance; ingest the former again with --scale, or leave their dates out';

/** Returns the files that a model is trained on, with pairs of dates for cloud removal; or the reason why no files are usable. */
export function trainingFiles(
  storage: Pick<Storage, 'tileImage'>,
  spec: ModelSpec,
  { tiles }: TrainingCell,
): { dates: AcquisitionFiles[]; pairs?: DatePair[] } | { skipped: string } {
  const bands = requiredBands(spec);
  const fit = tiles.flatMap((tile) => {
    const files = acquisitionFiles(storage, bands, tile);
    return files ? [{ tile, files }] : [];
  });
  if (fit.length === 0) {
    const lacking = tiles.map(({ groups }) => bands.filter((name) => !findBands(groups, [name])));
    const [fewest] = lacking.sort((a, b) => a.length - b.length);
    return {
      skipped: `no date holds ${bands.join(', ')}: at least ${fewest!.join(', ')} is missing; "tilewright ingest --bands" names bands`,
    };
  }
  const fitting = fit.map(({ tile }) => tile);
  if (bandValueKinds(bands, fitting).length > 1) return { skipped: MIXED_VALUES };
  const dates = fit.map(({ files }) => files);
  if (spec.target.kind !== 'clear') return { dates };
  const size = (date: number) => bandSizeKey(bands, fitting[date]);
  const pairs = pairCloudyWithClear(fitting).map((pair) => ({
    ...pair,
    prior: pair.prior.filter((date) => size(date) === size(pair.cloudy)),
  }));
  if (pairs.length === 0) return { skipped: reasonWithoutPairs(fitting) };
  // Only dates in a pair or its prior are read.
  const used = [...new Set(pairs.flatMap(({ cloudy, clear, prior }) => [cloudy, clear, ...prior]))].sort(
    (a, b) => a - b,
  );
  return {
    dates: used.map((date) => dates[date]),
    pairs: pairs.map(({ cloudy, clear, prior }) => ({
      cloudy: used.indexOf(cloudy),
      clear: used.indexOf(clear),
      prior: prior.map((date) => used.indexOf(date)),
    })),
  };
}

function reasonWithoutPairs(tiles: Pick<TileRecord, 'coverage' | 'cloudCover'>[]): string {
  const { clear, cloudy } = clearAndCloudyDates(tiles);
  const dates = `${plural(clear.length, 'date')} without cloud and ${cloudy.length} with ${CLOUDY_PERCENT.least}-${CLOUDY_PERCENT.most} %`;
  const few =
    clear.length === 0 || cloudy.length === 0
      ? 'both are needed'
      : 'none of them within 30 days of each other';
  return `${dates}, of those that cover ${MIN_COVERAGE_PERCENT} % of the cell: ${few}`;
}

/** Indices of the dates without cloud and of the cloudy dates. */
function clearAndCloudyDates(tiles: Pick<TileRecord, 'coverage' | 'cloudCover'>[]): {
  clear: number[];
  cloudy: number[];
} {
  const covered = [...tiles.keys()].filter((date) => tiles[date].coverage >= MIN_COVERAGE_PERCENT);
  const cloud = (date: number) => tiles[date].cloudCover ?? -1;
  return {
    clear: covered.filter((date) => cloud(date) === 0),
    cloudy: covered.filter(
      (date) => cloud(date) >= CLOUDY_PERCENT.least && cloud(date) <= CLOUDY_PERCENT.most,
    ),
  };
}

/** Pairs each clear date with the cloudy date nearest in time, the earlier of two equally near (section 2.4.3 of the paper). */
export function pairCloudyWithClear(
  tiles: Pick<TileRecord, 'start' | 'coverage' | 'cloudCover'>[],
): (DatePair & { prior: number[] })[] {
  const { clear, cloudy } = clearAndCloudyDates(tiles);
  return clear.flatMap((one) => {
    const away = (other: number) => Math.abs(tiles[other].start - tiles[one].start);
    const [nearest] = cloudy.toSorted((a, b) => away(a) - away(b) || tiles[a].start - tiles[b].start);
    if (nearest === undefined || away(nearest) > MAX_PAIR_DISTANCE_MS) return [];
    return [{ cloudy: nearest, clear: one, prior: priorDates(tiles, nearest, one) }];
  });
}

/** Returns the files of a tile with these bands; null if a band is missing. `dilate`: metres by which its clouds are widened. */
export function acquisitionFiles(
  storage: Pick<Storage, 'tileImage'>,
  names: readonly BandName[],
  tile: TileRecord,
  dilate = 0,
): AcquisitionFiles | null {
  const positions = findBands(tile.groups, names);
  if (!positions) return null;
  const files = positions.map((position, i): [BandName, BandSource] => {
    const { group, band } = bandAt(tile, position);
    const { scale, offset } = isCount(group, band) ? { scale: 1 / MAX_BYTE_COUNT, offset: 0 } : band;
    return [names[i], { ...storage.tileImage(tile, group.name), band: position.band, scale, offset }];
  });
  return {
    ...{ ...datedOf(tile), bands: Object.fromEntries(files), mask: storage.tileImage(tile, 'mask') },
    ...(dilate > 0 && { rim: shareOfCell(gridByName(tile.grid), tile.geocode, dilate) }),
  };
}

/** Returns the distinct kinds of values of these bands, over the tiles that have them. */
export function bandValueKinds(names: readonly BandName[], tiles: TileRecord[]): BandValueKind[] {
  const values = tiles.flatMap((tile) =>
    (findBands(tile.groups, names) ?? []).map((position): BandValueKind => {
      const { group, band } = bandAt(tile, position);
      return isCount(group, band) ? 'scaled counts' : 'reflectance';
    }),
  );
  return [...new Set(values)];
}

/** Returns the coarsest band group with one of these bands, to whose pixel size all are resampled. Undefined if a band is missing. */
export function coarsestGroup(names: readonly BandName[], tile: TileRecord): GroupRecord | undefined {
  return findBands(tile.groups, names)
    ?.map(({ group }) => tile.groups[group])
    .reduce((a, b) => (b.width * b.height < a.width * a.height ? b : a));
}

/** Returns the pixels that a model is trained on at a cell for which `trainingFiles` returns files. */
export function trainedPixels(spec: ModelSpec, { tiles }: Pick<TrainingCell, 'tiles'>): TrainedPixels {
  const bands = requiredBands(spec);
  const fit = tiles.filter((tile) => findBands(tile.groups, bands));
  // All dates that are read have the same size.
  const first = spec.target.kind === 'clear' ? pairCloudyWithClear(fit)[0].clear : 0;
  const { name, width, height } = coarsestGroup(bands, fit[first])!;
  const [values] = bandValueKinds(bands, fit);
  return { pixelSize: { group: name, width, height }, values };
}

/** Returns the pixels that many cells have in common. All must have the same kind of values. */
export function commonPixels(cells: TrainedPixels[]): TrainedPixels {
  const [{ values }] = cells;
  const groups = [...new Set(cells.map(({ pixelSize }) => pixelSize?.group))];
  const [group] = groups;
  return groups.length === 1 && group !== undefined ? { pixelSize: { group }, values } : { values };
}

const MAX_BYTE_COUNT = 255;

const bandAt = (tile: TileRecord, { group, band }: BandIndex) => ({
  group: tile.groups[group],
  band: tile.groups[group].bands[band],
});

/** True for 8-bit numbers without a scale, whose range is that of their type. */
function isCount({ dataType }: GroupRecord, { scale, offset }: GroupRecord['bands'][number]): boolean {
  return dataType === 'uint8' && scale === 1 && offset === 0;
}

/** Size at which the bands of a tile are read, as text. */
function bandSizeKey(names: readonly BandName[], tile: TileRecord): string {
  const group = coarsestGroup(names, tile);
  return `${group?.width}x${group?.height}`;
}

/** True if two tiles of a cell can be read together: their bands have the same size and the same kind of values. */
export function areAlike(names: readonly BandName[], a: TileRecord, b: TileRecord): boolean {
  return bandSizeKey(names, a) === bandSizeKey(names, b) && bandValueKinds(names, [a, b]).length === 1;
}

/**
 * Kind of band values. Scaled counts are 8-bit numbers without a scale, divided by 255: fractions of the range of their type, without
 * calibration.
 */
export type BandValueKind = 'reflectance' | 'scaled counts';

/** A pixel size of tiles. */
export interface TilePixels {
  /** Name of the band group with this pixel size, such as `20m`. */
  group: string;
  /** Size of the cell in pixels. Absent if it describes many cells. */
  width?: number;
  height?: number;
}

/** Pixels of a training, as the model card describes them. */
export interface TrainedPixels {
  /** Absent if the cells of one model have different pixel sizes. */
  pixelSize?: TilePixels;
  values: BandValueKind;
}

/**
 * Returns the reason why a cell has no model, with advice if the cell is so small that a model could not be trained there even if all of it
 * was clear.
 */
export function withPrecision(reason: string, model: string, { tiles, ...cell }: TrainingCell): string {
  const spec = getModelSpec(model);
  const bands = requiredBands(spec);
  const pixels = tiles.map((tile) => coarsestGroup(bands, tile)).find((group) => group !== undefined);
  if (!pixels) return reason;
  const grid = gridByName(cell.grid);
  const { width, height } = pixels;
  const actual = grid.cellSize(cell.geocode.length);
  const isLargeEnough = (precision: number) => {
    const size = grid.cellSize(precision);
    const image = clearImage(
      Math.round((width * size.width) / actual.width),
      Math.round((height * size.height) / actual.height),
    );
    return tooFewPatches(spec, [image]) === undefined;
  };
  let precision = cell.geocode.length;
  while (precision >= grid.minPrecision && !isLargeEnough(precision)) precision--;
  return precision === cell.geocode.length || precision < grid.minPrecision
    ? reason
    : `${reason}; cells of ${width}x${height} px are too small for ${model}: ingest the scenes into another --collection with --precision ${precision}`;
}

function clearImage(width: number, height: number): LabelledImage {
  const mask = new Uint8Array(width * height).fill(Mask.clear);
  return { time: 0, width, height, inputs: [], targets: [], inputMask: mask, targetMask: mask, mask };
}

/**
 * Returns the reason why a model cannot be trained at a cell, from masks only; undefined if none is found. Throws the TW_STORE_ and
 * TW_RASTER_ errors.
 */
export async function reasonNotTrainable(
  storage: Storage,
  model: string,
  cell: TrainingCell,
  validationFrom: number | undefined,
): Promise<string | undefined> {
  const spec = getModelSpec(model);
  const files = trainingFiles(storage, spec, cell);
  if ('skipped' in files) return files.skipped;
  const masks = ({ role }: GroupRecord) => role === 'mask';
  const held = await pinTiles(
    storage,
    cell.tiles.map((tile) => ({ tile, groups: tile.groups.filter(masks) })),
  );
  try {
    const reason = await reasonNotTrainableByMasks(storage, spec, cell, { ...files, validationFrom });
    return reason && withPrecision(reason, model, cell);
  } finally {
    held.release();
  }
}

/**
 * Like `reasonNotTrainable`, for a cell that has the bands, and whose masks are on this node. Bands may have more gaps than their mask,
 * which reduces the patches: a cell that is rejected here is unsuitable, but the process that reads the bands may reject a cell that
 * passes. Throws the TW_RASTER_ errors.
 */
export async function reasonNotTrainableByMasks(
  storage: Pick<Storage, 'tileImage'>,
  spec: ModelSpec,
  { tiles }: Pick<TrainingCell, 'tiles'>,
  {
    dates,
    pairs,
    validationFrom,
    holdOut,
    isShared,
  }: {
    dates: AcquisitionFiles[];
    pairs?: DatePair[];
    validationFrom?: number;
    holdOut?: string[];
    isShared?: boolean;
  },
): Promise<string | undefined> {
  const tileOf = new Map(tiles.map((tile) => [imageKey(storage.tileImage(tile, 'mask')), tile]));
  const sizes = dates.map(({ mask }) => coarsestGroup(requiredBands(spec), tileOf.get(imageKey(mask))!)!);
  for (const size of sizes) {
    const differing = differInSize(sizes[0], size);
    if (differing !== undefined) return differing;
  }
  const [{ width, height }] = sizes;
  const pixels: AcquisitionPixels[] = [];
  for (const { time, mask } of dates) {
    const { header, bands } = await readImage(mask, [0]);
    pixels.push({ time, width, height, bands: {}, mask: coarsenMask(bands[0], header, { width, height }) });
  }
  const heldOut = heldOutDates({ validationFrom, holdOut });
  return tooFewPatches(spec, masksAsImages(spec, pixels, pairs), heldOut, isShared);
}

/** Returns images like `labelImages`, from masks only: a pixel counts unless its mask code excludes it. */
function masksAsImages(spec: ModelSpec, dates: AcquisitionPixels[], pairs: DatePair[] = []): LabelledImage[] {
  const withoutPrior = pairs.map(({ cloudy, clear }) => ({ cloudy, clear }));
  if (spec.target.kind === 'clear') return labelImages({ ...spec, inputs: [] }, dates, withoutPrior);
  return dates.map((date) => {
    const usable = clearMask(date, []);
    return { ...date, inputs: [], targets: [], inputMask: usable, targetMask: usable };
  });
}
