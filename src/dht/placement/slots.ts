/** Slots: equal ranges of the SHA-1 space, to which tiles and scenes are hashed. */
import { hash } from 'node:crypto';
import type { GridName } from '../../grid/index.js';

/** Number of slots: 14 bits of a digest. */
export const SLOTS = 16_384;

/** Number of leading characters of a geocode that determine its slot, by grid; fixed for the lifetime of a cluster. */
export type PrefixLengths = Readonly<Record<GridName, number>>;

/** A geohash-4 cell is 39 km wide at the equator, a quadtile of zoom 9 is 78 km wide, so neighbourhoods share a slot. */
export const DEFAULT_PREFIX_LENGTHS: PrefixLengths = { geohash: 4, quadtile: 9 };

/**
 * The slot of a cell: the first 14 bits of SHA-1(grid + "/" + geocode.slice(0, prefixLength)). A shorter geocode is hashed completely.
 */
export function slotOf(grid: GridName, geocode: string, prefixLength: number): number {
  return slotOfText(`${grid}/${geocode.slice(0, prefixLength)}`);
}

/** The slot of a cell, by the prefix lengths of its cluster. */
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

/** Not cached: a digest takes a microsecond, and a look-up in a map hardly less. */
function slotOfText(text: string): number {
  return Number.parseInt(hash('sha1', text).slice(0, 4), 16) >>> 2;
}
