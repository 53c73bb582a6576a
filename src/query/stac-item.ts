/** Tiles and collections as STAC 1.0.0 documents. */
import { type Bbox, cellBbox, type Grid, gridByName } from '../geocode/index.js';
import type { BandRecord, CollectionRecord, GroupRecord, TileRecord } from '../storage/index.js';

export interface StacLink {
  rel: string;
  href: string;
  type?: string;
  title?: string;
}

export interface StacAsset {
  href: string;
  type: string;
  title: string;
  roles: string[];
}

/** A band group's file. */
export interface GroupAsset extends StacAsset {
  'proj:shape': [height: number, width: number];
  /** x = t0 * column + t1 * row + t2, y = t3 * column + t4 * row + t5, from the outer corner of the upper left pixel. */
  'proj:transform': number[];
  'eo:bands': Record<string, unknown>[];
  'raster:bands': Record<string, unknown>[];
}

export interface StacPolygon {
  type: 'Polygon';
  coordinates: [x: number, y: number][][];
}

export interface StacItem {
  type: 'Feature';
  stac_version: '1.0.0';
  stac_extensions: string[];
  id: string;
  collection: string;
  geometry: StacPolygon;
  bbox: Bbox;
  properties: Record<string, unknown>;
  links: StacLink[];
  /** The band groups by name, and last a picture of the tile. */
  assets: Record<string, StacAsset | GroupAsset>;
}

export interface StacCollection {
  type: 'Collection';
  stac_version: '1.0.0';
  stac_extensions: string[];
  id: string;
  title: string;
  description: string;
  license: string;
  attribution?: string;
  providers?: CollectionRecord['providers'];
  extent: { spatial: { bbox: Bbox[] }; temporal: { interval: [string | null, string | null][] } };
  summaries: Record<string, unknown[]>;
  grid: string;
  precision: number;
  /** Ground metres of the longer side of a pixel, of each size that its scenes have. */
  pixel_sizes?: number[];
  links: StacLink[];
}

/** Where and when a collection has tiles; null times where it has none. */
export interface CollectionExtent {
  bbox: Bbox;
  start: number | null;
  end: number | null;
}

const extension = (name: string) => `https://stac-extensions.github.io/${name}/schema.json`;

const ITEM_EXTENSIONS = [
  'eo/v1.1.0',
  'raster/v1.1.0',
  'projection/v1.1.0',
  'grid/v1.1.0',
  'version/v1.2.0',
].map(extension);

/** Links to web maps: relations `tilejson` and `xyz`. */
const WEB_MAP_LINKS = extension('web-map-links/v1.2.0');

const COG_TYPE = 'image/tiff; application=geotiff; profile=cloud-optimized';

/** The group's own role first, then the names that STAC's best practices give it. */
const ASSET_ROLES: Record<GroupRecord['role'], string[]> = {
  data: ['data'],
  qa: ['qa', 'metadata'],
  mask: ['mask', 'data-mask', 'cloud', 'cloud-shadow', 'snow-ice'],
};

/**
 * A tile as a STAC Item with the extensions eo, raster and projection 1.1.0 and grid. Geometry and bbox are the cell, in
 * degrees; `proj:geometry` is the outline of the valid pixels. `baseUrl` is that of the API, with or without a slash.
 */
export function toStacItem(tile: TileRecord, collection: CollectionRecord, baseUrl: string): StacItem {
  const grid = gridByName(tile.grid);
  const url = urls(baseUrl);
  const bbox = cellBbox(grid, tile.geocode);
  return {
    type: 'Feature',
    stac_version: '1.0.0',
    stac_extensions: ITEM_EXTENSIONS,
    id: tile.id,
    collection: tile.collection,
    geometry: rectangle(bbox),
    bbox,
    properties: itemProperties(tile, collection, grid),
    links: [
      { rel: 'self', href: url.item(tile.collection, tile.id), type: 'application/geo+json' },
      {
        rel: 'parent',
        href: url.collection(tile.collection),
        type: 'application/json',
        title: collection.title,
      },
      {
        rel: 'collection',
        href: url.collection(tile.collection),
        type: 'application/json',
        title: collection.title,
      },
      { rel: 'root', href: url.root, type: 'application/json' },
      ...licenseLinks(collection),
      ...tile.derivedFrom.map((id) => ({
        rel: 'derived_from',
        href: url.item(tile.collection, id),
        type: 'application/geo+json',
      })),
    ],
    assets: {
      ...Object.fromEntries(
        tile.groups.map((group) => [
          group.name,
          groupAsset(group, tile, grid, url.tile(tile.id, group.name)),
        ]),
      ),
      // Made when it is asked for.
      thumbnail: {
        href: url.preview(tile.id),
        type: 'image/png',
        title: 'preview',
        roles: ['thumbnail'],
      },
    },
  };
}

function itemProperties(tile: TileRecord, collection: CollectionRecord, grid: Grid): Record<string, unknown> {
  const { west, south, east, north } = grid.bounds(tile.geocode);
  const properties: Record<string, unknown> = { datetime: isoTime(tile.start) };
  if (tile.start !== tile.end) {
    properties['start_datetime'] = isoTime(tile.start);
    properties['end_datetime'] = isoTime(tile.end);
  }
  properties['created'] = isoTime(tile.createdAt);
  if (tile.platform !== null) properties['platform'] = tile.platform;
  properties['license'] = collection.license;
  const attribution = attributionOf(collection, tile.start, tile.end);
  if (attribution !== undefined) properties['attribution'] = attribution;
  properties['geocode'] = tile.geocode;
  properties['grid:code'] = `${tile.grid.toUpperCase()}-${tile.geocode}`;
  properties['scene'] = tile.scene;
  properties['version'] = tile.version;
  properties['source'] = tile.source;
  properties['pixel_coverage'] = tile.coverage;
  if (tile.cloudCover !== null) properties['eo:cloud_cover'] = tile.cloudCover;
  properties['proj:epsg'] = grid.epsg;
  properties['proj:bbox'] = [west, south, east, north];
  if (tile.footprint.length > 0) {
    properties['proj:geometry'] = { type: 'Polygon', coordinates: [tile.footprint] } satisfies StacPolygon;
  }
  return properties;
}

function groupAsset(group: GroupRecord, tile: TileRecord, grid: Grid, href: string): GroupAsset {
  const { west, south, east, north } = grid.bounds(tile.geocode);
  return {
    href,
    type: COG_TYPE,
    title: `${group.name}: ${group.bands.map((band) => band.name).join(', ')}`,
    roles: ASSET_ROLES[group.role],
    'proj:shape': [group.height, group.width],
    'proj:transform': [(east - west) / group.width, 0, west, 0, (south - north) / group.height, north],
    'eo:bands': group.bands.map(eoBand),
    'raster:bands': group.bands.map((band) => rasterBand(band, group)),
  };
}

/** The three red edges have names of their own only since version 2 of the extension. */
function eoBand({ name, commonName }: BandRecord): Record<string, unknown> {
  return commonName === undefined
    ? { name }
    : { name, common_name: commonName.replace(/^(rededge)\d+$/, '$1') };
}

function rasterBand(band: BandRecord, group: GroupRecord): Record<string, unknown> {
  return {
    ...(group.nodata === null ? {} : { nodata: jsonNumber(group.nodata) }),
    data_type: group.dataType,
    scale: band.scale,
    offset: band.offset,
    valid_percent: band.validPercent,
    statistics: { valid_percent: band.validPercent },
  };
}

/** The raster extension's words for the numbers that JSON lacks. */
function jsonNumber(value: number): number | string {
  if (Number.isNaN(value)) return 'nan';
  if (Number.isFinite(value)) return value;
  return value > 0 ? 'inf' : '-inf';
}

/** A collection as a STAC Collection. An extent without tiles is the whole world, open at both ends. */
export function toStacCollection(
  collection: CollectionRecord,
  extent: CollectionExtent | undefined,
  baseUrl: string,
): StacCollection {
  const url = urls(baseUrl);
  const self = url.collection(collection.id);
  const { bbox, start, end } = extent ?? {
    bbox: [-180, -90, 180, 90] satisfies Bbox,
    start: null,
    end: null,
  };
  const document: StacCollection = {
    type: 'Collection',
    stac_version: '1.0.0',
    stac_extensions: extent ? [WEB_MAP_LINKS] : [],
    id: collection.id,
    title: collection.title,
    description: `${collection.title}, as tiles of ${collection.grid} precision ${collection.precision}`,
    license: collection.license,
    extent: {
      spatial: { bbox: [bbox] },
      temporal: { interval: [[start === null ? null : isoTime(start), end === null ? null : isoTime(end)]] },
    },
    summaries: { 'proj:epsg': [gridByName(collection.grid).epsg] },
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
      { rel: 'aggregate', href: `${self}/aggregate`, type: 'application/json' },
      { rel: 'aggregations', href: `${self}/aggregations`, type: 'application/json' },
      // What holds no tiles is on no map.
      ...(extent ? mapLinks(url.xyz(collection.id)) : []),
      ...licenseLinks(collection),
    ],
  };
  const attribution = attributionOf(collection, start, end);
  if (attribution !== undefined) document.attribution = attribution;
  if (collection.pixelSizes) document.pixel_sizes = sizesOf(collection.pixelSizes);
  if (collection.providers) document.providers = collection.providers;
  return document;
}

const sizesOf = (lists: NonNullable<CollectionRecord['pixelSizes']>) =>
  [...new Set(lists.flat().map(({ x, y }) => Math.max(x, y)))].sort((a, b) => a - b);

/** A collection's notice with the years of what it stands on: "2022", or "2015-2022"; as it is where no time is known. */
export function attributionOf(
  { attribution }: CollectionRecord,
  start: number | null,
  end: number | null,
): string | undefined {
  if (start === null || end === null) return attribution;
  const [from, to] = [start, end].map((time) => new Date(time).getUTCFullYear());
  return attribution?.replaceAll('[year]', from === to ? `${from}` : `${from}-${to}`);
}

function mapLinks(xyz: string): StacLink[] {
  return [
    { rel: 'tilejson', href: `${xyz}/tilejson.json`, type: 'application/json', title: 'TileJSON' },
    { rel: 'xyz', href: `${xyz}/{z}/{x}/{y}.png`, type: 'image/png', title: 'map tiles' },
  ];
}

function licenseLinks({ license, licenseUrl }: CollectionRecord): StacLink[] {
  return licenseUrl === undefined ? [] : [{ rel: 'license', href: licenseUrl, title: license }];
}

function urls(baseUrl: string) {
  const base = baseUrl.replace(/\/+$/, '');
  const collection = (id: string) => `${base}/collections/${encodeURIComponent(id)}`;
  return {
    root: `${base}/`,
    collection,
    item: (collectionId: string, id: string) => `${collection(collectionId)}/items/${encodeURIComponent(id)}`,
    xyz: (id: string) => `${base}/xyz/${encodeURIComponent(id)}`,
    preview: (id: string) => `${base}/preview/${encodeURIComponent(id)}.png`,
    tile: (id: string, group: string) =>
      `${base}/tiles/${encodeURIComponent(id)}/${encodeURIComponent(group)}.tif`,
  };
}

/** Counterclockwise and closed, as GeoJSON wants it. */
function rectangle([west, south, east, north]: Bbox): StacPolygon {
  return {
    type: 'Polygon',
    coordinates: [
      [
        [west, south],
        [east, south],
        [east, north],
        [west, north],
        [west, south],
      ],
    ],
  };
}

function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
