/** Which node is asked for which slots. */
import type { Owner, OwnerState, Placement } from '../placement/placement.js';

/** What one node is asked for. */
export interface NodeSlots {
  node: string;
  /** Ascending. */
  slots: number[];
}

export interface QueryRoute {
  byNode: NodeSlots[];
  /** Slots for which nobody is left to ask, ascending. */
  unanswered: number[];
}

/**
 * Shares out slots among owners that can answer: `self` where it is one, so that what is here is not fetched, else a node that
 * is asked anyway, else the first. Nodes in `avoided` do not answer, or did not when they were asked.
 */
export function routeQuery(
  { slots: ownersOf }: Pick<Placement, 'slots'>,
  slots: Iterable<number>,
  self: string,
  avoided: ReadonlySet<string> = new Set(),
): QueryRoute {
  const shares = new Map<string, number[]>();
  const unanswered: number[] = [];
  for (const slot of slots) {
    const node = chooseOwner(ownersOf[slot]!, self, avoided, shares);
    if (node === undefined) unanswered.push(slot);
    else {
      const share = shares.get(node);
      if (share) share.push(slot);
      else shares.set(node, [slot]);
    }
  }
  return { byNode: [...shares].map(([node, share]) => ({ node, slots: share })), unanswered };
}

/** A search may ask for every slot, so nothing is made anew for each of them. */
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

/** In the order in which they should be asked. */
const READABLE_STATES: readonly OwnerState[] = ['available', 'leaving'];
