/** Mask codes of the quality layers that several deliveries of a product have. */
import { Mask } from '../../../raster/index.js';
import { bitAt } from './product-quality-lookup.js';

/** Scene classification (SCL) of Sentinel-2 level 2A: 0 no data, 1 defective, 3 shadow, 8 and 9 cloud, 10 thin cirrus, 11 snow. */
export function sentinel2SceneClass(value: number): number {
  if (value <= 1) return Mask.notAssessed;
  if (value === 3) return Mask.shadow;
  if (value >= 8 && value <= 10) return Mask.cloud;
  return value === 11 ? Mask.snow : Mask.clear;
}

/** QA_PIXEL of Landsat Collection 2 (USGS LSDS-1619, table 6-3): bit 0 fill, 1 dilated cloud, 2 cirrus, 3 cloud, 4 shadow, 5 snow. */
export function landsatPixelQuality(value: number): number {
  if (bitAt(value, 0)) return Mask.notAssessed;
  if (bitAt(value, 1) || bitAt(value, 2) || bitAt(value, 3)) return Mask.cloud;
  return bitAt(value, 4) ? Mask.shadow : bitAt(value, 5) ? Mask.snow : Mask.clear;
}

/** Fmask of HLS 2.0 (HLS User Guide 2.0, table 9): bit 1 cloud, 3 shadow, 4 snow; 255 is fill. */
export function hlsFmask(value: number): number {
  if (value === 255) return Mask.notAssessed;
  if (bitAt(value, 1)) return Mask.cloud;
  return bitAt(value, 3) ? Mask.shadow : bitAt(value, 4) ? Mask.snow : Mask.clear;
}
