/** Georeferencing of a raster that GDAL reports. */
import {
  affineOfGdal,
  createTransform,
  crsFromEpsg,
  crsFromWkt,
  customCrs,
  type Datum,
  datumForEpsg,
  isInvertible,
  type PointTransform,
  pixelToMap,
} from '../crs/index.js';
import { noCrs, unknownCrs } from '../errors.js';
import type { Affine, Crs } from '../raster-types.js';
import type { GdalInfo } from './gdalinfo.js';

/** Throws TW_RASTER_NO_CRS. */
export function gdalTransform({ geoTransform }: GdalInfo, path: string): Affine {
  if (!geoTransform) throw noCrs(path, 'it has no position');
  const transform = affineOfGdal(geoTransform);
  if (!isInvertible(transform)) throw noCrs(path, 'its pixels have no extent');
  return transform;
}

const NO_SYSTEM = 'it names no coordinate system';
/** GDAL needs a grid mapping. The reader of netCDF-4 also identifies latitudes and longitudes by their attributes. */
const NO_SYSTEM_CLASSIC = `${NO_SYSTEM} (if its axes are latitude and longitude, "nccopy -k nc4 IN.nc OUT.nc" makes a netCDF-4 file, which can be ingested as it is)`;

/** Throws TW_RASTER_NO_CRS, TW_RASTER_UNKNOWN_CRS and TW_RASTER_NOT_EARTH. */
export function gdalCrs(info: GdalInfo, path: string): Crs {
  const { wkt } = info;
  if (wkt === '') throw noCrs(path, info.bands[0]?.variable === undefined ? NO_SYSTEM : NO_SYSTEM_CLASSIC);
  const epsg = Number(/ID\["EPSG",(\d+)\]\]\s*$/.exec(wkt)?.[1]);
  const name = `"${/^\w+\["([^"]*)"/.exec(wkt)?.[1] ?? ''}" of ${path}`;
  // A code that the table lacks has a definition in WKT and as a PROJ string; both are checked.
  const ways = [() => crsFromWkt(wkt, path), () => customCrs(...projDefinitionOf(info), name)];
  if (Number.isFinite(epsg)) ways.unshift(() => crsFromEpsg(epsg));
  for (const [i, way] of ways.entries()) {
    try {
      const crs = way();
      if (crs.epsg !== undefined && i === 0) return crs;
      const { datumErrorMetres = 0 } = crs;
      const allowed = MAX_DIFFERENCE_METRES + (Number.isFinite(datumErrorMetres) ? datumErrorMetres : 0);
      if (maxDifferenceToProj(info, createTransform(crs, 'EPSG:4326')) < allowed) return crs;
    } catch (error) {
      if (!unknownCrs.is(error)) throw error;
    }
  }
  throw unknownCrs(name);
}

/** Splits GDAL's PROJ string into projection and datum. Leaves out shifts by grid files, which the check detects. */
function projDefinitionOf({ proj4, corners }: GdalInfo): [projection: string, datum: Datum] {
  const words = proj4.split(' ').filter((word) => !/^\+(no_defs|type|nadgrids|wktext)/.test(word));
  const isDatum = (word: string) => /^\+(datum|ellps|a|b|rf|R|towgs84|pm)=/.test(word);
  const isKnown = corners !== undefined || /\+(datum|towgs84|R)=|\+ellps=(WGS84|GRS80)/.test(proj4);
  const own = { proj4: words.filter(isDatum).join(' '), errorMetres: isKnown ? 0 : Infinity };
  // PROJ and proj4js shift NAD27 by grid files.
  const datum = words.includes('+datum=NAD27') ? datumForEpsg(NAD27)! : own;
  return [words.filter((word) => !isDatum(word)).join(' '), datum];
}

/** EPSG code of its geographic system. */
const NAD27 = 4267;

/**
 * Limit of the error. A PROJ string holds less than WKT: shifts of datums may be lost, and positions are then wrong by up to
 * about 100 m.
 */
const MAX_DIFFERENCE_METRES = 10;
const METRES_PER_DEGREE = 111_320;

/** The largest distance, in metres, between the corners as projected here and by PROJ; 0 if PROJ can project none. */
function maxDifferenceToProj(
  { corners, geoTransform, width, height }: GdalInfo,
  toGlobe: PointTransform,
): number {
  if (!corners || !geoTransform) return 0;
  const transform = affineOfGdal(geoTransform);
  const places = [
    [0, 0],
    [0, height],
    [width, height],
    [width, 0],
  ];
  const distances = places.map(([column, row], i) => {
    const [lon, lat] = toGlobe(...pixelToMap(transform, column, row));
    const [wantedLon, wantedLat] = corners[i];
    const east = ((((lon - wantedLon + 180) % 360) + 360) % 360) - 180;
    return Math.hypot(east * Math.cos((lat * Math.PI) / 180), lat - wantedLat) * METRES_PER_DEGREE;
  });
  return Math.max(...distances);
}
