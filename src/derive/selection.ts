/** Tiles that match a filter, with their cells, and the tiles around a tile on any node. */
import { type GridName, gridByName, type PixelGrid } from '../grid/index.js';
import type { JobContext } from '../jobs/index.js';
import { and, createSearch, type Filter, searchTiles, type TileFinder } from '../query/index.js';
import type { Storage, TileRecord } from '../storage/index.js';
import { tilesOutOfReach } from './errors.js';

export interface SelectedCell {
  collection: string;
  grid: GridName;
  geocode: string;
}

type IsMine = JobContext['isMine'];

/** Records of one page. */
const PAGE = { limit: 1000, count: false };

/** The cells of this run's matching tiles, ordered by collection, grid and geocode. Memory grows with the number of cells, not of tiles. */
export async function selectedCells(
  storage: Storage,
  filter: Filter,
  isMine: IsMine,
): Promise<SelectedCell[]> {
  const cells = new Map<string, SelectedCell>();
  for await (const { collection, grid, geocode } of selectedTiles(storage, filter, isMine))
    cells.set(`${collection} ${grid} ${geocode}`, { collection, grid, geocode });
  return [...cells.keys()].sort().map((key) => cells.get(key) as SelectedCell);
}

/** All matching tiles of this run, newest first, read page by page. They are on this node. */
export async function* selectedTiles(
  storage: Storage,
  filter: Filter,
  isMine: IsMine,
): AsyncGenerator<TileRecord> {
  let token: string | undefined;
  do {
    const page = await searchTiles(storage.index, filter, { ...PAGE, token });
    for (const tile of await storage.getTiles(page.ids)) if (isMine(tile)) yield tile;
    token = page.next;
  } while (token !== undefined);
}

/** All matching tiles of all nodes, newest first. Throws TW_WRANGLE_OUT_OF_REACH. */
export async function searchAllTiles(finder: TileFinder, filter: Filter): Promise<TileRecord[]> {
  const found: TileRecord[] = [];
  for await (const tiles of searchTilePages(finder, filter)) found.push(...tiles);
  return found;
}

/** The same tiles page by page. */
export async function* searchTilePages(finder: TileFinder, filter: Filter): AsyncGenerator<TileRecord[]> {
  let token: string | undefined;
  do {
    const page = await finder.find(createSearch(filter, { ...PAGE, token }));
    if (page.unanswered) throw tilesOutOfReach(page.unanswered.length);
    yield page.tiles;
    token = page.next;
  } while (token !== undefined);
}

/** The matching tiles of one cell, of one collection or of those that the filter names. */
export async function searchTilesOfCell(
  finder: TileFinder,
  { collection, grid, geocode }: Omit<SelectedCell, 'collection'> & { collection?: string },
  filter: Filter,
): Promise<TileRecord[]> {
  const inCell = and([
    { op: '=', property: 'geocode', value: geocode },
    ...(collection === undefined ? [] : [{ op: '=', property: 'collection', value: collection } as const]),
    filter,
  ]);
  // A geocode of digits may belong to either grid.
  return (await searchAllTiles(finder, inCell)).filter((tile) => tile.grid === grid);
}

export const sourceFilter = (value: TileRecord['source']): Filter => ({ op: '=', property: 'source', value });

export interface NeighbourTile {
  tile: TileRecord;
  /** Cells from the tile to this one, to the east and to the south. */
  east: number;
  south: number;
}

interface NeighbourTiles {
  tiles: NeighbourTile[];
  /** Number of slots for which no node answered: their tiles may be missing. */
  unanswered: number;
}

/** Maximum number of tiles of a search: a cell can have several tiles of a derived source. */
const MAX_TILES = 1000;

/**
 * Returns the tiles of the same scene and source in the cells within `reach` pixels of a tile of this size, ordered by geocode. The cells
 * on the other side of the antimeridian count, too.
 */
export async function findNeighbourTiles(
  finder: TileFinder,
  { collection, scene, source, grid: name, geocode }: TileRecord,
  { width, height }: PixelGrid,
  reach: number,
): Promise<NeighbourTiles> {
  const grid = gridByName(name);
  const { west, south, east, north } = grid.bounds(geocode);
  const cell = { width: east - west, height: north - south };
  const [x, y] = [(reach / width) * cell.width, (reach / height) * cell.height];
  const world = grid.extent.east - grid.extent.west;
  const cells = [0, world, -world].flatMap((turn) =>
    grid.cover(
      { west: west - x + turn, south: south - y, east: east + x + turn, north: north + y },
      geocode.length,
    ),
  );
  const values = [...new Set(cells)].filter((one) => one !== geocode);
  const { tiles: found, unanswered = [] } = await finder.find(
    createSearch(
      and([
        { op: '=', property: 'collection', value: collection },
        { op: '=', property: 'scene', value: scene },
        { op: '=', property: 'source', value: source },
        { op: 'in', property: 'geocode', values },
      ]),
      { limit: MAX_TILES },
    ),
  );
  // A geocode of digits may belong to either grid. If a cell has several tiles of a derived source, the first id counts.
  const byCell = new Map(
    found
      .filter((tile) => tile.grid === name)
      .sort((a, b) => (a.id < b.id ? 1 : -1))
      .map((tile) => [tile.geocode, tile]),
  );
  const tiles = [...byCell.values()]
    .sort((a, b) => (a.geocode < b.geocode ? -1 : 1))
    .map((tile) => {
      const other = grid.bounds(tile.geocode);
      const distance = other.west - west;
      const turn = Math.abs(distance) <= world / 2 ? 0 : -Math.sign(distance) * world;
      return {
        tile,
        east: Math.round((distance + turn) / cell.width),
        south: Math.round((north - other.north) / cell.height),
      };
    });
  return { tiles, unanswered: unanswered.length };
}
