/** Searches over all nodes of a cluster: the owners of the slots that can hold a match are asked, and no others. */
import { type Cluster, coveredSlots, notHeld, type Peers, routeTo, SlotSet, slotTest } from '../dht/index.js';
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
  const wanted = SlotSet.fromText(slots) ?? new SlotSet();
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
    const peer = cluster.nodes.find(({ id }) => id === node);
    return peer
      ? peers.ask<ShareAnswer>(peer, SHARE_PATH, request, patience)
      : Promise.reject(new Error(`node ${node} is away`));
  };

  /** Answers for these slots, of one commit as far as that can be had, and the slots that nobody answers for. */
  const ask = async (search: Search, slots: Iterable<number>) => {
    let since = cluster.replica.applied;
    let answers = new Map<string, { slots: number[]; answer: ShareAnswer }>();
    let open = [...slots];
    let unanswered: number[] = [];
    const avoided = new Set<string>();
    for (let round = 0; open.length > 0 && round < ROUNDS; ) {
      const route = routeTo(cluster.placement, open, cluster.self, avoided);
      unanswered = route.unanswered;
      open = [];
      const patience = route.shares.length > 0 && avoided.size > 0 ? LAST_PATIENCE : PATIENCE;
      await Promise.all(
        route.shares.map(async ({ node, slots }) => {
          const request = { search, slots: new SlotSet(slots).toText(), since };
          try {
            const answer = await askOne(node, request, patience);
            const known = answers.get(node);
            // Another share of the same node, of one that failed.
            if (known && known.slots.join() !== slots.join())
              answers.set(`${node}+${round}`, { slots, answer });
            else answers.set(node, { slots, answer });
          } catch {
            avoided.add(node);
            open.push(...slots);
          }
        }),
      );
      if (open.length > 0) continue;
      // Where one is ahead, the others are asked again, so that nobody sees half of a commit.
      since = Math.max(since, ...[...answers.values()].map(({ answer }) => answer.applied));
      const behind = [...answers].filter(([, { answer }]) => answer.applied < since);
      open = behind.flatMap(([, { slots }]) => slots);
      answers = new Map([...answers].filter(([, { answer }]) => answer.applied === since));
      round++;
    }
    return {
      answers: [...answers.values()].map(({ answer }) => answer),
      unanswered: [...unanswered, ...open],
    };
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
