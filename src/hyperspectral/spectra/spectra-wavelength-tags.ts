/** Tags of the bands of maps whose pixels are spectra. */
import { commonBandNames } from '../../ingest/index.js';
import type { SpectralTags } from '../../raster/index.js';

import type { AnalysedBand } from '../spectrum-reading/index.js';

/** Wavelength and FWHM of a band of a map, nm, and its common name. */
export type MapBandTags = SpectralTags & { commonName?: string };

/** Wavelengths and FWHM of bands, nm. */
export function mapSpectralTags(bands: readonly Omit<AnalysedBand, 'name'>[]): MapBandTags[] {
  return bands.map(({ wavelength, fwhm }) => ({ wavelength, ...(fwhm !== undefined && { fwhm }) }));
}

/** The same tags, and the common names that ingest gives to bands of these wavelengths; for maps of reflectance. */
export function mapReflectanceTags(bands: readonly Omit<AnalysedBand, 'name'>[]): MapBandTags[] {
  const tags = mapSpectralTags(bands);
  const names = commonBandNames(tags);
  return tags.map((tag, band) => ({ ...tag, ...(names.has(band) && { commonName: names.get(band)! }) }));
}
