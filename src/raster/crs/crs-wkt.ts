/**
 * Coordinate reference systems by well-known text, as in ENVI, netCDF and HDF files, and in GeoTIFF files of ESRI's software.
 */
import { unknownCrs } from '../errors.js';
import type { Crs } from '../raster-types.js';
import { crsFromEpsg, customCrs, datumForEpsg } from './crs.js';
import { type Datum, datumFromEllipsoid, minorAxis } from './datum.js';
import { datumByName } from './epsg-table.js';
import { projectionFromWkt, projectionMethod, toDegrees, WEB_MERCATOR } from './wkt-projection.js';
import { child, epsgFromNode, normaliseWktName, parseWkt, type WktNode } from './wkt-tree.js';

const GEOGRAPHIC = ['GEOGCS', 'GEOGCRS', 'GEODCRS', 'GEOGRAPHICCRS', 'GEODETICCRS'];
const BASE = ['GEOGCS', 'BASEGEOGCRS', 'BASEGEODCRS'];
const PROJECTED = ['PROJCS', 'PROJCRS', 'PROJECTEDCRS'];

/**
 * The system of WKT 1 or 2, including ESRI's spelling: by its EPSG code, or else by its definition. A compound system is
 * reduced to its horizontal part. Throws TW_RASTER_UNKNOWN_CRS and TW_RASTER_NOT_EARTH.
 */
export function crsFromWkt(wkt: string, path: string): Crs {
  const root = parseWkt(wkt);
  if (!root) throw unknownCrs(`"${wkt.trim().slice(0, 60)}" of ${path}`);
  return crsOfNode(root, path);
}

function crsOfNode(node: WktNode, path: string): Crs {
  const epsg = epsgFromNode(node);
  try {
    if (epsg !== undefined) return crsFromEpsg(epsg);
  } catch (error) {
    // The text defines a system that the table lacks.
    if (!unknownCrs.is(error)) throw error;
  }
  if (node.keyword === 'COMPD_CS' || node.keyword === 'COMPOUNDCRS') {
    const horizontal = child(node, ...PROJECTED, ...GEOGRAPHIC, 'BOUNDCRS');
    if (horizontal) return crsOfNode(horizontal, path);
  }
  if (node.keyword === 'BOUNDCRS') {
    const source = child(node, 'SOURCECRS')?.children[0];
    if (source) return customCrsFromNode(source, path, shiftFromBoundCrs(node));
  }
  return customCrsFromNode(node, path);
}

function customCrsFromNode(node: WktNode, path: string, shift?: number[]): Crs {
  const name = `"${node.texts[0]?.slice(0, 100) ?? ''}" of ${path}`;
  const isProjected = PROJECTED.includes(node.keyword);
  const base = isProjected ? child(node, ...BASE) : node;
  if (!base || (!isProjected && !GEOGRAPHIC.includes(node.keyword))) throw unknownCrs(name);
  // Systems derived from others, such as a rotated pole, have a conversion.
  if (!isProjected && child(node, 'CONVERSION', 'DERIVINGCONVERSION', 'BASEGEOGCRS')) throw unknownCrs(name);
  const datum = datumOfNode(base, path, shift);
  const degrees = angularUnit(base);
  if (!isProjected) {
    if (Math.abs(degrees - 1) > 1e-9) throw unknownCrs(`${name}, which is not in degrees,`);
    return customCrs('+proj=longlat', datum, name);
  }
  if (isWebMercator(node)) return crsFromEpsg(3857);
  // On an ellipsoid, these methods use a sphere of the same area with latitudes that proj4js would treat as those of the
  // ellipsoid.
  const isOnSphereOnly = /spherical$/.test(normaliseWktName(projectionMethod(node)));
  const projection = isOnSphereOnly && !isSphere(datum) ? undefined : projectionFromWkt(node, degrees);
  if (projection === undefined) throw unknownCrs(`${name} with the projection ${projectionMethod(node)}`);
  return customCrs(projection, datum, name);
}

function isSphere({ proj4 }: Datum): boolean {
  const [, a, b] = /^\+a=(\S+) \+b=(\S+)/.exec(proj4) ?? [];
  return proj4.startsWith('+R=') || (a !== undefined && a === b);
}

/** GDAL adds the PROJ string to the text of a Mercator projection. */
function isWebMercator(system: WktNode): boolean {
  const words = child(system, 'EXTENSION')?.texts[1] ?? '';
  return (
    WEB_MERCATOR.has(normaliseWktName(projectionMethod(system))) ||
    /\+proj=merc .*\+nadgrids=@null/.test(words)
  );
}

/** Degrees of the unit of a geographic system. */
function angularUnit(base: WktNode): number {
  const axis = child(base, 'AXIS');
  const unit = child(base, 'UNIT', 'ANGLEUNIT') ?? (axis && child(axis, 'ANGLEUNIT', 'UNIT'));
  const radians = unit?.numbers[0];
  return radians === undefined ? 1 : toDegrees(radians);
}

/** By a shift in the text, the code of the geographic system, the name of the datum, or the ellipsoid alone. */
function datumOfNode(base: WktNode, path: string, shift?: number[]): Datum {
  const node = child(base, 'DATUM', 'ENSEMBLE', 'GEODETICDATUM', 'TRF');
  const ellipsoid = node && child(node, 'SPHEROID', 'ELLIPSOID');
  const [major = NaN, inverseFlattening = NaN] = ellipsoid?.numbers ?? [];
  const metres = ellipsoid && child(ellipsoid, 'LENGTHUNIT', 'UNIT')?.numbers[0];
  const size = major * (metres ?? 1);
  const axes = { major: size, minor: minorAxis(size, inverseFlattening) };
  const primeMeridian = child(base, 'PRIMEM');
  const code = epsgFromNode(base);
  const inDatum = node && child(node, 'TOWGS84')?.numbers;
  const given = shift ?? (inDatum?.length ? inDatum : undefined);
  const known = code === undefined ? undefined : datumForEpsg(code);
  const name = node?.texts[0] ?? '';
  // The ellipsoid reveals other planets, and spheres that have the name of a datum.
  const own = Number.isNaN(size) ? undefined : datumFromEllipsoid(axes, path, given);
  const named = datumByName(name) ?? datumByName(withoutMeridian(name, primeMeridian));
  const found = (given && own) ?? known ?? (axes.major === axes.minor ? own : (named ?? own));
  if (!found) throw unknownCrs(`without an ellipsoid in ${path}`);
  const words = found.proj4.replace(/ ?\+pm=\S+/, '');
  const meridian = meridianOf(primeMeridian);
  return { ...found, proj4: meridian === 0 ? words : `${words} +pm=${meridian}` };
}

/** Removes the meridian from names such as "Nouvelle Triangulation Francaise (Paris)". */
function withoutMeridian(name: string, primeMeridian: WktNode | undefined): string {
  const meridian = normaliseWktName(primeMeridian?.texts[0]);
  const whole = normaliseWktName(name);
  return meridian !== '' && whole.endsWith(meridian) ? whole.slice(0, -meridian.length) : '';
}

/** Degrees east of Greenwich. WKT 2 has a unit; WKT 1 is read and written in degrees. */
function meridianOf(node: WktNode | undefined): number {
  const unit = node && child(node, 'ANGLEUNIT')?.numbers[0];
  return (node?.numbers[0] ?? 0) * (unit === undefined ? 1 : toDegrees(unit));
}

/** The shift of a BOUNDCRS to WGS 84 in the position vector convention; undefined for other kinds of transformations. */
function shiftFromBoundCrs(node: WktNode): number[] | undefined {
  const transformation = child(node, 'ABRIDGEDTRANSFORMATION');
  const method = normaliseWktName(transformation && child(transformation, 'METHOD')?.texts[0]);
  const sign = method.startsWith('coordinateframe') ? -1 : 1;
  if (!transformation || !/^(geocentrictranslations|positionvector|coordinateframe)/.test(method))
    return undefined;
  const value = (name: string) =>
    transformation.children.find(({ texts }) => normaliseWktName(texts[0]) === name)?.numbers[0] ?? 0;
  const translation = ['xaxistranslation', 'yaxistranslation', 'zaxistranslation'].map(value);
  if (method.startsWith('geocentric')) return translation;
  const rotation = ['xaxisrotation', 'yaxisrotation', 'zaxisrotation'].map((name) => sign * value(name));
  // In an abridged transformation, the scale is a factor.
  return [...translation, ...rotation, (value('scaledifference') - 1) * 1e6];
}
