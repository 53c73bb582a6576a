/** The planes of a group that say which of its pixels hold data: internal masks and alpha bands of its files. */
import { type ValidityBand, validityBandOf } from '../raster/index.js';
import type { SourceRaster } from './tasks.js';

export interface ValidityPlanes {
  /** Each once. */
  planes: ValidityBand[];
  /** Of each band the index of its plane; null where all its pixels count. */
  ofBands: (number | null)[];
}

export function validityPlanes({ bands }: { bands: readonly SourceRaster[] }): ValidityPlanes {
  const planes: ValidityBand[] = [];
  const ofBands = bands.map(({ header, index }) => {
    const found = validityBandOf(header, index);
    if (!found) return null;
    const at = planes.findIndex((plane) => plane.header === found.header && plane.index === found.index);
    return at === -1 ? planes.push(found) - 1 : at;
  });
  return { planes, ofBands };
}
