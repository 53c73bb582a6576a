/** Spectra of a zone, one for each date. Each owner of tiles answers with sums per date and cell, so that no pixels are sent. */

import { mapConcurrent, type TaskPool } from '../async/index.js';
import type { OwnerShare, QueryBounds, ScatterQuery } from '../dht/index.js';
import {
  and,
  createSearch,
  type Filter,
  kindWithFilter,
  type PartialAnswer,
  partialAnswer,
  searchIndex,
} from '../query/index.js';
import { isHyperspectral, type SpectralTags, spectralTags } from '../raster/index.js';
import type { GroupRecord, Storage, TileRecord } from '../storage/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT, tupleOf } from '../utils/json-schema.js';
import { bandFiles, groupsOf, maskFile } from './band-files.js';
import { sumOf } from './distributed-median.js';
import { zoneTooLarge } from './errors.js';
import { type AcquisitionFacts, DATE_MEMBERS, MAX_TILES, ZONE_SCHEMA } from './time-series.js';
import { type Zone, type ZonePixels, zoneBbox, zoneBudget, zonePixels } from './zone.js';
import type { SeriesHandlers, SpectrumPart, SpectrumSums } from './zone-statistics.js';

/** The spectrum of one acquisition over the clear pixels of the zone; NaN for a band without data. */
export interface SpectrumDate extends AcquisitionFacts {
  bands: SpectralBand[];
  /** All pixels of the zone in cells that have tiles of the date. */
  pixels: number;
  /** Clear pixels that have data in a good band. */
  valid: number;
  mean: number[];
  /** Population standard deviation (divided by the number of pixels). */
  std: number[];
}

export interface Spectra extends PartialAnswer {
  /** From the earliest on. */
  dates: SpectrumDate[];
  /** Tiles that have no spectrum. */
  skipped: number;
}

/** Throws TW_IMAGERY_TOO_MUCH, TW_IMAGERY_TILE_FILE, TW_QUERY_UNANSWERED. */
export async function readSpectra(
  send: ScatterQuery<SpectraQuery, PartialSpectra>,
  boundsOf: (filter: Filter) => QueryBounds,
  { region, filter: wanted }: SpectraQuery,
  signal?: AbortSignal,
): Promise<Spectra> {
  const filter = and([{ op: 's_intersects', shape: { bbox: zoneBbox(region) }, ofCells: true }, wanted]);
  const { answers, unanswered } = await send({ region, filter }, () => boundsOf(filter), { signal });
  const matched = sumOf(answers, (answer) => answer.matched);
  if (matched > MAX_TILES) throw zoneTooLarge(`${matched} tiles`, MAX_TILES);
  const dates = new Map<string, PartialSpectraDate[]>();
  for (const date of answers.flatMap((share) => share.dates))
    dates.set(date.key, [...(dates.get(date.key) ?? []), date]);
  return {
    dates: [...dates.values()].map(dateOf).sort((a, b) => a.start - b.start),
    skipped: sumOf(answers, ({ skipped }) => skipped),
    ...partialAnswer(unanswered),
  };
}

function dateOf(parts: PartialSpectraDate[]): SpectrumDate {
  const [{ start, collection, bands }] = parts;
  // A fixed order makes sums independent of the distribution of the cells.
  const places = parts.flatMap(({ places }) => places).sort((a, b) => (a.key < b.key ? -1 : 1));
  const { valid, counts, means, squares } = places.reduce(mergeSpectrumSums, {
    key: '',
    valid: 0,
    counts: bands.map(() => 0),
    means: bands.map(() => 0),
    squares: bands.map(() => 0),
  });
  return {
    start,
    end: Math.max(...parts.map(({ end }) => end)),
    collection,
    scenes: [...new Set(parts.flatMap(({ scenes }) => scenes))].sort(),
    bands,
    // Several scenes may cover one cell, which counts once.
    pixels: sumOf([...new Map(parts.flatMap(({ pixels }) => pixels)).values()], (count) => count),
    valid,
    mean: counts.map((count, band) => (count > 0 ? means[band] : NaN)),
    std: counts.map((count, band) => (count > 0 ? Math.sqrt(squares[band] / count) : NaN)),
  };
}

/** Statistics of the union of two sets of pixels, band by band (Chan, Golub and LeVeque 1979). */
function mergeSpectrumSums(a: SpectrumSums, b: SpectrumSums): SpectrumSums {
  const counts = a.counts.map((count, i) => count + b.counts[i]);
  const apart = a.means.map((mean, i) => b.means[i] - mean);
  const share = (i: number) => (counts[i] === 0 ? 0 : b.counts[i] / counts[i]);
  return {
    key: a.key,
    valid: a.valid + b.valid,
    counts,
    means: a.means.map((mean, i) => mean + apart[i] * share(i)),
    squares: a.squares.map((sum, i) => sum + b.squares[i] + apart[i] ** 2 * a.counts[i] * share(i)),
  };
}

/** Plain JSON. */
export interface SpectraQuery {
  region: Zone;
  /** Selects tiles that intersect the box of the zone. */
  filter: Filter;
}

export interface PartialSpectra {
  /** Number of matching tiles. If there are too many, none was read. */
  matched: number;
  /** Tiles without a spectrum. */
  skipped: number;
  dates: PartialSpectraDate[];
}

type SpectralBand = SpectralTags & { name: string };

interface PartialSpectraDate extends AcquisitionFacts {
  /** Identifies collection, platform, time and bands. */
  key: string;
  bands: SpectralBand[];
  /** Pixels of the zone in each cell. */
  pixels: [cell: string, pixels: number][];
  places: SpectrumSums[];
}

/** Limit of pixels x dates x bands of one query: some seconds of work, and as many numbers in memory. */
const MAX_VALUES = 50_000_000;
/** Tiles whose files are fetched at once. */
const FETCH_CONCURRENCY = 16;

type PlannedDate = Omit<PartialSpectraDate, 'places'> & { parts: SpectrumPart[] };

/** Throws TW_IMAGERY_TOO_MUCH, TW_IMAGERY_TILE_FILE, TW_QUERY_TOO_COSTLY and TW_STORE_ errors. */
export async function readPartialSpectra(
  storage: Storage,
  pool: TaskPool<SeriesHandlers>,
  { region, filter }: SpectraQuery,
  { only, seq, signal }: OwnerShare,
): Promise<PartialSpectra> {
  const search = createSearch(filter, { limit: MAX_TILES });
  const { places, matched } = await searchIndex(storage.index, search, { only, signal });
  if (matched > MAX_TILES) return { matched, skipped: 0, dates: [] };
  const planned = new Map<string, PlannedDate>();
  const known = new Map<string, ZonePixels>();
  const files: { tile: TileRecord; groups: GroupRecord[] }[] = [];
  let [skipped, values] = [0, 0];
  for (const tile of await storage.getTiles(
    places.map(({ id }) => id),
    seq,
  )) {
    const group = tile.groups.findIndex(({ role, bands }) => role === 'data' && isHyperspectral(bands));
    if (group < 0) {
      skipped++;
      continue;
    }
    const place = zonePixels(known, region, tile, tile.groups[group], zoneBudget(MAX_VALUES));
    const count = place.pixels.columns.length;
    if (count === 0) continue;
    const { bands } = tile.groups[group];
    values += count * bands.length;
    if (values > MAX_VALUES) throw zoneTooLarge(`${values} values`, MAX_VALUES);
    const at = bands.map((_, band) => ({ group, band }));
    const date = plannedDateOf(planned, tile, bands);
    date.pixels.push([`${tile.grid} ${tile.geocode}`, count]);
    const mask = maskFile(storage, tile, at);
    files.push({ tile, groups: groupsOf(tile, at, mask !== undefined) });
    const good = bands.map((band) => band.good !== false);
    date.parts.push({ place, bands: bandFiles(storage, tile, at), good, mask });
  }
  await mapConcurrent(files, FETCH_CONCURRENCY, async ({ tile, groups }) => {
    signal?.throwIfAborted();
    return storage.ensureFiles(tile, groups);
  });
  const dates = await Promise.all(
    [...planned.values()].map(async ({ parts, ...date }) => ({
      ...date,
      places: await pool.run({ kind: 'spectra', parts }, { signal }),
    })),
  );
  return { matched, skipped, dates };
}

function plannedDateOf(
  planned: Map<string, PlannedDate>,
  { collection, platform, start, end, scene }: TileRecord,
  records: GroupRecord['bands'],
): PlannedDate {
  const bands = records.map(({ name, ...tags }) => ({ name, ...spectralTags(tags) }));
  const key = JSON.stringify([collection, platform, start, bands]);
  const date = planned.get(key) ?? { key, start, end, collection, scenes: [], bands, pixels: [], parts: [] };
  planned.set(key, date);
  date.end = Math.max(date.end, end);
  if (!date.scenes.includes(scene)) date.scenes.push(scene);
  return date;
}

const BAND_SCHEMA = objectOf({ name: TEXT, wavelength: NUMBER }, { fwhm: NUMBER, good: { type: 'boolean' } });

const SUMS_SCHEMA = objectOf({
  key: TEXT,
  valid: COUNT,
  counts: listOf(COUNT),
  means: listOf(NUMBER),
  squares: listOf(NUMBER),
});

const DATE_SCHEMA = objectOf({
  ...DATE_MEMBERS,
  bands: listOf(BAND_SCHEMA),
  pixels: listOf(tupleOf(TEXT, COUNT)),
  places: listOf(SUMS_SCHEMA),
});

export const SPECTRA_QUERY = kindWithFilter({
  name: 'spectra',
  question: messageCheck(objectOf({ region: ZONE_SCHEMA, filter: {} })),
  answer: messageCheck(objectOf({ matched: COUNT, skipped: COUNT, dates: listOf(DATE_SCHEMA) })),
  // Owners read pixels.
  timeoutMs: 60_000,
});
