/**
 * Queries over all tiles, on a single node or in a cluster: owner nodes are queried, and their answers are merged. Each kind of query has
 * checks of its questions and answers.
 */
import type { OwnerQueries, QueryKind, ScatterQuery } from '../dht/index.js';
import {
  CURSOR_SCHEMA,
  checkEncodedTiles,
  decodeTiles,
  type EncodedTiles,
  SORT_COLUMNS,
  type Storage,
  TILE_RECORD_SCHEMA,
  TIME_SCHEMA,
  TileBatch,
  type TileRecord,
} from '../storage/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT, tupleOf } from '../utils/json-schema.js';
import {
  type Aggregation,
  type AggregationCounts,
  type AggregationParams,
  aggregationQuery,
  countTiles,
  mergeAggregationCounts,
  toAggregations,
} from './aggregate.js';
import { compileFilter, prepareFilter } from './compile.js';
import { slotsUnanswered as unansweredSlots } from './errors.js';
import { checkRemoteFilter, type Filter } from './filter.js';
import { memoizeUntilChange } from './memoize.js';
import {
  mergeHits,
  type Search,
  type SearchHits,
  type SearchPage,
  searchIndex,
  toSearchPage,
} from './search.js';
import {
  type CollectionSummaries,
  type CollectionSummariesWithTiles,
  collectionSummaries,
  mergeSummaries,
} from './stac/collections.js';
import { collectionExtents, type Extent, mergeExtents } from './stac/extents.js';

const TEXTS_SCHEMA = listOf(TEXT);
const nullable = (schema: object) => ({ anyOf: [{ type: 'null' }, schema] });

/** A kind of query whose question has a filter; `question` checks the other members. */
export function kindWithFilter({ question: check, ...kind }: QueryKind): QueryKind {
  return {
    ...kind,
    question: (question) => check(question) ?? checkRemoteFilter((question as { filter: unknown }).filter),
    prepare: (question, signal) => prepareFilter((question as { filter: Filter }).filter, signal),
  };
}

const checkFound = messageCheck(
  objectOf({
    found: objectOf({ places: listOf(CURSOR_SCHEMA), matched: COUNT, more: { type: 'boolean' } }),
    tiles: {},
  }),
);

const SEARCH_QUERY = kindWithFilter({
  name: 'search',
  question: messageCheck(
    objectOf(
      {
        filter: {},
        order: listOf(objectOf({ column: { enum: SORT_COLUMNS }, descending: { type: 'boolean' } })),
        // JSON has no infinity.
        limit: nullable(COUNT),
      },
      { after: CURSOR_SCHEMA, count: { type: 'boolean' } },
    ),
  ),
  answer: (answer) => checkFound(answer) ?? checkEncodedTiles((answer as { tiles: unknown }).tiles),
});

const TILE_QUERY: QueryKind = {
  name: 'tile',
  question: messageCheck(TEXT),
  answer: messageCheck(nullable(TILE_RECORD_SCHEMA)),
};

const countsBy = (key: object) => objectOf({ counts: listOf(tupleOf(key, COUNT)), overflow: COUNT });

/** Days since 1970, within the range of `Date`. */
const DAY_NUMBER_SCHEMA = { type: 'integer', minimum: -1e8, maximum: 1e8 };

const AGGREGATE_QUERY = kindWithFilter({
  name: 'aggregate',
  question: messageCheck(
    objectOf({
      filter: {},
      params: objectOf({}, { ...aggregationQuery, aggregations: { anyOf: [TEXT, TEXTS_SCHEMA] } }),
    }),
  ),
  answer: messageCheck(
    objectOf({
      total: COUNT,
      first: nullable(TIME_SCHEMA),
      last: nullable(TIME_SCHEMA),
      counts: {
        type: 'object',
        properties: {
          datetime_frequency: countsBy(DAY_NUMBER_SCHEMA),
          grid_geohash_frequency: countsBy(COUNT),
        },
        additionalProperties: countsBy({ type: ['string', 'number'] }),
      },
    }),
  ),
});

/** Entries by collection id. */
const entriesOf = (schema: object) => listOf(tupleOf(TEXT, schema));

const EXTENTS_QUERY: QueryKind = {
  name: 'extents',
  question: messageCheck({ type: 'null' }),
  answer: messageCheck(
    entriesOf(
      objectOf({
        bbox: { type: 'array', minItems: 4, maxItems: 4, items: NUMBER },
        start: TIME_SCHEMA,
        end: TIME_SCHEMA,
      }),
    ),
  ),
};

const SAMPLE_SCHEMA = objectOf({
  platform: { type: ['string', 'null'] },
  source: TEXT,
  grid: TEXT,
  geocode: TEXT,
  start: TIME_SCHEMA,
  id: TEXT,
});

const RANGE_SCHEMA = objectOf({ minimum: NUMBER, maximum: NUMBER });

const SUMMARIES_QUERY: QueryKind = {
  name: 'contents',
  question: messageCheck({ type: 'null' }),
  answer: messageCheck(
    objectOf({
      contents: entriesOf(
        objectOf(
          {
            platforms: TEXTS_SCHEMA,
            sources: TEXTS_SCHEMA,
            coverage: RANGE_SCHEMA,
            samples: listOf(SAMPLE_SCHEMA),
          },
          { cloudCover: RANGE_SCHEMA },
        ),
      ),
      samples: listOf(TILE_RECORD_SCHEMA),
    }),
  ),
};

export interface PartialAnswer {
  /** Slots for which no node answered, if there are any: the answer lacks their tiles. */
  unanswered?: number[];
}

/** Tiles in an answer of another node: encoding and decoding them takes about 40 ms of each event loop. */
const ANSWER_TILES = 500;

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

  constructor(
    storage: Storage,
    private readonly owners: OwnerQueries,
  ) {
    this.search = owners.register(SEARCH_QUERY, async ({ limit, ...search }, { seq, ...scope }) => {
      // JSON has no infinity.
      const hits = await searchIndex(storage.index, { ...search, limit: limit ?? Infinity }, scope);
      const ids = hits.places.map(({ id }) => id);
      return { found: hits, tiles: new TileBatch(await storage.getTiles(ids, seq)) };
    });
    this.tile = owners.register(TILE_QUERY, async (id, { seq }) => {
      if (seq === undefined) return (await storage.catalogue.tiles.get(id)) ?? null;
      const [tile] = storage.index.has(id) ? await storage.getTiles([id], seq) : [];
      return tile ?? null;
    });
    this.count = owners.register(AGGREGATE_QUERY, async ({ filter, params }, scope) =>
      countTiles(storage.index, filter, params, scope),
    );
    const askExtents = owners.register(
      EXTENTS_QUERY,
      async (_: null, share): Promise<Entries<Extent>> => [
        ...(await collectionExtents(storage.index, share)),
      ],
    );
    this.extents = memoizeUntilChange(owners, async () => {
      const { answers, unanswered } = await askExtents(null);
      return {
        extents: mergeExtents(answers.map((entries) => new Map(entries))),
        ...partialAnswer(unanswered),
      };
    });
    const askContents = owners.register(SUMMARIES_QUERY, async (_: null, share): Promise<ContentAnswer> => {
      const contents = [...(await collectionSummaries(storage.index, share))];
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

  /** A page of tiles, as of one commit. Throws the errors of `searchIndex`. */
  async find(search: Search, signal?: AbortSignal): Promise<FoundTiles> {
    const limits = this.owners.asksOtherNodes ? [ANSWER_TILES, ANSWER_TILES, Infinity] : [Infinity];
    for (const most of limits) {
      const page = await this.findInParts(search, most, signal);
      if (page) return page;
    }
    throw new Error('a single answer of each node is as of one commit');
  }

  /**
   * A page of tiles from answers with at most `most` tiles of each node. Returns undefined if the later ones would not be as of the commit
   * of the first one.
   */
  private async findInParts(
    search: Search,
    most: number,
    signal: AbortSignal | undefined,
  ): Promise<FoundTiles | undefined> {
    const bounds = () => this.boundsOf(search.filter);
    const tiles: TileRecord[] = [];
    const unanswered = new Set<number>();
    const all: SearchHits = { places: [], matched: 0, more: true };
    let commit: number | undefined;
    for (let isFirst = true; isFirst || (all.more && all.places.length < search.limit); isFirst = false) {
      const limit = Math.min(most, search.limit - all.places.length);
      const part = isFirst
        ? { ...search, limit }
        : { ...search, limit, after: all.places.at(-1), count: false };
      const gathered = await this.search(part, bounds, { seq: commit, signal });
      if (!isFirst && gathered.seq !== commit) return undefined;
      commit = gathered.seq;
      const { answers } = gathered;
      const hits = mergeHits(
        answers.map(({ found }) => found),
        part,
      );
      if (isFirst) all.matched = hits.matched;
      all.more = hits.more;
      for (const place of hits.places) all.places.push(place);
      for (const tile of inOrder(hits.places, answers)) tiles.push(tile);
      for (const slot of gathered.unanswered) unanswered.add(slot);
    }
    return { ...toSearchPage(all, search), tiles, ...partialAnswer([...unanswered]) };
  }

  /** The record of a tile; undefined if it does not exist. Throws TW_QUERY_UNANSWERED if no node can tell. */
  async get(id: string): Promise<TileRecord | undefined> {
    const { answers, unanswered } = await this.tile(id, () => ({ ids: [id] }));
    const tile = answers.find((answer) => answer !== null);
    if (!tile && unanswered.length > 0) throw unansweredSlots(unanswered.length);
    return tile ?? undefined;
  }

  /** Counts over the tiles that match a filter. Throws TW_QUERY_AGGREGATION, TW_QUERY_TOO_COSTLY. */
  async aggregate(
    filter: Filter,
    params: AggregationParams,
    signal?: AbortSignal,
  ): Promise<{ aggregations: Aggregation[] } & PartialAnswer> {
    const { answers, unanswered } = await this.count({ filter, params }, () => this.boundsOf(filter), {
      signal,
    });
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

function inOrder(places: { id: string }[], answers: SearchAnswer[]): TileRecord[] {
  const [first, ...others] = answers;
  if (others.length === 0) return first ? decodeTiles(first.tiles) : [];
  const byId = new Map(answers.flatMap(({ tiles }) => decodeTiles(tiles)).map((tile) => [tile.id, tile]));
  return places.flatMap(({ id }) => byId.get(id) ?? []);
}
