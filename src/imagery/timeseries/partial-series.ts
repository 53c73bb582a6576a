/** The answer of one owner to a series query: statistics per date and cell, so that no pixels are sent. */

import { mapConcurrent, type TaskPool } from '../../async/index.js';
import type { OwnerShare } from '../../dht/index.js';
import { type ErrorDocument, toErrorDocument } from '../../errors.js';
import {
  bandLayoutKey,
  type Expression,
  parseExpression,
  type ResolvedBands,
  resolveBands,
  unknownBand,
} from '../../expressions/index.js';
import { createSearch, type Filter, searchIndex } from '../../query/index.js';
import type { GroupRecord, Storage, TileRecord } from '../../storage/index.js';
import { zoneTooLarge } from '../errors.js';
import { type BandFile, bandFiles, groupsOf, maskFile } from '../reading/index.js';
import type { MedianBounds } from './distributed-series-median.js';
import type { SeriesHandlers } from './series-handlers.js';
import type { Zone } from './series-zone.js';
import { type ZonePixels, zoneBudget, zonePixels } from './series-zone-pixels.js';
import type { Acquisition, AcquisitionStatistics } from './zonal-series-statistics.js';

/** Plain JSON. */
export interface SeriesQuery {
  region: Zone;
  expression: string;
  /** Selects tiles that intersect the box of the zone. */
  filter: Filter;
  /** If set, only the values within these bounds are returned, for these dates by key. */
  medians?: [date: string, bounds: MedianBounds][];
}

export interface PartialSeries {
  /** Number of matching tiles. If there are too many, none was read. */
  matched: number;
  /** Number of tiles that lack the bands of the expression. */
  skipped: number;
  /** The error of the newest tile that lacks the bands. */
  lack?: { tile: { start: number; collection: string; id: string }; error: ErrorDocument };
  /** Pixels of the zone in the cells of each collection. */
  pixels: [collection: string, pixels: number][];
  dates: PartialDate[];
}

export interface AcquisitionFacts {
  /** Milliseconds since 1970. */
  start: number;
  end: number;
  collection: string;
  scenes: string[];
}

export interface PartialDate extends AcquisitionFacts, AcquisitionStatistics {
  /** Identifies collection, platform and time. */
  key: string;
}

export const MAX_TILES = 10_000;
/** Limit of the pixels of a zone on one date. */
const MAX_PIXELS_PER_DATE = 4_000_000;
/** Limit of pixels x dates x bands: some seconds of work. */
const MAX_PIXEL_READS = 500_000_000;
/** Tiles whose files are fetched at once. */
const FETCH_CONCURRENCY = 16;

/**
 * Reads the part of a series in the tiles of this node. Throws TW_IMAGERY_TOO_MUCH, TW_IMAGERY_TILE_FILE, TW_QUERY_TOO_SLOW and TW_STORE_
 * errors.
 */
export async function readPartialSeries(
  storage: Storage,
  pool: TaskPool<SeriesHandlers>,
  { region, expression, filter, medians }: SeriesQuery,
  { only, seq }: OwnerShare,
): Promise<PartialSeries> {
  const { places, matched } = searchIndex(storage.index, createSearch(filter, { limit: MAX_TILES }), only);
  if (matched > MAX_TILES) return { matched, skipped: 0, pixels: [], dates: [] };
  const planner = new AcquisitionPlanner(
    storage,
    region,
    parseExpression(expression),
    medians && new Map(medians),
  );
  const ids = places.map(({ id }) => id);
  for (const tile of await storage.getTiles(ids, seq)) planner.add(tile);
  await mapConcurrent(planner.files, FETCH_CONCURRENCY, ({ tile, groups }) =>
    storage.ensureFiles(tile, groups),
  );
  const { dates, skipped, lack, pixels } = planner;
  // The querying node computes medians over the tiles of several owners.
  const isPart = only !== undefined;
  const acquisitions = dates.map(({ key, parts }): Acquisition => {
    const bounds = planner.boundsOf(key);
    return { parts, wants: bounds ?? (isPart ? 'sketch' : 'median') };
  });
  const values = await computeInWorkers(pool, acquisitions);
  return {
    matched,
    skipped,
    ...(lack && { lack }),
    pixels,
    dates: dates.map(({ parts: _, ...date }, i) => ({ ...date, ...values[i] })),
  };
}

type PlannedDate = Omit<PartialDate, keyof AcquisitionStatistics> & { parts: Acquisition['parts'] };

/**
 * Groups the tiles of a series by acquisition. Invariants: a cell has one list of pixels for each image size; `reads`, `found` and
 * `crossings` are the sums of planned work, and never exceed their limits by much.
 */
class AcquisitionPlanner {
  skipped = 0;
  /** The error of the first tile that lacks the bands. */
  lack: PartialSeries['lack'];
  /** Files that must be local before values are read. */
  readonly files: { tile: TileRecord; groups: GroupRecord[] }[] = [];
  private reads = 0;
  private readonly budget = zoneBudget(MAX_PIXELS_PER_DATE);
  /** By band layout; undefined if tiles of the layout lack the bands. */
  private readonly resolved = new Map<string, ResolvedBands | undefined>();
  private readonly places = new Map<string, ZonePixels>();
  private readonly planned = new Map<string, PlannedDate>();
  /** Pixels of the zone in each cell of a collection. */
  private readonly cells = new Map<string, Map<string, number>>();

  constructor(
    private readonly storage: Storage,
    private readonly region: Zone,
    private readonly expression: Expression,
    private readonly medians: ReadonlyMap<string, MedianBounds> | undefined,
  ) {}

  boundsOf(key: string): MedianBounds | undefined {
    return this.medians?.get(key);
  }

  add(tile: TileRecord): void {
    const { collection, platform, start, end, scene } = tile;
    const key = JSON.stringify([collection, platform, start]);
    if (this.medians && !this.medians.has(key)) return;
    const resolved = this.resolve(tile);
    if (!resolved) {
      this.skipped++;
      return;
    }
    const bands = bandFiles(this.storage, tile, resolved.indices);
    const place = this.placeOf(tile, bands);
    const count = place.pixels.columns.length;
    if (count === 0) return;
    this.reads += count * (bands.length + 1);
    if (this.reads > MAX_PIXEL_READS) throw zoneTooLarge(`${this.reads} pixels`, MAX_PIXEL_READS);
    const cells = this.cells.get(tile.collection) ?? new Map<string, number>();
    this.cells.set(tile.collection, cells.set(`${tile.grid} ${tile.geocode}`, count));
    const date = this.planned.get(key) ?? { key, start, end, collection, scenes: [], parts: [] };
    this.planned.set(key, date);
    date.end = Math.max(date.end, end);
    if (!date.scenes.includes(scene)) date.scenes.push(scene);
    const [program] = resolved.programs;
    const mask = maskFile(this.storage, tile, resolved.indices);
    this.files.push({ tile, groups: groupsOf(tile, resolved.indices, mask !== undefined) });
    date.parts.push({ place, program, bands, mask });
  }

  get dates(): PlannedDate[] {
    return [...this.planned.values()];
  }

  get pixels(): PartialSeries['pixels'] {
    const sum = (counts: Iterable<number>) => [...counts].reduce((a, b) => a + b, 0);
    return Array.from(this.cells, ([collection, cells]) => [collection, sum(cells.values())]);
  }

  /** Returns undefined if a tile lacks the bands. */
  private resolve(tile: TileRecord): ResolvedBands | undefined {
    const layout = bandLayoutKey(tile.groups);
    if (!this.resolved.has(layout)) this.resolved.set(layout, this.tryResolve(tile));
    return this.resolved.get(layout);
  }

  private tryResolve({ groups, start, collection, id }: TileRecord): ResolvedBands | undefined {
    try {
      return resolveBands([this.expression], groups);
    } catch (error) {
      if (!unknownBand.is(error)) throw error;
      this.lack ??= { tile: { start, collection, id }, error: toErrorDocument(error) };
      return undefined;
    }
  }

  /** Returns the pixels of the finest band. An expression without bands has the pixels of the first group. */
  private placeOf(tile: TileRecord, bands: BandFile[]): ZonePixels {
    const [first, ...others] = bands.length > 0 ? bands : tile.groups;
    const { width, height } = others.reduce((a, b) => (b.width > a.width ? b : a), first);
    return zonePixels(this.places, this.region, tile, { width, height }, this.budget);
  }
}

/** Limits of one task of a thread, so that other requests are not delayed. */
const MAX_ACQUISITIONS_PER_TASK = 50;
const MAX_PIXELS_PER_TASK = 5_000_000;

async function computeInWorkers(
  pool: TaskPool<SeriesHandlers>,
  all: Acquisition[],
): Promise<AcquisitionStatistics[]> {
  const share = Math.max(1, Math.ceil(all.length / (2 * pool.threads)));
  const each = Math.min(MAX_ACQUISITIONS_PER_TASK, share);
  const tasks: Promise<AcquisitionStatistics[]>[] = [];
  let acquisitions: Acquisition[] = [];
  let pixels = 0;
  for (const [i, acquisition] of all.entries()) {
    acquisitions.push(acquisition);
    pixels += acquisition.parts.reduce((sum, { place }) => sum + place.pixels.columns.length, 0);
    if (acquisitions.length < each && pixels < MAX_PIXELS_PER_TASK && i < all.length - 1) continue;
    tasks.push(pool.run({ kind: 'series', acquisitions }));
    acquisitions = [];
    pixels = 0;
  }
  return (await Promise.all(tasks)).flat();
}
