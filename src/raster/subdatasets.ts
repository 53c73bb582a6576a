/** Files that hold several rasters. */
import { unsupported } from './errors.js';
import { openGdalContainer } from './gdal/subdatasets.js';
import { openHdf5Container } from './hdf5/subdatasets.js';
import { rasterKind } from './open-raster.js';
import type { Container } from './types.js';

/**
 * Lists the layers of an HDF4, HDF5 or netCDF file; `openRaster(path, layer.name)` opens one of them.
 * Throws as `openRaster` does, and TW_RASTER_UNSUPPORTED for files of a single raster.
 */
export async function openContainer(path: string): Promise<Container> {
  const kind = await rasterKind(path);
  if (kind === 'hdf4' || kind === 'netcdf') return openGdalContainer(path, kind);
  if (kind === 'hdf5') return openHdf5Container(path);
  throw unsupported(path, 'it is of a format that holds a single raster');
}
