/** Reads from a STAC Item, before its files are opened, which assets are read and where they lie; keeps the Items of a search in a file. */

import { createHash } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { affineOfGdal, crsFromEpsg, isInvertible, unknownCrs } from '../raster/index.js';
import {
  itemMatcher,
  itemOf,
  type RemoteItem,
  type StacQuery,
  withoutSecrets,
  withoutSignature,
} from '../remote/index.js';
import { parseJson } from '../utils/json-text.js';
import { missingAsset, noReadableAsset, tooManyAssets } from './errors.js';
import type { GeoBox } from './georeferencing.js';
import { writeFully } from './remote-copy.js';
import type { IngestOptions } from './scene.js';

interface ChosenAsset {
  key: string;
  /** Absolute address. */
  url: string;
  /** Extension of the file's name, by its format. */
  extension: Extension;
  asset: Record<string, unknown>;
}

type Extension = 'tif' | 'jp2';

export interface AssetChoice {
  /** Keys of assets, or names or common names of their bands, in any case; all with data if absent. */
  names?: readonly string[];
  /** True for an address in S3 that is read rather than the one over HTTP. */
  prefersS3?(address: string): boolean;
}

/** Each is a request, and a file in the scratch folder. Products with a file for each band have about 250. */
const MAX_ASSETS = 1000;
/** Roles of assets that show data again, or describe it. */
const NOT_DATA = new Set(['thumbnail', 'overview', 'visual', 'metadata']);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/**
 * Returns the GeoTIFFs and JPEG 2000 files with the given names, or all with data; of two formats of the same data, the GeoTIFF. Throws
 * TW_INGEST_MISSING_ASSET, _NO_READABLE_ASSET and _TOO_MANY_ASSETS.
 */
export function chooseAssets(item: RemoteItem, { names, prefersS3 }: AssetChoice = {}): ChosenAsset[] {
  const { id, url, document } = item;
  const assets = Object.entries(isObject(document.assets) ? document.assets : {}).flatMap(([key, asset]) => {
    const address = isObject(asset) ? addressOf(asset, url, prefersS3) : undefined;
    const extension = address !== undefined && isObject(asset) ? extensionOf(asset, address) : undefined;
    return isObject(asset) && address !== undefined && extension
      ? [{ key, url: address, extension, asset }]
      : [];
  });
  // Parts of a GeoTIFF can be read; a JPEG 2000 file is downloaded as a whole.
  const [tiffs, others] = [assets.filter(isTiff), assets.filter((one) => !isTiff(one))];
  if (names) {
    const chosen = names.map((name) => {
      const found = assetNamed([...tiffs, ...others], name.toLowerCase());
      if (found) return found;
      throw missingAsset(withoutSecrets(url), id, name, [...new Set(assets.map(({ key }) => key))]);
    });
    return [...new Set(chosen)];
  }
  const data = tiffs.filter(isData);
  const found = data.length > 0 ? data : others.filter(isData);
  if (found.length === 0) throw noReadableAsset(withoutSecrets(url), id);
  if (found.length > MAX_ASSETS) throw tooManyAssets(withoutSecrets(url), id, found.length, MAX_ASSETS);
  return found;
}

const isTiff = ({ extension }: ChosenAsset) => extension === 'tif';

/** The asset whose key, or else whose band has this name, or else this common name; of several bands those with data first. */
function assetNamed(assets: ChosenAsset[], name: string): ChosenAsset | undefined {
  const data = [...assets.filter(isData), ...assets.filter((one) => !isData(one))];
  return (
    assets.find(({ key }) => key.toLowerCase() === name) ??
    data.find((one) => bandNames(one, ['name']).includes(name)) ??
    data.find((one) => bandNames(one, ['common_name', 'eo:common_name']).includes(name))
  );
}

/** Names of the only band of an asset, in the forms of STAC 1.1 and 1.0, in lower case. */
function bandNames({ asset }: ChosenAsset, members: string[]): string[] {
  const bands = [asset.bands, asset['eo:bands']].flatMap((list) =>
    Array.isArray(list) ? list.filter(isObject) : [],
  );
  // An asset of several bands is not one of them.
  const one = new Set(bands.map(({ name }) => name)).size > 1 ? [] : bands;
  return one.flatMap((band) => members.flatMap((member) => textOf(band[member])?.toLowerCase() ?? []));
}

function isData({ asset: { roles } }: ChosenAsset): boolean {
  const said = Array.isArray(roles) ? roles.map(String) : [];
  return said.includes('data') || !said.some((role) => NOT_DATA.has(role));
}

function extensionOf({ type }: Record<string, unknown>, url: string): Extension | undefined {
  const said = textOf(type) ?? '';
  const { pathname } = new URL(url);
  if (said === '' ? /\.tiff?$/i.test(pathname) : /^image\/(tiff|vnd\.stac\.geotiff)/.test(said)) return 'tif';
  return (said === '' ? /\.jp2$/i.test(pathname) : /^image\/jp2/.test(said)) ? 'jp2' : undefined;
}

/** The address of an asset: its href or one of its alternates (Alternate Assets extension), those over HTTP first. */
function addressOf(
  { href, alternate }: Record<string, unknown>,
  base: string,
  prefersS3: AssetChoice['prefersS3'] = () => false,
): string | undefined {
  const alternates = isObject(alternate)
    ? Object.values(alternate).map((one) => (isObject(one) ? one.href : undefined))
    : [];
  const given = [href, ...alternates]
    .flatMap((text) => textOf(text) ?? [])
    .filter((text) => URL.canParse(text, base))
    .map((text) => new URL(text, base).href);
  const objects = given.filter((text) => text.startsWith('s3:'));
  return objects.find(prefersS3) ?? given.find((text) => /^https?:/.test(text)) ?? objects[0];
}

/** Increment it if the same Item would result in other tiles. */
const DIGEST_VERSION = 2;

/**
 * Digest of the Item, the chosen assets, and the options that affect tiles: an Item that has not changed is skipped without a request. The
 * region does not count.
 */
export function itemDigest(item: RemoteItem, options: IngestOptions, assets?: readonly string[]): string {
  const { bbox: _, dryRun: __, ...others } = options;
  const files = chooseAssets(item, { names: assets }).map(({ key, url, asset }) => {
    const { href: _, alternate: __, ...description } = asset;
    return [key, withoutSignature(url), description];
  });
  const { properties } = item.document;
  const said = [DIGEST_VERSION, item.id, item.collection, properties, files, sortedEntries(others)];
  return createHash('sha256').update(JSON.stringify(said)).digest('hex');
}

const sortedEntries = (options: object) => Object.entries(options).toSorted(([a], [b]) => (a < b ? -1 : 1));

/** The position of each asset (STAC Projection extension 1.0 to 2.0); undefined if the Item does not describe all of them. */
export function itemPositions(
  { document }: RemoteItem,
  assets: readonly ChosenAsset[],
): GeoBox[] | undefined {
  const properties = (document.properties ?? {}) as Record<string, unknown>;
  const positions = assets.flatMap(({ asset }) => {
    // The shape and the transform belong together.
    const grid = [asset, properties].find((one) => one['proj:shape'] !== undefined);
    const code = epsgOf(asset) ?? epsgOf(properties);
    return (grid && code !== undefined ? positionOf(grid, code) : undefined) ?? [];
  });
  return positions.length === assets.length ? positions : undefined;
}

function epsgOf({ 'proj:code': code, 'proj:epsg': number }: Record<string, unknown>): number | undefined {
  if (typeof number === 'number') return number;
  const [, digits] = typeof code === 'string' ? (/^EPSG:(\d{1,6})$/.exec(code) ?? []) : [];
  return digits === undefined ? undefined : Number(digits);
}

/** `proj:shape` is the height and width, `proj:transform` an affine transform by rows, with or without the row 0 0 1. */
function positionOf(
  { 'proj:shape': shape, 'proj:transform': transform }: Record<string, unknown>,
  epsg: number,
): GeoBox | undefined {
  const [height = 0, width = 0] = numbersOf(shape);
  const [a, b, c, d, e, f] = numbersOf(transform);
  if (f === undefined || !isSize(height) || !isSize(width)) return undefined;
  const affine = affineOfGdal([c!, a!, b!, f, d!, e!]);
  if (!isInvertible(affine)) return undefined;
  try {
    return { crs: crsFromEpsg(epsg), transform: affine, width, height };
  } catch (error) {
    if (unknownCrs.is(error)) return undefined;
    throw error;
  }
}

const isSize = (value: number) => Number.isSafeInteger(value) && value > 0;

const numbersOf = (list: unknown): number[] =>
  Array.isArray(list) && list.every((value) => Number.isFinite(value)) ? list : [];

/**
 * Returns the Items that match, with the assets of these names only; `names` as for `chooseAssets`. Items of a file are selected before
 * they are sent, because a request has a limit of bytes.
 */
export function selectItems(
  documents: readonly Record<string, unknown>[],
  query: StacQuery,
  names: readonly string[] | undefined,
): Record<string, unknown>[] {
  const matches = itemMatcher(query);
  return documents
    .map((document) => itemOf(document))
    .filter(matches)
    .slice(0, query.limit)
    .map((item) => {
      if (!names) return item.document;
      try {
        const chosen = chooseAssets(item, { names });
        return { ...item.document, assets: Object.fromEntries(chosen.map(({ key, asset }) => [key, asset])) };
      } catch (error) {
        // The job reports it, and the other Items are ingested.
        if (missingAsset.is(error)) return item.document;
        throw error;
      }
    });
}

export interface StoredItem {
  /** As messages name it. */
  label: string;
  read(): Promise<RemoteItem>;
}

/** The Items of a search in a file, because those of a large search do not fit into memory. */
export class StoredItems {
  private bytes = 0;

  private constructor(
    private readonly path: string,
    private readonly file: FileHandle,
    private readonly checkSpace: (bytes: number) => Promise<void>,
  ) {}

  /** Creates the file, in place of one that an earlier process has left. `checkSpace` as in `CopyContext`. */
  static async create(path: string, checkSpace: StoredItems['checkSpace']): Promise<StoredItems> {
    return new StoredItems(path, await open(path, 'w+'), checkSpace);
  }

  /** Removes the file. No Item is read afterwards. */
  async remove(): Promise<void> {
    await this.file.close();
    await rm(this.path, { force: true });
  }

  async add(item: RemoteItem, label: string): Promise<StoredItem> {
    const bytes = Buffer.from(JSON.stringify(item));
    const position = this.bytes;
    this.bytes += bytes.length;
    await this.checkSpace(bytes.length);
    await writeFully(this.file, bytes, position);
    return { label, read: () => this.read(position, bytes.length) };
  }

  private async read(position: number, length: number): Promise<RemoteItem> {
    const bytes = Buffer.alloc(length);
    let done = 0;
    while (done < length) {
      const { bytesRead } = await this.file.read(bytes, done, length - done, position + done);
      if (bytesRead === 0) throw new Error(`${this.path} was shortened`);
      done += bytesRead;
    }
    return parseJson(bytes.toString()) as RemoteItem;
  }
}
