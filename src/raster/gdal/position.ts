/** Where GDAL says that a raster lies. */
import { isInvertible } from '../affine.js';
import { crsFromEpsg, type Projection, projector } from '../crs.js';
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
export function crsOf(info: GdalInfo, path: string): Crs {
  const { wkt } = info;
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
  return crsFromProj(info, path);
}

/** A PROJ string says less than WKT: shifts of datums may be lost, and then positions are wrong by up to some 100 m. */
const TOLERANCE_METRES = 10;
const METRES_PER_DEGREE = 111_320;

function crsFromProj(info: GdalInfo, path: string): Crs {
  const { proj4, wkt } = info;
  const name = `"${/^\w+\["([^"]*)"/.exec(wkt)?.[1] ?? ''}" of ${path}`;
  // Shifts by grid files, which may be missing in PROJ as well.
  if (/\+nadgrids=|\+datum=NAD27/.test(proj4)) throw unknownCrs(name);
  const crs = { epsg: undefined, proj4, geographic: proj4.includes('+proj=longlat') };
  let off: number;
  try {
    off = distanceToProj(info, projector(crs, 'EPSG:4326'));
  } catch (error) {
    throw unknownCrs.because(error, name);
  }
  if (!(off < TOLERANCE_METRES)) throw unknownCrs(name);
  return crs;
}

/** How far, in metres, our projection puts the corners from where PROJ puts them; 0 where PROJ can place none. */
function distanceToProj({ corners, geoTransform, width, height }: GdalInfo, toGlobe: Projection): number {
  if (!corners || !geoTransform) return 0;
  const [x, xx, xy, y, yx, yy] = geoTransform;
  const places = [
    [0, 0],
    [0, height],
    [width, height],
    [width, 0],
  ];
  const distances = places.map(([column, row], i) => {
    const [lon, lat] = toGlobe(x + xx * column + xy * row, y + yx * column + yy * row);
    const [wantedLon, wantedLat] = corners[i];
    const east = ((((lon - wantedLon + 180) % 360) + 360) % 360) - 180;
    return Math.hypot(east * Math.cos((lat * Math.PI) / 180), lat - wantedLat) * METRES_PER_DEGREE;
  });
  return Math.max(...distances);
}
