/** Common names for bands of imaging spectrometers, so that expressions for multispectral products apply to them. */
import { nearestBand, type SpectralTags } from '../../../raster/index.js';

/** Centres of the bands of Sentinel-2A, nm (ESA, Sentinel-2 Spectral Response Functions 3.0), by STAC common names. */
const CENTRE_WAVELENGTHS_NM: Record<string, number> = {
  coastal: 442.7,
  blue: 492.4,
  green: 559.8,
  red: 664.6,
  rededge071: 704.1,
  rededge075: 740.5,
  rededge078: 782.8,
  nir: 832.8,
  nir08: 864.7,
  nir09: 945.1,
  swir16: 1613.7,
  swir22: 2202.4,
};
/** Tolerance. Bands further away measure another quantity. */
const TOLERANCE_NM = 15;

/** Common names by band index. */
export function commonBandNames(bands: readonly SpectralTags[]): Map<number, string> {
  const names = new Map<number, string>();
  for (const [name, centre] of Object.entries(CENTRE_WAVELENGTHS_NM)) {
    const band = nearestBand(bands, centre, TOLERANCE_NM);
    if (band >= 0 && !names.has(band)) names.set(band, name);
  }
  return names;
}
