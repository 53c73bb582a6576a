/** Chooses the assets of a STAC Item that are read. */
import type { RemoteItem } from '../../remote/index.js';
import { missingAsset, noReadableAsset } from '../errors.js';

export interface ChosenAsset {
  key: string;
  /** Absolute address. */
  url: string;
  asset: Record<string, unknown>;
}

/** Roles of assets that show data again, or describe it. */
const NOT_DATA = new Set(['thumbnail', 'overview', 'visual', 'metadata']);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/**
 * Returns the GeoTIFFs with the given names: keys of assets, or names or common names of their bands, in any case. Without names, all
 * GeoTIFFs with data. Throws TW_INGEST_MISSING_ASSET and TW_INGEST_NO_READABLE_ASSET.
 */
export function chooseAssets({ id, url, document }: RemoteItem, names?: readonly string[]): ChosenAsset[] {
  const assets = Object.entries(isObject(document.assets) ? document.assets : {}).flatMap(([key, asset]) => {
    const address = isObject(asset) ? addressOf(asset, url) : undefined;
    return isObject(asset) && address !== undefined && isGeotiff(asset, address)
      ? [{ key, url: address, asset }]
      : [];
  });
  if (names) {
    const chosen = names.map((name) => {
      const found = assets.find((one) =>
        namesOf(one).some((own) => own.toLowerCase() === name.toLowerCase()),
      );
      if (found) return found;
      throw missingAsset(url, id, name, [...new Set(assets.map(({ key }) => key))]);
    });
    return [...new Set(chosen)];
  }
  const data = assets.filter(({ asset }) => isData(asset));
  if (data.length === 0) throw noReadableAsset(url, id);
  return data;
}

/** The key first, then the bands in the forms of STAC 1.1 and 1.0. */
function namesOf({ key, asset }: ChosenAsset): string[] {
  const bands = [asset.bands, asset['eo:bands']].flatMap((list) =>
    Array.isArray(list) ? list.filter(isObject) : [],
  );
  // An asset of several bands is not one of them.
  const one = new Set(bands.map(({ name }) => name)).size > 1 ? [] : bands;
  return [
    key,
    ...one
      .flatMap((band) => [band.name, band.common_name, band['eo:common_name']])
      .flatMap((name) => textOf(name) ?? []),
  ];
}

function isData({ roles }: Record<string, unknown>): boolean {
  const said = Array.isArray(roles) ? roles.map(String) : [];
  return said.includes('data') || !said.some((role) => NOT_DATA.has(role));
}

function isGeotiff({ type }: Record<string, unknown>, url: string): boolean {
  const said = textOf(type);
  return said === undefined
    ? /\.tiff?$/i.test(new URL(url).pathname)
    : /^image\/(tiff|vnd\.stac\.geotiff)/.test(said);
}

/** The address over HTTP, which is the href of an asset or one of its alternates (Alternate Assets extension). */
function addressOf({ href, alternate }: Record<string, unknown>, base: string): string | undefined {
  const alternates = isObject(alternate)
    ? Object.values(alternate).map((one) => (isObject(one) ? one.href : undefined))
    : [];
  const given = [href, ...alternates]
    .flatMap((text) => textOf(text) ?? [])
    .filter((text) => URL.canParse(text, base));
  return given.map((text) => new URL(text, base).href).find((text) => /^https?:/.test(text));
}
