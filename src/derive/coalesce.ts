/** Coalesce as a job: cuts tiles of one dataset to the cells and times of another. */
import { type Bbox, cellBbox, gridByName } from '../grid/index.js';
import type { JobContext, Process } from '../jobs/index.js';
import {
  and,
  defaultToRawSource,
  type Filter,
  type FilterParams,
  parseFilter,
  type TileFinder,
} from '../query/index.js';
import type { TileRecord } from '../storage/index.js';
import { unknownCollection } from './errors.js';
import { DAY_MS, DEFAULT_WINDOW_DAYS, timeDistanceMs } from './fill.js';
import { derivedProperties, deriveProcess, type PlannedDerivation, type TileProcessContext } from './job.js';
import { type SelectedCell, searchAllTiles, searchTilesOfCell, selectedCells } from './selection.js';
import { cellSizes, tileBytes } from './split.js';

interface CoalesceInputs {
  /** Place and time (bbox, geocode, datetime) select tiles of `to`; the other members select the tiles that are cut. */
  filter?: FilterParams;
  /** Collection whose cells and times the new tiles have. */
  to: string;
  /** If no tile overlaps a time, the nearest scene within this number of days is taken. */
  window?: number;
}

export const coalesceProcess = (context: TileProcessContext): Process =>
  deriveProcess(context, {
    id: 'coalesce',
    title: 'Coalesce datasets',
    description: 'Cuts the tiles of one dataset to the cells and times of another.',
    required: ['to'],
    properties: { to: { type: 'string' }, window: { type: 'number', minimum: 0, maximum: 36_500 } },
    reasonForNone: 'holds no data',
    plan: async (context, { filter = {}, to, window = DEFAULT_WINDOW_DAYS }: CoalesceInputs, isMine) => {
      if (!(await context.storage.catalogue.collections.get(to))) throw unknownCollection(to);
      const { bbox, intersects, geocode, recurse, datetime, ...others } = filter;
      const place = { bbox, intersects, geocode, recurse, datetime };
      const targets = parseFilter({ ...place, collections: [to], source: 'raw' });
      const inputs = defaultToRawSource(parseFilter(others));
      return planCoalesce(context, targets, inputs, window * DAY_MS, isMine);
    },
  });

/** `targets` selects the tiles that determine cells and times, `inputs` the tiles that are cut. */
async function* planCoalesce(
  { storage, finder }: TileProcessContext,
  targets: Filter,
  inputs: Filter,
  window: number,
  isMine: JobContext['isMine'],
): AsyncGenerator<PlannedDerivation> {
  for (const cell of await selectedCells(storage, targets, isMine)) {
    const times = await searchTilesOfCell(finder, cell, targets);
    const scenes = scenesOf(
      (await tilesOver(finder, cell, inputs)).filter((tile) => tile.collection !== cell.collection),
    );
    const chosen = new Set(times.flatMap((time) => scenesAt(scenes, time, window)));
    if (chosen.size === 0) yield { skipped: 'no tile is near it in space and time' };
    for (const tiles of chosen) yield planOne(cell, tiles);
  }
}

/** Tiles of both grids that share area with a cell. */
async function tilesOver(finder: TileFinder, cell: SelectedCell, filter: Filter): Promise<TileRecord[]> {
  const box = cellBbox(gridByName(cell.grid), cell.geocode);
  const tiles = await searchAllTiles(finder, and([{ op: 's_intersects', shape: { bbox: box } }, filter]));
  return tiles.filter(({ grid, geocode }) => overlap(box, cellBbox(gridByName(grid), geocode)));
}

/** An overlap of less than a centimetre is a rounding error along an edge. */
const EDGE_TOLERANCE_DEG = 1e-8;

/** Returns true if boxes share more than an edge. Cells never cross the antimeridian. */
function overlap(a: Bbox, b: Bbox): boolean {
  const shares = (low: number, high: number) => high - low > EDGE_TOLERANCE_DEG;
  return (
    shares(Math.max(a[0], b[0]), Math.min(a[2], b[2])) && shares(Math.max(a[1], b[1]), Math.min(a[3], b[3]))
  );
}

/** Groups tiles by scene, source and precision. The tiles of a group are ordered by geocode. */
function scenesOf(tiles: TileRecord[]): TileRecord[][] {
  const scenes = new Map<string, TileRecord[]>();
  for (const tile of tiles) {
    const key = `${tile.collection} ${tile.scene} ${tile.source} ${tile.grid} ${tile.geocode.length}`;
    scenes.set(key, [...(scenes.get(key) ?? []), tile]);
  }
  for (const scene of scenes.values()) scene.sort((a, b) => (a.geocode < b.geocode ? -1 : 1));
  return [...scenes.keys()].sort().map((key) => scenes.get(key) as TileRecord[]);
}

/** For each collection: the scenes that overlap a time, or else the nearest scenes within the window. */
function scenesAt(scenes: TileRecord[][], time: TileRecord, window: number): TileRecord[][] {
  const nearest = new Map<string, number>();
  for (const [tile] of scenes) {
    const known = nearest.get(tile.collection) ?? window;
    nearest.set(tile.collection, Math.min(known, timeDistanceMs(tile, time)));
  }
  return scenes.filter(([tile]) => timeDistanceMs(tile, time) === nearest.get(tile.collection));
}

/** A thread holds all bands of a tile and its files in memory. */
const MAX_TILE_BYTES = 512e6;

function planOne(cell: SelectedCell, tiles: TileRecord[]): PlannedDerivation {
  const [first] = tiles;
  if (first.grid === cell.grid && first.geocode === cell.geocode) return { skipped: 'has that cell already' };
  const facts = derivedProperties(first, 'coalesced', cell);
  const sizes = cellSizes(facts, tiles);
  if (tileBytes(first.groups, sizes) > MAX_TILE_BYTES)
    return { skipped: 'its tile would be larger than 512 MB' };
  return {
    facts,
    inputs: tiles,
    parameters: {},
    task: (tile, sources) => ({ kind: 'cut', tile, sources, sizes }),
  };
}
