/** The extents of collections: bounding box and times of their tiles. */
import type { OwnerShare } from '../../dht/index.js';
import { type Bbox, cellBbox, grids } from '../../grid/index.js';
import type { ColumnIndex, IndexRun } from '../../storage/index.js';
import { memoizePerVersion } from '../memoize.js';
import { visitRuns } from '../search.js';

/** Degrees from -180 to 180, west first. Lists of spans are disjoint and ordered from west to east. */
type LongitudeSpan = [west: number, east: number];

/** The edges of touching cells differ by rounding. */
const TOUCHING_TOLERANCE_DEGREES = 1e-9;
/** If there are more spans, the two closest are merged. Gaps of more than 360 / 64 degrees are never closed. */
const MAX_SPANS = 64;

/** Adds a span to a sorted list of disjoint spans. */
function mergeSpan(spans: LongitudeSpan[], [west, east]: LongitudeSpan): void {
  let first = 0;
  while (first < spans.length && spans[first]![1] < west - TOUCHING_TOLERANCE_DEGREES) first++;
  let end = first;
  const merged: LongitudeSpan = [west, east];
  for (; end < spans.length && spans[end]![0] <= east + TOUCHING_TOLERANCE_DEGREES; end++) {
    merged[0] = Math.min(merged[0], spans[end]![0]);
    merged[1] = Math.max(merged[1], spans[end]![1]);
  }
  spans.splice(first, end - first, merged);
  if (spans.length > MAX_SPANS) closeSmallestGap(spans);
}

function closeSmallestGap(spans: LongitudeSpan[]): void {
  let smallest = 1;
  const gap = (i: number) => spans[i]![0] - spans[i - 1]![1];
  for (let i = 2; i < spans.length; i++) if (gap(i) < gap(smallest)) smallest = i;
  spans.splice(smallest - 1, 2, [spans[smallest - 1]![0], spans[smallest]![1]]);
}

/**
 * Returns the longitudes of the smallest bounding box of all spans: the complement of the largest gap. West is greater than east if the
 * box crosses the antimeridian (RFC 7946, section 5.2). Without a gap, the box spans all longitudes: -180 to 180.
 */
function bboxLongitudes(spans: LongitudeSpan[]): LongitudeSpan {
  const first = spans[0];
  const last = spans.at(-1);
  if (!first || !last) return [-180, 180];
  let west = first[0];
  let east = last[1];
  let largest = first[0] + 360 - last[1];
  for (let i = 1; i < spans.length; i++) {
    const gap = spans[i]![0] - spans[i - 1]![1];
    if (gap <= largest + TOUCHING_TOLERANCE_DEGREES) continue;
    largest = gap;
    west = spans[i]![0];
    east = spans[i - 1]![1];
  }
  return [west, east];
}

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

async function computeExtents(
  index: ColumnIndex,
  { only }: OwnerShare,
): Promise<ReadonlyMap<string, Extent>> {
  return mergeExtents(await visitRuns(index, { where: only }, runExtents));
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
