/** Divides the slots of a job among their owners, so that no node works much longer than the others. */

export interface SlotWork {
  slot: number;
  /** Nodes that can work on the slot, the preferred one first; not empty. */
  nodes: readonly string[];
  /** Bytes of its tiles, which measure its work. */
  bytes: number;
}

/** Tolerated excess over the target load. A smaller tolerance would move slots away from their first owners for little gain. */
const TOLERANCE = 0.02;

/**
 * Returns the slots of each node. Each slot starts at its first node. While a node exceeds its target load, the slot whose move
 * improves the balance most is moved. The result depends only on the arguments. `weightOf` returns the relative work of a node, above 0.
 */
export function assignSlots(
  slots: readonly SlotWork[],
  weightOf: (node: string) => number,
): Map<string, number[]> {
  const nodes = [...new Set(slots.flatMap(({ nodes }) => nodes))].sort();
  const weights = new Map(nodes.map((node) => [node, weightOf(node)]));
  const loads = new Map(nodes.map((node) => [node, 0]));
  const nodeOf = new Map<SlotWork, string>();
  for (const slot of slots) {
    nodeOf.set(slot, slot.nodes[0]!);
    loads.set(slot.nodes[0]!, loads.get(slot.nodes[0]!)! + slot.bytes);
  }
  const total = sumOf(loads.values());
  const maxLoadPerWeight = ((1 + TOLERANCE) * total) / sumOf(weights.values());
  const isEven = () => nodes.every((node) => loads.get(node)! <= maxLoadPerWeight * weights.get(node)!);
  const movable = slots.filter(({ nodes, bytes }) => nodes.length > 1 && bytes > 0);
  // Each move lowers the sum of load^2 / weight, so no assignment repeats; a slot rarely moves more than once.
  for (let moves = 0; moves < movable.length && !isEven(); moves++) {
    let best: { slot: SlotWork; to: string; gain: number } | undefined;
    for (const slot of movable)
      for (const to of slot.nodes) {
        const from = nodeOf.get(slot)!;
        if (to === from) continue;
        const decrease = (2 * loads.get(from)! - slot.bytes) / weights.get(from)!;
        const increase = (2 * loads.get(to)! + slot.bytes) / weights.get(to)!;
        const gain = slot.bytes * (decrease - increase);
        if (gain > (best?.gain ?? 0)) best = { slot, to, gain };
      }
    if (!best) break;
    const { slot, to } = best;
    const from = nodeOf.get(slot)!;
    loads.set(from, loads.get(from)! - slot.bytes);
    loads.set(to, loads.get(to)! + slot.bytes);
    nodeOf.set(slot, to);
  }
  const result = new Map<string, number[]>();
  for (const slot of slots) {
    const node = nodeOf.get(slot)!;
    const own = result.get(node);
    if (own) own.push(slot.slot);
    else result.set(node, [slot.slot]);
  }
  return result;
}

function sumOf(values: Iterable<number>): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}
