/** Coalesce as a job: tiles of one dataset are cut to the cells and times of another. */
import { type Bbox, cellBbox, gridByName } from '../../grid/index.js';
import type { JobContext, Process } from '../../jobs/index.js';
import {
  and,
  checkFilter,
  defaultToRawSource,
  type Filter,
  type FilterParams,
  filterBody,
  parseFilter,
  type TileFinder,
} from '../../query/index.js';
import type { TileRecord } from '../../storage/index.js';
import { unknownCollection } from '../errors.js';
import { cellSizes, tileBytes } from '../tiles/cell-sizes.js';
import {
  type DeriveResults,
  deriveTiles,
  type PlannedDerivation,
  RESUMABLE_PROCESS,
  type TileDerivation,
  type TileProcessContext,
} from './derive-tiles.js';
import { DAY_MS, DEFAULT_WINDOW_DAYS, timeDistanceMs } from './fill-process.js';
import { type SelectedCell, searchAllTiles, searchTilesOfCell, selectedCells } from './selected-tiles.js';

export interface CoalesceInputs {
  /** Where and when (bbox, geocode, datetime) picks tiles of `to`; all else picks the tiles that are cut. */
  filter?: FilterParams;
  /** Collection whose cells and times are taken over. */
  to: string;
  /** Days: where no tile overlaps a time, the nearest scene within so many is taken. */
  window?: number;
}

export function coalesceProcess(context: TileProcessContext): Process {
  return {
    id: 'coalesce',
    title: 'Coalesce datasets',
    description: 'Cuts the tiles of one dataset to the cells and times of another.',
    inputs: {
      type: 'object',
      required: ['to'],
      additionalProperties: false,
      properties: {
        filter: { type: 'object', additionalProperties: false, properties: filterBody },
        to: { type: 'string' },
        window: { type: 'number', minimum: 0, maximum: 36_500 },
      },
    },
    ...RESUMABLE_PROCESS,
    check: checkFilter,
    run: (inputs, job) => coalesce(context, inputs as CoalesceInputs, job),
  };
}

async function coalesce(
  context: TileProcessContext,
  { filter = {}, to, window = DEFAULT_WINDOW_DAYS }: CoalesceInputs,
  job: JobContext,
): Promise<DeriveResults> {
  const { storage } = context;
  if (!(await storage.getCollection(to))) throw unknownCollection(to);
  const { bbox, intersects, geocode, recurse, datetime, ...what } = filter;
  const given = { bbox, intersects, geocode, recurse, datetime, collections: [to], source: 'raw' };
  const where = parseFilter(given);
  const planned = planCoalesce(
    context,
    where,
    defaultToRawSource(parseFilter(what)),
    window * DAY_MS,
    job.isMine,
  );
  return deriveTiles(context, planned, job, 'holds no data');
}

async function* planCoalesce(
  { storage, finder }: TileProcessContext,
  where: Filter,
  what: Filter,
  window: number,
  isMine: JobContext['isMine'],
): AsyncGenerator<PlannedDerivation> {
  for (const cell of await selectedCells(storage, where, isMine)) {
    const times = await searchTilesOfCell(finder, cell, where);
    const scenes = scenesOf(
      (await tilesOver(finder, cell, what)).filter((tile) => tile.collection !== cell.collection),
    );
    const chosen = new Set(times.flatMap((time) => scenesAt(scenes, time, window)));
    if (chosen.size === 0) yield { skipped: 'no tile is near it in space and time' };
    for (const tiles of chosen) yield planOne(cell, tiles);
  }
}

/** Tiles that share ground with a cell, whichever grid they are in. */
async function tilesOver(finder: TileFinder, cell: SelectedCell, what: Filter): Promise<TileRecord[]> {
  const box = cellBbox(gridByName(cell.grid), cell.geocode);
  const tiles = await searchAllTiles(finder, and([{ op: 's_intersects', shape: { bbox: box } }, what]));
  return tiles.filter(({ grid, geocode }) => overlap(box, cellBbox(gridByName(grid), geocode)));
}

/** A share of a degree less than a centimetre is rounding along an edge. */
const EDGE_TOLERANCE_DEG = 1e-8;

/** With more than an edge. Cells never cross the antimeridian. */
function overlap(a: Bbox, b: Bbox): boolean {
  const shares = (low: number, high: number) => high - low > EDGE_TOLERANCE_DEG;
  return (
    shares(Math.max(a[0], b[0]), Math.min(a[2], b[2])) && shares(Math.max(a[1], b[1]), Math.min(a[3], b[3]))
  );
}

/** Tiles of one scene, made in the same way, in the order of their geocodes. */
function scenesOf(tiles: TileRecord[]): TileRecord[][] {
  const scenes = new Map<string, TileRecord[]>();
  for (const tile of tiles) {
    const key = `${tile.collection} ${tile.scene} ${tile.source} ${tile.grid} ${tile.geocode.length}`;
    scenes.set(key, [...(scenes.get(key) ?? []), tile]);
  }
  for (const scene of scenes.values()) scene.sort((a, b) => (a.geocode < b.geocode ? -1 : 1));
  return [...scenes.keys()].sort().map((key) => scenes.get(key) as TileRecord[]);
}

/** Of each collection: the scenes that overlap a time, else the nearest within the window. */
function scenesAt(scenes: TileRecord[][], time: TileRecord, window: number): TileRecord[][] {
  const nearest = new Map<string, number>();
  for (const [tile] of scenes) {
    const known = nearest.get(tile.collection) ?? window;
    nearest.set(tile.collection, Math.min(known, timeDistanceMs(tile, time)));
  }
  return scenes.filter(([tile]) => timeDistanceMs(tile, time) === nearest.get(tile.collection));
}

/** A thread holds all bands of a tile, and its files, at once. */
const MAX_TILE_BYTES = 512e6;

function planOne(cell: SelectedCell, tiles: TileRecord[]): PlannedDerivation {
  const [first] = tiles;
  if (first.grid === cell.grid && first.geocode === cell.geocode) return { skipped: 'has that cell already' };
  const { collection, scene, start, end, platform } = first;
  const { grid, geocode } = cell;
  const facts = { collection, scene, grid, geocode, source: 'coalesced' as const, start, end, platform };
  const sizes = cellSizes(facts, tiles);
  if (tileBytes(first.groups, sizes) > MAX_TILE_BYTES)
    return { skipped: 'its tile would be larger than 512 MB' };
  return {
    facts,
    inputs: tiles,
    parameters: {},
    task: (tile, sources) => ({ kind: 'cut', tile, sources, sizes }),
  } satisfies TileDerivation;
}
