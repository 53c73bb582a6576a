/** Which node is asked for which slots. */
import type { Owner, OwnerState, Placement } from './placement.js';

/** What one node is asked for. */
export interface Share {
  node: string;
  /** Ascending. */
  slots: number[];
}

export interface Route {
  shares: Share[];
  /** Slots for which nobody is left to ask, ascending. */
  unanswered: number[];
}

/**
 * Shares out slots among owners that can answer: `self` where it is one, so that what is here is not fetched, else a node that
 * is asked anyway, else the first. Nodes in `avoided` do not answer, or did not when they were asked.
 */
export function routeTo(
  { slots: ownersOf }: Pick<Placement, 'slots'>,
  slots: Iterable<number>,
  self: string,
  avoided: ReadonlySet<string> = new Set(),
): Route {
  const shares = new Map<string, number[]>();
  const unanswered: number[] = [];
  // Often all slots there are: nothing is made for each.
  for (const slot of slots) {
    const node = nodeFor(ownersOf[slot]!, self, avoided, shares);
    if (node === undefined) unanswered.push(slot);
    else {
      const share = shares.get(node);
      if (share) share.push(slot);
      else shares.set(node, [slot]);
    }
  }
  return { shares: [...shares].map(([node, share]) => ({ node, slots: share })), unanswered };
}

const ANSWERING: OwnerState[] = ['available', 'leaving'];

function nodeFor(
  owners: readonly Owner[],
  self: string,
  avoided: ReadonlySet<string>,
  shares: ReadonlyMap<string, unknown>,
): string | undefined {
  let first: string | undefined;
  let asked: string | undefined;
  for (const state of ANSWERING)
    for (const owner of owners) {
      if (owner.state !== state || avoided.has(owner.node)) continue;
      if (owner.node === self) return self;
      first ??= owner.node;
      if (shares.has(owner.node)) asked ??= owner.node;
    }
  return asked ?? first;
}
