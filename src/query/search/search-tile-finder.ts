/** Queries over all tiles, on a single node or in a cluster: owner nodes are queried, and their answers are merged. */
import type { OwnerQueries, ScatterQuery } from '../../dht/index.js';
import {
  decodeTiles,
  type EncodedTiles,
  type Storage,
  TileBatch,
  type TileRecord,
} from '../../storage/index.js';
import {
  type Aggregation,
  type AggregationCounts,
  type AggregationParams,
  countTiles,
  mergeAggregationCounts,
  toAggregations,
} from '../aggregate/index.js';
import { compileFilter } from '../compile/index.js';
import { slotsUnanswered as unansweredSlots } from '../errors.js';
import type { Filter } from '../filter/index.js';
import { memoizeUntilChange } from '../memoize-query.js';
import {
  type CollectionSummaries,
  type CollectionSummariesWithTiles,
  collectionExtents,
  collectionSummaries,
  type Extent,
  mergeExtents,
  mergeSummaries,
} from '../stac-documents/index.js';
import {
  mergeHits,
  type Search,
  type SearchHits,
  type SearchPage,
  searchIndex,
  toSearchPage,
} from './search-index.js';
import {
  AGGREGATE_QUERY,
  EXTENTS_QUERY,
  SEARCH_QUERY,
  SUMMARIES_QUERY,
  TILE_QUERY,
} from './search-remote-queries.js';

export interface PartialAnswer {
  /** Slots for which no node answered, if there are any: the answer lacks their tiles. */
  unanswered?: number[];
}

export interface FoundTiles extends SearchPage, PartialAnswer {
  /** The records of the page, in its order, without tiles that were removed in the meantime. */
  tiles: TileRecord[];
}

interface SearchAnswer {
  found: SearchHits;
  tiles: TileBatch | EncodedTiles;
}

type Entries<T> = [id: string, T][];

interface ContentAnswer {
  contents: Entries<CollectionSummaries>;
  samples: TileRecord[];
}

export class TileFinder {
  private readonly search: ScatterQuery<Search, SearchAnswer>;
  private readonly tile: ScatterQuery<string, TileRecord | null>;
  private readonly count: ScatterQuery<{ filter: Filter; params: AggregationParams }, AggregationCounts>;
  /** Both by the ids of collections with tiles. Cached, because they read every tile. */
  readonly extents: () => Promise<PartialAnswer & { extents: ReadonlyMap<string, Extent> }>;
  readonly contents: () => Promise<
    PartialAnswer & { contents: ReadonlyMap<string, CollectionSummariesWithTiles> }
  >;

  constructor(storage: Storage, owners: OwnerQueries) {
    this.search = owners.register(SEARCH_QUERY, async ({ limit, ...search }, { only, seq }) => {
      // JSON has no infinity.
      const found = searchIndex(storage.index, { ...search, limit: limit ?? Infinity }, only);
      const ids = found.places.map(({ id }) => id);
      return { found, tiles: new TileBatch(await storage.getTiles(ids, seq)) };
    });
    this.tile = owners.register(TILE_QUERY, async (id, { seq }) => {
      if (seq === undefined) return (await storage.catalogue.tiles.get(id)) ?? null;
      const [tile] = storage.index.has(id) ? await storage.getTiles([id], seq) : [];
      return tile ?? null;
    });
    this.count = owners.register(AGGREGATE_QUERY, async ({ filter, params }, { only }) =>
      countTiles(storage.index, filter, params, only),
    );
    const askExtents = owners.register(
      EXTENTS_QUERY,
      async (_: null, share): Promise<Entries<Extent>> => [...collectionExtents(storage.index, share)],
    );
    this.extents = memoizeUntilChange(owners, async () => {
      const { answers, unanswered } = await askExtents(null);
      return {
        extents: mergeExtents(answers.map((entries) => new Map(entries))),
        ...partialAnswer(unanswered),
      };
    });
    const askContents = owners.register(SUMMARIES_QUERY, async (_: null, share): Promise<ContentAnswer> => {
      const contents = [...collectionSummaries(storage.index, share)];
      const ids = contents.flatMap(([, { samples }]) => samples.map(({ id }) => id));
      return { contents, samples: await storage.getTiles(ids, share.seq) };
    });
    this.contents = memoizeUntilChange(owners, async () => {
      const { answers, unanswered } = await askContents(null);
      const merged = mergeSummaries(answers.map(({ contents }) => new Map(contents)));
      const tiles = new Map(answers.flatMap(({ samples }) => samples).map((tile) => [tile.id, tile]));
      const contents = new Map(
        Array.from(merged, ([id, { samples, ...content }]) => [
          id,
          { ...content, tiles: samples.flatMap((sample) => tiles.get(sample.id) ?? []) },
        ]),
      );
      return { contents, ...partialAnswer(unanswered) };
    });
  }

  /** A page of tiles. Throws the errors of `searchIndex`. */
  async find(search: Search): Promise<FoundTiles> {
    const { answers, unanswered } = await this.search(search, () => this.boundsOf(search.filter));
    const page = toSearchPage(
      mergeHits(
        answers.map(({ found }) => found),
        search,
      ),
      search,
    );
    return { ...page, tiles: inOrder(page.ids, answers), ...partialAnswer(unanswered) };
  }

  /** The record of a tile; undefined if it does not exist. Throws TW_QUERY_UNANSWERED if no node can tell. */
  async get(id: string): Promise<TileRecord | undefined> {
    const { answers, unanswered } = await this.tile(id, () => ({ ids: [id] }));
    const tile = answers.find((answer) => answer !== null);
    if (!tile && unanswered.length > 0) throw unansweredSlots(unanswered.length);
    return tile ?? undefined;
  }

  /** Counts over the tiles that match a filter. Throws TW_QUERY_AGGREGATION, TW_QUERY_TOO_SLOW. */
  async aggregate(
    filter: Filter,
    params: AggregationParams,
  ): Promise<{ aggregations: Aggregation[] } & PartialAnswer> {
    const { answers, unanswered } = await this.count({ filter, params }, () => this.boundsOf(filter));
    return {
      aggregations: toAggregations(mergeAggregationCounts(answers), params),
      ...partialAnswer(unanswered),
    };
  }

  /** Keys and ids that matching tiles can have. */
  boundsOf(filter: Filter) {
    const { ranges, ids } = compileFilter(filter);
    return { ...(ranges && { ranges }), ...(ids && { ids }) };
  }
}

export const partialAnswer = (unanswered: number[]): PartialAnswer =>
  unanswered.length > 0 ? { unanswered } : {};

function inOrder(ids: string[], answers: SearchAnswer[]): TileRecord[] {
  const [first, ...others] = answers;
  if (others.length === 0) return first ? decodeTiles(first.tiles) : [];
  const byId = new Map(answers.flatMap(({ tiles }) => decodeTiles(tiles)).map((tile) => [tile.id, tile]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}
