/**
 * Bands with quality codes, and lookup tables from the stored values of a product's quality layer to mask codes; the codes of layers that
 * several deliveries of a product have.
 */
import { Mask, type RasterHeader } from '../../raster/index.js';
import type { UngroupedBand } from '../bands.js';
import type { QualityBand, Resolution, SourceGroup } from '../scene.js';

/** Bit n of a value, counted from the lowest, 0. */
export const bitAt = (value: number, n: number) => (value >> n) & 1;

const TABLE_SIZES = new Map([
  ['uint8', 256],
  ['uint16', 65536],
]);

/**
 * The band of this name with the mask code of each value that it can store; the group's nodata value gives no information.
 * Null if no group has the band, or its numbers are not unsigned with 8 or 16 bits.
 */
export function buildQualityLookup(
  groups: SourceGroup[],
  name: string,
  code: (value: number) => number,
): QualityBand | null {
  for (const group of groups) {
    const band = group.bands.findIndex((one) => one.name === name);
    const length = TABLE_SIZES.get(group.bands[band]?.header.dataType ?? '');
    if (length === undefined) continue;
    const codes = new Uint8Array(length).map((_, value) =>
      value === group.nodata ? Mask.notAssessed : code(value),
    );
    return { group: group.name, band, codes };
  }
  return null;
}

/** `buildQualityLookup` for the code of each band by name, without the bands that are missing. */
export function buildQualityLookups(
  groups: SourceGroup[],
  codes: Record<string, (value: number) => number>,
): QualityBand[] {
  return Object.entries(codes).flatMap(([name, code]) => buildQualityLookup(groups, name, code) ?? []);
}

/** The code of a flag that is set if it is 1; other values give no information. */
export const flagCode = (code: number) => (value: number) => (value === 1 ? code : Mask.notAssessed);

/** A band of the role `qa`, with stored numbers as they are. */
export function qualityBand(
  name: string,
  header: RasterHeader,
  index: number,
  resolution: Resolution,
  nodata: number | null = null,
): UngroupedBand {
  return { name, header, index, resolution, role: 'qa', nodata, scale: 1, offset: 0 };
}

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
