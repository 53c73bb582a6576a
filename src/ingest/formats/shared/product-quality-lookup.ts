/** Bands with quality codes, and lookup tables from the stored values of a product's quality layer to mask codes. */
import { Mask, type RasterHeader } from '../../../raster/index.js';
import type { UngroupedBand } from '../../ingest-band-groups.js';
import type { QualityBand, Resolution, SourceGroup } from '../../ingest-scene-description.js';

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
