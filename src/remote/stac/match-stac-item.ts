/** The conditions of a search, for Items of documents that no server has searched, and for servers that ignore a condition. */
import type { Bbox } from '../../grid/index.js';
import { PreparedGeometry, parseDatetime } from '../../query/index.js';
import { isObject, type JsonObject, type RemoteItem, textOf } from './stac-documents.js';
import type { StacQuery } from './stac-query.js';

/** Returns a function that is true for Items that the query selects, without its CQL2 filter. Throws the errors of `parseDatetime`. */
export function itemMatcher({
  collections,
  bbox,
  datetime,
  maxCloud,
}: StacQuery): (item: RemoteItem) => boolean {
  const region = bbox && new PreparedGeometry({ bbox });
  const span = datetime === undefined ? undefined : parseDatetime(datetime, { dates: 'periods' });
  return (item) => {
    const properties = isObject(item.document.properties) ? item.document.properties : {};
    if (collections && !collections.includes(item.collection ?? '')) return false;
    const box = bboxOf(item.document);
    if (region && box && !region.intersects(box)) return false;
    if (span && !overlaps(properties, span)) return false;
    const cloud = properties['eo:cloud_cover'];
    return maxCloud === undefined || typeof cloud !== 'number' || cloud <= maxCloud;
  };
}

/** The box of an Item that does not cross the antimeridian; undefined if it is unknown. */
function bboxOf({ bbox }: JsonObject): Bbox | undefined {
  if (!Array.isArray(bbox) || !bbox.every(Number.isFinite)) return undefined;
  const box = bbox.length === 6 ? [bbox[0], bbox[1], bbox[3], bbox[4]] : bbox;
  return box.length === 4 && box[0] <= box[2] ? (box as Bbox) : undefined;
}

function overlaps(properties: JsonObject, range: ReturnType<typeof parseDatetime>): boolean {
  const time = (name: string) => Date.parse(textOf(properties[name]) ?? '');
  const start = [time('start_datetime'), time('datetime')].find((value) => !Number.isNaN(value));
  const end = [time('end_datetime'), start].find((value) => value !== undefined && !Number.isNaN(value));
  if (start === undefined || end === undefined) return true;
  return start <= (range.end ?? Infinity) && end >= (range.start ?? -Infinity);
}
