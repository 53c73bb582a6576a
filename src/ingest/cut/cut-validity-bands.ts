/** Lists the validity bands of a group: the internal masks and alpha bands of its files. */
import { findValidityBand, type ValidityBand } from '../../raster/index.js';
import type { SourceRaster } from './cut-tasks.js';

export interface ValidityBands {
  /** Each once. */
  validity: ValidityBand[];
  /** For each band of the group, the index of its validity band; null if all its pixels count. */
  ofBands: (number | null)[];
}

export function validityBands({ bands }: { bands: readonly SourceRaster[] }): ValidityBands {
  const validity: ValidityBand[] = [];
  const ofBands = bands.map(({ header, index }) => {
    const found = findValidityBand(header, index);
    if (!found) return null;
    const at = validity.findIndex((one) => one.header === found.header && one.index === found.index);
    return at === -1 ? validity.push(found) - 1 : at;
  });
  return { validity, ofBands };
}
