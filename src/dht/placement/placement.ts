/** Which nodes own which slots. */
import { type GridName, gridByName } from '../../grid/index.js';
import { type PrefixLengths, SLOTS, slotOfCell } from './slots.js';

/**
 * `initializing`: loads the records of the slot and answers nothing of it yet. `available`: answers. `leaving`: still
 * answers, until those that follow it have loaded. (The states of a shard of M3DB.)
 */
export type OwnerState = 'initializing' | 'available' | 'leaving';

export interface Owner {
  readonly node: string;
  readonly state: OwnerState;
}

export interface PlacementNode {
  readonly id: string;
  /** What fails together, such as a rack; owners of one slot are in different zones where there are enough. */
  readonly zone: string;
  /** Its share of the bytes beside those of others; above 0. */
  readonly weight: number;
  /** It gives its slots away and gets none. */
  readonly draining: boolean;
}

/**
 * The one document that every node computes owners from.
 *
 * Invariants: `slots` has an entry for each of the 16,384 slots, with owners of different nodes that are all in `nodes`,
 * those that are leaving last. Without these, a slot has as many owners as `owners` says or, if fewer, as there are nodes
 * that do not drain, in as many different zones as their zones and number allow; draining nodes are only leaving. Node
 * ids differ and ascend. Every change makes a new placement with the next version; none is ever changed in place.
 */
export interface Placement {
  readonly version: number;
  readonly prefixLengths: PrefixLengths;
  /** Wanted owners of each slot. */
  readonly owners: number;
  readonly nodes: readonly PlacementNode[];
  /** All owners are equal; the first is preferred for work. */
  readonly slots: readonly (readonly Owner[])[];
}

/** The placement of a new cluster, which has no nodes yet. */
export function emptyPlacement(prefixLengths: PrefixLengths, owners: number): Placement {
  return { version: 0, prefixLengths, owners, nodes: [], slots: new Array(SLOTS).fill([]) };
}

/** Where the tiles of a cell are. Throws TW_GEOCODE_INVALID. */
export function locate(
  { slots, prefixLengths }: Placement,
  grid: GridName,
  geocode: string,
): { grid: GridName; geocode: string; slot: number; owners: readonly Owner[] } {
  gridByName(grid).key(geocode);
  const slot = slotOfCell({ grid, geocode }, prefixLengths);
  return { grid, geocode, slot, owners: slots[slot]! };
}

/** The slots that a node owns in a state, ascending. */
export function slotsOfNode({ slots }: Placement, node: string, state: OwnerState): number[] {
  const own: number[] = [];
  slots.forEach((owners, slot) => {
    if (owners.some((owner) => owner.node === node && owner.state === state)) own.push(slot);
  });
  return own;
}

/** The owners that can answer for a slot, in the order in which they should be asked. */
export function readableOwners(owners: readonly Owner[]): Owner[] {
  const of = (state: OwnerState) => owners.filter((owner) => owner.state === state);
  return [...of('available'), ...of('leaving')];
}

/** Whether leaving owners of a slot are no longer needed: others own it, and all of these have loaded. */
export function isHandoverComplete(owners: readonly Owner[]): boolean {
  const staying = owners.filter(({ state }) => state !== 'leaving');
  return staying.length > 0 && staying.every(({ state }) => state === 'available');
}

/** How many owners a slot has, without leaving ones, on nodes that do not drain, and in how many zones these are. */
export function replicationTarget(
  nodes: readonly { zone: string }[],
  owners: number,
): { copies: number; zones: number } {
  const zones = new Set(nodes.map(({ zone }) => zone)).size;
  return { copies: Math.min(owners, nodes.length), zones: Math.min(owners, zones) };
}
