/** The other dates that cloud removal reads: those of the cell of a tile, or of the nine cells of its halo. */
import { and, createSearch, parseFilter, searchTiles, type TileFinder } from '../../query/index.js';
import type { Storage, TileRecord } from '../../storage/index.js';
import { type AcquisitionFiles, acquisitionFiles, areAlike, priorDates } from '../data/index.js';
import type { CellDates } from '../halo/index.js';
import type { ModelSpec } from '../models/index.js';

export interface PriorTile {
  tile: TileRecord;
  date: AcquisitionFiles;
}

/** Returns other dates of the cell of a tile for the prior of cloud removal, the nearest in time first. */
export async function priorTiles(storage: Storage, spec: ModelSpec, tile: TileRecord): Promise<PriorTile[]> {
  const { collection, geocode, source } = tile;
  const filter = parseFilter({ collections: [collection], geocode, source });
  const found = await storage.getTiles(searchTiles(storage.index, filter).ids);
  return nearestDates(tile, otherDates(storage, spec, tile, found));
}

export interface HaloDates {
  /** Dates of each cell, in the order of the cells. */
  cells: CellDates[];
  /** The tiles of these dates. */
  tiles: TileRecord[];
  /** True if tiles may be missing, because no node answered for them. */
  isPartial: boolean;
}

/** Finds the dates of the priors of several cells, each with one tile of the scene, on any node. */
export async function planHaloDates(
  { storage, finder }: { storage: Storage; finder: TileFinder },
  spec: ModelSpec,
  scene: TileRecord[],
): Promise<HaloDates> {
  const { found, isPartial } = await tilesOfCells(finder, scene);
  const others = scene.map((tile) => otherDates(storage, spec, tile, found));
  const priors = scene.map((tile, i) => nearestDates(tile, others[i]));
  const wanted = new Set(priors.flat().map(({ tile }) => tile.scene));
  const read = others.map((dates) => dates.filter(({ tile }) => wanted.has(tile.scene)));
  return {
    cells: priors.map((prior, i) => ({
      prior: prior.map(({ tile }) => tile.scene),
      files: Object.fromEntries(read[i].map(({ tile, date }) => [tile.scene, date])),
    })),
    tiles: read.flat().map(({ tile }) => tile),
    isPartial,
  };
}

const PAGE_SIZE = 1000;

/** Returns all tiles of these cells, of the collection and source of the given ones. */
async function tilesOfCells(finder: TileFinder, cells: TileRecord[]) {
  const [{ collection, source }] = cells;
  const values = cells.map(({ geocode }) => geocode);
  const filter = and([
    { op: '=', property: 'collection', value: collection },
    { op: '=', property: 'source', value: source },
    { op: 'in', property: 'geocode', values },
  ]);
  const found: TileRecord[] = [];
  let isPartial = false;
  let token: string | undefined;
  do {
    const page = await finder.find(createSearch(filter, { limit: PAGE_SIZE, token }));
    found.push(...page.tiles);
    if (page.unanswered) isPartial = true;
    token = page.next;
  } while (token !== undefined);
  return { found, isPartial };
}

/** Returns the dates in the cell of a tile that can be read like it, one of each scene, ordered by id. */
function otherDates(
  storage: Storage,
  { inputs }: ModelSpec,
  tile: TileRecord,
  found: TileRecord[],
): PriorTile[] {
  const scenes = new Map<string, PriorTile>();
  for (const other of found.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    // A geocode of digits may belong to either grid.
    const isOfCell = other.grid === tile.grid && other.geocode === tile.geocode && other.id !== tile.id;
    // The cloud mask of a scene is also that of pixels in the cells whose prior has this scene.
    if (!isOfCell || other.cloudCover === null || !areAlike(inputs, tile, other)) continue;
    const date = acquisitionFiles(storage, inputs, other);
    if (date && !scenes.has(other.scene)) scenes.set(other.scene, { tile: other, date });
  }
  return [...scenes.values()];
}

function nearestDates(tile: TileRecord, others: PriorTile[]): PriorTile[] {
  return priorDates([tile, ...others.map((other) => other.tile)], 0).map((at) => others[at - 1]);
}
