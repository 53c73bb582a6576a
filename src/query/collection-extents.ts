import { type Bbox, cellBbox, grids } from '../geocode/index.js';
import type { ColumnIndex } from '../storage/index.js';
import { onceAChange } from './once-a-change.js';
import type { CollectionExtent } from './stac-collection.js';

interface Extent {
  bbox: Bbox;
  start: number;
  end: number;
}

/** Where and when each collection that has tiles has them, by their ids, from the index in one pass after each change of it. */
export const collectionExtents = onceAChange(findExtents);

function findExtents(index: ColumnIndex): ReadonlyMap<string, CollectionExtent> {
  const { collection, grid, key, precision, start, end } = index.columns;
  const extents = new Map<number, Extent>();
  // Rows come cell by cell, and mostly collection by collection: what the row before was of need not be looked at again.
  let last = { extent: undefined as Extent | undefined, collection: -1, grid: -1, key: -1, precision: -1 };
  index.forEach({}, (row) => {
    const code = collection[row];
    const extent = code === last.collection ? last.extent! : extentOf(extents, code);
    if (start[row] < extent.start) extent.start = start[row];
    if (end[row] > extent.end) extent.end = end[row];
    const isSame =
      extent === last.extent &&
      key[row] === last.key &&
      precision[row] === last.precision &&
      grid[row] === last.grid;
    if (isSame) return;
    last = { extent, collection: code, grid: grid[row], key: key[row], precision: precision[row] };
    widen(extent.bbox, cellBbox(grids[last.grid], grids[last.grid].geocode(last.key, last.precision)));
  });
  return new Map(Array.from(extents, ([code, extent]) => [index.collections.names[code]!, extent]));
}

function extentOf(extents: Map<number, Extent>, code: number): Extent {
  const known = extents.get(code);
  if (known) return known;
  const extent: Extent = { bbox: [180, 90, -180, -90], start: Infinity, end: -Infinity };
  extents.set(code, extent);
  return extent;
}

function widen(bbox: Bbox, [west, south, east, north]: Bbox): void {
  bbox[0] = Math.min(bbox[0], west);
  bbox[1] = Math.min(bbox[1], south);
  bbox[2] = Math.max(bbox[2], east);
  bbox[3] = Math.max(bbox[3], north);
}
