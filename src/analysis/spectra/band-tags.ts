/** Tags of the bands of maps that are spectra themselves. */
import { commonBandNames } from '../../ingest/index.js';
import type { MapBandTags } from '../analysis-tasks.js';
import type { AnalysedBand } from '../tile-reading/tile-spectrum.js';

/** Wavelengths and FWHM of bands, nm. */
export function mapSpectralTags(bands: readonly Omit<AnalysedBand, 'name'>[]): MapBandTags[] {
  return bands.map(({ wavelength, fwhm }) => ({ wavelength, ...(fwhm !== undefined && { fwhm }) }));
}

/** The same, and the common names that ingest gives bands of such wavelengths; for maps of reflectance. */
export function mapReflectanceTags(bands: readonly Omit<AnalysedBand, 'name'>[]): MapBandTags[] {
  const tags = mapSpectralTags(bands);
  const names = commonBandNames(tags);
  return tags.map((tag, band) => ({ ...tag, ...(names.has(band) && { commonName: names.get(band)! }) }));
}
