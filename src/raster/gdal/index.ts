/**
 * Reads JPEG 2000, HDF4, Erdas Imagine and netCDF through GDAL in a separate process. Invariant: a process may open one file with one
 * driver, its time and memory are limited, and it has no network. Imports files of a folder above (types), the folders `crs`, `file-
 * access`, `metadata` and `pixels` and the part `async`.
 */
export { openViaGdal } from './gdal-header.js';
export { listGdalSubdatasets } from './gdal-subdatasets.js';
export { type GdalReadRequest, readViaGdal } from './read-via-gdal.js';
export { withGdalSignal } from './run-gdal.js';
