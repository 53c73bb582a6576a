/** Searches over all nodes of a cluster: the owners of the slots that can hold a match are asked, and no others. */
import {
  type Cluster,
  coveredSlots,
  notHeld,
  type Peers,
  replicaBehind,
  routeTo,
  SlotSet,
  slotTest,
} from '../dht/index.js';
import type { Storage, TileRecord } from '../storage/index.js';
import { withDeadline } from './deadline.js';
import { compileFilter } from './filter/compile.js';
import { all } from './filter/filter.js';
import type { FoundTiles, TileFinder } from './finder.js';
import { type FoundPlaces, findPlaces, mergePlaces, pageOf, type Search } from './search.js';

/** What an owner is asked. */
export interface ShareRequest {
  search: Search;
  /** The slots whose tiles are wanted, as text of a `SlotSet`. */
  slots: string;
  /** The last commit that must be applied. */
  since: number;
}

/** What it answers. */
export interface ShareAnswer {
  /** The last commit that is applied. */
  applied: number;
  found: FoundPlaces;
  tiles: TileRecord[];
}

/** How long an owner that is behind waits for the commit that is asked for, ms. */
const CATCH_UP = 500;
/** How long an owner is waited for while others could answer, and where none can, ms. */
const PATIENCE = 500;
const LAST_PATIENCE = 10_000;
/** Rounds in which owners are brought to the same commit. */
const ROUNDS = 5;

/** What this node answers as an owner. Throws TW_DHT_BEHIND, TW_DHT_NOT_HELD. */
export async function answerShare(
  storage: Storage,
  { replica, prefixLengths }: Cluster,
  { search, slots, since }: ShareRequest,
): Promise<ShareAnswer> {
  await replica.waitFor(since, CATCH_UP);
  const wanted = SlotSet.fromText(slots);
  for (const slot of wanted) if (!replica.holds(slot)) throw notHeld(slot);
  const { index } = storage;
  const isOf = slotTest((slot) => wanted.has(slot), prefixLengths);
  const { applied } = replica;
  const found = findPlaces(index, search, (row) => isOf(index.cellOf(row)));
  const tiles = await storage.getTiles(found.places.map(({ id }) => id));
  return { applied, found, tiles };
}

export function clusterFinder(storage: Storage, cluster: Cluster, peers: Peers): TileFinder {
  const askOne = (node: string, request: ShareRequest, patience: number): Promise<ShareAnswer> => {
    if (node === cluster.self) return answerShare(storage, cluster, request);
    const peer = cluster.peer(node);
    return peer
      ? peers.ask<ShareAnswer>(peer, SHARE_PATH, request, patience)
      : Promise.reject(new Error(`the address of node ${node} is not known`));
  };

  /** Answers for slots, each of one commit from `since` on, and the slots that nobody has answered for. */
  const askOwners = async (search: Search, slots: number[], since: number, patience: number) => {
    const answers: { slots: number[]; answer: ShareAnswer }[] = [];
    const avoided = new Set<string>();
    const unanswered: number[] = [];
    for (let open = slots; open.length > 0; ) {
      const route = routeTo(cluster.placement, open, cluster.self, avoided);
      unanswered.push(...route.unanswered);
      open = [];
      await Promise.all(
        route.shares.map(async ({ node, slots }) => {
          const request = { search, slots: new SlotSet(slots).toText(), since };
          try {
            answers.push({ slots, answer: await askOne(node, request, patience) });
          } catch (error) {
            // A fault of the search itself would be that of every owner.
            if (node === cluster.self && !notHeld.is(error) && !replicaBehind.is(error)) throw error;
            // Another owner is asked; where there is none, the answer says so.
            avoided.add(node);
            open.push(...slots);
          }
        }),
      );
    }
    return { answers, unanswered };
  };

  /** The same, all of one commit as far as that can be had: who is behind is asked again. */
  const ask = async (search: Search, slots: Iterable<number>) => {
    let kept: { slots: number[]; answer: ShareAnswer }[] = [];
    let open = [...slots];
    let since = cluster.replica.applied;
    for (let round = 0; ; round++) {
      const first = await askOwners(search, open, since, PATIENCE);
      // Nobody has answered soon: whoever answers at all.
      const second = await askOwners(search, first.unanswered, since, LAST_PATIENCE);
      kept.push(...first.answers, ...second.answers);
      since = Math.max(since, ...kept.map(({ answer }) => answer.applied));
      const behind = kept.filter(({ answer }) => answer.applied < since);
      if (behind.length === 0 || round === ROUNDS)
        return { answers: kept.map(({ answer }) => answer), unanswered: second.unanswered };
      kept = kept.filter(({ answer }) => answer.applied === since);
      open = [...behind.flatMap(({ slots }) => slots), ...second.unanswered];
    }
  };

  return {
    async find(search): Promise<FoundTiles> {
      const bounds = withDeadline(compileFilter(storage.index, search.filter));
      const { answers, unanswered } = await ask(search, coveredSlots(bounds, cluster.prefixLengths));
      const found = mergePlaces(
        answers.map(({ found }) => found),
        search,
      );
      const page = pageOf(found, search);
      const byId = new Map(answers.flatMap(({ tiles }) => tiles).map((tile) => [tile.id, tile]));
      const tiles = page.ids.flatMap((id) => byId.get(id) ?? []);
      return { ...page, tiles, ...(unanswered.length > 0 && { unanswered }) };
    },
    async get(id) {
      const filter = all([{ op: 'in', property: 'id', values: [id] }]);
      const { tiles } = await this.find({ filter, order: [], limit: 1, after: undefined });
      return tiles[0];
    },
  };
}

/** Where owners are asked. */
export const SHARE_PATH = '/cluster/internal/search';
