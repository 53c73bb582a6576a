/**
 * Statistics of the values of an expression in a zone, one for each date. Each owner of tiles answers with statistics per date and cell, so
 * that no pixels are sent.
 */
import { mapConcurrent, type TaskPool } from '../async/index.js';
import type { OwnerShare, QueryBounds, ScatterQuery } from '../dht/index.js';
import { ERROR_DOCUMENT_SCHEMA, type ErrorDocument, fromErrorDocument, toErrorDocument } from '../errors.js';
import {
  bandLayoutKey,
  type Expression,
  parseExpression,
  type ResolvedBands,
  resolveBands,
  unknownBand,
} from '../expressions/index.js';
import type { PixelGrid } from '../grid/index.js';
import {
  and,
  createSearch,
  type Filter,
  kindWithFilter,
  type PartialAnswer,
  partialAnswer,
  searchIndex,
} from '../query/index.js';
import {
  CURSOR_SCHEMA,
  compareCursors,
  type GroupRecord,
  type Storage,
  TIME_SCHEMA,
  type TileRecord,
} from '../storage/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT, tupleOf } from '../utils/json-schema.js';
import { compareText } from '../utils/text.js';
import { bandFiles, groupsOf, maskFile } from './band-files.js';
import {
  type MedianBounds,
  medianBounds,
  medianWithin,
  type QuantileSketch,
  sumOf,
} from './distributed-median.js';
import { changedWhileReading, zoneTooLarge } from './errors.js';
import { type Zone, type ZonePixels, zoneBbox, zoneBudget, zonePixels } from './zone.js';
import type {
  Acquisition,
  AcquisitionStatistics,
  SeriesHandlers,
  ZoneStatistics,
} from './zone-statistics.js';

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
  /** Pixels of the zone in the cells of each collection, at the finest pixel size of each cell. */
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

interface PartialDate extends AcquisitionFacts, AcquisitionStatistics {
  /** Identifies collection, platform and time. */
  key: string;
  /** Pixels of the zone that the cells of the date have beyond those in `pixels`; negative if its pixels are larger. */
  excess: number;
}

export const MAX_TILES = 10_000;
/** Limit of the pixels of a zone on one date. */
const MAX_PIXELS_PER_DATE = 4_000_000;
/** Limit of pixels x dates x bands: some seconds of work. */
const MAX_PIXEL_READS = 500_000_000;
/** Tiles whose files are fetched at once. */
const FETCH_CONCURRENCY = 16;

/**
 * Reads the part of a series in the tiles of this node. Throws TW_IMAGERY_TOO_MUCH, TW_IMAGERY_TILE_FILE, TW_QUERY_TOO_COSTLY and TW_STORE_
 * errors.
 */
export async function readPartialSeries(
  storage: Storage,
  pool: TaskPool<SeriesHandlers>,
  { region, expression, filter, medians }: SeriesQuery,
  { only, seq, signal }: OwnerShare,
): Promise<PartialSeries> {
  const search = createSearch(filter, { limit: MAX_TILES });
  const { places, matched } = await searchIndex(storage.index, search, { only, signal });
  if (matched > MAX_TILES) return { matched, skipped: 0, pixels: [], dates: [] };
  const planner = new AcquisitionPlanner(
    storage,
    region,
    parseExpression(expression),
    medians && new Map(medians),
  );
  const ids = places.map(({ id }) => id);
  planner.add(await storage.getTiles(ids, seq));
  await mapConcurrent(planner.files, FETCH_CONCURRENCY, async ({ tile, groups }) => {
    signal?.throwIfAborted();
    return storage.ensureFiles(tile, groups);
  });
  const { dates, skipped, lack, pixels } = planner;
  // The querying node computes medians over the tiles of several owners.
  const isPart = only !== undefined;
  const acquisitions = dates.map(({ key, parts }): Acquisition => {
    const bounds = planner.boundsOf(key);
    return { parts, wants: bounds ?? (isPart ? 'sketch' : 'median') };
  });
  const values = await computeInWorkers(pool, acquisitions, signal);
  return {
    matched,
    skipped,
    ...(lack && { lack }),
    pixels,
    dates: dates.map(({ parts: _, places, ...date }, i) => ({
      ...date,
      excess: planner.excessOf(date.collection, places),
      ...values[i],
    })),
  };
}

interface PlannedDate extends Omit<PartialDate, 'excess' | keyof AcquisitionStatistics> {
  parts: Acquisition['parts'];
  /** By cell. */
  places: Map<string, ZonePixels>;
}

const dateKey = ({ collection, platform, start }: TileRecord) =>
  JSON.stringify([collection, platform, start]);
const cellKey = ({ grid, geocode }: TileRecord) => `${grid} ${geocode}`;
const placeKey = (tile: TileRecord) => `${dateKey(tile)} ${cellKey(tile)}`;
const countOf = ({ pixels }: ZonePixels) => pixels.columns.length;

/** The size of the finest band, or `other` if it is finer. An expression without bands has the size of the finest group. */
function finestSize(
  { groups }: TileRecord,
  { indices }: ResolvedBands,
  other: PixelGrid | undefined,
): PixelGrid {
  const sizes: PixelGrid[] = indices.length > 0 ? indices.map(({ group }) => groups[group]!) : groups;
  return [...(other ? [other] : []), ...sizes].reduce((a, b) => (b.width > a.width ? b : a));
}

/**
 * Groups the tiles of a series by acquisition. Invariants: a cell has one list of pixels for each image size, and one for each date;
 * `reads`, `found` and `crossings` are the sums of planned work, and never exceed their limits by much.
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
  /** Pixels of the zone in each cell of a collection, at the finest pixel size of its dates. */
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

  add(tiles: TileRecord[]): void {
    // A pixel in two tiles of a date counts once, so both are read at the pixels of the finest one.
    const sizes = new Map<string, PixelGrid>();
    for (const tile of tiles) {
      const resolved = this.resolve(tile);
      if (resolved) sizes.set(placeKey(tile), finestSize(tile, resolved, sizes.get(placeKey(tile))));
      else this.skipped++;
    }
    for (const tile of tiles) {
      const size = sizes.get(placeKey(tile));
      const resolved = this.resolve(tile);
      if (size && resolved) this.addTile(tile, resolved, size);
    }
  }

  private addTile(tile: TileRecord, resolved: ResolvedBands, size: PixelGrid): void {
    const { collection, start, end, scene } = tile;
    const key = dateKey(tile);
    if (this.medians && !this.medians.has(key)) return;
    const bands = bandFiles(this.storage, tile, resolved.indices);
    const cell = cellKey(tile);
    const place = zonePixels(this.places, this.region, tile, size, this.budget);
    const count = countOf(place);
    if (count === 0) return;
    this.reads += count * (bands.length + 1);
    if (this.reads > MAX_PIXEL_READS) throw zoneTooLarge(`${this.reads} pixels`, MAX_PIXEL_READS);
    const cells = this.cells.get(tile.collection) ?? new Map<string, number>();
    this.cells.set(tile.collection, cells.set(cell, Math.max(count, cells.get(cell) ?? 0)));
    const date = this.planned.get(key) ?? {
      ...{ key, start, end, collection },
      ...{ scenes: [], parts: [], places: new Map<string, ZonePixels>() },
    };
    this.planned.set(key, date);
    date.places.set(cell, place);
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

  excessOf(collection: string, places: ReadonlyMap<string, ZonePixels>): number {
    const usual = this.cells.get(collection)!;
    return [...places].reduce((sum, [cell, place]) => sum + countOf(place) - usual.get(cell)!, 0);
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
}

/** Limits of one task of a thread, so that other requests are not delayed. */
const MAX_ACQUISITIONS_PER_TASK = 50;
const MAX_PIXELS_PER_TASK = 5_000_000;

async function computeInWorkers(
  pool: TaskPool<SeriesHandlers>,
  all: Acquisition[],
  signal: AbortSignal | undefined,
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
    tasks.push(pool.run({ kind: 'series', acquisitions }, { signal }));
    acquisitions = [];
    pixels = 0;
  }
  return (await Promise.all(tasks)).flat();
}

/** Statistics of one acquisition over the clear pixels of the zone that have data; NaN if there are none. */
export interface SeriesDate extends AcquisitionFacts {
  /** All pixels of the zone, in the pixel size of the date, including those without data or under cloud. */
  pixels: number;
  valid: number;
  mean: number;
  /** Population standard deviation (divided by the number of pixels). */
  std: number;
  min: number;
  max: number;
  median: number;
}

export interface Series extends PartialAnswer {
  /** From the earliest on, including dates without valid pixels. */
  dates: SeriesDate[];
  /** Tiles that lack the bands of the expression. */
  skipped: number;
}

export interface TimeSeriesRequest {
  region: Zone;
  expression: string;
  filter: Filter;
}

/** Attempts to read a series whose tiles change in the meantime. */
const MAX_ATTEMPTS = 3;

/**
 * Reads a series. A pixel counts if it is clear, filled or not assessed in the mask, and the expression has a value. Bands of several sizes
 * are sampled at the pixel centres of the finest band. Throws TW_IMAGERY_EXPRESSION, TW_IMAGERY_BAND if no tile has the bands,
 * TW_IMAGERY_TOO_MUCH, TW_IMAGERY_TILE_FILE and TW_IMAGERY_CHANGING.
 */
export async function readSeries(
  send: ScatterQuery<SeriesQuery, PartialSeries>,
  boundsOf: (filter: Filter) => QueryBounds,
  { region, expression, filter: wanted }: TimeSeriesRequest,
  signal?: AbortSignal,
): Promise<Series> {
  parseExpression(expression);
  // Pixels of the zone count even if they have no data on any date.
  const filter = and([{ op: 's_intersects', shape: { bbox: zoneBbox(region) }, ofCells: true }, wanted]);
  const query: SeriesQuery = { region, expression, filter };
  const where = () => boundsOf(filter);
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const { answers, unanswered, seq } = await send(query, where, { signal });
    const dates = datesOf(answers);
    const medians = await mediansOf(dates, async (bounds) => {
      const { answers } = await send({ ...query, medians: bounds }, where, { seq, signal });
      return answers.flatMap((answer) => answer.dates);
    });
    if (!medians) continue;
    const pixels = new Map<string, number>();
    for (const [collection, count] of answers.flatMap((answer) => answer.pixels))
      pixels.set(collection, (pixels.get(collection) ?? 0) + count);
    return {
      dates: dates.map((parts, i) => dateOf(parts, pixels, medians[i])),
      skipped: answers.reduce((sum, { skipped }) => sum + skipped, 0),
      ...partialAnswer(unanswered),
    };
  }
  throw changedWhileReading();
}

/** Groups the parts by date, the earliest first. Throws the error of the newest tile if no tile has the bands. */
function datesOf(shares: PartialSeries[]): PartialDate[][] {
  const matched = shares.reduce((sum, share) => sum + share.matched, 0);
  if (matched > MAX_TILES) throw zoneTooLarge(`${matched} tiles`, MAX_TILES);
  const dates = new Map<string, PartialDate[]>();
  for (const date of shares.flatMap((share) => share.dates))
    dates.set(date.key, [...(dates.get(date.key) ?? []), date]);
  const [lack] = shares
    .flatMap((share) => share.lack ?? [])
    .sort((a, b) => compareCursors(a.tile, b.tile, []));
  if (dates.size === 0 && lack) throw fromErrorDocument(lack.error);
  return [...dates.values()].sort(([a], [b]) => a.start - b.start || compareText(a.key, b.key));
}

/** The median of each date, NaN for a date without values. Returns undefined if the second round does not match the first one. */
async function mediansOf(
  dates: PartialDate[][],
  secondRound: (bounds: [date: string, bounds: MedianBounds][]) => Promise<PartialDate[]>,
): Promise<number[] | undefined> {
  const bounds = new Map<string, MedianBounds>();
  const known = dates.map((parts) => {
    const holding = parts.filter(({ places }) => places.length > 0);
    if (holding.length === 1) return holding[0].median!;
    const found = medianBounds(holding.map(({ sketch }) => sketch as QuantileSketch));
    if (!found) return NaN;
    if (found[0] === found[1]) return found[0];
    bounds.set(parts[0].key, found);
    return undefined;
  });
  if (bounds.size === 0) return known as number[];
  const within = await secondRound([...bounds]);
  const medians = known.map((median, i) => {
    if (median !== undefined) return median;
    const parts = dates[i];
    const counted = within.flatMap((date) => (date.key === parts[0].key ? (date.within ?? []) : []));
    const isSame = sumOf(counted, ({ count }) => count) === sumOf(parts, ({ sketch }) => sketch?.count ?? 0);
    return isSame ? medianWithin(counted) : undefined;
  });
  return medians.includes(undefined) ? undefined : (medians as number[]);
}

function dateOf(parts: PartialDate[], pixels: ReadonlyMap<string, number>, median: number): SeriesDate {
  const [{ start, collection }] = parts;
  // A fixed order makes sums independent of the distribution of the cells.
  const places = parts.flatMap((part) => part.places).sort((a, b) => compareText(a.key, b.key));
  const { valid, mean, squares, min, max } = places.reduce(mergeStatistics, EMPTY_STATISTICS);
  return {
    start,
    end: Math.max(...parts.map(({ end }) => end)),
    collection,
    scenes: [...new Set(parts.flatMap(({ scenes }) => scenes))].sort(),
    pixels: pixels.get(collection)! + sumOf(parts, ({ excess }) => excess),
    valid,
    mean: valid > 0 ? mean : NaN,
    std: valid > 0 ? Math.sqrt(squares / valid) : NaN,
    min: valid > 0 ? min : NaN,
    max: valid > 0 ? max : NaN,
    median,
  };
}

const EMPTY_STATISTICS: ZoneStatistics = {
  key: '',
  valid: 0,
  mean: 0,
  squares: 0,
  min: Infinity,
  max: -Infinity,
};

/** Statistics of the union of two sets of values (Chan, Golub and LeVeque 1979). */
function mergeStatistics(a: ZoneStatistics, b: ZoneStatistics): ZoneStatistics {
  if (a.valid === 0) return b;
  const valid = a.valid + b.valid;
  const apart = b.mean - a.mean;
  return {
    key: a.key,
    valid,
    mean: a.mean + (apart * b.valid) / valid,
    squares: a.squares + b.squares + (apart * apart * a.valid * b.valid) / valid,
    min: Math.min(a.min, b.min),
    max: Math.max(a.max, b.max),
  };
}

/** A statistic of infinite values is null in JSON. */
const STATISTIC_SCHEMA = { type: ['number', 'null'] };

const POINT_SCHEMA = tupleOf(NUMBER, NUMBER);
/** JSON Schema of a `Zone`. */
export const ZONE_SCHEMA = {
  anyOf: [
    objectOf({ kind: { enum: ['point'] }, point: POINT_SCHEMA }),
    objectOf({
      kind: { enum: ['area'] },
      bbox: tupleOf(NUMBER, NUMBER, NUMBER, NUMBER),
      polygons: listOf(listOf(listOf(objectOf({ south: POINT_SCHEMA, north: POINT_SCHEMA })))),
    }),
  ],
};

const ZONE_STATISTICS_SCHEMA = objectOf({
  key: TEXT,
  valid: COUNT,
  mean: STATISTIC_SCHEMA,
  squares: STATISTIC_SCHEMA,
  min: STATISTIC_SCHEMA,
  max: STATISTIC_SCHEMA,
});

/** Members of the dates of series and spectra. */
export const DATE_MEMBERS = {
  key: TEXT,
  start: TIME_SCHEMA,
  end: TIME_SCHEMA,
  collection: TEXT,
  scenes: listOf(TEXT),
};

const DATE_SCHEMA = objectOf(
  { ...DATE_MEMBERS, excess: NUMBER, places: listOf(ZONE_STATISTICS_SCHEMA) },
  {
    median: STATISTIC_SCHEMA,
    sketch: objectOf({ count: COUNT, step: COUNT, values: listOf(STATISTIC_SCHEMA) }),
    within: objectOf({ count: COUNT, below: COUNT, values: listOf(tupleOf(STATISTIC_SCHEMA, COUNT)) }),
  },
);

export const SERIES_QUERY = kindWithFilter({
  name: 'series',
  question: messageCheck(
    objectOf(
      { region: ZONE_SCHEMA, expression: TEXT, filter: {} },
      { medians: listOf(tupleOf(TEXT, tupleOf(STATISTIC_SCHEMA, STATISTIC_SCHEMA))) },
    ),
  ),
  answer: messageCheck(
    objectOf(
      {
        matched: COUNT,
        skipped: COUNT,
        pixels: listOf(tupleOf(TEXT, COUNT)),
        dates: listOf(DATE_SCHEMA),
      },
      { lack: objectOf({ tile: CURSOR_SCHEMA, error: ERROR_DOCUMENT_SCHEMA }) },
    ),
  ),
  // Long, because owners read pixels.
  timeoutMs: 60_000,
});
