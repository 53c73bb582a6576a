/** The parts that all analyses share: choosing the bands together with the other nodes, and reading the tiles of this run. */
import { createHash } from 'node:crypto';
import { mapConcurrent } from '../../async/index.js';
import { mergeSkipped, selectedTiles } from '../../derive/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import { unknownBand } from '../../expressions/index.js';
import { type ImageService, maskFile } from '../../imagery/index.js';
import type { JobContext } from '../../jobs/index.js';
import { type Check, COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../../json-schema.js';
import {
  defaultToRawSource,
  type Filter,
  parseFilter,
  requireCollections,
  type TileFinder,
} from '../../query/index.js';
import { nodataAsType } from '../../raster/index.js';
import { pinTiles, type Storage, type TileRecord } from '../../storage/index.js';
import type { AnalysisPool } from '../analysis-pool.js';
import { noSpectra, noTileAnalysed, tileAnalysisFailed, tilesChangedWhileReading } from '../errors.js';
import type { SpectrumFile } from '../tile-reading/spectrum-blocks.js';
import {
  type AnalysedBand,
  bandSetKey,
  type TileSpectrum,
  tileSpectrum,
} from '../tile-reading/tile-spectrum.js';
import { type AnalysisInputs, collectionOf } from './analysis-inputs.js';

export interface AnalysisContext {
  storage: Storage;
  finder: TileFinder;
  /** Draws the maps of reports. */
  imagery: ImageService;
  workers: AnalysisPool;
}

/** Tiles of a run, or of all runs of a job. Plain JSON. */
export interface TileCounts {
  /** Tiles that were read. */
  tiles: number;
  /** Tiles that were left out, by the reason. */
  skipped: Record<string, number>;
  /** The first tiles that failed. */
  failed: { tile: string; code: string; message: string }[];
  failures: number;
  /** Bytes of files that were fetched from the store, if there were some. */
  bytesFetched?: number;
}

/** JSON Schema of the members of `TileCounts`. */
export const TILE_COUNTS_SCHEMA = {
  tiles: COUNT,
  skipped: { type: 'object', additionalProperties: COUNT },
  failed: listOf(objectOf({ tile: TEXT, code: TEXT, message: TEXT })),
  failures: COUNT,
};

/** Reasons why tiles are left out or make no map. */
export const NO_SPECTRUM =
  'they have no group of at least 16 bands with wavelengths (if the files have none, ingest them with --wavelengths)';
export const NO_PIXEL = 'no pixel of them is clear and holds data in every band';

export const MAX_LISTED_FAILURES = 1000;
const MAX_LISTED_REASONS = 3;
/** Records of tiles that are held in memory at once; one with hundreds of bands has tens of kilobytes. */
const RECORD_BATCH_SIZE = 64;

export function mergeCounts(parts: readonly TileCounts[]): TileCounts {
  const sum = (of: (part: TileCounts) => number) => parts.reduce((total, part) => total + of(part), 0);
  const fetched = sum(({ bytesFetched = 0 }) => bytesFetched);
  return {
    tiles: sum(({ tiles }) => tiles),
    skipped: mergeSkipped(parts),
    failed: parts.flatMap(({ failed }) => failed).slice(0, MAX_LISTED_FAILURES),
    failures: sum(({ failures }) => failures),
    ...(fetched > 0 && { bytesFetched: fetched }),
  };
}

/** Throws TW_ANALYSIS_ALL_FAILED if tiles failed and none was read. */
export function requireTiles({ tiles, failures, failed }: TileCounts): void {
  if (tiles > 0 || failures === 0) return;
  throw noTileAnalysed(
    failures,
    failed.slice(0, MAX_LISTED_REASONS).map(({ message }) => message),
  );
}

/** JSON Schema of a list of `AnalysedBand`. */
export const BANDS_SCHEMA = listOf(objectOf({ name: TEXT, wavelength: NUMBER }, { fwhm: NUMBER }));
/** Checks the counts of another run. */
const checkBandCounts = messageCheck(
  objectOf({
    sets: listOf(objectOf({ bands: BANDS_SCHEMA, tiles: COUNT })),
    skipped: { type: 'object', additionalProperties: COUNT },
  }),
);

/** How many tiles of a run have which bands, and why others have none. */
interface BandCounts {
  sets: { bands: AnalysedBand[]; tiles: number }[];
  skipped: Record<string, number>;
}

/** The bands and tiles of an analysis, as one run sees them. */
export interface AnalysedCollection {
  collection: string;
  filter: Filter;
  bands: AnalysedBand[];
  /** Tiles of this run that have these bands. */
  tiles: number;
  /** Hashes of the tiles of this run and their versions when the bands were chosen. Passes read no others. */
  snapshot: ReadonlySet<number>;
  spectrumOf: (tile: TileRecord) => TileSpectrum | undefined;
  /** Tiles that were read in the last pass, that failed in any, and that have other bands. */
  counts: TileCounts;
}

/**
 * Chooses the bands that most tiles of the job have, of all runs together: tiles with other bands are left out, because a mean over
 * them would be one of no band. Throws TW_ANALYSIS_NO_SPECTRA.
 */
export async function agreeOnBands(
  { storage }: Pick<AnalysisContext, 'storage'>,
  inputs: AnalysisInputs,
  job: JobContext,
): Promise<AnalysedCollection> {
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
      own.skipped[found] = (own.skipped[found] ?? 0) + 1;
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
  for (const { tiles } of others) own.skipped[OTHER_BANDS] = (own.skipped[OTHER_BANDS] ?? 0) + tiles;
  return {
    ...{ collection, filter, bands: JSON.parse(chosen) as AnalysedBand[] },
    ...{ tiles: known.get(chosen)?.tiles ?? 0, snapshot },
    counts: { tiles: 0, skipped: own.skipped, failed: [], failures: 0 },
    spectrumOf: (tile) => {
      const found = spectrumIn(tile, inputs.bands);
      return typeof found !== 'string' && bandSetKey(found) === chosen ? found : undefined;
    },
  };
}

/** 48 bits of SHA-256, because a set of numbers takes a fraction of the memory of texts. */
function versionHash({ id, version }: TileRecord): number {
  return createHash('sha256').update(`${id} ${version}`).digest().readUIntBE(0, 6);
}

/**
 * Exchanges a word with the other runs of the job, as `JobContext.meet` does. Throws an Error if another node sends one that does not
 * fit.
 */
export async function allGatherChecked<T>(job: JobContext, word: T, check: Check): Promise<T[]> {
  const words = await job.allGather(word);
  for (const one of words) {
    const fault = check(one);
    if (fault !== undefined) throw new Error(`another node has sent a message that does not fit: ${fault}`);
  }
  return words;
}

/** The same tiles, with some of the bands alone, in the order of `kept`, which holds their indexes. */
export function selectBands(analysed: AnalysedCollection, kept: readonly number[]): AnalysedCollection {
  return {
    ...analysed,
    bands: kept.map((band) => analysed.bands[band]!),
    spectrumOf: (tile) => {
      const spectrum = analysed.spectrumOf(tile);
      return spectrum && { ...spectrum, bands: kept.map((band) => spectrum.bands[band]!) };
    },
  };
}

const checkSizes = messageCheck(listOf(objectOf({ height: COUNT, tiles: COUNT })));

/** Leaves out tiles whose pixels have another size than those of most tiles of all runs, which have `rows` rows. */
export async function requireOneSize(
  { storage }: Pick<AnalysisContext, 'storage'>,
  analysed: AnalysedCollection,
  job: JobContext,
): Promise<AnalysedCollection & { rows: number }> {
  const { filter, spectrumOf, snapshot, counts } = analysed;
  const own = new Map<number, number>();
  for await (const tile of selectedTiles(storage, filter, job.isMine)) {
    const height = snapshot.has(versionHash(tile)) ? spectrumOf(tile)?.group.height : undefined;
    if (height !== undefined) own.set(height, (own.get(height) ?? 0) + 1);
  }
  const sent = [...own].map(([height, tiles]) => ({ height, tiles }));
  const all = new Map<number, number>();
  for (const { height, tiles } of (await allGatherChecked(job, sent, checkSizes)).flat())
    all.set(height, (all.get(height) ?? 0) + tiles);
  const [most = 0] = [...all].sort(([a, m], [b, n]) => n - m || b - a)[0] ?? [];
  const others = [...own].reduce((sum, [height, tiles]) => sum + (height === most ? 0 : tiles), 0);
  if (others > 0) counts.skipped[OTHER_SIZE] = (counts.skipped[OTHER_SIZE] ?? 0) + others;
  return {
    ...analysed,
    rows: most,
    tiles: analysed.tiles - others,
    spectrumOf: (tile) => {
      const spectrum = spectrumOf(tile);
      return spectrum?.group.height === most ? spectrum : undefined;
    },
  };
}

const OTHER_SIZE = 'their pixels have another size than those of most tiles';
const NO_BANDS = 'none of their bands is good and holds data';
const OTHER_BANDS = 'they have other bands, or other bands that hold data, than most tiles';

/** The spectrum of a tile, or why it has none. */
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

/** JSON of the bands that the most tiles have; if several are equal, the first in the order of their texts. */
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
 * Works on each tile of this run that has the bands. A tile that fails is reported and not worked on again, and the others go on; the
 * run ends if the store is away or the job is cancelled. Keeps the counts up to date. Throws TW_ANALYSIS_CHANGED if tiles are gone or
 * have other versions than when the bands were chosen: sums of several passes would be over different pixels.
 */
export async function forEachTile(
  { storage, workers }: AnalysisContext,
  { collection, filter, spectrumOf, tiles, snapshot, counts }: AnalysedCollection,
  job: JobContext,
  work: (tile: TileRecord, file: SpectrumFile) => Promise<void>,
): Promise<void> {
  const one = async ({ tile, spectrum }: { tile: TileRecord; spectrum: TileSpectrum }) => {
    job.signal.throwIfAborted();
    let held: Awaited<ReturnType<typeof pinTiles>> | undefined;
    try {
      const groups = tile.groups.filter((group) => group === spectrum.group || group.role === 'mask');
      held = await pinTiles(storage, [{ tile, groups }]);
      if (held.fetched > 0) counts.bytesFetched = (counts.bytesFetched ?? 0) + held.fetched;
      await work(tile, spectrumFile(storage, tile, spectrum));
      counts.tiles++;
    } catch (error) {
      if (job.signal.aborted || (error instanceof TilewrightError && error.status === 503)) throw error;
      fail(counts, job, tile.id, error);
    } finally {
      held?.release();
    }
  };
  const failed = new Set(counts.failed.map(({ tile }) => tile));
  counts.tiles = 0;
  let present = 0;
  let batch: { tile: TileRecord; spectrum: TileSpectrum }[] = [];
  const finish = async () => {
    await mapConcurrent(batch, workers.threads + 1, one);
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

function fail(counts: TileCounts, job: JobContext, tile: string, error: unknown): void {
  const { code, message } =
    error instanceof TilewrightError ? error : tileAnalysisFailed.because(error, tile, messageOf(error));
  if (counts.failures < MAX_LISTED_FAILURES) job.log('error', `${tile}: ${message} [${code}]`);
  counts.failures++;
  if (counts.failed.length < MAX_LISTED_FAILURES) counts.failed.push({ tile, code, message });
}

/** The file of a spectrum, as threads read it. */
export function spectrumFile(
  storage: Storage,
  tile: TileRecord,
  { group, bands }: TileSpectrum,
): SpectrumFile {
  const { name, width, height, dataType, nodata } = group;
  const at = { group: tile.groups.indexOf(group), band: 0 };
  return {
    ...{ path: storage.tilePath(tile, name), width, height, dataType, bands },
    nodata: nodataAsType(dataType, nodata ?? undefined) ?? NaN,
    scales: bands.map((band) => group.bands[band]!.scale),
    offsets: bands.map((band) => group.bands[band]!.offset),
    mask: maskFile(storage, tile, [at]),
  };
}
