/** Coordinate systems by well-known text, as ENVI and HDF files hold it. */
import { crsFromEpsg, projector } from './crs.js';
import { unknownCrs } from './errors.js';
import type { Crs } from './types.js';

const LONGEST = 20_000;

/** Datums that agree with WGS 84 within a few metres; shifts of others are not in the text, or not understood. */
const CLOSE_TO_WGS84 =
  /^(d_)?(world[_ ]geodetic[_ ]system[_ ]1984|wgs[_ ]?(19)?84|north[_ ]american[_ ](datum[_ ])?1983|nad83|european[_ ]terrestrial[_ ]reference[_ ]system[_ ]1989|etrs[_ ]?(19)?89|sirgas[_ ]2000|gda[_ ]?(1994|2020|94)|geocentric[_ ]datum[_ ]of[_ ]australia[_ ](1994|2020)|nzgd[_ ]2000|jgd[_ ]20(00|11))/i;

/** The code that a WKT gives for itself, as the last thing in it: AUTHORITY["EPSG","4326"]] or ID["EPSG",4326]]. */
export function epsgOfWkt(wkt: string): number | undefined {
  const code = /(?:AUTHORITY|ID)\s*\[\s*"EPSG"\s*,\s*"?(\d+)"?\s*\]\s*\]\s*$/.exec(wkt)?.[1];
  return code === undefined ? undefined : Number(code);
}

/** The system of a WKT 1 or 2, ESRI's spelling included. Throws TW_RASTER_UNKNOWN_CRS. */
export function crsFromWkt(wkt: string, path: string): Crs {
  const name = `"${/^\s*\w+\s*\[\s*"([^"]*)"/.exec(wkt)?.[1]?.slice(0, 100) ?? wkt.slice(0, 60)}" of ${path}`;
  const epsg = epsgOfWkt(wkt);
  try {
    if (epsg !== undefined) return crsFromEpsg(epsg);
  } catch (error) {
    // The text itself defines a system without an entry in our table.
    if (!unknownCrs.is(error)) throw error;
  }
  const datum = /\bDATUM\s*\[\s*"([^"]*)"/i.exec(wkt)?.[1] ?? '';
  if (wkt.length > LONGEST || !CLOSE_TO_WGS84.test(datum)) throw unknownCrs(name);
  const crs = { epsg: undefined, proj4: wkt, geographic: /^\s*GEOG(CS|CRS)\b/i.test(wkt) };
  try {
    projector(crs, 'EPSG:4326');
  } catch (error) {
    throw unknownCrs.because(error, name);
  }
  return crs;
}
