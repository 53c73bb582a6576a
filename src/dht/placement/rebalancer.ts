/** Who is to hold each slot, while a change of the placement is worked out. */
import { replicationTarget } from './placement.js';
import { SLOTS } from './slots.js';
import { targetShares } from './target-shares.js';

/** In the place of a holder that is to be found. */
export const UNASSIGNED = -1;

/**
 * Slots that are levelled together: those with bytes by their bytes, those without by their number, apart, so that what
 * comes to these later spreads too.
 */
interface WeightClass {
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
export class Rebalancer {
  private readonly levels: readonly WeightClass[];
  /** How many holders a slot needs, and in how many zones. */
  private readonly replicas: number;
  private readonly zones: number;
  /** What `held` was. */
  private readonly previousAssignment: readonly (readonly number[])[];
  /** The number of the zone of each node. */
  private readonly zoneOf: readonly number[];

  /**
   * For these nodes, of which `owners` are wanted for each slot. `held` becomes its own; no slot has more than are wanted.
   */
  constructor(
    private readonly nodes: readonly { zone: string; weight: number }[],
    owners: number,
    readonly assignment: number[][],
    private readonly bytes: ArrayLike<number>,
  ) {
    const { copies, zones } = replicationTarget(nodes, owners);
    this.replicas = copies;
    this.zones = zones;
    this.previousAssignment = assignment.map((nodes) => [...nodes]);
    const names = nodes.map(({ zone }) => zone);
    this.zoneOf = names.map((zone) => names.indexOf(zone));
    const all = Array.from({ length: SLOTS }, (_, slot) => slot);
    const shares = targetShares(nodes, copies);
    this.levels = [
      all.filter((slot) => bytes[slot]! > 0).sort((a, b) => bytes[b]! - bytes[a]! || a - b),
      all.filter((slot) => !(bytes[slot]! > 0)),
    ].map((slots) => this.levelOf(slots, shares));
  }

  private levelOf(slots: number[], shares: Float64Array): WeightClass {
    const total = slots.reduce((sum, slot) => sum + this.weightOf(slot), 0);
    const level: WeightClass = {
      slots,
      targets: shares.map((share) => share * total),
      loads: new Float64Array(this.nodes.length),
    };
    for (const slot of slots)
      for (const node of this.assignment[slot]!)
        if (node !== UNASSIGNED) level.loads[node]! += this.weightOf(slot);
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
        const held = this.assignment[slot]!;
        // At varying places, because the first holder is preferred for work.
        while (held.length < this.replicas) held.splice(slot % (held.length + 1), 0, UNASSIGNED);
        while (held.length > this.replicas) held.splice(held.indexOf(UNASSIGNED), 1);
        held.forEach((node, place) => {
          if (node === UNASSIGNED) this.replace(level, slot, place);
        });
        while (this.zonesWith(held, 0, held[0]!) < this.zones)
          this.replace(level, slot, this.mostLoadedSharingZone(level, held));
      }
    }
  }

  /**
   * Moves slots from nodes that hold too much to those that hold too little, of which these may receive, until nothing is
   * gained by a further move.
   */
  balance(receivers: readonly number[]): void {
    for (const level of this.levels) {
      const lightest = level.slots.toReversed();
      let moves: number;
      do {
        moves =
          this.moveSurplus(level, receivers, level.slots, staysWithinTargets) +
          this.moveSurplus(level, receivers, lightest, reducesImbalance);
        moves += this.swapBack(level);
      } while (moves > 0);
    }
  }

  /** Each giver, the fullest first, gives what may move of these slots, in their order, to the emptiest that can take it. */
  private moveSurplus(
    level: WeightClass,
    receivers: readonly number[],
    slots: readonly number[],
    mayMove: MoveRule,
  ): number {
    const givers = [...this.nodes.keys()]
      .filter((node) => deficit(level, node) < 0)
      .sort((a, b) => deficit(level, a) - deficit(level, b) || a - b);
    const slotsOf = new Map(givers.map((giver) => [giver, [] as number[]]));
    for (const slot of slots) for (const node of this.assignment[slot]!) slotsOf.get(node)?.push(slot);
    let moves = 0;
    for (const giver of givers) {
      const mostLack = Math.max(...receivers.map((node) => deficit(level, node)));
      for (const slot of slotsOf.get(giver)!) {
        const surplus = -deficit(level, giver);
        if (surplus <= 0) break;
        const weight = this.weightOf(slot);
        if (!mayMove(weight, surplus, mostLack)) continue;
        const place = this.assignment[slot]!.indexOf(giver);
        const receiver = this.leastLoaded(level, slot, place, receivers, this.zones);
        if (receiver === UNASSIGNED || !mayMove(weight, surplus, deficit(level, receiver))) continue;
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
  private swapBack(level: WeightClass): number {
    let moves = 0;
    for (const slot of level.slots) {
      const held = this.assignment[slot]!;
      for (const back of this.previousAssignment[slot]!) {
        if (back === UNASSIGNED || held.includes(back)) continue;
        const place = this.mostLoaded(level, held, [...held.keys()]);
        if (!reducesImbalance(this.weightOf(slot), -deficit(level, held[place]!), deficit(level, back)))
          continue;
        if (this.zonesWith(held, place, back) < this.zones) continue;
        this.put(level, slot, place, back);
        moves++;
      }
    }
    return moves;
  }

  /** Gives one place of a slot to another node: in a zone that it is not in yet, if there is one. */
  private replace(level: WeightClass, slot: number, place: number): void {
    const all = [...this.nodes.keys()];
    const others = this.zonesWith(this.assignment[slot]!, place, UNASSIGNED);
    const best = this.leastLoaded(level, slot, place, all, others + 1);
    this.put(
      level,
      slot,
      place,
      best === UNASSIGNED ? this.leastLoaded(level, slot, place, all, others) : best,
    );
  }

  private put(level: WeightClass, slot: number, place: number, node: number): void {
    const held = this.assignment[slot]!;
    const weight = this.weightOf(slot);
    if (held[place] !== UNASSIGNED) level.loads[held[place]!]! -= weight;
    held[place] = node;
    level.loads[node]! += weight;
  }

  /** The one of some nodes that lacks most and can take a place of a slot, which is in so many zones then; or NOBODY. */
  private leastLoaded(
    level: WeightClass,
    slot: number,
    place: number,
    nodes: readonly number[],
    zones: number,
  ): number {
    const held = this.assignment[slot]!;
    const needsNew = this.zonesWith(held, place, UNASSIGNED) < zones;
    let best = UNASSIGNED;
    for (const node of nodes) {
      if (best !== UNASSIGNED && deficit(level, node) <= deficit(level, best)) continue;
      if (held.includes(node)) continue;
      if (needsNew && held.some((other, i) => i !== place && this.areInOneZone(other, node))) continue;
      best = node;
    }
    return best;
  }

  /** The place of the fullest of those holders that share their zone with another. */
  private mostLoadedSharingZone(level: WeightClass, held: readonly number[]): number {
    const zones = held.map((node) => this.zoneOf[node]);
    const crowded = [...held.keys()].filter(
      (place) => zones.indexOf(zones[place]) !== zones.lastIndexOf(zones[place]),
    );
    return this.mostLoaded(level, held, crowded);
  }

  /** Of some places of a slot the one whose holder has most that is too much. */
  private mostLoaded(level: WeightClass, held: readonly number[], places: readonly number[]): number {
    return places.reduce((a, b) => (deficit(level, held[b]!) < deficit(level, held[a]!) ? b : a));
  }

  /** In how many zones a slot is when a node has one of its places. */
  private zonesWith(held: readonly number[], place: number, node: number): number {
    const at = (i: number) => (i === place ? node : held[i]!);
    let zones = 0;
    for (let i = 0; i < held.length; i++) {
      let isFirst = at(i) !== UNASSIGNED;
      for (let j = 0; j < i && isFirst; j++) isFirst = !this.areInOneZone(at(i), at(j));
      if (isFirst) zones++;
    }
    return zones;
  }

  /** Whether two are nodes of one zone. */
  private areInOneZone(a: number, b: number): boolean {
    return a !== UNASSIGNED && b !== UNASSIGNED && this.zoneOf[a] === this.zoneOf[b];
  }
}

/** Whether a weight may go from a node that has a surplus to one that lacks something. */
type MoveRule = (weight: number, surplus: number, lack: number) => boolean;

/** Neither gets beyond its target. */
const staysWithinTargets: MoveRule = (weight, surplus, lack) => weight <= surplus && weight <= lack;

/** The sum of the squares of surplus and lack becomes less, and not by a rounding error. */
const reducesImbalance: MoveRule = (weight, surplus, lack) => weight < 0.999 * (surplus + lack);

/** What a node lacks to its target; below 0 where it has more. */
function deficit({ targets, loads }: WeightClass, node: number): number {
  return targets[node]! - loads[node]!;
}
