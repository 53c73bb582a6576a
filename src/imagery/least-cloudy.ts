/** Tiles from the least cloudy on, found a few at a time: mostly the first ones suffice. */
import { type Filter, searchTiles } from '../query/index.js';
import type { RowOrder, Storage, TileRecord } from '../storage/index.js';

/** Unknown last; then newest first, then by collection and id. */
const BY_CLOUD: RowOrder = [{ column: 'cloud', descending: false }];
const PAGE = 64;

/** Groups of tiles in that order; the caller stops when it has seen enough. */
export async function* leastCloudy(storage: Storage, filter: Filter): AsyncGenerator<TileRecord[]> {
  let token: string | undefined;
  do {
    const page = searchTiles(storage.index, filter, { order: BY_CLOUD, limit: PAGE, token });
    yield await storage.getTiles(page.ids);
    token = page.next;
  } while (token !== undefined);
}
