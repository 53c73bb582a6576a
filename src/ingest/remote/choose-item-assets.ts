/** Chooses the assets of a STAC Item that are read. */
import { type RemoteItem, withoutSecrets } from '../../remote/index.js';
import { missingAsset, noReadableAsset, tooManyAssets } from '../errors.js';

export interface ChosenAsset {
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
