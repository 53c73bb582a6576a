/** The formats that are read through GDAL, and the only drivers that may open them. */
import type { RasterType } from '../file-access/index.js';

export type GdalFileType = Exclude<RasterType, 'tiff' | 'hdf5' | 'envi' | 'mat'>;

interface Format {
  /** Name for users. */
  name: string;
  driver: string;
  /** The driver of a single layer, if GDAL has a separate one. */
  layerDriver?: string;
}

export const GDAL_FORMATS: Record<GdalFileType, Format> = {
  jp2: { name: 'JPEG 2000', driver: 'JP2OpenJPEG' },
  hfa: { name: 'Erdas Imagine (.img)', driver: 'HFA' },
  hdf4: { name: 'HDF4', driver: 'HDF4', layerDriver: 'HDF4Image' },
  netcdf: { name: 'netCDF', driver: 'netCDF' },
};

/** The format of a driver, for messages. */
export function formatOfGdalDriver(driver: string): string {
  const format = Object.values(GDAL_FORMATS).find((f) => f.driver === driver || f.layerDriver === driver);
  return format?.name ?? driver;
}
