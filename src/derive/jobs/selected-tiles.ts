/** The cells in which a filter picks tiles. */
import type { GridName } from '../../grid/index.js';
import type { JobContext } from '../../jobs/index.js';
import { and, createSearch, type Filter, searchTiles, type TileFinder } from '../../query/index.js';
import type { Storage, TileRecord } from '../../storage/index.js';
import { tilesOutOfReach } from '../errors.js';

export interface SelectedCell {
  collection: string;
  grid: GridName;
  geocode: string;
}

type IsMine = JobContext['isMine'];

/** Records read at once. */
const PAGE_SIZE = 1000;

/** Cells of collections, in the order of their geocodes. The memory it takes grows with the cells, not with the tiles. */
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

/** All tiles of this run that a filter picks, newest first, read a page at a time. They are on this node. */
export async function* selectedTiles(
  storage: Storage,
  filter: Filter,
  isMine: IsMine,
): AsyncGenerator<TileRecord> {
  let token: string | undefined;
  do {
    const page = searchTiles(storage.index, filter, { limit: PAGE_SIZE, token });
    for (const tile of await storage.getTiles(page.ids)) if (isMine(tile)) yield tile;
    token = page.next;
  } while (token !== undefined);
}

/** All tiles that a filter picks, newest first, wherever they are. Throws TW_WRANGLE_OUT_OF_REACH. */
export async function searchAllTiles(finder: TileFinder, filter: Filter): Promise<TileRecord[]> {
  const found: TileRecord[] = [];
  for await (const tiles of searchTilePages(finder, filter)) found.push(...tiles);
  return found;
}

/** The same, a page at a time. */
export async function* searchTilePages(finder: TileFinder, filter: Filter): AsyncGenerator<TileRecord[]> {
  let token: string | undefined;
  do {
    const page = await finder.find(createSearch(filter, { limit: PAGE_SIZE, token }));
    if (page.unanswered) throw tilesOutOfReach(page.unanswered.length);
    yield page.tiles;
    token = page.next;
  } while (token !== undefined);
}

/** The tiles of one cell that a filter picks, of one collection or of those that the filter names. */
export async function searchTilesOfCell(
  finder: TileFinder,
  { collection, grid, geocode }: Omit<SelectedCell, 'collection'> & { collection?: string },
  filter: Filter,
): Promise<TileRecord[]> {
  const here = and([
    { op: '=', property: 'geocode', value: geocode },
    ...(collection === undefined ? [] : [{ op: '=', property: 'collection', value: collection } as const]),
    filter,
  ]);
  // A geocode of digits may be one of either grid.
  return (await searchAllTiles(finder, here)).filter((tile) => tile.grid === grid);
}

/** Tiles of one source. */
export const sourceFilter = (value: TileRecord['source']): Filter => ({ op: '=', property: 'source', value });
