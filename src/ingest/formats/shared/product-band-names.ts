/** Bands of imaging spectrometers, and common names for them, so that expressions for multispectral products apply to them. */
import { nearestBand, type RasterHeader, type SpectralTags } from '../../../raster/index.js';
import type { UngroupedBand } from '../../ingest-band-groups.js';
import type { Resolution } from '../../ingest-scene-description.js';

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

/** All bands of a cube of spectra, which are never averaged, in its order. */
export function spectralCubeBands(
  header: RasterHeader,
  resolution: Resolution,
  nodata: number,
  bands: (SpectralTags & Pick<UngroupedBand, 'scale' | 'offset'>)[],
): UngroupedBand[] {
  const names = commonBandNames(bands);
  return bands.map((band, index) => ({
    name: `b${index + 1}`,
    ...(names.has(index) && { commonName: names.get(index)! }),
    header,
    index,
    resolution,
    role: 'data',
    resampling: 'nearest',
    nodata,
    ...band,
  }));
}

export function withCommonNames(bands: UngroupedBand[]): UngroupedBand[] {
  const names = commonBandNames(bands);
  return bands.map((band, i) => ({ ...band, ...(names.has(i) && { commonName: names.get(i)! }) }));
}
