/** Values of an expression at a place, one for each date. */
import { gridByName } from '../geocode/index.js';
import { all, type Filter, searchTiles } from '../query/index.js';
import type { WorkerPool } from '../raster/index.js';
import type { GroupRecord, Storage, TileRecord } from '../storage/index.js';
import { type BandFile, bandFiles, layoutOf, maskFile, type Resolved, resolveBands } from './bands.js';
import { tooMuch, unknownBand } from './errors.js';
import type { Expression } from './expression/ast.js';
import { bboxOf, pixelsIn, type Region } from './region.js';
import type { AcquisitionValues, Place, TilePart } from './region-values.js';
import type { Result, Task } from './tasks.js';

/** What one sensor saw of the place at one time. */
export interface SeriesDate extends AcquisitionValues {
  /** Milliseconds since 1970. */
  start: number;
  end: number;
  collection: string;
  scenes: string[];
  /** All pixels of the place in cells that the collection has, also those without data or under cloud. */
  pixels: number;
}

export interface Series {
  /** From the earliest on; also dates on which no pixel is valid. */
  dates: SeriesDate[];
  /** Tiles that lack the bands of the expression. */
  skipped: number;
}

const MOST_TILES = 10_000;
/** Of a place, on one date. */
const MOST_PIXELS = 4_000_000;
/** Of a place times its dates, and bands with them: some seconds of work. */
const MOST_READS = 500_000_000;
/** Sides of a place times rows of pixels in its cells: about a second of work. */
const MOST_CROSSINGS = 5_000_000;

/**
 * Reads a series. Pixels count where the mask says clear (1) or not assessed (255) and the expression has a value. Bands of
 * several sizes are taken at the centres of the finest one's pixels.
 * Throws TW_IMAGERY_BAND where no tile has the bands, TW_IMAGERY_TOO_MUCH, TW_IMAGERY_TILE_FILE.
 */
export async function readSeries(
  storage: Storage,
  pool: WorkerPool<Task, Result>,
  request: { region: Region; expression: Expression; filter: Filter },
): Promise<Series> {
  const { region, expression } = request;
  const filter = all([{ op: 's_intersects', shape: { bbox: bboxOf(region) } }, request.filter]);
  const found = searchTiles(storage.index, filter, { limit: MOST_TILES });
  if (found.next !== undefined) throw tooMuch(`${found.numberMatched} tiles`, MOST_TILES);
  const planner = new Planner(storage, region, expression);
  for (const tile of await storage.getTiles(found.ids)) planner.add(tile);
  const dates = planner.dates();
  const values = await inThreads(
    pool,
    dates.map(({ parts }) => parts),
  );
  return {
    dates: dates.map(({ parts: _, ...date }, i) => ({ ...date, ...values[i] })),
    skipped: planner.skipped,
  };
}

type PlannedDate = Omit<SeriesDate, keyof AcquisitionValues> & { parts: TilePart[] };

/**
 * Sorts the tiles of a series by acquisition. Invariants: a cell has one list of pixels for each size of image; `reads`, `pixels`
 * and `crossings` are the sums of the work that has been planned or done, and never go far beyond their limits.
 */
class Planner {
  skipped = 0;
  private reads = 0;
  private pixels = 0;
  private crossings = 0;
  private lack: unknown;
  /** By layout; undefined where tiles of it lack the bands. */
  private readonly resolved = new Map<string, Resolved | undefined>();
  private readonly places = new Map<string, Place>();
  private readonly planned = new Map<string, PlannedDate>();
  /** Pixels of the place in each cell of a collection. */
  private readonly cells = new Map<string, Map<string, number>>();

  constructor(
    private readonly storage: Storage,
    private readonly region: Region,
    private readonly expression: Expression,
  ) {}

  add(tile: TileRecord): void {
    const resolved = this.resolve(tile);
    if (!resolved) {
      this.skipped++;
      return;
    }
    const bands = bandFiles(this.storage, tile, resolved.places);
    const place = this.placeOf(tile, bands);
    const count = place.pixels.columns.length;
    if (count === 0) return;
    this.reads += count * (bands.length + 1);
    if (this.reads > MOST_READS) throw tooMuch(`${this.reads} pixels`, MOST_READS);
    const cells = this.cells.get(tile.collection) ?? new Map<string, number>();
    this.cells.set(tile.collection, cells.set(`${tile.grid} ${tile.geocode}`, count));
    const { collection, platform, start, end, scene } = tile;
    const key = JSON.stringify([collection, platform, start]);
    const date = this.planned.get(key) ?? { start, end, collection, scenes: [], pixels: 0, parts: [] };
    this.planned.set(key, date);
    if (!date.scenes.includes(scene)) date.scenes.push(scene);
    const [program] = resolved.programs;
    date.parts.push({ place, program, bands, mask: maskFile(this.storage, tile, resolved.places) });
  }

  /** Throws what the first tile lacked where no tile has the bands. */
  dates(): PlannedDate[] {
    if (this.planned.size === 0 && this.lack !== undefined) throw this.lack;
    const sum = (counts: Iterable<number>) => [...counts].reduce((a, b) => a + b, 0);
    const dates = [...this.planned.values()].map((date) => ({
      ...date,
      scenes: date.scenes.sort(),
      pixels: sum(this.cells.get(date.collection)!.values()),
    }));
    return dates.sort((a, b) => a.start - b.start || (a.collection < b.collection ? -1 : 1));
  }

  /** Undefined where a tile lacks the bands. */
  private resolve({ groups }: TileRecord): Resolved | undefined {
    const layout = layoutOf(groups);
    if (!this.resolved.has(layout)) this.resolved.set(layout, this.tryResolve(groups));
    return this.resolved.get(layout);
  }

  private tryResolve(groups: GroupRecord[]): Resolved | undefined {
    try {
      return resolveBands([this.expression], groups);
    } catch (error) {
      if (!unknownBand.is(error)) throw error;
      this.lack ??= error;
      return undefined;
    }
  }

  /** Pixels are those of the finest band. An expression without bands has the pixels of the first group. */
  private placeOf({ grid, geocode, groups }: TileRecord, bands: BandFile[]): Place {
    const [first, ...others] = bands.length > 0 ? bands : groups;
    const { width, height } = others.reduce((a, b) => (b.width > a.width ? b : a), first);
    const key = `${grid} ${geocode} ${width} ${height}`;
    const known = this.places.get(key);
    if (known) return known;
    const pixels = pixelsIn(this.region, gridByName(grid), geocode, { width, height }, (work, found) => {
      this.crossings += work;
      this.pixels += found;
      if (this.crossings > MOST_CROSSINGS)
        throw tooMuch(`an outline of ${this.crossings} sides in rows of pixels`, MOST_CROSSINGS);
      if (this.pixels > MOST_PIXELS) throw tooMuch(`${this.pixels} pixels a date`, MOST_PIXELS);
    });
    const place = { pixels, width, height };
    this.places.set(key, place);
    return place;
  }
}

/** What a thread is sent at once, at most: other requests take turns with it. */
const MOST_SENT = 50;
const MOST_PIXELS_SENT = 5_000_000;

async function inThreads(pool: WorkerPool<Task, Result>, all: TilePart[][]): Promise<AcquisitionValues[]> {
  const each = Math.min(MOST_SENT, Math.max(1, Math.ceil(all.length / (2 * pool.size))));
  const tasks: Promise<Result>[] = [];
  let acquisitions: TilePart[][] = [];
  let pixels = 0;
  for (const [i, parts] of all.entries()) {
    acquisitions.push(parts);
    pixels += parts.reduce((sum, { place }) => sum + place.pixels.columns.length, 0);
    if (acquisitions.length < each && pixels < MOST_PIXELS_SENT && i < all.length - 1) continue;
    tasks.push(pool.run({ kind: 'series', acquisitions }));
    acquisitions = [];
    pixels = 0;
  }
  const results = await Promise.all(tasks);
  return results.flatMap((result) => (result as Extract<Result, { kind: 'series' }>).values);
}
