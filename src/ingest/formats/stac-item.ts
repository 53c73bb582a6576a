/** A folder with a STAC Item and one raster or more as its assets: one scene. */
import { join } from 'node:path';
import { effectiveNodata, nodataAsType, openRaster, type RasterHeader } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { noDatetime, notRecognised } from '../errors.js';
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
    const { item, assets } = found;
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
      warnings: [],
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

/** The folder's Item, and its assets that are rasters in the same folder; null if there are none. */
async function findItem({
  path,
  entries,
}: InputProbe): Promise<{ item: StacItemDescription; assets: ItemAsset[] } | null> {
  const item = await readItemInFolder(path, entries ?? []);
  const assets = item?.assets.filter(
    (asset) => asset.beside && entries?.includes(asset.file) && isRasterAsset(asset),
  );
  return item && assets && assets.length > 0 ? { item, assets } : null;
}

const NOT_DATA = new Set(['thumbnail', 'overview', 'visual', 'metadata']);

function isRasterAsset({ type, file, roles }: ItemAsset): boolean {
  if (roles.some((role) => NOT_DATA.has(role)) && !roles.includes('data')) return false;
  return type ? /^image\/(tiff|jp2|vnd\.stac\.geotiff)/.test(type) : /\.(tiff?|jp2|img)$/i.test(file);
}
