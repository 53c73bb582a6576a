/** Types and parts of STAC 1.0.0 Items, and the links and URLs that all kinds of STAC documents use. */

import type { Bbox, GridBounds } from '../../grid/index.js';
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

export interface StacLink {
  rel: string;
  href: string;
  type?: string;
  title?: string;
}

export const extensionUrl = (name: string) => `https://stac-extensions.github.io/${name}/schema.json`;

/** A collection's attribution for data of these times: `[year]` becomes "2022" or "2015-2022". Unchanged if a time is unknown. */
export function attributionFor(
  { attribution }: CollectionRecord,
  start: number | null,
  end: number | null,
): string | undefined {
  if (start === null || end === null) return attribution;
  const [from, to] = [start, end].map((time) => new Date(time).getUTCFullYear());
  return attribution?.replaceAll('[year]', from === to ? `${from}` : `${from}-${to}`);
}

export function licenseLinks({ license, licenseUrl }: CollectionRecord): StacLink[] {
  return licenseUrl === undefined ? [] : [{ rel: 'license', href: licenseUrl, title: license }];
}

export type StacUrls = ReturnType<typeof stacUrls>;

/** URLs of the API. `baseUrl` may end with a slash. */
export function stacUrls(baseUrl: string) {
  const base = baseUrl.replace(/\/+$/, '');
  const collection = (id: string) => `${base}/collections/${encodeURIComponent(id)}`;
  const tile = (id: string) => `${base}/tiles/${encodeURIComponent(id)}`;
  const model = (id: string, version?: string) => {
    const all = `${base}/models/${encodeURIComponent(id)}`;
    return version === undefined ? all : `${all}/versions/${encodeURIComponent(version)}`;
  };
  return {
    root: `${base}/`,
    collection,
    item: (collectionId: string, id: string) => `${collection(collectionId)}/items/${encodeURIComponent(id)}`,
    xyz: (id: string) => `${base}/xyz/${encodeURIComponent(id)}`,
    preview: (id: string) => `${base}/preview/${encodeURIComponent(id)}.png`,
    tile,
    model,
    modelItem: ({ id, version }: { id: string; version: string }) => `${model(id, version)}/item`,
    bandFile: (id: string, group: string, band: string) =>
      `${tile(id)}/${encodeURIComponent(group)}/${encodeURIComponent(band)}.tif`,
    file: (id: string, group: string) => `${tile(id)}/${encodeURIComponent(group)}.tif`,
  };
}

export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

export interface StacAsset {
  href: string;
  type: string;
  title: string;
  roles: string[];
}

/** The file of a band group. */
export interface GroupAsset extends StacAsset {
  'proj:shape': [height: number, width: number];
  /** x = t0 * column + t1 * row + t2, y = t3 * column + t4 * row + t5, from the outer corner of the upper left pixel. */
  'proj:transform': number[];
  'eo:bands': Record<string, unknown>[];
  /** Absent for a spectrum whose bands have the same encoding: then the asset has the following members. */
  'raster:bands'?: Record<string, unknown>[];
  data_type?: string;
  nodata?: number | string;
  'raster:scale'?: number;
  'raster:offset'?: number;
  'classification:classes'?: StacClass[];
}

/** A class of the extension classification 2.0.0. */
interface StacClass {
  value: number;
  name: string;
  title: string;
  color_hint?: string;
}

interface StacPolygon {
  type: 'Polygon';
  coordinates: [x: number, y: number][][];
}

interface StacMultiPolygon {
  type: 'MultiPolygon';
  coordinates: StacPolygon['coordinates'][];
}

export interface StacItem {
  type: 'Feature';
  stac_version: '1.0.0';
  stac_extensions: string[];
  id: string;
  collection: string;
  geometry: StacPolygon | StacMultiPolygon;
  bbox: Bbox;
  properties: Record<string, unknown>;
  links: StacLink[];
  /** The band groups by name, and last a preview of the tile. */
  assets: Record<string, StacAsset | GroupAsset>;
}

const EXTENSIONS = ['eo/v1.1.0', 'raster/v1.1.0', 'projection/v1.1.0', 'grid/v1.1.0', 'version/v1.2.0'].map(
  extensionUrl,
);

/** Extensions and properties that follow from the groups of a tile. */
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

/** First the role of the group, then its names in the best practices of STAC. */
const ASSET_ROLES: Record<GroupRecord['role'], string[]> = {
  data: ['data'],
  qa: ['qa', 'metadata'],
  mask: ['mask', 'data-mask', 'cloud', 'cloud-shadow', 'snow-ice'],
};

/** The links that all Items of a collection have. */
export function collectionLinks(collection: CollectionRecord, url: StacUrls): StacLink[] {
  const { id, title } = collection;
  return [
    { rel: 'parent', href: url.collection(id), type: 'application/json', title },
    { rel: 'collection', href: url.collection(id), type: 'application/json', title },
    { rel: 'root', href: url.root, type: 'application/json' },
    ...licenseLinks(collection),
  ];
}

/** The preview of a tile, which is rendered on request. */
export const PREVIEW_ASSET: Omit<StacAsset, 'href'> = {
  type: 'image/png',
  title: 'preview',
  roles: ['thumbnail'],
};

/** Assets of single bands. Spectra have none: they have hundreds of bands, so their Items would be hundreds of times as long. */
export function bandAssetsOf(
  { id, groups }: TileRecord,
  bounds: GridBounds,
  url: StacUrls,
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

/** The extension allows only letters, digits, `-` and `_` in names. */
export function toClassification({
  value,
  name,
  colour,
}: Omit<ClassRecord, 'colour'> & { colour?: string }): StacClass {
  return {
    value,
    name: name.replace(/[^\w-]+/g, '_'),
    title: name,
    ...(colour !== undefined && { color_hint: colour }),
  };
}

function bandsTitle(bands: BandRecord[]): string {
  if (!isHyperspectral(bands)) return bands.map(({ name }) => name).join(', ');
  const wavelengths = bands.map(({ wavelength }) => wavelength!);
  const range = `${Math.round(Math.min(...wavelengths))} to ${Math.round(Math.max(...wavelengths))} nm`;
  return `${bands.length} bands from ${range}`;
}

/** The common encoding of all bands of a spectrum, which replaces hundreds of equal entries. */
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
 * The three red edge bands have different names only since version 2 of the extension. `bad_band` is not part of any
 * extension: none has a bad-band list.
 */
function eoBand({ name, commonName, wavelength, fwhm, good }: BandRecord): Record<string, unknown> {
  const band: Record<string, unknown> = { name };
  if (commonName !== undefined) band['common_name'] = commonName.replace(/^(rededge)\d+$/, '$1');
  if (wavelength !== undefined) band['center_wavelength'] = micrometres(wavelength);
  if (fwhm !== undefined) band['full_width_half_max'] = micrometres(fwhm);
  if (good === false) band['bad_band'] = true;
  return band;
}

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

/** A number, or the text that the raster extension has for numbers that JSON lacks. */
function jsonNumber(value: number): number | string {
  if (Number.isNaN(value)) return 'nan';
  if (Number.isFinite(value)) return value;
  return value > 0 ? 'inf' : '-inf';
}
