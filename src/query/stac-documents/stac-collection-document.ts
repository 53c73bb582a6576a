/** Collections as STAC 1.0.0 Collections. */
import { type Bbox, gridByName } from '../../grid/index.js';
import type { CollectionRecord } from '../../storage/index.js';
import type { Extent } from './stac-document-extents.js';
import {
  attributionFor,
  extensionUrl,
  isoTime,
  licenseLinks,
  type StacLink,
  stacUrls,
} from './stac-document-links.js';

export type StacCollection = ReturnType<typeof toStacCollection>;

/** Links to web maps: relations `tilejson` and `xyz`. */
const WEB_MAP_LINKS = extensionUrl('web-map-links/v1.2.0');

/** A collection as a STAC Collection. Without tiles, its extent is the entire world, open at both ends. */
export function toStacCollection(
  collection: CollectionRecord,
  extent: Omit<Extent, 'longitudes'> | undefined,
  baseUrl: string,
) {
  const url = stacUrls(baseUrl);
  const self = url.collection(collection.id);
  const { bbox, start, end } = extent ?? {
    bbox: [-180, -90, 180, 90] satisfies Bbox,
    start: null,
    end: null,
  };
  const times: [start: string | null, end: string | null] = [
    start === null ? null : isoTime(start),
    end === null ? null : isoTime(end),
  ];
  const attribution = attributionFor(collection, start, end);
  return {
    type: 'Collection',
    stac_version: '1.0.0',
    stac_extensions: extent ? [WEB_MAP_LINKS] : [],
    id: collection.id,
    title: collection.title,
    description: `${collection.title}, as tiles of ${collection.grid} precision ${collection.precision}`,
    license: collection.license,
    extent: { spatial: { bbox: [bbox] }, temporal: { interval: [times] } },
    summaries: { 'proj:epsg': [gridByName(collection.grid).epsg] },
    // Type of its items in OGC API Features.
    itemType: 'feature',
    grid: collection.grid,
    precision: collection.precision,
    links: [
      { rel: 'self', href: self, type: 'application/json' },
      { rel: 'parent', href: url.root, type: 'application/json' },
      { rel: 'root', href: url.root, type: 'application/json' },
      { rel: 'items', href: `${self}/items`, type: 'application/geo+json' },
      {
        rel: 'http://www.opengis.net/def/rel/ogc/1.0/queryables',
        href: `${self}/queryables`,
        type: 'application/schema+json',
      },
      { rel: 'aggregate', href: `${self}/aggregate`, type: 'application/json', title: 'Counts of a search' },
      {
        rel: 'aggregations',
        href: `${self}/aggregations`,
        type: 'application/json',
        title: 'Available counts',
      },
      // A collection without tiles has no map.
      ...(extent ? mapLinks(url.xyz(collection.id)) : []),
      ...licenseLinks(collection),
    ],
    ...(attribution !== undefined && { attribution }),
    ...(collection.pixelSizes && { pixel_sizes: sizesOf(collection.pixelSizes) }),
    ...(collection.providers && { providers: collection.providers }),
  };
}

/** The pixel sizes of its scenes: ground metres of the longer side. */
const sizesOf = (lists: NonNullable<CollectionRecord['pixelSizes']>) =>
  [...new Set(lists.flat().map(({ x, y }) => Math.max(x, y)))].sort((a, b) => a - b);

function mapLinks(xyz: string): StacLink[] {
  return [
    { rel: 'tilejson', href: `${xyz}/tilejson.json`, type: 'application/json', title: 'TileJSON' },
    { rel: 'xyz', href: `${xyz}/{z}/{x}/{y}.png`, type: 'image/png', title: 'map tiles' },
  ];
}
