/** Bands of sensors to which spectra can be resampled. `source`: publication of the numbers. */
import type { SensorBand } from './spectral-response.js';

const bandsOf = (bands: [name: string, wavelength: number, fwhm: number][]): SensorBand[] =>
  bands.map(([name, wavelength, fwhm]) => ({ name, wavelength, fwhm }));

export const SENSORS = {
  'sentinel-2a': {
    title: 'Sentinel-2A MSI',
    source: 'ESA, Sentinel-2 MSI User Guide, spectral bands: central wavelength and bandwidth of S2A',
    bands: bandsOf([
      ['B01', 442.7, 21],
      ['B02', 492.4, 66],
      ['B03', 559.8, 36],
      ['B04', 664.6, 31],
      ['B05', 704.1, 15],
      ['B06', 740.5, 15],
      ['B07', 782.8, 20],
      ['B08', 832.8, 106],
      ['B8A', 864.7, 21],
      ['B09', 945.1, 20],
      ['B10', 1373.5, 31],
      ['B11', 1613.7, 91],
      ['B12', 2202.4, 175],
    ]),
  },
  'landsat-8': {
    title: 'Landsat 8 OLI',
    source: 'Barsi et al. 2014, Remote Sensing 6(10), 10232-10251: band-average centre and FWHM, to the nm',
    bands: bandsOf([
      ['B1', 443, 16],
      ['B2', 482, 60],
      ['B3', 561, 57],
      ['B4', 655, 37],
      ['B5', 865, 28],
      ['B6', 1609, 85],
      ['B7', 2201, 187],
      ['B8', 590, 172],
      ['B9', 1373, 20],
    ]),
  },
};

export type SensorName = keyof typeof SENSORS;
export const SENSOR_NAMES = Object.keys(SENSORS) as SensorName[];
