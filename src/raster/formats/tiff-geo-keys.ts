/** GeoTIFF keys (OGC 19-008r4): the coordinate reference system of a TIFF. */
import { crsFromEpsg, customCrs, datumForEpsg, metresPerUnit } from '../crs/crs.js';
import { type Datum, datumFromEllipsoid, minorAxis } from '../crs/epsg.js';
import { crsFromWkt } from '../crs/wkt.js';
import { noCrs, unknownCrs } from '../errors.js';
import type { Crs } from '../raster.js';

/** Values by key id: a number, several numbers (the shift of a datum), or text. */
export type GeoKeys = Map<number, number | string | number[]>;

const KEY = {
  modelType: 1024,
  rasterType: 1025,
  citation: 1026,
  geographicType: 2048,
  geographicCitation: 2049,
  datum: 2050,
  meridianType: 2051,
  angularUnits: 2054,
  ellipsoid: 2056,
  semiMajorAxis: 2057,
  semiMinorAxis: 2058,
  inverseFlattening: 2059,
  primeMeridian: 2061,
  toWgs84: 2062,
  projectedType: 3072,
  projectedCitation: 3073,
  projection: 3074,
  method: 3075,
  linearUnits: 3076,
  linearUnitSize: 3077,
} as const;

const USER_DEFINED = 32767;
const RASTER_PIXEL_IS_POINT = 2;

/**
 * Reads the key directory (tag 34735) with its doubles (34736) and text (34737). Skips entries that point beyond their values.
 */
export function parseGeoKeys(
  directory: ArrayLike<number>,
  doubles: ArrayLike<number>,
  text: string,
): GeoKeys {
  const keys: GeoKeys = new Map();
  const count = Math.min(directory[3] ?? 0, Math.floor((directory.length - 4) / 4));
  for (let i = 0; i < count; i++) {
    const at = 4 + i * 4;
    const id = directory[at];
    const location = directory[at + 1];
    const length = directory[at + 2];
    const value = directory[at + 3];
    if (location === 0) keys.set(id, value);
    else if (location === 34736 && length > 1 && value + length <= doubles.length)
      keys.set(
        id,
        Array.from({ length }, (_, k) => doubles[value + k]!),
      );
    else if (location === 34736 && value < doubles.length) keys.set(id, doubles[value]);
    else if (location === 34737) keys.set(id, text.slice(value, value + length).replace(/[|\0]+$/, ''));
  }
  return keys;
}

/** True if coordinates refer to the centre of a pixel and not to its corner. */
export function pixelIsPoint(keys: GeoKeys): boolean {
  return keys.get(KEY.rasterType) === RASTER_PIXEL_IS_POINT;
}

/**
 * The coordinate reference system. Throws TW_RASTER_NO_CRS, TW_RASTER_UNKNOWN_CRS and TW_RASTER_NOT_EARTH. `path` is for the
 * messages.
 */
export function crsFromGeoKeys(keys: GeoKeys, path: string): Crs {
  const projected = keys.get(KEY.projectedType);
  const geographic = keys.get(KEY.geographicType);
  const model =
    keys.get(KEY.modelType) ?? (projected !== undefined ? 1 : geographic !== undefined ? 2 : undefined);
  const code = model === 1 ? projected : model === 2 ? geographic : undefined;
  if (typeof code === 'number' && code !== USER_DEFINED && code !== 0)
    return withLinearUnit(crsFromEpsg(code), keys, path);
  const wkt = wktOfEsri(keys);
  if (wkt !== undefined) return crsFromWkt(wkt, path);
  if (model === 1)
    return customCrs(userDefinedProjection(keys, path), datumOfKeys(keys, path), nameOf(keys, path));
  if (model === 2) return customCrs('+proj=longlat', datumOfKeys(keys, path), nameOf(keys, path));
  if (model === undefined || model === 0 || model === USER_DEFINED)
    throw noCrs(path, 'it names no coordinate system');
  throw unknownCrs(`of model type ${model} in ${path}`);
}

/** International and US survey feet, which writers confuse, differ by 2 in a million. */
const UNIT_TOLERANCE = 1e-5;

/** Throws TW_RASTER_UNKNOWN_CRS if the file names another unit than that of its system: readers disagree which one its numbers have. */
function withLinearUnit(crs: Crs, keys: GeoKeys, path: string): Crs {
  if (crs.geographic || numberOf(keys, KEY.linearUnits) === undefined) return crs;
  const unit = linearUnit(keys, path);
  if (Math.abs(unit / metresPerUnit(crs) - 1) < UNIT_TOLERANCE) return crs;
  throw unknownCrs(`EPSG:${crs.epsg} with a unit of ${unit} m in ${path}`);
}

function numberOf(keys: GeoKeys, ...ids: number[]): number | undefined {
  for (const id of ids) {
    const value = keys.get(id);
    if (typeof value === 'number') return value;
  }
  return undefined;
}

/** The name of a system that the file defines itself, for messages. */
function nameOf(keys: GeoKeys, path: string): string {
  const name = keys.get(KEY.projectedCitation) ?? keys.get(KEY.citation);
  return `${typeof name === 'string' && name !== '' ? `"${name.split('|', 1)[0]}" ` : ''}of ${path}`;
}

/** ESRI's software writes the complete system as text, between bars among other names. */
function wktOfEsri(keys: GeoKeys): string | undefined {
  for (const key of [KEY.projectedCitation, KEY.citation, KEY.geographicCitation]) {
    const text = keys.get(key);
    const wkt =
      typeof text === 'string' ? /ESRI PE String = ((?:PROJCS|GEOGCS)[^|]*)/.exec(text)?.[1] : undefined;
    if (wkt !== undefined) return wkt;
  }
  return undefined;
}

/** Semi-axes in metres of ellipsoids by their EPSG codes. */
const ELLIPSOIDS: Record<number, { major: number; minor: number }> = {
  7001: { major: 6377563.396, minor: 6356256.909 }, // Airy 1830
  7003: { major: 6378160, minor: 6356774.719 }, // Australian
  7004: { major: 6377397.155, minor: 6356078.963 }, // Bessel 1841
  7008: { major: 6378206.4, minor: 6356583.8 }, // Clarke 1866
  7011: { major: 6378249.2, minor: 6356515 }, // Clarke 1880 (IGN)
  7012: { major: 6378249.145, minor: 6356514.87 }, // Clarke 1880 (RGS)
  7019: { major: 6378137, minor: 6356752.3141 }, // GRS 1980
  7022: { major: 6378388, minor: 6356911.946 }, // International 1924
  7024: { major: 6378245, minor: 6356863.019 }, // Krassowsky 1940
  7030: { major: 6378137, minor: 6356752.3142 }, // WGS 84
  7035: { major: 6371000, minor: 6371000 }, // Sphere
  7043: { major: 6378135, minor: 6356750.52 }, // WGS 72
  7048: { major: 6371007, minor: 6371007 }, // GRS 1980 Authalic Sphere
};

function datumOfKeys(keys: GeoKeys, path: string): Datum {
  const units = numberOf(keys, KEY.angularUnits);
  if (units !== undefined && units !== 9102) throw unknownCrs(`with angular unit EPSG:${units} in ${path}`);
  const code = numberOf(keys, KEY.geographicType);
  if (code !== undefined && code !== USER_DEFINED) {
    const known = datumForEpsg(code);
    if (known === undefined) throw unknownCrs(`EPSG:${code}, on which ${path} is built,`);
    return known;
  }
  const meridian = meridianOf(keys, path);
  const found = datumOfUser(keys, path);
  return meridian === 0 ? found : { ...found, proj4: `${found.proj4} +pm=${meridian}` };
}

/** Degrees east of Greenwich. */
function meridianOf(keys: GeoKeys, path: string): number {
  const code = numberOf(keys, KEY.meridianType) ?? USER_DEFINED;
  if (code === USER_DEFINED) return numberOf(keys, KEY.primeMeridian) ?? 0;
  const meridian = MERIDIANS[code];
  if (meridian === undefined) throw unknownCrs(`with prime meridian EPSG:${code} in ${path}`);
  return meridian;
}

/** Prime meridians by their EPSG codes, degrees east of Greenwich. */
const MERIDIANS: Record<number, number> = {
  8901: 0, // Greenwich
  8902: -9.13190611111, // Lisbon
  8903: 2.33722917, // Paris
  8904: -74.0809166667, // Bogota
  8905: -3.687375, // Madrid
  8906: 12.4523333333, // Rome
  8907: 7.43958333333, // Bern
  8908: 106.807719444, // Jakarta
  8909: -17.6666666667, // Ferro
  8910: 4.367975, // Brussels
  8911: 18.0582777778, // Stockholm
  8912: 23.7163375, // Athens
  8913: 10.7229166667, // Oslo
  8914: 2.33720833333, // Paris RGS
};

/** The datum by its own code, or by the ellipsoid, with the shift to WGS 84 if the file has one. */
function datumOfUser(keys: GeoKeys, path: string): Datum {
  const shift = keys.get(KEY.toWgs84);
  // The datum of a system EPSG:4xxx mostly has the code 6xxx.
  const code = numberOf(keys, KEY.datum);
  const known = code !== undefined && code !== USER_DEFINED ? datumForEpsg(code - 2000) : undefined;
  if (known && !Array.isArray(shift)) return { ...known, proj4: known.proj4.replace(/ ?\+pm=\S+/, '') };
  const major = numberOf(keys, KEY.semiMajorAxis);
  const flattening = numberOf(keys, KEY.inverseFlattening);
  const minor =
    numberOf(keys, KEY.semiMinorAxis) ??
    (major !== undefined && flattening !== undefined ? minorAxis(major, flattening) : undefined);
  const axes =
    major !== undefined && minor !== undefined
      ? { major, minor }
      : ELLIPSOIDS[numberOf(keys, KEY.ellipsoid) ?? 0];
  if (axes === undefined) throw unknownCrs(`without an ellipsoid in ${path}`);
  return datumFromEllipsoid(axes, path, Array.isArray(shift) ? shift : undefined);
}

/** Metres of one unit of the projected coordinates. */
function linearUnit(keys: GeoKeys, path: string): number {
  const unit = numberOf(keys, KEY.linearUnits) ?? 9001;
  const size = unit === USER_DEFINED ? numberOf(keys, KEY.linearUnitSize) : LINEAR_UNITS[unit];
  if (size === undefined || !(size > 0)) throw unknownCrs(`with linear unit EPSG:${unit} in ${path}`);
  return size;
}

/** By EPSG code: metre, international foot, US survey foot, kilometre. */
const LINEAR_UNITS: Record<number, number> = { 9001: 1, 9002: 0.3048, 9003: 1200 / 3937, 9036: 1000 };

/** Keys of each PROJ parameter: writers use different keys for an origin. */
const PARAMETER = {
  lat_1: [3078],
  lat_2: [3079],
  lon_0: [3080, 3088, 3084, 3095],
  lat_0: [3081, 3089, 3085],
  lonc: [3088, 3080],
  alpha: [3094],
  gamma: [3096],
  k: [3092, 3093],
  x_0: [3082, 3086, 3090],
  y_0: [3083, 3087, 3091],
} as const;

type Parameter = keyof typeof PARAMETER;

/** For each ProjCoordTransGeoKey: the projection of PROJ, and its parameters besides the false easting and northing. */
const METHODS: Record<number, { name: string; parameters: Parameter[] }> = {
  1: { name: 'tmerc', parameters: ['lat_0', 'lon_0', 'k'] },
  3: { name: 'omerc', parameters: ['lat_0', 'lonc', 'alpha', 'gamma', 'k'] },
  7: { name: 'merc', parameters: ['lon_0', 'k'] },
  8: { name: 'lcc', parameters: ['lat_0', 'lon_0', 'lat_1', 'lat_2'] },
  9: { name: 'lcc', parameters: ['lat_0', 'lon_0', 'k'] },
  10: { name: 'laea', parameters: ['lat_0', 'lon_0'] },
  11: { name: 'aea', parameters: ['lat_0', 'lon_0', 'lat_1', 'lat_2'] },
  12: { name: 'aeqd', parameters: ['lat_0', 'lon_0'] },
  13: { name: 'eqdc', parameters: ['lat_0', 'lon_0', 'lat_1', 'lat_2'] },
  14: { name: 'stere', parameters: ['lat_0', 'lon_0', 'k'] },
  15: { name: 'stere', parameters: ['lon_0'] },
  16: { name: 'sterea', parameters: ['lat_0', 'lon_0', 'k'] },
  17: { name: 'eqc', parameters: ['lat_0', 'lon_0'] },
  18: { name: 'cass', parameters: ['lat_0', 'lon_0'] },
  20: { name: 'mill', parameters: ['lon_0'] },
  22: { name: 'poly', parameters: ['lat_0', 'lon_0'] },
  23: { name: 'robin', parameters: ['lon_0'] },
  24: { name: 'sinu', parameters: ['lon_0'] },
  26: { name: 'nzmg', parameters: ['lat_0', 'lon_0'] },
  27: { name: 'tmerc', parameters: ['lat_0', 'lon_0', 'k'] },
  28: { name: 'cea', parameters: ['lon_0'] },
  9815: { name: 'omerc', parameters: ['lat_0', 'lonc', 'alpha', 'gamma', 'k'] },
};

function userDefinedProjection(keys: GeoKeys, path: string): string {
  const code = numberOf(keys, KEY.projection);
  if (numberOf(keys, KEY.method) === undefined && code !== undefined && code > 16000 && code < 16161) {
    return utmProjection(code, linearUnit(keys, path), path);
  }
  const method = METHODS[numberOf(keys, KEY.method) ?? 0];
  if (!method) {
    throw unknownCrs(`with projection method ${numberOf(keys, KEY.method) ?? 'unnamed'} in ${path}`);
  }
  // PROJ has no such projection.
  if (/^(merc|cea)$/.test(method.name) && numberOf(keys, ...PARAMETER.lat_0))
    throw unknownCrs(`with a latitude of origin of ${method.name} in ${path}`);
  const unit = linearUnit(keys, path);
  const parts = [`+proj=${method.name}`];
  for (const name of method.parameters) {
    const value = numberOf(keys, ...PARAMETER[name]);
    if (value !== undefined && !(name === 'k' && value === 0)) parts.push(`+${name}=${value}`);
  }
  parts.push(...specialParameters(keys));
  for (const name of ['x_0', 'y_0'] as const)
    parts.push(`+${name}=${(numberOf(keys, ...PARAMETER[name]) ?? 0) * unit}`);
  parts.push(unitWord(unit));
  return parts.join(' ');
}

const unitWord = (metres: number) => (metres === 1 ? '+units=m' : `+to_meter=${metres}`);

/** Parameters that depend on the method. */
function specialParameters(keys: GeoKeys): string[] {
  const method = numberOf(keys, KEY.method);
  const latitude = numberOf(keys, ...PARAMETER.lat_0) ?? 0;
  const parallel = numberOf(keys, ...PARAMETER.lat_1);
  // Oblique Mercator (Hotine, variant A): false easting and northing are at the point where the initial line crosses the
  // equator.
  if (method === 3) return ['+no_uoff'];
  if (method === 27) return ['+axis=wsu'];
  // Conic with one parallel: it is the latitude of origin.
  if (method === 9) return [`+lat_1=${latitude}`];
  if (method === 7 || method === 17 || method === 28)
    return parallel === undefined ? [] : [`+lat_ts=${parallel}`];
  // Polar stereographic: the "origin" is the latitude of true scale, or the pole if there is a scale factor.
  if (method === 15) {
    const pole = latitude < 0 ? -90 : 90;
    const scale = numberOf(keys, ...PARAMETER.k) ?? 1;
    return [`+lat_0=${pole}`, Math.abs(latitude) === 90 ? `+k=${scale}` : `+lat_ts=${latitude}`];
  }
  return [];
}

/** ProjectionGeoKey 16001-16060: UTM north; 16101-16160: south. */
function utmProjection(code: number, unit: number, path: string): string {
  const zone = code % 100;
  if (zone < 1 || zone > 60) throw unknownCrs(`with projection ${code} in ${path}`);
  return `+proj=utm +zone=${zone}${code > 16100 ? ' +south' : ''} ${unitWord(unit)}`;
}
