/** Files that hold several rasters. */
import { unsupported } from './errors.js';
import { listGdalSubdatasets } from './gdal/index.js';
import { listHdf5Subdatasets } from './hdf5/index.js';
import { detectRasterType } from './open-raster.js';
import type { MultiDatasetFile } from './raster-types.js';

/**
 * Lists the layers of an HDF4, HDF5 or netCDF file; `openRaster(path, layer.name)` opens one of them. Throws the errors of
 * `openRaster`, and TW_RASTER_UNSUPPORTED for files of a single raster.
 */
export async function listSubdatasets(path: string): Promise<MultiDatasetFile> {
  const kind = await detectRasterType(path);
  if (kind === 'hdf4' || kind === 'netcdf') return listGdalSubdatasets(path, kind);
  if (kind === 'hdf5') return listHdf5Subdatasets(path);
  throw unsupported(path, 'it is of a format that holds a single raster');
}
