/** Says why a search or a series is empty: the collections, their boxes and their dates, and the order of coordinates. */
import type { Client } from '../client/index.js';
import type { Bbox } from '../grid/index.js';
import { type FilterParams, parseDatetime } from '../query/index.js';
import { listNearest, logToStderr } from './output.js';

/** The part of a STAC Collection that is compared. */
interface CollectionExtent {
  id: string;
  extent: { spatial: { bbox: Bbox[] }; temporal: { interval: [start: string | null, end: string | null][] } };
}

/** The collections in a message. */
const MAX_LISTED = 3;

/** Prints the reason for an answer without tiles. `place`: GeoJSON, in place of the box or geometry of the filter. */
export async function reportNoMatches(client: Client, filter: FilterParams, place?: object): Promise<void> {
  const all = (await client.collections()).collections as CollectionExtent[];
  const ids = all.map(({ id }) => id);
  const named = [filter.collections ?? []].flat();
  const unknown = named.filter((id) => !ids.includes(id));
  for (const id of unknown)
    logToStderr(
      `collection ${id} does not exist; ${ids.length === 0 ? 'there are no collections yet' : `existing collections: ${listNearest(id, ids)}`}`,
    );
  if (unknown.length > 0) return;
  if (all.length === 0) return logToStderr('there are no collections yet; "tilewright ingest" adds tiles');
  const collections = all.filter(({ id }) => named.length === 0 || named.includes(id));
  const box = boxOf(place ?? filter.intersects) ?? (place ? undefined : (filter.bbox as Bbox | undefined));
  const near = collections.filter((collection) => !box || boxesOf(collection).some(meets(box)));
  if (box && near.length === 0) return logToStderr(outsideText(collections, box));
  const { datetime } = filter;
  if (datetime !== undefined && !near.some(overlaps(datetime)))
    return logToStderr(
      `no tile has a time in ${datetime}: ${listed(near, ({ id, extent }) => `${id} has ${extent.temporal.interval[0]?.join(' to ')}`)}`,
    );
  if (place)
    logToStderr(
      `the place lies in the box of ${listed(near, ({ id }) => id)}, but in no tile that matches; "tilewright search --bbox W,S,E,N" lists tiles around it`,
    );
}

const boxesOf = ({ extent }: CollectionExtent) => extent.spatial.bbox;

function listed(
  collections: readonly CollectionExtent[],
  text: (collection: CollectionExtent) => string,
): string {
  const more = collections.length - MAX_LISTED;
  return `${collections.slice(0, MAX_LISTED).map(text).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function outsideText(collections: readonly CollectionExtent[], box: Bbox): string {
  const [west, south, east, north] = box;
  const swapped: Bbox = [south, west, north, east];
  const isPoint = west === east && south === north;
  const text = (of: Bbox) => (isPoint ? of.slice(0, 2) : of).join(',');
  const isSwapped =
    Math.abs(west) <= 90 &&
    Math.abs(east) <= 90 &&
    collections.some((one) => boxesOf(one).some(meets(swapped)));
  const hint = isSwapped ? `; longitude comes first, so perhaps ${text(swapped)} is meant` : '';
  return `no tile there: ${listed(collections, (one) => `${one.id} lies in ${boxesOf(one)[0]?.join(',')}`)}, and ${text(box)} is outside${hint}`;
}

/** True for boxes that share a point, also across the antimeridian. */
const meets =
  ([west, south, east, north]: Bbox) =>
  ([w, s, e, n]: Bbox): boolean => {
    if (n < south || s > north) return false;
    const spans = (from: number, to: number) =>
      from <= to
        ? [[from, to]]
        : [
            [from, 180],
            [-180, to],
          ];
    return spans(west, east).some(([a = 0, b = 0]) => spans(w, e).some(([c = 0, d = 0]) => a <= d && c <= b));
  };

function overlaps(datetime: string): (collection: CollectionExtent) => boolean {
  const { start = -Infinity, end = Infinity } = parseDatetime(datetime, { dates: 'periods' });
  return ({ extent }) =>
    extent.temporal.interval.some(
      ([from, to]) => (from === null || Date.parse(from) <= end) && (to === null || Date.parse(to) >= start),
    );
}

/** The box of all coordinates in a GeoJSON object; undefined without any. */
function boxOf(geojson: unknown): Bbox | undefined {
  const box: Bbox = [Infinity, Infinity, -Infinity, -Infinity];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) {
      const [x, y] = value as unknown[];
      if (typeof x !== 'number' || typeof y !== 'number') {
        for (const part of value) visit(part);
        return;
      }
      box[0] = Math.min(box[0], x);
      box[1] = Math.min(box[1], y);
      box[2] = Math.max(box[2], x);
      box[3] = Math.max(box[3], y);
    } else if (typeof value === 'object' && value !== null) {
      const { features, geometry, geometries, coordinates } = value as Record<string, unknown>;
      for (const part of [features, geometry, geometries, coordinates]) if (part) visit(part);
    }
  };
  visit(geojson);
  return box[0] <= box[2] ? box : undefined;
}
