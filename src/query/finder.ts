/** Where searches are made: on the tiles of one node, or on those of all nodes of a cluster. */
import type { Storage, TileRecord } from '../storage/index.js';
import { findPlaces, pageOf, type Search, type SearchPage } from './search.js';

export interface FoundTiles extends SearchPage {
  /** The records of the page, in its order; those that have gone meanwhile are left out. */
  tiles: TileRecord[];
  /** Slots for which no node answers, where there are some: the page lacks their tiles. */
  unanswered?: number[];
}

export interface TileFinder {
  find(search: Search): Promise<FoundTiles>;
  /** Undefined where there is no such tile. */
  get(id: string): Promise<TileRecord | undefined>;
}

/** On the tiles of a node that is alone. */
export function localFinder(storage: Storage): TileFinder {
  return {
    async find(search) {
      const page = pageOf(findPlaces(storage.index, search), search);
      return { ...page, tiles: await storage.getTiles(page.ids) };
    },
    get: (id) => storage.getTile(id),
  };
}
