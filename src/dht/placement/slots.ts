/** Slots: the equal arcs of the SHA-1 space that tiles and scenes fall into. */
import { hash } from 'node:crypto';
import type { GridName } from '../../grid/index.js';

/** How many slots there are: 14 bits of a digest. */
export const SLOTS = 16_384;

/** How many leading characters of a geocode decide on its slot, for each grid; the same for the life of a cluster. */
export type PrefixLengths = Readonly<Record<GridName, number>>;

/** A geohash-4 cell is 39 km wide at the equator, a quadtile of zoom 9 78 km: whole neighbourhoods share a slot. */
export const DEFAULT_PREFIX_LENGTHS: PrefixLengths = { geohash: 4, quadtile: 9 };

/**
 * The slot of a cell: the first 14 bits of SHA-1(grid + "/" + geocode.slice(0, prefixLength)). A shorter geocode is
 * placed by itself.
 */
export function slotOf(grid: GridName, geocode: string, prefixLength: number): number {
  return slotOfText(`${grid}/${geocode.slice(0, prefixLength)}`);
}

/** The slot of a cell by the lengths of its cluster. */
export function slotOfCell(
  { grid, geocode }: { grid: GridName; geocode: string },
  prefixLengths: PrefixLengths,
): number {
  return slotOf(grid, geocode, prefixLengths[grid]);
}

/** The slot of a scene's record: the first 14 bits of SHA-1(collection + "/" + scene). */
export function slotOfScene(collection: string, scene: string): number {
  return slotOfText(`${collection}/${scene}`);
}

/** A digest takes a microsecond, a look-up in a map of known prefixes not much less. */
function slotOfText(text: string): number {
  return Number.parseInt(hash('sha1', text).slice(0, 4), 16) >>> 2;
}
