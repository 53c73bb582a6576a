/** Finds tiles from the least cloudy on in batches, because usually the first tiles suffice. */
import { createSearch, type Filter, slotsUnanswered, type TileFinder } from '../../query/index.js';
import type { SortOrder, TileRecord } from '../../storage/index.js';

/** Unknown cloud cover is last. Ties are ordered newest first, then by collection and id. */
const BY_CLOUD_COVER: SortOrder = [{ column: 'cloud', descending: false }];
/** Tiles of the first batch. Each batch has twice as many as the one before, so that batches are few. */
const FIRST_BATCH_SIZE = 64;

/**
 * Yields batches of tiles in that order; the caller stops when it has enough. Throws TW_QUERY_UNANSWERED if nodes with other tiles do not
 * respond.
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
