/** Warns about rasters of many bands that lack metadata for an analysis of spectra. */
import { isHyperspectral } from '../../../raster/index.js';
import type { DescribeOptions, SourceGroup } from '../../ingest-scene-description.js';

/** Rasters of fewer bands are rarely spectra. */
const MIN_SPECTRUM_BANDS = 32;

export function spectrumWarnings(groups: readonly SourceGroup[], { scale }: DescribeOptions): string[] {
  const data = groups.filter(({ role }) => role === 'data');
  const warnings: string[] = [];
  for (const { bands } of data) {
    const isWhole = bands.every(({ header }) => !header.dataType.startsWith('float'));
    if (isHyperspectral(bands)) {
      if (scale === undefined && isWhole && bands.every((band) => band.scale === 1))
        warnings.push(
          'the spectra have no scale, so their numbers are not converted; if they are reflectance times 10,000, ingest with --scale 0.0001',
        );
    } else if (bands.length >= MIN_SPECTRUM_BANDS) {
      const lacking = bands.filter(({ wavelength }) => wavelength === undefined).length;
      warnings.push(
        `${lacking} of ${bands.length} bands have no wavelength, so they are not analysed as spectra; if they form a spectrum, give --wavelengths`,
      );
    }
  }
  return warnings;
}
