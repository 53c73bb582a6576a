/** The wavelengths that a tile covers, as in the STAC extension hsi 1.0.0. */
import { isHyperspectral, type SpectralTags } from '../../raster/index.js';

export interface WavelengthRange {
  /** The shortest and the longest centre of the good bands, micrometres. */
  min: number;
  max: number;
}

/** The range of all spectra among the groups of a tile; undefined if it has none, or all their bands are bad. */
export function wavelengthRange(
  groups: readonly { bands: readonly SpectralTags[] }[],
): WavelengthRange | undefined {
  let min = Infinity;
  let max = -Infinity;
  for (const { bands } of groups) {
    if (!isHyperspectral(bands)) continue;
    for (const { wavelength, good } of bands) {
      if (good === false) continue;
      min = Math.min(min, wavelength!);
      max = Math.max(max, wavelength!);
    }
  }
  return min <= max ? { min: micrometres(min), max: micrometres(max) } : undefined;
}

/** Converts nanometres without the rounding errors of a division by 1,000. */
export function micrometres(nanometres: number): number {
  return Number((nanometres / 1000).toPrecision(6));
}

/** The name of a range in the column index; null if there is none. */
export function rangeName(range: WavelengthRange | undefined): string | null {
  return range ? `${range.min} ${range.max}` : null;
}

/** The inverse of `rangeName`. */
export function rangeNamed(name: string): WavelengthRange {
  const [min, max] = name.split(' ').map(Number) as [number, number];
  return { min, max };
}
