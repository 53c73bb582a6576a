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
        while (this.zonesOf(held) < this.zones) this.replace(level, slot, this.crowdedPlace(level, held));
      }
    }
  }

  /**
   * Moves slots from nodes that hold too much to those that hold too little, of which these may receive. The heaviest that
   * fit go first, to the emptiest node; then the lightest that are more than half surplus and more than half lack, so that
   * every move takes both nodes nearer to their targets.
   */
  level(receivers: readonly number[]): void {
    for (const level of this.levels) {
      this.pour(level, receivers, level.slots, 1);
      // Not twice: what is half surplus and half surfeit would go to and fro.
      this.pour(level, receivers, level.slots.toReversed(), 1.99);
    }
  }

  /** What is moved is less than `excess` times what the giver has too much and the receiver too little. */
  private pour(level: Level, receivers: readonly number[], slots: readonly number[], excess: number): void {
    const slotsOf = this.nodes.map((): number[] => []);
    for (const slot of slots) for (const node of this.held[slot]!) slotsOf[node]!.push(slot);
    const givers = [...this.nodes.keys()].sort((a, b) => room(level, a) - room(level, b) || a - b);
    for (const giver of givers) {
      for (const slot of slotsOf[giver]!) {
        const most = -room(level, giver) * excess;
        if (most <= 0) break;
        const weight = this.weightOf(slot);
        if (weight >= most) continue;
        const place = this.held[slot]!.indexOf(giver);
        const receiver = this.emptiest(level, slot, place, receivers, this.zones);
        if (receiver !== NOBODY && weight < room(level, receiver) * excess)
          this.put(level, slot, place, receiver);
      }
    }
  }

  /** Gives one place of a slot to another node: in a zone that it is not in yet, if there is one. */
  private replace(level: Level, slot: number, place: number): void {
    const all = [...this.nodes.keys()];
    const others = this.zonesOf(this.held[slot]!.with(place, NOBODY));
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
    const others = held.with(place, NOBODY);
    const needsNew = this.zonesOf(others) < zones;
    let best = NOBODY;
    for (const node of nodes) {
      if (best !== NOBODY && room(level, node) <= room(level, best)) continue;
      if (held.includes(node)) continue;
      if (needsNew && others.some((other) => other !== NOBODY && this.zoneOf[other] === this.zoneOf[node]))
        continue;
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
    return crowded.reduce((a, b) => (room(level, held[b]!) < room(level, held[a]!) ? b : a));
  }

  /** In how many zones these are. */
  private zonesOf(held: readonly number[]): number {
    return new Set(held.filter((node) => node !== NOBODY).map((node) => this.zoneOf[node])).size;
  }
}

/** What a node lacks to its target; below 0 where it has more. */
function room({ targets, loads }: Level, node: number): number {
  return targets[node]! - loads[node]!;
}
