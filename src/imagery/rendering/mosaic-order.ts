/** Tiles from the least cloudy on, found a few at a time: mostly the first ones suffice. */
import { createSearch, type Filter, slotsUnanswered, type TileFinder } from '../../query/index.js';
import type { SortOrder, TileRecord } from '../../storage/index.js';

/** Unknown last; then newest first, then by collection and id. */
const BY_CLOUD_COVER: SortOrder = [{ column: 'cloud', descending: false }];
/** Tiles of the first group; each has twice as many as the one before, so that the groups are few. */
const FIRST_BATCH_SIZE = 64;

/**
 * Groups of tiles in that order; the caller stops when it has seen enough. Throws TW_QUERY_UNANSWERED where there may be others that nobody
 * answers for.
 */
export async function* tilesByCloudCover(finder: TileFinder, filter: Filter): AsyncGenerator<TileRecord[]> {
  let token: string | undefined;
  for (let limit = FIRST_BATCH_SIZE; ; limit *= 2) {
    const search = createSearch(filter, {
      order: BY_CLOUD_COVER,
      limit,
      ...(token !== undefined && { token }),
    });
    const page = await finder.find(search);
    if (page.unanswered) throw slotsUnanswered(page.unanswered.length);
    yield page.tiles;
    token = page.next;
    if (token === undefined) return;
  }
}
