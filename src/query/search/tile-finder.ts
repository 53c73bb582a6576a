/** What is known of all tiles, on a node that is alone or on the nodes of a cluster: the owners are asked, and their answers put together. */
import type { Asking, Owners } from '../../dht/index.js';
import { type SentTiles, type Storage, TileList, type TileRecord, tilesOf } from '../../storage/index.js';
import {
  type Aggregation,
  type AggregationParams,
  aggregationsOf,
  countTiles,
  mergeTallies,
  type Tally,
} from '../aggregate/aggregate.js';
import { compileFilter } from '../compile/compile-filter.js';
import { unanswered as unansweredSlots } from '../errors.js';
import type { Filter } from '../filter/filter-tree.js';
import { keptUntilChange } from '../memoize-answer.js';
import { collectionExtents, type Extent, mergeExtents } from '../stac/collection-extents.js';
import {
  type CollectionContent,
  collectionContents,
  type DescribedContent,
  mergeContents,
} from '../stac/collection-summaries.js';
import { AGGREGATE, CONTENTS, EXTENTS, SEARCH, TILE } from './remote-queries.js';
import {
  type FoundPlaces,
  findPlaces,
  mergePlaces,
  pageOf,
  type Search,
  type SearchPage,
} from './search-index.js';

/** What may lack tiles. */
export interface Partly {
  /** Slots for which no node answers, where there are some: what was found lacks their tiles. */
  unanswered?: number[];
}

export interface FoundTiles extends SearchPage, Partly {
  /** The records of the page, in its order; those that have gone meanwhile are left out. */
  tiles: TileRecord[];
}

/** Of the collections that have tiles, by their ids. */
export interface Extents extends Partly {
  extents: ReadonlyMap<string, Extent>;
}

export interface Contents extends Partly {
  contents: ReadonlyMap<string, DescribedContent>;
}

interface FoundShare {
  found: FoundPlaces;
  tiles: TileList | SentTiles;
}

type Entries<T> = [id: string, T][];

interface ContentShare {
  contents: Entries<CollectionContent>;
  samples: TileRecord[];
}

export class TileFinder {
  private readonly search: Asking<Search, FoundShare>;
  private readonly tile: Asking<string, TileRecord | null>;
  private readonly count: Asking<{ filter: Filter; params: AggregationParams }, Tally>;
  /** Kept, because they take a look at every tile. */
  readonly extents: () => Promise<Extents>;
  readonly contents: () => Promise<Contents>;

  constructor(storage: Storage, owners: Owners) {
    this.search = owners.define(SEARCH, async ({ limit, ...search }, { only, seq }) => {
      // JSON has no infinity.
      const found = findPlaces(storage.index, { ...search, limit: limit ?? Infinity }, only);
      const ids = found.places.map(({ id }) => id);
      return { found, tiles: new TileList(await storage.getTiles(ids, seq)) };
    });
    this.tile = owners.define(TILE, async (id, { seq }) => {
      if (seq === undefined) return (await storage.getTile(id)) ?? null;
      const [tile] = storage.index.has(id) ? await storage.getTiles([id], seq) : [];
      return tile ?? null;
    });
    this.count = owners.define(AGGREGATE, async ({ filter, params }, { only }) =>
      countTiles(storage.index, filter, params, only),
    );
    const askExtents = owners.define(
      EXTENTS,
      async (_: null, share): Promise<Entries<Extent>> => [...collectionExtents(storage.index, share)],
    );
    this.extents = keptUntilChange(owners, async () => {
      const { answers, unanswered } = await askExtents(null);
      return { extents: mergeExtents(answers.map((entries) => new Map(entries))), ...partly(unanswered) };
    });
    const askContents = owners.define(CONTENTS, async (_: null, share): Promise<ContentShare> => {
      const contents = [...collectionContents(storage.index, share)];
      const ids = contents.flatMap(([, { samples }]) => samples.map(({ id }) => id));
      return { contents, samples: await storage.getTiles(ids, share.seq) };
    });
    this.contents = keptUntilChange(owners, async () => {
      const { answers, unanswered } = await askContents(null);
      const merged = mergeContents(answers.map(({ contents }) => new Map(contents)));
      const tiles = new Map(answers.flatMap(({ samples }) => samples).map((tile) => [tile.id, tile]));
      const contents = new Map(
        Array.from(merged, ([id, { samples, ...content }]) => [
          id,
          { ...content, tiles: samples.flatMap((sample) => tiles.get(sample.id) ?? []) },
        ]),
      );
      return { contents, ...partly(unanswered) };
    });
  }

  /** A page. Throws what `findPlaces` throws. */
  async find(search: Search): Promise<FoundTiles> {
    const { answers, unanswered } = await this.search(search, () => this.boundsOf(search.filter));
    const page = pageOf(
      mergePlaces(
        answers.map(({ found }) => found),
        search,
      ),
      search,
    );
    return { ...page, tiles: inOrder(page.ids, answers), ...partly(unanswered) };
  }

  /** Undefined where there is no such tile. Throws TW_QUERY_UNANSWERED where nobody knows. */
  async get(id: string): Promise<TileRecord | undefined> {
    const { answers, unanswered } = await this.tile(id, () => ({ ids: [id] }));
    const tile = answers.find((answer) => answer !== null);
    if (!tile && unanswered.length > 0) throw unansweredSlots(unanswered.length);
    return tile ?? undefined;
  }

  /** Counts over the tiles that a filter picks. Throws TW_QUERY_AGGREGATION, TW_QUERY_TOO_SLOW. */
  async aggregate(
    filter: Filter,
    params: AggregationParams,
  ): Promise<{ aggregations: Aggregation[] } & Partly> {
    const { answers, unanswered } = await this.count({ filter, params }, () => this.boundsOf(filter));
    return { aggregations: aggregationsOf(mergeTallies(answers), params), ...partly(unanswered) };
  }

  /** Where the tiles lie that a filter can pick. */
  boundsOf(filter: Filter) {
    const { ranges, ids } = compileFilter(filter);
    return { ...(ranges && { ranges }), ...(ids && { ids }) };
  }
}

/** Named only where there are some. */
export const partly = (unanswered: number[]): Partly => (unanswered.length > 0 ? { unanswered } : {});

function inOrder(ids: string[], answers: FoundShare[]): TileRecord[] {
  const [first, ...others] = answers;
  if (others.length === 0) return first ? tilesOf(first.tiles) : [];
  const byId = new Map(answers.flatMap(({ tiles }) => tilesOf(tiles)).map((tile) => [tile.id, tile]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}
