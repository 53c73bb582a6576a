/** Who is to hold each slot, while a change of the placement is worked out. */
import { wantedSpread } from './placement.js';
import { SLOTS } from './slots.js';
import { targetShares } from './target-shares.js';

/** In the place of a holder that is to be found. */
export const NOBODY = -1;

/**
 * Slots that are levelled together: those with bytes by their bytes, those without by their number, apart, so that what
 * comes to these later spreads too.
 */
interface Level {
  /** The heaviest first. */
  readonly slots: readonly number[];
  /** What each node should hold. */
  readonly targets: Float64Array;
  /** What each node holds. */
  readonly loads: Float64Array;
}

/**
 * The holders of all slots as node numbers.
 *
 * Invariants: the holders of a slot are different nodes or NOBODY; `loads` are the sums of the weights of what nodes hold.
 * Ties are broken by the order of nodes and slots, so that every machine gives the same.
 */
export class Holders {
  private readonly levels: readonly Level[];
  /** How many holders a slot needs, and in how many zones. */
  private readonly copies: number;
  private readonly zones: number;
  /** What `held` was. */
  private readonly former: readonly (readonly number[])[];
  /** The number of the zone of each node. */
  private readonly zoneOf: readonly number[];

  /**
   * For these nodes, of which `owners` are wanted for each slot. `held` becomes its own; no slot has more than are wanted.
   */
  constructor(
    private readonly nodes: readonly { zone: string; weight: number }[],
    owners: number,
    readonly held: number[][],
    private readonly bytes: ArrayLike<number>,
  ) {
    const { copies, zones } = wantedSpread(nodes, owners);
    this.copies = copies;
    this.zones = zones;
    this.former = held.map((nodes) => [...nodes]);
    const names = nodes.map(({ zone }) => zone);
    this.zoneOf = names.map((zone) => names.indexOf(zone));
    const all = Array.from({ length: SLOTS }, (_, slot) => slot);
    const shares = targetShares(nodes, copies);
    this.levels = [
      all.filter((slot) => bytes[slot]! > 0).sort((a, b) => bytes[b]! - bytes[a]! || a - b),
      all.filter((slot) => !(bytes[slot]! > 0)),
    ].map((slots) => this.levelOf(slots, shares));
  }

  private levelOf(slots: number[], shares: Float64Array): Level {
    const total = slots.reduce((sum, slot) => sum + this.weightOf(slot), 0);
    const level: Level = {
      slots,
      targets: shares.map((share) => share * total),
      loads: new Float64Array(this.nodes.length),
    };
    for (const slot of slots)
      for (const node of this.held[slot]!) if (node !== NOBODY) level.loads[node]! += this.weightOf(slot);
    return level;
  }

  private weightOf(slot: number): number {
    const bytes = this.bytes[slot]!;
    return bytes > 0 ? bytes : 1;
  }

  /** Finds holders for those slots that lack some, and moves the least that brings each slot into its zones. */
  fill(): void {
    for (const level of this.levels) {
      for (const slot of level.slots) {
        const held = this.held[slot]!;
        // At varying places, because the first holder is preferred for work.
        while (held.length < this.copies) held.splice(slot % (held.length + 1), 0, NOBODY);
        while (held.length > this.copies) held.splice(held.indexOf(NOBODY), 1);
        held.forEach((node, place) => {
          if (node === NOBODY) this.replace(level, slot, place);
        });
        while (this.zonesWith(held, 0, held[0]!) < this.zones)
          this.replace(level, slot, this.crowdedPlace(level, held));
      }
    }
  }

  /**
   * Moves slots from nodes that hold too much to those that hold too little, of which these may receive, until nothing is
   * gained by a further move.
   */
  level(receivers: readonly number[]): void {
    for (const level of this.levels) {
      const lightest = level.slots.toReversed();
      let moves: number;
      do {
        moves = this.pour(level, receivers, level.slots, fits) + this.pour(level, receivers, lightest, helps);
        moves += this.exchange(level);
      } while (moves > 0);
    }
  }

  /** Each giver, the fullest first, gives what may move of these slots, in their order, to the emptiest that can take it. */
  private pour(level: Level, receivers: readonly number[], slots: readonly number[], mayMove: Rule): number {
    const givers = [...this.nodes.keys()]
      .filter((node) => room(level, node) < 0)
      .sort((a, b) => room(level, a) - room(level, b) || a - b);
    const slotsOf = new Map(givers.map((giver) => [giver, [] as number[]]));
    for (const slot of slots) for (const node of this.held[slot]!) slotsOf.get(node)?.push(slot);
    let moves = 0;
    for (const giver of givers) {
      const mostLack = Math.max(...receivers.map((node) => room(level, node)));
      for (const slot of slotsOf.get(giver)!) {
        const surplus = -room(level, giver);
        if (surplus <= 0) break;
        const weight = this.weightOf(slot);
        if (!mayMove(weight, surplus, mostLack)) continue;
        const place = this.held[slot]!.indexOf(giver);
        const receiver = this.emptiest(level, slot, place, receivers, this.zones);
        if (receiver === NOBODY || !mayMove(weight, surplus, room(level, receiver))) continue;
        this.put(level, slot, place, receiver);
        moves++;
      }
    }
    return moves;
  }

  /**
   * Where a former holder has given a slot away, it takes the place of another one that is fuller. Nothing has to be loaded
   * for that, and the other may have more that is wanted elsewhere.
   */
  private exchange(level: Level): number {
    let moves = 0;
    for (const slot of level.slots) {
      const held = this.held[slot]!;
      for (const back of this.former[slot]!) {
        if (back === NOBODY || held.includes(back)) continue;
        const place = this.fullest(level, held, [...held.keys()]);
        if (!helps(this.weightOf(slot), -room(level, held[place]!), room(level, back))) continue;
        if (this.zonesWith(held, place, back) < this.zones) continue;
        this.put(level, slot, place, back);
        moves++;
      }
    }
    return moves;
  }

  /** Gives one place of a slot to another node: in a zone that it is not in yet, if there is one. */
  private replace(level: Level, slot: number, place: number): void {
    const all = [...this.nodes.keys()];
    const others = this.zonesWith(this.held[slot]!, place, NOBODY);
    const best = this.emptiest(level, slot, place, all, others + 1);
    this.put(level, slot, place, best === NOBODY ? this.emptiest(level, slot, place, all, others) : best);
  }

  private put(level: Level, slot: number, place: number, node: number): void {
    const held = this.held[slot]!;
    const weight = this.weightOf(slot);
    if (held[place] !== NOBODY) level.loads[held[place]!]! -= weight;
    held[place] = node;
    level.loads[node]! += weight;
  }

  /** The one of some nodes that lacks most and can take a place of a slot, which is in so many zones then; or NOBODY. */
  private emptiest(
    level: Level,
    slot: number,
    place: number,
    nodes: readonly number[],
    zones: number,
  ): number {
    const held = this.held[slot]!;
    const needsNew = this.zonesWith(held, place, NOBODY) < zones;
    let best = NOBODY;
    for (const node of nodes) {
      if (best !== NOBODY && room(level, node) <= room(level, best)) continue;
      if (held.includes(node)) continue;
      if (needsNew && held.some((other, i) => i !== place && this.areTogether(other, node))) continue;
      best = node;
    }
    return best;
  }

  /** The place of the fullest of those holders that share their zone with another. */
  private crowdedPlace(level: Level, held: readonly number[]): number {
    const zones = held.map((node) => this.zoneOf[node]);
    const crowded = [...held.keys()].filter(
      (place) => zones.indexOf(zones[place]) !== zones.lastIndexOf(zones[place]),
    );
    return this.fullest(level, held, crowded);
  }

  /** Of some places of a slot the one whose holder has most that is too much. */
  private fullest(level: Level, held: readonly number[], places: readonly number[]): number {
    return places.reduce((a, b) => (room(level, held[b]!) < room(level, held[a]!) ? b : a));
  }

  /** In how many zones a slot is when a node has one of its places. */
  private zonesWith(held: readonly number[], place: number, node: number): number {
    const at = (i: number) => (i === place ? node : held[i]!);
    let zones = 0;
    for (let i = 0; i < held.length; i++) {
      let isFirst = at(i) !== NOBODY;
      for (let j = 0; j < i && isFirst; j++) isFirst = !this.areTogether(at(i), at(j));
      if (isFirst) zones++;
    }
    return zones;
  }

  /** Whether two are nodes of one zone. */
  private areTogether(a: number, b: number): boolean {
    return a !== NOBODY && b !== NOBODY && this.zoneOf[a] === this.zoneOf[b];
  }
}

/** Whether a weight may go from a node that has a surplus to one that lacks something. */
type Rule = (weight: number, surplus: number, lack: number) => boolean;

/** Neither gets beyond its target. */
const fits: Rule = (weight, surplus, lack) => weight <= surplus && weight <= lack;

/** The sum of the squares of surplus and lack becomes less, and not by a rounding error. */
const helps: Rule = (weight, surplus, lack) => weight < 0.999 * (surplus + lack);

/** What a node lacks to its target; below 0 where it has more. */
function room({ targets, loads }: Level, node: number): number {
  return targets[node]! - loads[node]!;
}
