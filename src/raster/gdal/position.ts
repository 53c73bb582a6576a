/** Where GDAL says that a raster lies. */
import { isInvertible } from '../affine.js';
import { crsFromEpsg, projector } from '../crs.js';
import { noCrs, unknownCrs } from '../errors.js';
import type { Affine, Crs } from '../types.js';
import type { GdalInfo } from './info.js';

/** Throws TW_RASTER_NO_CRS. */
export function transformOf({ geoTransform }: GdalInfo, path: string): Affine {
  if (!geoTransform) throw noCrs(path, 'it has no position');
  const [originX, xx, xy, originY, yx, yy] = geoTransform;
  const transform = { originX, originY, xx, xy, yx, yy };
  if (!isInvertible(transform)) throw noCrs(path, 'its pixels have no extent');
  return transform;
}

/** Throws TW_RASTER_NO_CRS and TW_RASTER_UNKNOWN_CRS. */
export function crsOf({ wkt, proj4 }: GdalInfo, path: string): Crs {
  if (wkt === '') throw noCrs(path, 'it names no coordinate system');
  const epsg = Number(/ID\["EPSG",(\d+)\]\]\s*$/.exec(wkt)?.[1]);
  if (Number.isFinite(epsg)) {
    try {
      return crsFromEpsg(epsg);
    } catch (error) {
      // A code that we have no definition of: GDAL's definition will do.
      if (!unknownCrs.is(error)) throw error;
    }
  }
  return crsFromProj(proj4, wkt, path);
}

function crsFromProj(proj4: string, wkt: string, path: string): Crs {
  const name = `"${/^\w+\["([^"]*)"/.exec(wkt)?.[1] ?? ''}" of ${path}`;
  // Shifts by grid files: without the files positions would be off by up to 200 m, silently.
  if (proj4 === '' || /\+nadgrids=|\+datum=NAD27/.test(proj4)) throw unknownCrs(name);
  const crs = { epsg: undefined, proj4, geographic: proj4.includes('+proj=longlat') };
  try {
    projector(crs, 'EPSG:4326');
  } catch (error) {
    throw unknownCrs.because(error, name);
  }
  return crs;
}
