/** The cells in which a filter picks tiles. */
import type { GridName } from '../geocode/index.js';
import { all, type Filter, searchTiles } from '../query/index.js';
import type { Storage, TileRecord } from '../storage/index.js';

export interface PickedCell {
  collection: string;
  grid: GridName;
  geocode: string;
}

/** Records read at once. */
const PAGE = 1000;

/** Cells of collections, in the order of their geocodes. The memory it takes grows with the cells, not with the tiles. */
export async function pickedCells(storage: Storage, filter: Filter): Promise<PickedCell[]> {
  const cells = new Map<string, PickedCell>();
  for await (const { collection, grid, geocode } of pickedTiles(storage, filter))
    cells.set(`${collection} ${grid} ${geocode}`, { collection, grid, geocode });
  return [...cells.keys()].sort().map((key) => cells.get(key) as PickedCell);
}

/** All tiles that a filter picks, newest first, read a page at a time. */
export async function* pickedTiles(storage: Storage, filter: Filter): AsyncGenerator<TileRecord> {
  let token: string | undefined;
  do {
    const page = searchTiles(storage.index, filter, { limit: PAGE, token });
    yield* await storage.getTiles(page.ids);
    token = page.next;
  } while (token !== undefined);
}

/** The tiles of one cell that a filter picks, of one collection or of those that the filter names. */
export async function tilesOfCell(
  storage: Storage,
  { collection, grid, geocode }: Omit<PickedCell, 'collection'> & { collection?: string },
  filter: Filter,
): Promise<TileRecord[]> {
  const here = all([
    { op: '=', property: 'geocode', value: geocode },
    ...(collection === undefined ? [] : [{ op: '=', property: 'collection', value: collection } as const]),
    filter,
  ]);
  const { ids } = searchTiles(storage.index, here);
  // A geocode of digits may be one of either grid.
  return (await storage.getTiles(ids)).filter((tile) => tile.grid === grid);
}

/** Tiles of one source. */
export const ofSource = (value: TileRecord['source']): Filter => ({ op: '=', property: 'source', value });
