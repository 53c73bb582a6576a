/**
 * Coordinate reference systems of the EPSG registry as PROJ defines them, from the table that tools/make-epsg-table.py writes, and datums.
 */
import { readFileSync } from 'node:fs';
import { notEarthEllipsoid, unknownCrs } from '../errors.js';

export interface EpsgEntry {
  /** A PROJ string with its shift to WGS 84, without `+no_defs`. */
  proj4: string;
  /** See `Crs.datumErrorMetres`. */
  errorMetres: number;
}

let loadedTable: string | undefined;
const table = () => (loadedTable ??= readFileSync(new URL('./epsg.tsv', import.meta.url), 'latin1'));

/** The entry of a code; undefined if PROJ does not know it, or proj4js lacks its projection. */
export function epsgEntry(code: number): EpsgEntry | undefined {
  // Searches lines instead of parsing them: few of the six thousand are ever needed.
  const start = table().indexOf(`\n${code}\t`);
  return start < 0 ? undefined : parseEntry(lineAt(start + 1));
}

/** The datum of a geographic system by its name in WKT (WKT 1, WKT 2 or ESRI); undefined if it is unknown. */
export function datumByName(name: string): Datum | undefined {
  const key = name.toLowerCase().replace(/[^a-z0-9]/g, '');
  if (key === '') return undefined;
  const found = new RegExp(`\\n[^\\n]*\\t(?:[^\\t\\n]* )?${key}(?= |\\n)`).exec(table());
  return found ? datumFromEntry(parseEntry(lineAt(found.index + 1))) : undefined;
}

/** The datum of a geographic entry. */
export function datumFromEntry({ proj4, errorMetres }: EpsgEntry): Datum {
  return { proj4: proj4.replace('+proj=longlat ', ''), errorMetres };
}

function lineAt(start: number): string {
  return table().slice(start, table().indexOf('\n', start));
}

function parseEntry(line: string): EpsgEntry {
  const [, metres, proj4] = line.split('\t');
  return { proj4: proj4!, errorMetres: metres === '?' ? Infinity : Number(metres) };
}

/** A datum: an ellipsoid and its shift to WGS 84. */
export interface Datum {
  /** A PROJ string: `+datum=WGS84`, `+ellps=bessel +towgs84=...`, `+a=... +b=...`, optionally with `+pm=`. */
  proj4: string;
  /** See `Crs.datumErrorMetres`. */
  errorMetres: number;
}

/** Range of the radius of the Earth, metres: it includes every ellipsoid and sphere of maps, and no other planet. */
const MIN_EARTH_RADIUS_M = 6_300_000;
const MAX_EARTH_RADIUS_M = 6_440_000;

/**
 * A datum given by its ellipsoid alone (semi-axes in metres), with a shift of 3 or 7 parameters (metres, arc seconds, parts
 * per million; position vector convention) if the file has one. Without a shift, longitudes and latitudes are treated as those
 * of WGS 84. Throws TW_RASTER_NOT_EARTH and TW_RASTER_UNKNOWN_CRS. `path` is for the messages.
 */
export function datumFromEllipsoid(
  { major, minor }: { major: number; minor: number },
  path: string,
  toWgs84?: readonly number[],
): Datum {
  if (!(major > 0 && minor > 0)) throw unknownCrs(`with an ellipsoid of ${major} x ${minor} m in ${path}`);
  if (Math.min(major, minor) < MIN_EARTH_RADIUS_M || Math.max(major, minor) > MAX_EARTH_RADIUS_M)
    throw notEarthEllipsoid(path, major / 1000);
  const proj4 = `+a=${major} +b=${minor}`;
  const isShift = toWgs84 && (toWgs84.length === 3 || toWgs84.length === 7) && toWgs84.every(Number.isFinite);
  if (isShift) return { proj4: `${proj4} +towgs84=${toWgs84.join(',')}`, errorMetres: 0 };
  return { proj4, errorMetres: isEquivalentToWgs84(major, minor) ? 0 : Infinity };
}

/** The semi-minor axis; an inverse flattening of 0 stands for a sphere. */
export function minorAxis(major: number, inverseFlattening: number): number {
  return inverseFlattening === 0 ? major : major - major / inverseFlattening;
}

/** True for GRS 80 and WGS 84, and for the spheres and the ellipsoid of Hughes 1980, which maps use without a shift. */
function isEquivalentToWgs84(major: number, minor: number): boolean {
  const isNear = (a: number, b: number, metres: number) =>
    Math.abs(major - a) < metres && Math.abs(minor - b) < metres;
  return major === minor || isNear(6378137, 6356752.3, 2) || isNear(6378273, 6356889.4, 0.1);
}
