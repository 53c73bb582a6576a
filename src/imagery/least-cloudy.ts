/** Tiles from the least cloudy on, found a few at a time: mostly the first ones suffice. */
import { searchTiles, type TileFilter } from '../query/index.js';
import type { Storage, TileRecord } from '../storage/index.js';

/** Percent of cloud that is searched up to, step by step. */
const STEPS = [0, 2, 5, 10, 20, 35, 50, 75, 100];
const PAGE = 64;

/** By cloud cover, unknown last; then newest first, then by collection and id. */
export function byCloud(a: TileRecord, b: TileRecord): number {
  return (a.cloudCover ?? Infinity) - (b.cloudCover ?? Infinity) || 0;
}

/** Groups of tiles in that order; the caller stops when it has seen enough. */
export async function* leastCloudy(storage: Storage, filter: TileFilter): AsyncGenerator<TileRecord[]> {
  const first = searchTiles(storage.index, filter, { limit: PAGE });
  if (first.next === undefined) {
    yield sorted(await storage.getTiles(first.ids));
    return;
  }
  const seen = new Set<string>();
  const { minCloud = 0, maxCloud = 100 } = filter;
  for (const [i, step] of STEPS.entries()) {
    const low = Math.max(minCloud, i === 0 ? 0 : STEPS[i - 1]);
    const high = Math.min(maxCloud, step);
    if (low <= high) yield* unseen(storage, { ...filter, minCloud: low, maxCloud: high }, seen, low === high);
  }
  // Those of which nobody knows how cloudy they are; a bound of cloud leaves them out.
  if (filter.minCloud === undefined && filter.maxCloud === undefined)
    yield* unseen(storage, filter, seen, true);
}

/** `alike`: all are equally cloudy, so that the order of the search is right and pages can be taken as they come. */
async function* unseen(
  storage: Storage,
  filter: TileFilter,
  seen: Set<string>,
  alike: boolean,
): AsyncGenerator<TileRecord[]> {
  const ids = searchTiles(storage.index, filter).ids.filter((id) => !seen.has(id));
  for (const id of ids) seen.add(id);
  const page = alike ? PAGE : ids.length;
  for (let at = 0; at < ids.length; at += page)
    yield sorted(await storage.getTiles(ids.slice(at, at + page)));
}

/** Stable: what is equally cloudy stays newest first. */
function sorted(tiles: TileRecord[]): TileRecord[] {
  return tiles.sort(byCloud);
}
