/** A folder with a STAC Item and one raster or more as its assets: one scene. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { effectiveNodata, nodataAsType, openRaster, type RasterHeader } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { badSidecar, noDatetime, notRecognised } from '../errors.js';
import { measurePixelSize } from '../georeferencing.js';
import { type InputProbe, type ProductFormat, slugify } from '../scene.js';
import { datetimeOption } from './acquisition-time.js';
import { buildQualityLookup, qualityBand } from './quality.js';
import { describeBands, refuseBandFlags } from './raster-bands.js';
import { describeRasterScene } from './raster-file.js';
import {
  type ItemAsset,
  qualityCodesOf,
  readItemInFolder,
  type StacItemDescription,
} from './stac-sidecar.js';

export const stacItem: ProductFormat = {
  name: 'STAC Item',

  // An Item that cannot be read is reported as damaged.
  async identify(candidate) {
    if (!candidate.entries) return false;
    return (await findItem(candidate).catch(() => true)) !== null;
  },

  async describe(candidate, options) {
    const found = await findItem(candidate);
    if (!found) throw notRecognised(candidate.path, 'the folder holds no STAC Item with rasters beside it');
    const { item, assets, warnings } = found;
    // They apply to one file, and an Item has several.
    refuseBandFlags(options, 'the assets of the STAC Item name the bands');
    const span = datetimeOption(options) ?? item.span;
    if (!span) throw noDatetime(candidate.path);
    const bands = await Promise.all(
      assets.map(async (asset) => {
        const header = await openRaster(join(candidate.path, asset.file));
        const codes = qualityCodesOf(asset);
        return codes && canHoldCodes(header)
          ? [qualityBandOf(header, asset)]
          : describeBands(header, options, asset, asset.key);
      }),
    );
    const groups = groupBands(bands.flat());
    const scene = {
      ...describeRasterScene(candidate.path, options, item),
      id: options.id ?? slugify(item.id),
      platform: options.platform ?? item.platform ?? null,
      ...span,
      groups,
      quality: assets.flatMap((asset) => {
        const codes = qualityCodesOf(asset);
        return codes ? (buildQualityLookup(groups, nameOfQuality(asset), codes) ?? []) : [];
      }),
      warnings,
    };
    return [scene];
  },
};

const canHoldCodes = ({ bands, dataType }: RasterHeader) => bands === 1 && /^uint(8|16)$/.test(dataType);

const nameOfQuality = ({ key, bands: [band] }: ItemAsset) => band?.name ?? key;

function qualityBandOf(header: RasterHeader, asset: ItemAsset): UngroupedBand {
  const nodata =
    nodataAsType(header.dataType, (asset.bands[0] ?? asset.everyBand).nodata) ??
    effectiveNodata(header) ??
    null;
  return qualityBand(nameOfQuality(asset), header, 0, measurePixelSize(header), nodata);
}

/** The folder's Item, and its assets that are rasters in the same folder; null if it names none. Throws TW_INGEST_BAD_SIDECAR. */
async function findItem({
  path,
  entries,
}: InputProbe): Promise<{ item: StacItemDescription; assets: ItemAsset[]; warnings: string[] } | null> {
  const item = await readItemInFolder(path, entries ?? []);
  const beside = item?.assets.filter((asset) => asset.beside && isRasterAsset(asset)) ?? [];
  if (!item) return null;
  if (beside.length === 0) {
    const below = await assetsBelow(path, item);
    if (below.length > 0)
      throw badSidecar(
        item.path,
        `the files of its assets are in folders below it: ${below.map(({ key, href }) => `${key} (${href})`).join(', ')}. Move them beside it, and correct their href`,
      );
    return null;
  }
  const assets = beside.filter(({ file }) => entries?.includes(file));
  const missing = beside
    .filter((asset) => !assets.includes(asset))
    .map(({ key, file }) => `${key} (${file})`);
  if (assets.length === 0)
    throw badSidecar(item.path, `the files of its assets ${missing.join(', ')} are not beside it`);
  const named = new Set(item.assets.map(({ file }) => file));
  const others = (entries ?? []).filter(
    (entry) => RASTER_NAME.test(entry) && !entry.startsWith('.') && !named.has(entry),
  );
  const warnings = [
    ...item.warnings,
    ...(missing.length > 0
      ? [`the STAC Item names files that are not there, so they are left out: ${missing.join(', ')}`]
      : []),
    ...(others.length > 0
      ? [`the STAC Item does not name these files, so they are left out: ${others.join(', ')}`]
      : []),
  ];
  return { item, assets, warnings };
}

/** Raster assets whose files are in folders below the Item. */
async function assetsBelow(folder: string, { assets }: StacItemDescription): Promise<ItemAsset[]> {
  const isInside = ({ href }: ItemAsset) => /^[^/:?#]+\//.test(href) && !href.split('/').includes('..');
  const inside = assets.filter((asset) => isRasterAsset(asset) && isInside(asset));
  const isThere = await Promise.all(
    inside.map(({ href }) =>
      lstat(join(folder, href)).then(
        (info) => info.isFile(),
        () => false,
      ),
    ),
  );
  return inside.filter((_, i) => isThere[i]);
}

const RASTER_NAME = /\.(tiff?|jp2|img)$/i;

const NOT_DATA = new Set(['thumbnail', 'overview', 'visual', 'metadata']);

function isRasterAsset({ type, file, roles }: ItemAsset): boolean {
  if (roles.some((role) => NOT_DATA.has(role)) && !roles.includes('data')) return false;
  return type ? /^image\/(tiff|jp2|vnd\.stac\.geotiff)/.test(type) : RASTER_NAME.test(file);
}
