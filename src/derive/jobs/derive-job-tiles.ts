/** Tiles that match a filter, and their cells. */
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

/** Records of one page. */
const PAGE_SIZE = 1000;

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
    const page = searchTiles(storage.index, filter, { limit: PAGE_SIZE, token });
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
    const page = await finder.find(createSearch(filter, { limit: PAGE_SIZE, token }));
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
