import { type Bbox, cellBbox, grids } from '../geocode/index.js';
import type { ColumnIndex } from '../storage/index.js';
import type { CollectionExtent } from './stac-item.js';

/** Where and when a collection has tiles, from its rows in the index; undefined where it has none. */
export function collectionExtent(index: ColumnIndex, id: string): CollectionExtent | undefined {
  const code = index.collections.codeOf(id);
  if (code === undefined) return undefined;
  const { collection, grid, key, precision, start, end } = index.columns;
  const bbox: Bbox = [180, 90, -180, -90];
  const times = { start: Infinity, end: -Infinity };
  const seen = new Set<string>();
  index.forEach({ where: (row) => collection[row] === code }, (row) => {
    times.start = Math.min(times.start, start[row]);
    times.end = Math.max(times.end, end[row]);
    const cells = grids[grid[row]];
    const geocode = cells.geocode(key[row], precision[row]);
    if (seen.has(geocode)) return;
    seen.add(geocode);
    const [west, south, east, north] = cellBbox(cells, geocode);
    bbox[0] = Math.min(bbox[0], west);
    bbox[1] = Math.min(bbox[1], south);
    bbox[2] = Math.max(bbox[2], east);
    bbox[3] = Math.max(bbox[3], north);
  });
  return times.start <= times.end ? { bbox, ...times } : undefined;
}
