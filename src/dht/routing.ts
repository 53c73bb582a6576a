/** Which node is asked for which slots. */
import { answeringOwners, type Placement } from './placement.js';

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
  const bySlot = new Map<number, string[]>();
  const unanswered: number[] = [];
  for (const slot of slots) {
    const nodes = answeringOwners(ownersOf[slot]!).map(({ node }) => node);
    const able = nodes.filter((node) => !avoided.has(node));
    if (able.length > 0) bySlot.set(slot, able);
    else unanswered.push(slot);
  }
  const shares = new Map<string, number[]>();
  for (const [slot, able] of bySlot) {
    const node = able.includes(self) ? self : (able.find((id) => shares.has(id)) ?? able[0]!);
    const share = shares.get(node);
    if (share) share.push(slot);
    else shares.set(node, [slot]);
  }
  return { shares: [...shares].map(([node, share]) => ({ node, slots: share })), unanswered };
}
