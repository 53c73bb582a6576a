/** The pixels of a zone in each cell, which all dates share. */
import { gridByName } from '../../grid/index.js';
import type { TileRecord } from '../../storage/index.js';
import { zoneTooLarge } from '../errors.js';
import { type CheckBudget, type PixelList, pixelsInZone, type Zone } from './series-zone.js';

/** The pixels of a zone in one cell, for an image of this size over the cell. */
export interface ZonePixels {
  /** Identifies the cell and the size. */
  key: string;
  pixels: PixelList;
  width: number;
  height: number;
}

/** Limit of sides of a zone times rows of pixels in its cells: about a second of work. */
const MAX_EDGE_CROSSINGS = 5_000_000;

/** Throws TW_IMAGERY_TOO_MUCH if the zones of all calls together are too complex or have more than `maxPixels` pixels. */
export function zoneBudget(maxPixels: number): CheckBudget {
  let crossings = 0;
  let pixels = 0;
  return (work, found) => {
    crossings += work;
    pixels += found;
    if (crossings > MAX_EDGE_CROSSINGS)
      throw zoneTooLarge(`an outline of ${crossings} sides in rows of pixels`, MAX_EDGE_CROSSINGS);
    if (pixels > maxPixels) throw zoneTooLarge(`${pixels} pixels a date`, maxPixels);
  };
}

/** `known`: cache of the pixels by cell and size. Throws the errors of `budget`. */
export function zonePixels(
  known: Map<string, ZonePixels>,
  zone: Zone,
  { grid, geocode }: Pick<TileRecord, 'grid' | 'geocode'>,
  { width, height }: { width: number; height: number },
  budget: CheckBudget,
): ZonePixels {
  const key = `${grid} ${geocode} ${width} ${height}`;
  const place = known.get(key) ?? {
    key,
    pixels: pixelsInZone(zone, gridByName(grid), geocode, { width, height }, budget),
    width,
    height,
  };
  known.set(key, place);
  return place;
}
