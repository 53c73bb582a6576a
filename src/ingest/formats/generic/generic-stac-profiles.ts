/**
 * STAC collections whose Items need more than the Item says: which asset is the mask, and which numbers are reflectances. To add one, add
 * an entry to `PROFILES`: the first entry that fits an Item applies.
 */
import { hlsFmask, landsatPixelQuality, sentinel2SceneClass } from '../shared/index.js';
import type { ItemAsset, ItemBand, StacItemDescription } from './generic-stac-description.js';

export interface Calibration {
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
/** Bands of the reflectance of the surface: names of the product, and names of assets at Earth Search. */
const SENTINEL2_REFLECTANCE =
  /^(b0[1-9]|b1[12]|b8a|coastal|blue|green|red|rededge[123]|nir|nir08|nir09|swir16|swir22)(-jp2|_\d\dm)?$/i;

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
function sentinel2Offset({ isOffsetApplied, baseline }: StacItemDescription, { offset }: ItemBand): number {
  const isWithOffset = baseline !== undefined && baseline >= FIRST_BASELINE_WITH_OFFSET;
  if (isOffsetApplied === undefined) return offset ?? (isWithOffset ? SENTINEL2_OFFSET : 0);
  return isWithOffset && !isOffsetApplied ? SENTINEL2_OFFSET : 0;
}

/** Returns the calibration of a band by the profile of its collection; empty if no profile fits. */
export function profileCalibration(item: StacItemDescription, asset: ItemAsset, band: ItemBand): Calibration {
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
