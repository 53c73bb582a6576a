/** Chooses the node that reads each slot of a remote scene. */

export interface SlotBlocks {
  /** Nodes that can read the slot, the preferred one first; not empty. */
  nodes: readonly string[];
  /** Bytes of the blocks of the files that the cells of the slot need, by block. */
  blocks: ReadonlyMap<string, number>;
  /** Number of the cells. */
  cells: number;
}

/** Later sweeps hardly move a slot. */
const MAX_SWEEPS = 8;

/**
 * Returns the node of each slot. A block at the border of two nodes is read by both, so slots that share blocks should be on one node, but
 * no node should have much more work than the others. Both lower the sum of the squares of the loads of the nodes, divided by their
 * weights. The load is the bytes of the blocks, and as much again for cutting all cells. Each slot starts at its first node; in each sweep
 * it moves to the node that lowers the sum most. `weightOf` returns the relative work of a node, above 0.
 */
export function assignSlots(slots: readonly SlotBlocks[], weightOf: (node: string) => number): string[] {
  const all = new NodeLoad(0);
  for (const slot of slots) all.add(slot);
  const bytesPerCell = all.load / slots.reduce((sum, { cells }) => sum + cells, 0);
  const loads = new Map(
    slots.flatMap(({ nodes }) => nodes).map((node) => [node, new NodeLoad(bytesPerCell)]),
  );
  const chosen = slots.map((slot) => {
    loads.get(slot.nodes[0]!)!.add(slot);
    return slot.nodes[0]!;
  });
  const costOf = (node: string, slot: SlotBlocks) => {
    const current = loads.get(node)!;
    return ((current.load + current.increase(slot)) ** 2 - current.load ** 2) / weightOf(node);
  };
  for (let sweep = 0, hasMoved = true; hasMoved && sweep < MAX_SWEEPS; sweep++) {
    hasMoved = false;
    for (const [i, slot] of slots.entries()) {
      const from = chosen[i]!;
      loads.get(from)!.remove(slot);
      let to = from;
      for (const node of slot.nodes) if (costOf(node, slot) < costOf(to, slot)) to = node;
      loads.get(to)!.add(slot);
      chosen[i] = to;
      hasMoved ||= to !== from;
    }
  }
  return chosen;
}

/** The work of a node. Invariant: `load` counts each block that at least one of its slots needs once, and all of its cells. */
class NodeLoad {
  load = 0;
  private readonly counts = new Map<string, number>();

  constructor(private readonly bytesPerCell: number) {}

  add(slot: SlotBlocks): void {
    this.load += this.increase(slot);
    for (const block of slot.blocks.keys()) this.counts.set(block, (this.counts.get(block) ?? 0) + 1);
  }

  remove(slot: SlotBlocks): void {
    for (const block of slot.blocks.keys()) {
      const count = this.counts.get(block)!;
      if (count > 1) this.counts.set(block, count - 1);
      else this.counts.delete(block);
    }
    this.load -= this.increase(slot);
  }

  /** The load that a slot would add. */
  increase({ blocks, cells }: SlotBlocks): number {
    let sum = cells * this.bytesPerCell;
    for (const [block, bytes] of blocks) if (!this.counts.has(block)) sum += bytes;
    return sum;
  }
}
