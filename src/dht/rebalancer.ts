/** Assigns slots to nodes while a change of the placement is computed, by the shares that the nodes should hold. */

import { type Placement, replicationTarget } from './placement.js';
import { SLOTS } from './slots.js';

/**
 * The fraction of all bytes that each node should hold, for `copies` owners of each slot (at most the number of nodes) in as many zones
 * as possible. The fractions are proportional to the weights, as far as no node holds a slot twice and, with enough zones, no zone does
 * either; with fewer zones, each zone holds every slot. They add up to `copies`.
 */
function targetShares(nodes: readonly { zone: string; weight: number }[], copies: number): Float64Array {
  const zones = new Map<string, number[]>();
  for (const [node, { zone }] of nodes.entries()) zones.set(zone, [...(zones.get(zone) ?? []), node]);
  const members = [...zones.values()];
  const enough = zones.size >= copies;
  const zoneShares = proportional(
    members.map((zone) => ({
      weight: zone.reduce((sum, node) => sum + nodes[node]!.weight, 0),
      low: enough ? 0 : 1,
      high: enough ? 1 : Math.min(zone.length, copies - zones.size + 1),
    })),
    copies,
  );
  const shares = new Float64Array(nodes.length);
  members.forEach((zone, i) => {
    const parts = zone.map((node) => ({ weight: nodes[node]!.weight, low: 0, high: 1 }));
    proportional(parts, zoneShares[i]!).forEach((share, j) => {
      shares[zone[j]!] = share;
    });
  });
  return shares;
}

/** The fraction of all bytes that each node should hold, 0 to 1. Draining nodes are missing. */
export function targetFractions({ nodes, owners }: Placement): Map<string, number> {
  const active = nodes.filter(({ draining }) => !draining);
  const { copies } = replicationTarget(active, owners);
  if (copies === 0) return new Map();
  const shares = targetShares(active, copies);
  return new Map(active.map(({ id }, i) => [id, shares[i]! / copies]));
}

interface Part {
  weight: number;
  low: number;
  high: number;
}

/** Splits a sum in proportion to the weights, within the bounds of each part, which must allow that sum. */
function proportional(parts: readonly Part[], sum: number): number[] {
  const at = (level: number) =>
    parts.map(({ weight, low, high }) => Math.min(Math.max(level * weight, low), high));
  let below = 0;
  let above = Math.max(...parts.map(({ weight, high }) => high / weight));
  // The sum grows with the level; a hundred halvings reach full precision.
  for (let step = 0; step < 100; step++) {
    const middle = (below + above) / 2;
    if (at(middle).reduce((a, b) => a + b, 0) < sum) below = middle;
    else above = middle;
  }
  return at(above);
}

/** Stands for a holder that is not chosen yet. */
export const UNASSIGNED = -1;

/**
 * Slots that are balanced together: slots with bytes by their size, empty slots by their number. Empty slots are balanced separately so
 * that later data is distributed as well.
 */
interface WeightClass {
  /** Largest first. */
  readonly slots: readonly number[];
  /** Target load of each node. */
  readonly targets: Float64Array;
  /** Current load of each node. */
  readonly loads: Float64Array;
}

/**
 * The holders of all slots as node numbers.
 *
 * Invariants: the holders of a slot are different nodes or UNASSIGNED; `loads` are the sums of the weights of the slots that nodes hold.
 * Ties are broken by the order of nodes and slots, so every machine computes the same result.
 */
export class Rebalancer {
  private readonly classes: readonly WeightClass[];
  /** Number of holders that a slot needs, and the number of their zones. */
  private readonly replicas: number;
  private readonly zones: number;
  /** The assignment before the change. */
  private readonly previousAssignment: readonly (readonly number[])[];
  /** The zone number of each node. */
  private readonly zoneOf: readonly number[];

  /**
   * `owners` is the wanted number of owners of each slot. The rebalancer modifies `assignment`, in which no slot may have more holders.
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
    this.classes = [
      all.filter((slot) => bytes[slot]! > 0).sort((a, b) => bytes[b]! - bytes[a]! || a - b),
      all.filter((slot) => !(bytes[slot]! > 0)),
    ].map((slots) => this.weightClassOf(slots, shares));
  }

  private weightClassOf(slots: number[], shares: Float64Array): WeightClass {
    const total = slots.reduce((sum, slot) => sum + this.weightOf(slot), 0);
    const weightClass: WeightClass = {
      slots,
      targets: shares.map((share) => share * total),
      loads: new Float64Array(this.nodes.length),
    };
    for (const slot of slots)
      for (const node of this.assignment[slot]!)
        if (node !== UNASSIGNED) weightClass.loads[node]! += this.weightOf(slot);
    return weightClass;
  }

  private weightOf(slot: number): number {
    const bytes = this.bytes[slot]!;
    return bytes > 0 ? bytes : 1;
  }

  /** Finds holders for slots that lack some, and makes the fewest moves that bring each slot into enough zones. */
  fill(): void {
    for (const weightClass of this.classes) {
      for (const slot of weightClass.slots) {
        const held = this.assignment[slot]!;
        // The position varies, because the first holder is preferred for work.
        while (held.length < this.replicas) held.splice(slot % (held.length + 1), 0, UNASSIGNED);
        while (held.length > this.replicas) held.splice(held.indexOf(UNASSIGNED), 1);
        held.forEach((node, position) => {
          if (node === UNASSIGNED) this.replace(weightClass, slot, position);
        });
        while (this.zonesWith(held, 0, held[0]!) < this.zones)
          this.replace(weightClass, slot, this.mostLoadedSharingZone(weightClass, held));
      }
    }
  }

  /**
   * Moves slots from overloaded to underloaded nodes, of which only `receivers` may receive, until no move improves the balance.
   */
  balance(receivers: readonly number[]): void {
    for (const weightClass of this.classes) {
      const lightest = weightClass.slots.toReversed();
      let moves: number;
      do {
        moves =
          this.moveSurplus(weightClass, receivers, weightClass.slots, staysWithinTargets) +
          this.moveSurplus(weightClass, receivers, lightest, reducesImbalance);
        moves += this.swapBack(weightClass);
      } while (moves > 0);
    }
  }

  /**
   * Overloaded nodes, the most overloaded first, give slots that `mayMove` allows, in the order of `slots`, to the least loaded receiver.
   */
  private moveSurplus(
    weightClass: WeightClass,
    receivers: readonly number[],
    slots: readonly number[],
    mayMove: MoveRule,
  ): number {
    const givers = [...this.nodes.keys()]
      .filter((node) => deficit(weightClass, node) < 0)
      .sort((a, b) => deficit(weightClass, a) - deficit(weightClass, b) || a - b);
    const slotsOf = new Map(givers.map((giver) => [giver, [] as number[]]));
    for (const slot of slots) for (const node of this.assignment[slot]!) slotsOf.get(node)?.push(slot);
    let moves = 0;
    for (const giver of givers) {
      const largestDeficit = Math.max(...receivers.map((node) => deficit(weightClass, node)));
      for (const slot of slotsOf.get(giver)!) {
        const surplus = -deficit(weightClass, giver);
        if (surplus <= 0) break;
        const weight = this.weightOf(slot);
        if (!mayMove(weight, surplus, largestDeficit)) continue;
        const position = this.assignment[slot]!.indexOf(giver);
        const receiver = this.leastLoaded(weightClass, slot, position, receivers, this.zones);
        if (receiver === UNASSIGNED || !mayMove(weight, surplus, deficit(weightClass, receiver))) continue;
        this.put(weightClass, slot, position, receiver);
        moves++;
      }
    }
    return moves;
  }

  /**
   * If a former holder has given a slot away, it replaces a more loaded holder of that slot. That needs no loading, and the replaced holder
   * may have more load that other nodes need.
   */
  private swapBack(weightClass: WeightClass): number {
    let moves = 0;
    for (const slot of weightClass.slots) {
      const held = this.assignment[slot]!;
      for (const back of this.previousAssignment[slot]!) {
        if (back === UNASSIGNED || held.includes(back)) continue;
        const position = this.mostLoaded(weightClass, held, [...held.keys()]);
        if (
          !reducesImbalance(
            this.weightOf(slot),
            -deficit(weightClass, held[position]!),
            deficit(weightClass, back),
          )
        )
          continue;
        if (this.zonesWith(held, position, back) < this.zones) continue;
        this.put(weightClass, slot, position, back);
        moves++;
      }
    }
    return moves;
  }

  /** Replaces a holder of a slot: by a node in a zone that the slot is not in yet, if there is one. */
  private replace(weightClass: WeightClass, slot: number, position: number): void {
    const all = [...this.nodes.keys()];
    const others = this.zonesWith(this.assignment[slot]!, position, UNASSIGNED);
    const best = this.leastLoaded(weightClass, slot, position, all, others + 1);
    this.put(
      weightClass,
      slot,
      position,
      best === UNASSIGNED ? this.leastLoaded(weightClass, slot, position, all, others) : best,
    );
  }

  private put(weightClass: WeightClass, slot: number, position: number, node: number): void {
    const held = this.assignment[slot]!;
    const weight = this.weightOf(slot);
    if (held[position] !== UNASSIGNED) weightClass.loads[held[position]!]! -= weight;
    held[position] = node;
    weightClass.loads[node]! += weight;
  }

  /** The least loaded of `nodes` that can take a position of a slot such that the slot is in `zones` zones; or UNASSIGNED. */
  private leastLoaded(
    weightClass: WeightClass,
    slot: number,
    position: number,
    nodes: readonly number[],
    zones: number,
  ): number {
    const held = this.assignment[slot]!;
    const needsNew = this.zonesWith(held, position, UNASSIGNED) < zones;
    let best = UNASSIGNED;
    for (const node of nodes) {
      if (best !== UNASSIGNED && deficit(weightClass, node) <= deficit(weightClass, best)) continue;
      if (held.includes(node)) continue;
      if (needsNew && held.some((other, i) => i !== position && this.areInOneZone(other, node))) continue;
      best = node;
    }
    return best;
  }

  /** The position of the most loaded holder that shares its zone with another holder. */
  private mostLoadedSharingZone(weightClass: WeightClass, held: readonly number[]): number {
    const zones = held.map((node) => this.zoneOf[node]);
    const crowded = [...held.keys()].filter(
      (position) => zones.indexOf(zones[position]) !== zones.lastIndexOf(zones[position]),
    );
    return this.mostLoaded(weightClass, held, crowded);
  }

  /** The position, among `positions`, of the most overloaded holder. */
  private mostLoaded(
    weightClass: WeightClass,
    held: readonly number[],
    positions: readonly number[],
  ): number {
    return positions.reduce((a, b) =>
      deficit(weightClass, held[b]!) < deficit(weightClass, held[a]!) ? b : a,
    );
  }

  /** The number of zones of a slot if `node` is at `position`. */
  private zonesWith(held: readonly number[], position: number, node: number): number {
    const holders = held.map((holder, i) => (i === position ? node : holder));
    return new Set(holders.filter((one) => one !== UNASSIGNED).map((one) => this.zoneOf[one])).size;
  }

  /** True if both are nodes in the same zone. */
  private areInOneZone(a: number, b: number): boolean {
    return a !== UNASSIGNED && b !== UNASSIGNED && this.zoneOf[a] === this.zoneOf[b];
  }
}

/** Decides whether a weight may move from a node with a surplus to a node with a deficit. */
type MoveRule = (weight: number, surplus: number, deficit: number) => boolean;

/** Neither node crosses its target. */
const staysWithinTargets: MoveRule = (weight, surplus, deficit) => weight <= surplus && weight <= deficit;

/** The sum of the squared deviations decreases, and by more than a rounding error. */
const reducesImbalance: MoveRule = (weight, surplus, deficit) => weight < 0.999 * (surplus + deficit);

/** The load that a node lacks to its target; negative for an overloaded node. */
function deficit({ targets, loads }: WeightClass, node: number): number {
  return targets[node]! - loads[node]!;
}
