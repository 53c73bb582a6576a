/**
 * Reads STAC Items (1.0 and 1.1) that describe the rasters beside them: id, time and meaning of the bands. Georeferencing and
 * size come from the rasters, and references of an Item to files are never opened. To add a collection whose Items need more than they say,
 * add an entry to `PROFILES`.
 */

import { lstat, readdir, readFile } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { messageOf } from '../../errors.js';
import { parseJson } from '../../utils/json-text.js';
import { badSidecar } from '../errors.js';
import { type AcquisitionTime, parseTime } from './acquisition-time.js';
import { hlsFmask, landsatPixelQuality, sentinel2SceneClass } from './quality.js';

interface Calibration {
  scale?: number;
  offset?: number;
  nodata?: number;
}

interface StacProfile {
  /** Ids of the collection at the archives, in lower case. */
  collection: RegExp;
  /** Calibration of a band with measurements. Absent members are those of the Item. */
  calibrate(item: StacItemDescription, asset: ItemAsset, band: ItemBand): Calibration;
}

/** Level 2A has an offset from this processing baseline on (Sentinel-2 Products Specification 15, section 4.3.3). */
const FIRST_BASELINE_WITH_OFFSET = 4;
const SENTINEL2_OFFSET = -0.1;
/** Products of this day and later have the offset. Those of earlier days have it if they were processed again. */
export const FIRST_DAY_WITH_OFFSET = Date.parse('2022-01-25T00:00:00Z');
/** Bands of the reflectance of the surface: names of the product, and names of assets at Earth Search. */
const SENTINEL2_REFLECTANCE =
  /^(b0[1-9]|b1[12]|b8a|coastal|blue|green|red|rededge[123]|nir|nir08|nir09|swir16|swir22)(-jp2|_\d\dm)?$/i;

/**
 * STAC collections whose Items need more than the Item says: which numbers are reflectances. The first entry that fits an Item applies.
 */
const PROFILES: StacProfile[] = [
  {
    // Earth Search and Planetary Computer. Other archives describe the offset in each Item.
    collection: /^sentinel-2-l2a$/,
    calibrate(item, { key }, band) {
      if (!SENTINEL2_REFLECTANCE.test(key)) return {};
      return { scale: band.scale ?? 1e-4, offset: sentinel2Offset(item, band), nodata: band.nodata ?? 0 };
    },
  },
  {
    // USGS LSDS-1618 (Landsat 4-7) and LSDS-1619 (Landsat 8-9), table 6-1.
    collection: /^landsat-c2(l2|-l2)/,
    calibrate(_, asset, band) {
      if (/^lwir|^st_b/i.test(asset.key))
        return { scale: band.scale ?? 0.00341802, offset: band.offset ?? 149, nodata: band.nodata ?? 0 };
      if (asset.roles.includes('reflectance') || band.commonName !== undefined)
        return { scale: band.scale ?? 2.75e-5, offset: band.offset ?? -0.2, nodata: band.nodata ?? 0 };
      return {};
    },
  },
  {
    collection: /^hls(2?[-_]?[sl]30|[sl]30[._]v?2)/,
    calibrate(_, { key }, band) {
      if (!/^b\d/i.test(key)) return {};
      return { scale: band.scale ?? 1e-4, offset: band.offset ?? 0, nodata: band.nodata ?? -9999 };
    },
  },
];

/**
 * `earthsearch:boa_offset_applied` counts before the offset of the Item, which Earth Search writes even if the stored numbers have none.
 * Items of Planetary Computer name no offset, but the processing baseline.
 */
function sentinel2Offset(item: StacItemDescription, { offset }: ItemBand): number {
  const { isOffsetApplied, baseline, span } = item;
  const isWithOffset =
    baseline === undefined
      ? span !== undefined && span.start >= FIRST_DAY_WITH_OFFSET
      : baseline >= FIRST_BASELINE_WITH_OFFSET;
  if (isOffsetApplied === undefined) return offset ?? (isWithOffset ? SENTINEL2_OFFSET : 0);
  return isWithOffset && !isOffsetApplied ? SENTINEL2_OFFSET : 0;
}

/** A warning if only the date says which offset the numbers have; empty for other Items. Throws TW_INGEST_BAD_SIDECAR without a date. */
function guessedOffset(item: StacItemDescription): string[] {
  const { path, baseline, isOffsetApplied, span, assets } = item;
  const isSentinel2 = /^sentinel-2-l2a$/i.test(item.collection ?? '');
  const isStated = (band: ItemBand) => isOffsetApplied === undefined && band.offset !== undefined;
  const isOpen = ({ key, bands, everyBand }: ItemAsset) =>
    SENTINEL2_REFLECTANCE.test(key) && !(bands.length > 0 ? bands : [everyBand]).every(isStated);
  if (!isSentinel2 || baseline !== undefined || isOffsetApplied === true || !assets.some(isOpen)) return [];
  if (!span)
    throw badSidecar(path, 'it has neither a time nor s2:processing_baseline, so its offset is not known');
  return [
    `offset ${sentinel2Offset(item, { codes: false })} is assumed by the date, because the STAC Item names no processing baseline; reprocessed scenes (baseline 04.00 and later) have -0.1: say --offset`,
  ];
}

/** Returns the calibration of a band by the profile of its collection; empty if no profile fits. */
function profileCalibration(item: StacItemDescription, asset: ItemAsset, band: ItemBand): Calibration {
  const id = item.collection?.toLowerCase() ?? '';
  return PROFILES.find(({ collection }) => collection.test(id))?.calibrate(item, asset, band) ?? {};
}

/** Quality layers that the product defines, by the key of the asset or the name of the band, in lower case. */
const QUALITY_CODES: Record<string, (value: number) => number> = {
  scl: sentinel2SceneClass,
  'scl-jp2': sentinel2SceneClass,
  scl_20m: sentinel2SceneClass,
  qa_pixel: landsatPixelQuality,
  fmask: hlsFmask,
};

/** Returns the mask code of each value of an asset; undefined if the asset is not a known quality layer. */
export function qualityCodesOf({ key, bands }: ItemAsset): ((value: number) => number) | undefined {
  const names = [key, ...bands.flatMap(({ name }) => name ?? [])].map((name) => name.toLowerCase());
  const known = names.find((name) => Object.hasOwn(QUALITY_CODES, name));
  return known === undefined ? undefined : QUALITY_CODES[known];
}

/** In characters; the limit of the input `platform` of an ingest. */
const MAX_PLATFORM_LENGTH = 100;

const MAX_ITEM_BYTES = 1_000_000;

/**
 * The Item that describes a file: `<stem>.json`, `<name>.json`, or an `item.json` or the folder's only .json if the file is
 * one of its assets. Null if there is none. Throws TW_INGEST_BAD_SIDECAR.
 */
export async function readItemBesideFile(path: string): Promise<StacItemDescription | null> {
  const folder = dirname(path);
  const name = basename(path);
  const entries = await readdir(folder);
  for (const own of [`${basename(name, extname(name))}.json`, `${name}.json`]) {
    const item = entries.includes(own) ? await readItem(join(folder, own), true) : null;
    if (item) return item;
  }
  const item = await readItemInFolder(folder, entries);
  return item?.assets.some((asset) => asset.file === name) ? item : null;
}

/** The Item in a folder: `item.json`, or the only .json in it. */
export async function readItemInFolder(
  folder: string,
  entries: string[],
): Promise<StacItemDescription | null> {
  const documents = entries.filter((entry) => /\.json$/i.test(entry));
  const name = documents.includes('item.json')
    ? 'item.json'
    : documents.length === 1
      ? documents[0]
      : undefined;
  return name === undefined ? null : readItem(join(folder, name), name === 'item.json');
}

/**
 * Null if the file is not a STAC Item. Links are not followed: they could lead out of an allowed folder. A file that is an
 * Item by its name alone (`own`) must be readable.
 */
async function readItem(path: string, own: boolean): Promise<StacItemDescription | null> {
  const info = await lstat(path);
  if (!info.isFile()) return null;
  if (info.size > MAX_ITEM_BYTES) {
    if (own) throw badSidecar(path, `it has more than ${MAX_ITEM_BYTES} bytes`);
    return null;
  }
  let json: unknown;
  try {
    json = parseJson(await readFile(path, 'utf8'));
  } catch (error) {
    if (own) throw badSidecar.because(error, path, messageOf(error));
    return null;
  }
  if (!isObject(json) || json.type !== 'Feature') return null;
  const isVersioned = typeof json.stac_version === 'string';
  if (!isVersioned && !isObject(json.assets)) return null;
  if (!isVersioned)
    throw badSidecar(path, 'it has assets, but no stac_version (1.0.0 and 1.1.0 are supported)');
  const item = fieldsOf(path, json);
  const properties = fieldsOf(path, item.object('properties') ?? {}, 'properties.');
  const id = item.string('id');
  if (!id) throw badSidecar(path, 'it has no id');
  const platform = properties.string('platform');
  if (platform && platform.length > MAX_PLATFORM_LENGTH)
    throw badSidecar(path, `properties.platform is longer than ${MAX_PLATFORM_LENGTH} characters`);
  const sunAzimuth = sunAzimuthOf(path, properties);
  const described: StacItemDescription = {
    path,
    id,
    ...(sunAzimuth !== undefined && { sunAzimuth }),
    collection: item.string('collection'),
    span: spanOf(path, properties),
    platform,
    license: properties.string('license'),
    licenseUrl: licenseUrlOf(json.links),
    ...processingOf(path, item.object('properties') ?? {}, [id, ...hrefsOf(json.assets)]),
    warnings: [],
    assets: Object.entries(item.object('assets') ?? {}).map(([key, asset]) => {
      if (!isObject(asset)) throw badSidecar(path, `assets.${key} is not an object`);
      return assetOf(key, fieldsOf(path, asset, `assets.${key}.`));
    }),
  };
  return {
    ...described,
    warnings: guessedOffset(described),
    assets: described.assets.map((asset) => calibratedAsset(described, asset)),
  };
}

/** The view extension counts from 0 to 360; other writers also from -180 to 180. Throws TW_INGEST_BAD_SIDECAR. */
function sunAzimuthOf(path: string, properties: Fields): number | undefined {
  const degrees = properties.number('view:sun_azimuth');
  if (degrees !== undefined && (degrees < -180 || degrees > 360))
    throw badSidecar(path, `properties.view:sun_azimuth is ${degrees}, and not from 0 to 360 degrees`);
  return degrees;
}

const hrefsOf = (assets: unknown) =>
  (isObject(assets) ? Object.values(assets) : []).flatMap((asset) =>
    isObject(asset) && typeof asset.href === 'string' ? [asset.href] : [],
  );

/** The address of the licence that the links name. Relative ones lead nowhere outside of the archive. */
function licenseUrlOf(links: unknown): string | undefined {
  const found = Array.isArray(links)
    ? links.filter(isObject).find(({ rel }) => rel === 'license')
    : undefined;
  const href = found?.href;
  return typeof href === 'string' && /^https?:/.test(href) && URL.canParse(href) ? href : undefined;
}

function calibratedAsset(item: StacItemDescription, asset: ItemAsset): ItemAsset {
  const calibrated = (band: ItemBand) => ({ ...band, ...profileCalibration(item, asset, band) });
  return { ...asset, bands: asset.bands.map(calibrated), everyBand: calibrated(asset.everyBand) };
}

/**
 * The processing of Sentinel-2. `processing:version` is ignored in other forms, because other producers use it in other ways. Throws
 * TW_INGEST_BAD_SIDECAR if a property that only Sentinel-2 has cannot be read.
 */
function processingOf(
  path: string,
  properties: JsonObject,
  names: readonly string[],
): Pick<StacItemDescription, 'baseline' | 'isOffsetApplied'> {
  const stated = <T>(name: string, read: (text: string) => T | undefined): T | undefined => {
    const value = properties[name] ?? undefined;
    if (value === undefined) return undefined;
    const found = typeof value === 'object' ? undefined : read(String(value).trim());
    if (found === undefined) throw badSidecar(path, `properties.${name} is ${JSON.stringify(value)}`);
    return found;
  };
  const version = properties['processing:version'];
  return {
    baseline:
      stated('s2:processing_baseline', baselineOf) ??
      (typeof version === 'string' && /^\d\d\.\d\d$/.test(version) ? Number(version) : undefined) ??
      baselineInNames([...names, ...Object.values(properties).filter((value) => typeof value === 'string')]),
    isOffsetApplied: stated(
      'earthsearch:boa_offset_applied',
      (text) => ({ true: true, 1: true, false: false, 0: false })[text.toLowerCase()],
    ),
  };
}

/** The baseline in names of products, such as S2A_MSIL2A_20220618T103031_N0400_R108_T32TLS; undefined if they differ. */
function baselineInNames(names: readonly string[]): number | undefined {
  const found = names.map((name) => /S2[A-Z]_MSIL2A_\d{8}T\d{6}_N(\d{4})_R\d{3}_T/.exec(name)?.[1]);
  const [digits, ...others] = new Set(found.filter((text) => text !== undefined));
  return digits === undefined || others.length > 0 ? undefined : Number(digits) / 100;
}

/** Baselines are 05.10, the number 5.1, or N0510 in names of products. */
function baselineOf(text: string): number | undefined {
  if (/^\d{1,2}(\.\d{1,2})?$/.test(text)) return Number(text);
  const [digits] = /^(?:0\d{3}|N\d{4})$/i.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits.replace(/\D/, '')) / 100;
}

function spanOf(path: string, properties: Fields): AcquisitionTime | undefined {
  const time = (name: string) => {
    const text = properties.string(name);
    const value = text === undefined ? undefined : parseTime(text);
    if (Number.isNaN(value)) throw badSidecar(path, `properties.${name} is not a time: ${text}`);
    return value;
  };
  const start = time('start_datetime') ?? time('datetime');
  const end = time('end_datetime') ?? start;
  if (start === undefined || end === undefined) return undefined;
  if (end < start) throw badSidecar(path, 'its end_datetime is before its start');
  return { start, end };
}

function assetOf(key: string, asset: Fields): ItemAsset {
  const href = (asset.string('href') ?? '').replace(/^(\.\/+)+/, '');
  const file = href.slice(href.lastIndexOf('/') + 1);
  const lists = ['bands', 'eo:bands', 'raster:bands'].map((name) => asset.objects(name));
  const counts = new Set(lists.map((list) => list.length).filter((length) => length > 0));
  const isScaled = (band: Fields) =>
    band.number('scale') !== undefined || band.number('offset') !== undefined;
  if (counts.size > 1 && lists.flat().some(isScaled))
    throw asset.fault(
      `lists of ${[...counts].join(' and ')} bands, so it is not clear whose scale they state`,
    );
  const count = Math.max(0, ...counts);
  const bands = Array.from({ length: count }, (_, i) =>
    bandOf([...lists.map((list) => list[i]).filter((fields) => fields !== undefined), asset]),
  );
  return {
    key,
    file,
    beside: file === href && file !== '' && file !== '..',
    href,
    type: asset.string('type') ?? '',
    roles: asset.list('roles').map(String),
    bands,
    everyBand: { ...bandOf([asset]), name: undefined },
  };
}

/**
 * Merges the fields of a band; the first object with a value wins: `bands` of STAC 1.1, `eo:bands` and `raster:bands` of 1.0,
 * the asset itself.
 */
function bandOf(said: Fields[]): ItemBand {
  const first = <T>(read: (fields: Fields) => T | undefined) =>
    said.map(read).find((value) => value !== undefined);
  const has = (name: string) => said.some((fields) => fields.list(name).length > 0);
  return {
    name: first((fields) => fields.string('name')),
    commonName: first((fields) => fields.string('common_name') ?? fields.string('eo:common_name')),
    nodata: first((fields) => fields.nodata()),
    scale: first((fields) => fields.number('scale') ?? fields.number('raster:scale')),
    offset: first((fields) => fields.number('offset') ?? fields.number('raster:offset')),
    codes: has('classification:classes') || has('classification:bitfields'),
  };
}

type JsonObject = Record<string, unknown>;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** raster 1.1.0 writes values without a JSON number as text. */
const NON_FINITE_NUMBERS = new Map<unknown, number>([
  ['nan', NaN],
  ['inf', Infinity],
  ['-inf', -Infinity],
]);

/**
 * Fields of one object of a document by name. Absent and null fields are undefined; another type than requested is an error.
 */
interface Fields {
  string(name: string): string | undefined;
  number(name: string): number | undefined;
  object(name: string): JsonObject | undefined;
  list(name: string): unknown[];
  objects(name: string): Fields[];
  nodata(): number | undefined;
  /** An error about the object as a whole. */
  fault(what: string): Error;
}

function fieldsOf(path: string, object: JsonObject, prefix = ''): Fields {
  const read = <T>(name: string, kind: string, is: (value: unknown) => value is T): T | undefined => {
    const value = Object.hasOwn(object, name) ? object[name] : undefined;
    if (value === undefined || value === null) return undefined;
    if (!is(value)) throw badSidecar(path, `${prefix}${name} is not ${kind}`);
    return value;
  };
  const list = (name: string) =>
    read(name, 'a list', (value): value is unknown[] => Array.isArray(value)) ?? [];
  return {
    fault: (what) => badSidecar(path, `${prefix.replace(/\.$/, '')} has ${what}`),
    list,
    string: (name) => read(name, 'text', (value) => typeof value === 'string'),
    number: (name) => read(name, 'a number', (value) => typeof value === 'number'),
    object: (name) => read(name, 'an object', isObject),
    objects: (name) =>
      list(name).map((value, i) => {
        if (!isObject(value)) throw badSidecar(path, `${prefix}${name}[${i}] is not an object`);
        return fieldsOf(path, value, `${prefix}${name}[${i}].`);
      }),
    nodata: () => {
      const isNodata = (value: unknown) => typeof value === 'number' || NON_FINITE_NUMBERS.has(value);
      const value = read('nodata', 'a number', (given): given is unknown => isNodata(given));
      return typeof value === 'number' ? value : NON_FINITE_NUMBERS.get(value);
    },
  };
}

interface ItemBand {
  name?: string;
  commonName?: string;
  nodata?: number;
  scale?: number;
  offset?: number;
  /** True if the item lists classes, so that the values are codes. */
  codes: boolean;
}

export interface ItemAsset {
  key: string;
  /** The last part of its href. */
  file: string;
  /** True if the href is a name beside the Item, and not a path or a URL. */
  beside: boolean;
  /** The href without a leading `./`. */
  href: string;
  type: string;
  roles: string[];
  bands: ItemBand[];
  /** Applies to bands that are not listed. */
  everyBand: ItemBand;
}

/** The description of a scene and of its assets by a STAC Item. */
export interface StacItemDescription {
  path: string;
  id: string;
  collection?: string;
  span?: AcquisitionTime;
  platform?: string;
  license?: string;
  licenseUrl?: string;
  /** Degrees clockwise from north. */
  sunAzimuth?: number;
  /** Processing baseline of Sentinel-2. */
  baseline?: number;
  /** True if Earth Search has already subtracted the offset of the processing baseline from the stored numbers. */
  isOffsetApplied?: boolean;
  /** Assumptions about the calibration, for the user. */
  warnings: string[];
  assets: ItemAsset[];
}
