/** The placement: which nodes own which slots. */
import { type GridName, gridByName } from '../grid/index.js';
import { type PrefixLengths, SLOTS, slotOfCell } from './slots.js';

/**
 * `initializing`: loads the records of the slot and does not answer for it yet. `available`: answers. `leaving`: still answers until its
 * successors have loaded the slot. (M3DB uses the same states for shards.)
 */
export type OwnerState = 'initializing' | 'available' | 'leaving';

export interface Owner {
  readonly node: string;
  readonly state: OwnerState;
}

export interface PlacementNode {
  readonly id: string;
  /** A failure domain, such as a rack. The owners of a slot are in different zones if there are enough zones. */
  readonly zone: string;
  /** Its weight in the distribution of bytes, relative to the other nodes; above 0. */
  readonly weight: number;
  /** A draining node gives its slots away and gets no new ones. */
  readonly draining: boolean;
}

/**
 * The single document from which every node computes the owners of slots.
 *
 * Invariants: `slots` has an entry for each of the 16,384 slots. Its owners are different nodes in `nodes`, leaving owners last. Without
 * the leaving ones, a slot has `owners` owners or, if there are fewer nodes that are not draining, as many as there are such nodes, in as
 * many different zones as possible. Draining nodes are only leaving owners. Node ids are unique and ascending. Every change creates a new
 * placement with the next version; a placement is immutable.
 */
export interface Placement {
  readonly version: number;
  readonly prefixLengths: PrefixLengths;
  /** Wanted number of owners of each slot. */
  readonly owners: number;
  readonly nodes: readonly PlacementNode[];
  /** All owners of a slot are equivalent; the first is preferred for work. */
  readonly slots: readonly (readonly Owner[])[];
}

/** The placement of a new cluster, which has no nodes yet. */
export function emptyPlacement(prefixLengths: PrefixLengths, owners: number): Placement {
  return { version: 0, prefixLengths, owners, nodes: [], slots: new Array(SLOTS).fill([]) };
}

/** The slot and owners of a cell. Throws TW_GEOCODE_INVALID. */
export function locate(
  { slots, prefixLengths }: Placement,
  grid: GridName,
  geocode: string,
): { grid: GridName; geocode: string; slot: number; owners: readonly Owner[] } {
  gridByName(grid).key(geocode);
  const slot = slotOfCell({ grid, geocode }, prefixLengths);
  return { grid, geocode, slot, owners: slots[slot]! };
}

/** The slots that a node owns in the given state, ascending. */
export function slotsOfNode({ slots }: Placement, node: string, state: OwnerState): number[] {
  const own: number[] = [];
  slots.forEach((owners, slot) => {
    if (owners.some((owner) => owner.node === node && owner.state === state)) own.push(slot);
  });
  return own;
}

/** The owners that can answer for a slot, in the order of preference. */
export function readableOwners(owners: readonly Owner[]): Owner[] {
  const of = (state: OwnerState) => owners.filter((owner) => owner.state === state);
  return [...of('available'), ...of('leaving')];
}

/** The owners of a slot without leaving ones. */
export const stayingOwners = (owners: readonly Owner[]): string[] =>
  owners.filter(({ state }) => state !== 'leaving').map(({ node }) => node);

/** True if the leaving owners of a slot are no longer needed: it has other owners, and all of them have loaded it. */
export function isHandoverComplete(owners: readonly Owner[]): boolean {
  const staying = owners.filter(({ state }) => state !== 'leaving');
  return staying.length > 0 && staying.every(({ state }) => state === 'available');
}

/** The number of owners of a slot, without leaving ones, given the nodes that are not draining, and the number of their zones. */
export function replicationTarget(
  nodes: readonly { zone: string }[],
  owners: number,
): { copies: number; zones: number } {
  const zones = new Set(nodes.map(({ zone }) => zone)).size;
  return { copies: Math.min(owners, nodes.length), zones: Math.min(owners, zones) };
}
