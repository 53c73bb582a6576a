/** The extents of collections: bounding box and times of their tiles. */
import type { OwnerShare } from '../../dht/index.js';
import { type Bbox, cellBbox, grids } from '../../grid/index.js';
import type { ColumnIndex, IndexRun } from '../../storage/index.js';
import { memoizePerVersion } from '../memoize-query.js';
import { visitRuns } from '../query-index-runs.js';
import { bboxLongitudes, type LongitudeSpan, mergeSpan } from './stac-document-longitudes.js';

/** Times in milliseconds since 1970. */
export interface Extent {
  /** West is greater than east if the box crosses the antimeridian (RFC 7946, section 5.2). */
  bbox: Bbox;
  /** The longitudes that have tiles. Extents of several nodes are merged with them. */
  longitudes: LongitudeSpan[];
  start: number;
  end: number;
}

/** The extents of all collections with tiles, by id. Computed in one pass over the index after each change of it. */
export const collectionExtents = memoizePerVersion(computeExtents);

function computeExtents(index: ColumnIndex, { only }: OwnerShare): ReadonlyMap<string, Extent> {
  return mergeExtents(visitRuns(index, { where: only }, runExtents));
}

/** Extents of the rows of one run. */
function runExtents({ columns, collections }: IndexRun) {
  const { collection, grid, key, precision, start, end } = columns;
  const extents = new Map<number, Extent>();
  // Rows arrive cell by cell, and mostly collection by collection, so most rows have the cell and collection of the row before.
  let last = { extent: undefined as Extent | undefined, collection: -1, grid: -1, key: -1, precision: -1 };
  const add = (row: number) => {
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
    const cell = cellBbox(grids[last.grid], grids[last.grid].geocode(last.key, last.precision));
    extendExtent(extent, cell, [[cell[0], cell[2]]]);
  };
  return {
    add,
    result: () => new Map(Array.from(extents, ([code, extent]) => [collections.names[code]!, extent])),
  };
}

/** The union of the extents of several nodes or runs. */
export function mergeExtents(parts: ReadonlyMap<string, Extent>[]): ReadonlyMap<string, Extent> {
  const merged = new Map<string, Extent>();
  for (const [id, { bbox, longitudes, start, end }] of parts.flatMap((part) => [...part])) {
    const extent = extentOf(merged, id);
    // Nodes of earlier versions send only the box.
    extendExtent(extent, bbox, longitudes ?? [[bbox[0], bbox[2]]]);
    extent.start = Math.min(extent.start, start);
    extent.end = Math.max(extent.end, end);
  }
  for (const { bbox, longitudes } of merged.values()) [bbox[0], bbox[2]] = bboxLongitudes(longitudes);
  return merged;
}

function extentOf<K>(extents: Map<K, Extent>, key: K): Extent {
  const known = extents.get(key);
  if (known) return known;
  const extent: Extent = { bbox: [180, 90, -180, -90], longitudes: [], start: Infinity, end: -Infinity };
  extents.set(key, extent);
  return extent;
}

/** `mergeExtents` computes west and east of the box. */
function extendExtent({ bbox, longitudes }: Extent, [, south, , north]: Bbox, spans: LongitudeSpan[]): void {
  bbox[1] = Math.min(bbox[1], south);
  bbox[3] = Math.max(bbox[3], north);
  for (const span of spans) mergeSpan(longitudes, span);
}
