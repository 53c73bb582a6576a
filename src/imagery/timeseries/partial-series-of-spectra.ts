/** The answer of one owner to a spectra query: sums per date and cell, so that no pixels are sent. */

import { mapConcurrent, type TaskPool } from '../../async/index.js';
import type { OwnerShare } from '../../dht/index.js';
import { createSearch, type Filter, searchIndex } from '../../query/index.js';
import { isHyperspectral, type SpectralTags, spectralTags } from '../../raster/index.js';
import type { GroupRecord, Storage, TileRecord } from '../../storage/index.js';
import { zoneTooLarge } from '../errors.js';
import { bandFiles, groupsOf, maskFile } from '../reading/index.js';
import { type AcquisitionFacts, MAX_TILES } from './partial-series.js';
import type { SeriesHandlers } from './series-handlers.js';
import type { Zone } from './series-zone.js';
import { type ZonePixels, zoneBudget, zonePixels } from './series-zone-pixels.js';
import type { SpectrumPart, SpectrumSums } from './zonal-series-spectra.js';

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

export type SpectralBand = SpectralTags & { name: string };

export interface PartialSpectraDate extends AcquisitionFacts {
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

/** Throws TW_IMAGERY_TOO_MUCH, TW_IMAGERY_TILE_FILE, TW_QUERY_TOO_SLOW and TW_STORE_ errors. */
export async function readPartialSpectra(
  storage: Storage,
  pool: TaskPool<SeriesHandlers>,
  { region, filter }: SpectraQuery,
  { only, seq }: OwnerShare,
): Promise<PartialSpectra> {
  const { places, matched } = searchIndex(storage.index, createSearch(filter, { limit: MAX_TILES }), only);
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
    const date = dateOf(planned, tile, bands);
    date.pixels.push([`${tile.grid} ${tile.geocode}`, count]);
    const mask = maskFile(storage, tile, at);
    files.push({ tile, groups: groupsOf(tile, at, mask !== undefined) });
    const good = bands.map((band) => band.good !== false);
    date.parts.push({ place, bands: bandFiles(storage, tile, at), good, mask });
  }
  await mapConcurrent(files, FETCH_CONCURRENCY, ({ tile, groups }) => storage.ensureFiles(tile, groups));
  const dates = await Promise.all(
    [...planned.values()].map(async ({ parts, ...date }) => ({
      ...date,
      places: await pool.run({ kind: 'spectra', parts }),
    })),
  );
  return { matched, skipped, dates };
}

function dateOf(
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
