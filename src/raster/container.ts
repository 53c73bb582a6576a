/** Files that hold several rasters. */
import { unsupported } from './errors.js';
import { openGdalContainer } from './gdal/layers.js';
import { rasterKind } from './header.js';
import type { Container } from './types.js';

/**
 * Lists the layers of an HDF4 or netCDF file; `openRaster(path, layer.name)` opens one of them.
 * Throws as `openRaster` does, and TW_RASTER_UNSUPPORTED for files of a single raster.
 */
export async function openContainer(path: string): Promise<Container> {
  const kind = await rasterKind(path);
  if (kind === 'hdf4' || kind === 'netcdf') return openGdalContainer(path, kind);
  throw unsupported(path, kind === 'hdf5' ? 'it is HDF5' : 'it is of a format that holds a single raster');
}
