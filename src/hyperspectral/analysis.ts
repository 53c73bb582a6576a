/** The steps of every analysis: inputs, the agreement of the nodes on the bands, worker threads, and the loop over the tiles of a run. */

import { createHash } from 'node:crypto';
import { mapConcurrent, TaskPool } from '../async/index.js';
import { type MadeTile, selectedTiles } from '../derive/index.js';
import { messageOf, TilewrightError } from '../errors.js';
import { unknownBand } from '../expressions/index.js';
import { gridByName } from '../grid/index.js';
import type { ImageService } from '../imagery/index.js';
import {
  addFailure,
  addFetched,
  addSkipped,
  emptyCounts,
  firstReasons,
  type JobContext,
  type TileCounts,
} from '../jobs/index.js';
import {
  checkFilter,
  defaultToRawSource,
  type Filter,
  type FilterParams,
  filterBody,
  filterSchema,
  parseFilter,
  requireCollections,
  type TileFinder,
} from '../query/index.js';
import { type Storage, type TileRecord, withPinnedTiles } from '../storage/index.js';
import {
  type Check,
  COUNT,
  documented,
  listOf,
  messageCheck,
  NUMBER,
  objectOf,
  TEXT,
} from '../utils/json-schema.js';
import type { SpectrumFile } from './blocks.js';
import {
  noSpectra,
  noTileAnalysed,
  oneCollection,
  tileAnalysisFailed,
  tilesChangedWhileReading,
} from './errors.js';
import type { MapTask } from './output-tile.js';
import {
  type AnalysedBand,
  bandSetKey,
  spectrumFile,
  type TileSpectrum,
  tileSpectrum,
} from './tile-spectrum.js';
import type { HyperspectralHandlers } from './worker.js';

export const DEFAULT_SEED = 1;

/** JSON Schema of an integer input. */
export const integer = (
  minimum: number,
  maximum: number,
  more: { default?: number; description?: string } = {},
) => ({ type: 'integer', minimum, maximum, ...more });

/** JSON Schema of the seed of pseudorandom numbers. */
export const SEED = integer(0, 2 ** 32 - 1, { default: DEFAULT_SEED });

export interface AnalysisInputs {
  /** Names exactly one collection. */
  filter: FilterParams;
  /** Bands by name or wavelength. Default: all good bands that hold data. */
  bands?: string[];
}

export const ANALYSIS_PROPERTIES = {
  filter: documented(
    { ...filterSchema, required: ['collections'] },
    // One collection: a name, or a list of one name.
    {
      properties: {
        ...filterBody,
        collections: {
          anyOf: [
            { type: 'string', pattern: '^[^,]*[^\\s,][^,]*$' },
            {
              type: 'array',
              minItems: 1,
              maxItems: 1,
              items: { type: 'string', pattern: '^[^,]*[^\\s,][^,]*$' },
            },
          ],
        },
      },
    },
  ),
  bands: {
    type: 'array',
    items: { type: 'string', minLength: 1, maxLength: 200 },
    minItems: 1,
    maxItems: 1000,
    description: 'Bands by name or by wavelength, such as 860nm. Default: all good bands that hold data',
  },
};

/** Throws TW_ANALYSIS_COLLECTION unless the filter names one collection, and the errors of filters. */
export function checkAnalysis(inputs: unknown): void {
  checkFilter(inputs);
  collectionOf(inputs as AnalysisInputs);
}

export function collectionOf({ filter }: AnalysisInputs): string {
  const named = [filter.collections ?? []].flat().flatMap((names) => String(names).split(','));
  if (named.length !== 1) throw oneCollection(named.length);
  return named[0];
}

export const NO_SPECTRUM =
  'they have no group of at least 16 bands with wavelengths (if the files have none, ingest them with --wavelengths)';
export const NO_PIXEL = 'no pixel of them is clear and holds data in every band';

/** Throws TW_ANALYSIS_ALL_FAILED if tiles failed and none was read. */
export function requireTiles(counts: TileCounts): void {
  if (counts.tiles === 0 && counts.failures > 0) throw noTileAnalysed(counts.failures, firstReasons(counts));
}

export interface AnalysisContext {
  storage: Storage;
  finder: TileFinder;
  /** Draws the maps of reports. */
  imagery: ImageService;
  workers: HyperspectralPool;
}

/** Tile records in memory; one with hundreds of bands has tens of kilobytes. */
const RECORD_BATCH_SIZE = 64;

/** JSON Schema of a list of `AnalysedBand`. */
export const BANDS_SCHEMA = listOf(objectOf({ name: TEXT, wavelength: NUMBER }, { fwhm: NUMBER }));
const checkBandCounts = messageCheck(
  objectOf({
    sets: listOf(objectOf({ bands: BANDS_SCHEMA, tiles: COUNT })),
    skipped: { type: 'object', additionalProperties: COUNT },
  }),
);

/** Number of tiles of a run by their bands, and reasons why other tiles are left out. */
interface BandCounts {
  sets: { bands: AnalysedBand[]; tiles: number }[];
  skipped: Record<string, number>;
}

/** The bands of an analysis, and the tiles of one run of its job. */
export interface AnalysedCollection {
  context: AnalysisContext;
  job: JobContext;
  /** Runs a task in a thread. Rejects as `HyperspectralPool.run` does, also if the job is cancelled. */
  compute: HyperspectralPool['run'];
  collection: string;
  filter: Filter;
  bands: AnalysedBand[];
  /** Tiles of this run that have these bands. */
  tiles: number;
  /** Hashes of the tile versions of this run when the bands were chosen. Passes read only these versions. */
  snapshot: ReadonlySet<number>;
  spectrumOf: (tile: TileRecord) => TileSpectrum | undefined;
  /** Tiles that the last pass has read, that failed in any pass, or that have other bands. */
  counts: TileCounts;
}

/**
 * Chooses the bands that most tiles of all runs of the job have. Tiles with other bands are left out, because values of different bands
 * cannot be averaged. Throws TW_ANALYSIS_NO_SPECTRA.
 */
export async function agreeOnBands(
  context: AnalysisContext,
  inputs: AnalysisInputs,
  job: JobContext,
): Promise<AnalysedCollection> {
  const { storage, workers } = context;
  await requireCollections(storage, inputs.filter);
  const collection = collectionOf(inputs);
  const filter = defaultToRawSource(parseFilter(inputs.filter));
  job.message('choosing the bands');
  const own: BandCounts = { sets: [], skipped: {} };
  const snapshot = new Set<number>();
  const known = new Map<string, BandCounts['sets'][number]>();
  for await (const tile of selectedTiles(storage, filter, job.isMine)) {
    job.signal.throwIfAborted();
    const found = spectrumIn(tile, inputs.bands);
    if (typeof found === 'string') {
      addSkipped(own, found);
      continue;
    }
    const key = bandSetKey(found);
    const set = known.get(key) ?? { bands: JSON.parse(key) as AnalysedBand[], tiles: 0 };
    set.tiles++;
    snapshot.add(versionHash(tile));
    known.set(key, set);
  }
  own.sets = [...known.values()];
  const all = await allGatherChecked(job, own, checkBandCounts);
  const chosen = mostCommon(all);
  if (chosen === undefined)
    throw noSpectra(collection, [...new Set(all.flatMap(({ skipped }) => Object.keys(skipped)))]);
  const others = own.sets.filter(({ bands }) => JSON.stringify(bands) !== chosen);
  for (const { tiles } of others) addSkipped(own, OTHER_BANDS, tiles);
  return {
    context,
    job,
    compute: (task) => workers.run(task, { signal: job.signal }),
    collection,
    filter,
    bands: JSON.parse(chosen) as AnalysedBand[],
    tiles: known.get(chosen)?.tiles ?? 0,
    snapshot,
    counts: { ...emptyCounts(), skipped: own.skipped },
    spectrumOf: (tile) => {
      const found = spectrumIn(tile, inputs.bands);
      return typeof found !== 'string' && bandSetKey(found) === chosen ? found : undefined;
    },
  };
}

/** 48 bits of SHA-256. A set of numbers takes a fraction of the memory of a set of strings. */
function versionHash({ id, version }: TileRecord): number {
  return createHash('sha256').update(`${id} ${version}`).digest().readUIntBE(0, 6);
}

/**
 * Exchanges a message with the other runs of the job by `JobContext.allGather`. Throws an Error if a message of another node is invalid.
 */
export async function allGatherChecked<T>(job: JobContext, message: T, check: Check): Promise<T[]> {
  const messages = await job.allGather(message);
  for (const one of messages) {
    const fault = check(one);
    if (fault !== undefined) throw new Error(`another node has sent an invalid message: ${fault}`);
  }
  return messages;
}

/** The same tiles with the bands at the indexes `kept`, in this order. */
export function selectBands(analysed: AnalysedCollection, kept: readonly number[]): AnalysedCollection {
  return {
    ...analysed,
    bands: kept.map((band) => analysed.bands[band]),
    spectrumOf: (tile) => {
      const spectrum = analysed.spectrumOf(tile);
      return spectrum && { ...spectrum, bands: kept.map((band) => spectrum.bands[band]) };
    },
  };
}

const checkSizes = messageCheck(
  listOf(objectOf({ height: COUNT, tiles: COUNT, geocode: TEXT, pixel: listOf(NUMBER) })),
);

/** The collection, the rows of its tiles, and width and height of the pixels of its first cell in the unit of the grid. */
export interface AlikeCollection extends AnalysedCollection {
  rows: number;
  pixel: number[];
}

/** Leaves out tiles whose number of rows differs from `rows`, that of most tiles of all runs. */
export async function requireOneSize(analysed: AnalysedCollection): Promise<AlikeCollection> {
  const { context, job, filter, spectrumOf, snapshot, counts } = analysed;
  const own = new Map<number, TilesOfHeight>();
  for await (const tile of selectedTiles(context.storage, filter, job.isMine)) {
    const group = snapshot.has(versionHash(tile)) ? spectrumOf(tile)?.group : undefined;
    if (group) addHeight(own, { height: group.height, tiles: 1, ...firstPixel(tile, group) });
  }
  const all = new Map<number, TilesOfHeight>();
  for (const one of (await allGatherChecked(job, [...own.values()], checkSizes)).flat()) addHeight(all, one);
  const most = [...all.values()].sort((a, b) => b.tiles - a.tiles || b.height - a.height)[0];
  const others = [...own.values()].reduce(
    (sum, { height, tiles }) => sum + (height === most?.height ? 0 : tiles),
    0,
  );
  if (others > 0) addSkipped(counts, OTHER_SIZE, others);
  return {
    ...analysed,
    rows: most?.height ?? 0,
    pixel: most?.pixel ?? [],
    tiles: analysed.tiles - others,
    spectrumOf: (tile) => {
      const spectrum = spectrumOf(tile);
      return spectrum?.group.height === most?.height ? spectrum : undefined;
    },
  };
}

/** Number of tiles of one height, and the pixel of the first of their cells. */
interface TilesOfHeight {
  height: number;
  tiles: number;
  geocode: string;
  pixel: number[];
}

function firstPixel({ grid, geocode }: TileRecord, { width, height }: { width: number; height: number }) {
  const { west, south, east, north } = gridByName(grid).bounds(geocode);
  return { geocode, pixel: [(east - west) / width, (north - south) / height] };
}

function addHeight(all: Map<number, TilesOfHeight>, one: TilesOfHeight): void {
  const other = all.get(one.height);
  const first = other && other.geocode < one.geocode ? other : one;
  all.set(one.height, { ...first, tiles: one.tiles + (other?.tiles ?? 0) });
}

const OTHER_SIZE = 'their pixels have another size than those of most tiles';
const NO_BANDS = 'none of their bands is good and holds data';
const OTHER_BANDS = 'they have other bands, or other bands that hold data, than most tiles';

/** The spectrum of a tile, or the reason why it has none. */
function spectrumIn(tile: TileRecord, named: readonly string[] | undefined): TileSpectrum | string {
  try {
    const spectrum = tileSpectrum(tile, named);
    if (!spectrum) return NO_SPECTRUM;
    return spectrum.bands.length === 0 ? NO_BANDS : spectrum;
  } catch (error) {
    if (unknownBand.is(error)) return messageOf(error);
    throw error;
  }
}

/** JSON of the bands that most tiles have; ties go to the first JSON text in order. */
function mostCommon(all: readonly BandCounts[]): string | undefined {
  const tiles = new Map<string, number>();
  for (const { sets } of all)
    for (const set of sets) {
      const key = JSON.stringify(set.bands);
      tiles.set(key, (tiles.get(key) ?? 0) + set.tiles);
    }
  const [first] = [...tiles].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return first?.[0];
}

/**
 * Calls `work` for each tile of this run that has the bands, several at a time, and updates the counts. A tile that fails is reported and
 * skipped in later passes; the other tiles continue. The run ends if the object store is unavailable or the job is cancelled. Throws
 * TW_ANALYSIS_CHANGED if tiles were deleted or replaced since the bands were chosen, because passes would read different pixels.
 */
export async function forEachTile(
  analysed: AnalysedCollection,
  work: (tile: TileRecord, file: SpectrumFile) => Promise<void>,
): Promise<void> {
  const { context, job, collection, filter, spectrumOf, tiles, snapshot, counts } = analysed;
  const { storage, workers } = context;
  const failed = new Set(counts.failed.map(({ tile }) => tile));
  counts.tiles = 0;
  let present = 0;
  let batch: { tile: TileRecord; spectrum: TileSpectrum }[] = [];
  const finish = async () => {
    await mapConcurrent(batch, workers.threads + 1, (one) => readTile(analysed, one, work));
    batch = [];
  };
  for await (const tile of selectedTiles(storage, filter, job.isMine)) {
    const spectrum = snapshot.has(versionHash(tile)) ? spectrumOf(tile) : undefined;
    if (spectrum) present++;
    if (spectrum && !failed.has(tile.id)) batch.push({ tile, spectrum });
    if (batch.length === RECORD_BATCH_SIZE) await finish();
  }
  await finish();
  if (present === tiles) return;
  await requireCollections(storage, { collections: collection });
  throw tilesChangedWhileReading(collection);
}

/** Calls `work` with the spectrum of a tile, which is pinned, and updates the counts. A tile that fails is reported. */
export async function readTile(
  { context: { storage }, job, counts }: Pick<AnalysedCollection, 'context' | 'job' | 'counts'>,
  { tile, spectrum }: { tile: TileRecord; spectrum: TileSpectrum },
  work: (tile: TileRecord, file: SpectrumFile) => Promise<void>,
): Promise<void> {
  job.signal.throwIfAborted();
  try {
    const groups = tile.groups.filter((group) => group === spectrum.group || group.role === 'mask');
    await withPinnedTiles(storage, [{ tile, groups }], (fetched) => {
      addFetched(counts, fetched);
      return work(tile, spectrumFile(storage, tile, spectrum));
    });
    counts.tiles++;
  } catch (error) {
    if (job.signal.aborted || (error instanceof TilewrightError && error.status === 503)) throw error;
    addFailure(counts, job, tile.id, error, tileAnalysisFailed);
  }
}

/** Threads that read the spectra of tiles. They are started once and kept. */
export class HyperspectralPool extends TaskPool<HyperspectralHandlers> {
  constructor(threads: number) {
    super(new URL('./worker.bundle.js', import.meta.url), threads);
  }

  /** Returns null if no pixel of the tile is clear and holds data in every band. */
  make(task: MapTask, signal?: AbortSignal): Promise<MadeTile | null> {
    return this.run(task, { signal });
  }
}
