/** The description of a scene and of its assets by a STAC Item. */
import type { AcquisitionTime } from '../shared/index.js';

export interface ItemBand {
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
  type: string;
  roles: string[];
  bands: ItemBand[];
  /** Applies to bands that are not listed. */
  everyBand: ItemBand;
}

export interface StacItemDescription {
  path: string;
  id: string;
  collection?: string;
  span?: AcquisitionTime;
  platform?: string;
  license?: string;
  licenseUrl?: string;
  /** Processing baseline of Sentinel-2. */
  baseline?: number;
  /** True if Earth Search has already subtracted the offset of the processing baseline from the stored numbers. */
  isOffsetApplied?: boolean;
  assets: ItemAsset[];
}
