/** Coordinate reference systems by EPSG code or proj4 string, and conversion of points between them, and of pixel positions of an image. */
import { createRequire } from 'node:module';
import { unknownCrs } from '../errors.js';
import type { Affine, Crs } from '../raster.js';
import { type Datum, datumFromEntry, type EpsgEntry, epsgEntry } from './epsg.js';

const requirePackage = createRequire(import.meta.url);

/**
 * Loaded at the first use, and by `require`: an `import` of so large a CommonJS file first searches it for exports, which takes
 * longer than running it.
 */
const loadProj4 = (): typeof import('proj4') => requirePackage('proj4');

/** Codes that are aliases of another code. */
const EPSG_ALIASES = new Map([
  [3785, 3857],
  [900913, 3857],
  [102100, 3857],
  [5041, 32661],
  [5042, 32761],
  [32662, 4087],
]);

/** The systems of all grids. A thread that needs no other system does not read the table. */
const GRID_DEFINITIONS: Record<number, EpsgEntry> = {
  4326: { proj4: '+proj=longlat +datum=WGS84', errorMetres: 0 },
  3857: {
    proj4: '+proj=merc +a=6378137 +b=6378137 +lat_ts=0 +lon_0=0 +x_0=0 +y_0=0 +k=1 +units=m +nadgrids=@null',
    errorMetres: 0,
  },
};

const systemsByCode = new Map<number, Crs>();

export function isGeographicEpsg(code: number): boolean {
  return entryOf(code)?.proj4.startsWith('+proj=longlat ') ?? false;
}

/** The system of an EPSG code. Throws TW_RASTER_UNKNOWN_CRS. */
export function crsFromEpsg(code: number): Crs {
  const epsg = EPSG_ALIASES.get(code) ?? code;
  const found = systemsByCode.get(epsg);
  if (found) return found;
  const entry = entryOf(epsg);
  if (!entry) throw unknownCrs(`EPSG:${code}`);
  const crs = createCrs(entry.proj4, entry.errorMetres, epsg);
  systemsByCode.set(epsg, crs);
  return crs;
}

function entryOf(epsg: number): EpsgEntry | undefined {
  return GRID_DEFINITIONS[epsg] ?? epsgEntry(epsg);
}

function createCrs(words: string, errorMetres: number, epsg?: number): Crs {
  const geographic = words.startsWith('+proj=longlat ');
  return {
    epsg,
    proj4: `${words} +no_defs`,
    geographic,
    ...(errorMetres > 0 && { datumErrorMetres: errorMetres }),
  };
}

/**
 * A system that a file defines itself. `projection` is a PROJ string (`+proj=longlat` for longitudes and latitudes) without
 * datum; `name` is for the message. Throws TW_RASTER_UNKNOWN_CRS if the system cannot project a point.
 */
export function customCrs(projection: string, datum: Datum, name: string): Crs {
  try {
    const { proj4, errorMetres } = datumForProjection(projection, datum, name);
    const crs = createCrs(`${withDefaultParameters(projection.replace(' +R_A', ''))} ${proj4}`, errorMetres);
    // Parameters that contradict each other, such as a scale factor of 0, result in NaN.
    const [x, y] = createTransform(
      crs,
      'EPSG:4326',
    )(...createTransform('EPSG:4326', crs)(...samplePoint(projection)));
    if (Number.isFinite(x + y)) return crs;
  } catch (error) {
    if (unknownCrs.is(error)) throw error;
    throw unknownCrs.because(error, name);
  }
  throw unknownCrs(name);
}

/** The datum with the ellipsoid that PROJ uses for a projection. */
function datumForProjection(projection: string, datum: Datum, name: string): Datum {
  const isKrovak = /^\+proj=krovak\b/.test(projection);
  const isOnAuthalicSphere = /^\+proj=mill\b|\+R_A\b/.test(projection);
  if (!isKrovak && !isOnAuthalicSphere) return datum;
  const { a, b } = loadProj4().Proj(`+proj=longlat ${datum.proj4}`) as { a: number; b: number };
  // proj4js calculates Krovak on the ellipsoid of Bessel, whichever is given.
  if (isKrovak && Math.abs(a - BESSEL_MAJOR) > 0.01) throw unknownCrs(name);
  if (isKrovak || a === b) return datum;
  // Latitudes of the ellipsoid are used on a sphere, and proj4js cannot shift these.
  if (/\+towgs84=(?!(0,?)+( |$))/.test(datum.proj4)) throw unknownCrs(name);
  const meridian = /\+pm=\S+/.exec(datum.proj4)?.[0];
  return { ...datum, proj4: [`+R=${authalicRadius(a, b)}`, meridian].filter(Boolean).join(' ') };
}

const BESSEL_MAJOR = 6377397.155;

/** Radius of the sphere with the surface of an ellipsoid (Snyder, Map projections: a working manual, 1987, equation 3-13). */
function authalicRadius(a: number, b: number): number {
  const e = Math.sqrt(1 - (b / a) ** 2);
  return a * Math.sqrt((1 + ((1 - e * e) / e) * Math.atanh(e)) / 2);
}

/** PROJ uses 0 for missing parameters; proj4js does not. */
function withDefaultParameters(projection: string): string {
  if (/^\+proj=(longlat|utm)\b/.test(projection)) return projection;
  const words = ['lat_0', projection.includes('+lonc=') ? 'lonc' : 'lon_0', 'x_0', 'y_0'];
  const missing = words.filter((word) => !projection.includes(`+${word}=`));
  return [projection, ...missing.map((word) => `+${word}=0`)].join(' ');
}

/** A point near the origin of a projection, longitude and latitude: no projection is defined everywhere. */
function samplePoint(projection: string): [lon: number, lat: number] {
  const value = (word: string) => {
    const text = new RegExp(`\\+${word}=(\\S+)`).exec(projection)?.[1];
    return text === undefined ? undefined : Number(text);
  };
  const latitudes = [value('lat_1'), value('lat_2')].filter((one) => one !== undefined);
  const middle = latitudes.reduce((sum, one) => sum + one, 0) / (latitudes.length || 1);
  const lat = latitudes.length > 0 ? middle : (value('lat_0') ?? 0);
  const zone = value('zone');
  const lon = zone === undefined ? (value('lon_0') ?? value('lonc') ?? 0) : zone * 6 - 183;
  return [lon + 1e-3, Math.max(-89, Math.min(89, lat + 1e-3))];
}

/** The datum of a geographic system; undefined if the code is unknown. */
export function datumForEpsg(code: number): Datum | undefined {
  const entry = entryOf(code);
  return entry?.proj4.startsWith('+proj=longlat ') ? datumFromEntry(entry) : undefined;
}

/** Metres of one unit of the coordinates of a projected system. */
export function metresPerUnit({ proj4: definition }: Crs): number {
  return (loadProj4().Proj(definition) as { to_meter?: number }).to_meter ?? 1;
}

/** The systems of grids. */
type GridEpsg = 'EPSG:4326' | 'EPSG:3857';

/** Converts a point. Coordinates without a counterpart become NaN. */
export type PointTransform = (x: number, y: number) => [x: number, y: number];

/** Transforms are few and expensive to create. Only hostile files use many systems. */
const transforms = new Map<string, PointTransform>();
const MAX_CACHED_TRANSFORMS = 200;

/** Converts points between systems; x is easting or longitude (degrees), y northing or latitude. */
export function createTransform(from: Crs | GridEpsg, to: Crs | GridEpsg): PointTransform {
  const source = projDefinition(from);
  const target = projDefinition(to);
  const key = `${source} > ${target}`;
  const known = transforms.get(key);
  if (known) return known;
  const projection = buildTransform(source, target);
  if (transforms.size >= MAX_CACHED_TRANSFORMS) transforms.clear();
  transforms.set(key, projection);
  return projection;
}

function buildTransform(source: string, target: string): PointTransform {
  if (source === target) return (x, y) => [x, y];
  const converter = loadProj4()(source, target);
  return (x, y) => {
    if (!(Number.isFinite(x) && Number.isFinite(y))) return [NaN, NaN];
    // `true` applies the axes of a system: some point to the south and west.
    const [u, v] = converter.forward([x, y], true);
    return Number.isFinite(u) && Number.isFinite(v) ? [u, v] : [NaN, NaN];
  };
}

function projDefinition(crs: Crs | GridEpsg): string {
  if (typeof crs !== 'string') return crs.proj4;
  return crsFromEpsg(Number(crs.slice('EPSG:'.length))).proj4;
}

/** Coordinates of a position in an image; pixel c covers columns [c, c + 1). */
export function pixelToMap(transform: Affine, column: number, row: number): [x: number, y: number] {
  const { originX, originY, xx, xy, yx, yy } = transform;
  return [originX + xx * column + xy * row, originY + yx * column + yy * row];
}

/** The inverse: the position in an image, in pixels, of coordinates. */
export function mapToPixel(transform: Affine, x: number, y: number): [column: number, row: number] {
  const { originX, originY, xx, xy, yx, yy } = transform;
  const determinant = xx * yy - xy * yx;
  const dx = x - originX;
  const dy = y - originY;
  return [(yy * dx - xy * dy) / determinant, (xx * dy - yx * dx) / determinant];
}

/** The georeferencing of six numbers in GDAL's order: origin x, xx, xy, origin y, yx, yy. */
export function affineOfGdal([originX, xx, xy, originY, yx, yy]: readonly number[]): Affine {
  return { originX, originY, xx, xy, yx, yy };
}

/** False if pixels have no extent, or the georeferencing is not finite. */
export function isInvertible({ originX, originY, xx, xy, yx, yy }: Affine): boolean {
  return [originX, originY, xx, xy, yx, yy].every(Number.isFinite) && xx * yy - xy * yx !== 0;
}
