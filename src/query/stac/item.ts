/** Tiles as STAC 1.0.0 Items. */
import { type Bbox, cellBbox, type Grid, type GridBounds, gridByName } from '../../grid/index.js';
import { declaredNodata, isHyperspectral } from '../../raster/index.js';
import {
  type BandRecord,
  type ClassRecord,
  type CollectionRecord,
  type GroupRecord,
  micrometres,
  type TileRecord,
  wavelengthRange,
} from '../../storage/index.js';
import { attributionFor, extensionUrl, isoTime, licenseLinks, type StacLink, stacUrls } from './links.js';

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
  /** Absent for a spectrum whose bands are encoded alike: then the asset has `data_type` and the following. */
  'raster:bands'?: Record<string, unknown>[];
  data_type?: string;
  nodata?: number | string;
  'raster:scale'?: number;
  'raster:offset'?: number;
  'classification:classes'?: StacClass[];
}

/** A class of the extension classification 2.0.0. */
export interface StacClass {
  value: number;
  name: string;
  title: string;
  color_hint?: string;
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

export interface ItemOptions {
  /** An asset for each band of a group of several bands too, for programs that read one band a file. */
  bandAssets?: boolean;
}

/** The same in all Items. */
export const ITEM_HEAD: Pick<StacItem, 'type' | 'stac_version'> = { type: 'Feature', stac_version: '1.0.0' };

const EXTENSIONS = ['eo/v1.1.0', 'raster/v1.1.0', 'projection/v1.1.0', 'grid/v1.1.0', 'version/v1.2.0'].map(
  extensionUrl,
);

/** Facts that Items of tiles with the same groups share, apart from their assets. */
export function schemaExtensions(groups: readonly { bands: readonly Omit<BandRecord, 'validPercent'>[] }[]): {
  stac_extensions: string[];
  properties: { 'hsi:wavelength_min'?: number; 'hsi:wavelength_max'?: number };
} {
  const range = wavelengthRange(groups);
  const hasClasses = groups.some(({ bands }) => bands.some(({ classes }) => classes));
  return {
    stac_extensions: [
      ...EXTENSIONS,
      ...(range ? [extensionUrl('hsi/v1.0.0')] : []),
      ...(hasClasses ? [extensionUrl('classification/v2.0.0')] : []),
    ],
    properties: range ? { 'hsi:wavelength_min': range.min, 'hsi:wavelength_max': range.max } : {},
  };
}

const COG_TYPE = 'image/tiff; application=geotiff; profile=cloud-optimized';

/** The group's own role first, then the names that STAC's best practices give it. */
const ASSET_ROLES: Record<GroupRecord['role'], string[]> = {
  data: ['data'],
  qa: ['qa', 'metadata'],
  mask: ['mask', 'data-mask', 'cloud', 'cloud-shadow', 'snow-ice'],
};

/**
 * A tile as a STAC Item with the extensions eo, raster and projection 1.1.0 and grid. Geometry and bbox are the cell, in
 * degrees; `proj:geometry` is the outline of the valid pixels, or that of the cell if no outline is known. `baseUrl` is that of the API, with or without a slash.
 * What changes here changes in `createItemWriter` too; a test compares them.
 */
export function toStacItem(
  tile: TileRecord,
  collection: CollectionRecord,
  baseUrl: string,
  { bandAssets = false }: ItemOptions = {},
): StacItem {
  const grid = gridByName(tile.grid);
  const url = stacUrls(baseUrl);
  const bounds = grid.bounds(tile.geocode);
  const bbox = cellBbox(grid, tile.geocode);
  const assets: Record<string, StacAsset> = {};
  for (const group of tile.groups)
    assets[group.name] = groupAsset(group, bounds, url.file(tile.id, group.name));
  if (bandAssets) for (const [name, asset] of assetsOfBands(tile, bounds, url)) assets[name] ??= asset;
  assets['thumbnail'] = previewAsset(url.preview(tile.id));
  const { stac_extensions, properties } = schemaExtensions(tile.groups);
  return {
    ...ITEM_HEAD,
    stac_extensions,
    id: tile.id,
    collection: tile.collection,
    geometry: bboxPolygon(bbox),
    bbox,
    properties: { ...itemProperties(tile, collection, grid, bounds), ...properties },
    links: [
      { rel: 'self', href: url.item(tile.collection, tile.id), type: 'application/geo+json' },
      ...collectionLinks(collection, url),
      ...tile.derivedFrom.map((id) => ({
        rel: 'derived_from',
        href: url.item(tile.collection, id),
        type: 'application/geo+json',
      })),
      ...(tile.model
        ? [{ rel: 'derived_from', href: url.modelItem(tile.model), type: 'application/geo+json' }]
        : []),
    ],
    assets,
  };
}

/** The links that all Items of a collection have. */
export function collectionLinks(collection: CollectionRecord, url: ReturnType<typeof stacUrls>): StacLink[] {
  const { id, title } = collection;
  return [
    { rel: 'parent', href: url.collection(id), type: 'application/json', title },
    { rel: 'collection', href: url.collection(id), type: 'application/json', title },
    { rel: 'root', href: url.root, type: 'application/json' },
    ...licenseLinks(collection),
  ];
}

/** The picture of a tile, which is made when it is asked for. */
export function previewAsset(href: string): StacAsset {
  return { href, type: 'image/png', title: 'preview', roles: ['thumbnail'] };
}

/** Spectra have hundreds of bands, so their Items would be hundreds of times as long. */
function assetsOfBands(
  { id, groups }: TileRecord,
  bounds: GridBounds,
  url: ReturnType<typeof stacUrls>,
): [name: string, asset: GroupAsset][] {
  return groups
    .filter(({ bands }) => bands.length > 1 && !isHyperspectral(bands))
    .flatMap((group) =>
      group.bands.map((band): [string, GroupAsset] => [
        `${group.name}_${band.name}`,
        groupAsset({ ...group, bands: [band] }, bounds, url.bandFile(id, group.name, band.name)),
      ]),
    );
}

function itemProperties(
  tile: TileRecord,
  collection: CollectionRecord,
  grid: Grid,
  { west, south, east, north }: GridBounds,
): Record<string, unknown> {
  const properties: Record<string, unknown> = { datetime: isoTime(tile.start) };
  if (tile.start !== tile.end) {
    properties['start_datetime'] = isoTime(tile.start);
    properties['end_datetime'] = isoTime(tile.end);
  }
  properties['created'] = isoTime(tile.createdAt);
  if (tile.platform !== null) properties['platform'] = tile.platform;
  properties['license'] = collection.license;
  const attribution = attributionFor(collection, tile.start, tile.end);
  if (attribution !== undefined) properties['attribution'] = attribution;
  properties['geocode'] = tile.geocode;
  properties['grid:code'] = `${tile.grid.toUpperCase()}-${tile.geocode}`;
  properties['scene'] = tile.scene;
  properties['version'] = tile.version;
  properties['source'] = tile.source;
  if (tile.model) {
    properties['model'] = tile.model.id;
    properties['model_version'] = tile.model.version;
  }
  properties['pixel_coverage'] = tile.coverage;
  if (tile.cloudCover !== null) properties['eo:cloud_cover'] = tile.cloudCover;
  properties['proj:epsg'] = grid.epsg;
  properties['proj:bbox'] = [west, south, east, north];
  // In every Item: stac-geoparquet cannot read a list of Items of which some lack it.
  properties['proj:geometry'] =
    tile.footprint.length > 0
      ? ({ type: 'Polygon', coordinates: [tile.footprint] } satisfies StacPolygon)
      : bboxPolygon([west, south, east, north]);
  return properties;
}

export function groupAsset(
  group: GroupRecord,
  { west, south, east, north }: GridBounds,
  href: string,
): GroupAsset {
  const [{ classes } = {}] = group.bands as [BandRecord?];
  return {
    href,
    type: COG_TYPE,
    title: `${group.name}: ${bandsTitle(group.bands)}`,
    roles: ASSET_ROLES[group.role],
    'proj:shape': [group.height, group.width],
    'proj:transform': [(east - west) / group.width, 0, west, 0, (south - north) / group.height, north],
    'eo:bands': group.bands.map(eoBand),
    ...(commonEncoding(group) ?? {
      'raster:bands': group.bands.map((band) => rasterBand(band, group)),
    }),
    ...(classes && { 'classification:classes': classes.map(toClassification) }),
  };
}

/** The extension wants names of letters, digits, `-` and `_`. */
export function toClassification({
  value,
  name,
  colour,
}: Omit<ClassRecord, 'colour'> & { colour?: string }): StacClass {
  return {
    ...{ value, name: name.replace(/[^\w-]+/g, '_'), title: name },
    ...(colour !== undefined && { color_hint: colour }),
  };
}

function bandsTitle(bands: BandRecord[]): string {
  if (!isHyperspectral(bands)) return bands.map(({ name }) => name).join(', ');
  const wavelengths = bands.map(({ wavelength }) => wavelength!);
  const range = `${Math.round(Math.min(...wavelengths))} to ${Math.round(Math.max(...wavelengths))} nm`;
  return `${bands.length} bands from ${range}`;
}

/** The encoding that all bands of a spectrum share: hundreds of equal entries would be most of an Item. */
function commonEncoding({ bands, dataType, nodata }: GroupRecord): Partial<GroupAsset> | undefined {
  const [{ scale, offset } = { scale: 1, offset: 0 }] = bands;
  const declared = declaredNodata(dataType, nodata);
  const isCommon = bands.every((band) => band.scale === scale && band.offset === offset);
  if (!isHyperspectral(bands) || !isCommon) return undefined;
  return {
    data_type: dataType,
    'raster:scale': scale,
    'raster:offset': offset,
    ...(declared !== undefined && { nodata: jsonNumber(declared) }),
  };
}

/**
 * The three red edges have names of their own only since version 2 of the extension. `bad_band` is ours: no extension has a
 * word for the bad-band list.
 */
function eoBand({ name, commonName, wavelength, fwhm, good }: BandRecord): Record<string, unknown> {
  const band: Record<string, unknown> = { name };
  if (commonName !== undefined) band['common_name'] = commonName.replace(/^(rededge)\d+$/, '$1');
  if (wavelength !== undefined) band['center_wavelength'] = micrometres(wavelength);
  if (fwhm !== undefined) band['full_width_half_max'] = micrometres(fwhm);
  if (good === false) band['bad_band'] = true;
  return band;
}

/** Answers hold thousands of these: an object of one shape is several times as fast to make and to write as one put together. */
export function rasterBand(
  { scale, offset, validPercent }: BandRecord,
  { dataType, nodata }: GroupRecord,
): Record<string, unknown> {
  const band: Record<string, unknown> = {
    data_type: dataType,
    scale,
    offset,
    valid_percent: validPercent,
    statistics: { valid_percent: validPercent },
  };
  const declared = declaredNodata(dataType, nodata);
  if (declared !== undefined) band['nodata'] = jsonNumber(declared);
  return band;
}

/** The raster extension's words for the numbers that JSON lacks. */
function jsonNumber(value: number): number | string {
  if (Number.isNaN(value)) return 'nan';
  if (Number.isFinite(value)) return value;
  return value > 0 ? 'inf' : '-inf';
}

/** Counterclockwise and closed, as GeoJSON wants it. */
export function bboxPolygon([west, south, east, north]: Bbox): StacPolygon {
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
