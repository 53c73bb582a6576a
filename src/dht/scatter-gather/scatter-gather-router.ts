/** Decides which node is asked for which slots. */
import type { Owner, OwnerState, Placement } from '../placement/index.js';

/** The slots that one node is asked for. */
export interface NodeSlots {
  node: string;
  /** Ascending. */
  slots: number[];
}

export interface QueryRoute {
  byNode: NodeSlots[];
  /** Slots without a node left to ask, ascending. */
  unanswered: number[];
}

/**
 * Distributes slots among owners that can answer: `self` if it is an owner, so that local tiles are not fetched, otherwise a node that
 * is asked anyway, otherwise the first owner. Nodes in `avoided` are not asked.
 */
export function routeQuery(
  { slots: ownersOf }: Pick<Placement, 'slots'>,
  slots: Iterable<number>,
  self: string,
  avoided: ReadonlySet<string> = new Set(),
): QueryRoute {
  const slotsByNode = new Map<string, number[]>();
  const unanswered: number[] = [];
  for (const slot of slots) {
    const node = chooseOwner(ownersOf[slot]!, self, avoided, slotsByNode);
    if (node === undefined) unanswered.push(slot);
    else {
      const known = slotsByNode.get(node);
      if (known) known.push(slot);
      else slotsByNode.set(node, [slot]);
    }
  }
  return { byNode: [...slotsByNode].map(([node, slots]) => ({ node, slots })), unanswered };
}

/** A search may route every slot, so this creates no objects. */
function chooseOwner(
  owners: readonly Owner[],
  self: string,
  avoided: ReadonlySet<string>,
  asked: ReadonlyMap<string, unknown>,
): string | undefined {
  let first: string | undefined;
  let known: string | undefined;
  for (const wanted of READABLE_STATES)
    for (const { node, state } of owners) {
      if (state !== wanted || avoided.has(node)) continue;
      if (node === self) return self;
      first ??= node;
      if (known === undefined && asked.has(node)) known = node;
    }
  return known ?? first;
}

/** In the order of preference. */
const READABLE_STATES: readonly OwnerState[] = ['available', 'leaving'];
