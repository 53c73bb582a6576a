/** The wavelengths that a tile covers, as the STAC extension hsi 1.0.0 says it. */
import { isHyperspectral, type SpectralTags } from '../../raster/index.js';

export interface WavelengthRange {
  /** The shortest and the longest centre of the good bands, micrometres. */
  min: number;
  max: number;
}

/** Of all spectra among the groups of a tile; undefined if there is none, or all of its bands are bad. */
export function wavelengthRange(
  groups: readonly { bands: readonly SpectralTags[] }[],
): WavelengthRange | undefined {
  let [min, max] = [Infinity, -Infinity];
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

/** Without the noise of a division by 1,000. */
export function micrometres(nanometres: number): number {
  return Number((nanometres / 1000).toPrecision(6));
}

/** A range as a name of the column index; null stands for none. */
export function rangeName(range: WavelengthRange | undefined): string | null {
  return range ? `${range.min} ${range.max}` : null;
}

/** The range of a name. */
export function rangeNamed(name: string): WavelengthRange {
  const [min, max] = name.split(' ').map(Number) as [number, number];
  return { min, max };
}
