/**
 * Coordinate reference systems by well-known text, as in ENVI, netCDF and HDF files, and in GeoTIFF files of ESRI's software.
 */

import { unknownCrs } from '../errors.js';
import { aliasTable, type Crs } from '../raster.js';
import { crsFromEpsg, customCrs, datumForEpsg } from './crs.js';
import { type Datum, datumByName, datumFromEllipsoid, minorAxis } from './epsg.js';

/** An element: `UNIT["degree", 0.0174]` has the keyword UNIT, one text and one number. */
interface WktNode {
  /** In capitals. */
  keyword: string;
  texts: string[];
  numbers: number[];
  children: WktNode[];
}

const MAX_CHARACTERS = 20_000;
const MAX_DEPTH = 30;
const TOKEN =
  /\s*(?:"((?:[^"]|"")*)"|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|([A-Za-z_]\w*)|([[(\]),]))/y;

/**
 * Parses well-known text (WKT 1 and WKT 2, ISO 19162) into a tree. Undefined if the text is not one element, or is longer or deeper than
 * real ones.
 */
function parseWkt(text: string): WktNode | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const root: WktNode = { keyword: '', texts: [], numbers: [], children: [] };
  const open = [root];
  // A word is an element if a bracket follows; other words are constants such as NORTH.
  let word: string | undefined;
  TOKEN.lastIndex = 0;
  for (let end = 0; end < text.trimEnd().length; end = TOKEN.lastIndex) {
    const token = TOKEN.exec(text);
    if (!token) return undefined;
    const [, quoted, number, name, mark] = token;
    const node = open.at(-1)!;
    if (word !== undefined && mark !== '[' && mark !== '(') node.texts.push(word);
    if (quoted !== undefined) node.texts.push(quoted.replaceAll('""', '"'));
    else if (number !== undefined) node.numbers.push(Number(number));
    else if (mark === '[' || mark === '(') {
      if (word === undefined || open.length > MAX_DEPTH) return undefined;
      const child: WktNode = { keyword: word.toUpperCase(), texts: [], numbers: [], children: [] };
      node.children.push(child);
      open.push(child);
    } else if (mark === ']' || mark === ')') {
      open.pop();
      if (open.length === 0) return undefined;
    }
    word = name;
  }
  return open.length === 1 && root.children.length === 1 ? root.children[0] : undefined;
}

/** The first child with one of these keywords. */
function child(node: WktNode, ...keywords: string[]): WktNode | undefined {
  return node.children.find(({ keyword }) => keywords.includes(keyword));
}

/** The EPSG code of an element itself: its AUTHORITY (WKT 1) or ID (WKT 2). */
function epsgFromNode(node: WktNode): number | undefined {
  const id = child(node, 'AUTHORITY', 'ID');
  if (id?.texts[0]?.toUpperCase() !== 'EPSG') return undefined;
  const code = Number(id.texts[1] ?? id.numbers[0]);
  return Number.isInteger(code) ? code : undefined;
}

/** A name without differences of spelling: lower case letters and digits only. */
function normaliseWktName(name: string | undefined): string {
  return (name ?? '').toLowerCase().replace(/[^a-z0-9]/g, '');
}

const DEGREE = Math.PI / 180;

/** Names of parameters in WKT and in PROJ. */
const PARAMETER_NAMES = aliasTable([
  [
    'lat_0',
    'latitudeoforigin latitudeofnaturalorigin latitudeoffalseorigin latitudeofcenter latitudeofprojectioncentre',
  ],
  [
    'lon_0',
    'centralmeridian longitudeoforigin longitudeofnaturalorigin longitudeoffalseorigin longitudeofcenter longitudeofprojectioncentre',
  ],
  ['lat_1', 'standardparallel1 latitudeof1ststandardparallel'],
  ['lat_2', 'standardparallel2 latitudeof2ndstandardparallel'],
  ['lat_ts', 'latitudeofstandardparallel'],
  [
    'k',
    'scalefactor scalefactoratnaturalorigin scalefactoratprojectioncentre scalefactoronpseudostandardparallel scalefactoroninitialline',
  ],
  ['alpha', 'azimuth azimuthatprojectioncentre azimuthofinitialline colatitudeofconeaxis'],
  ['gamma', 'rectifiedgridangle anglefromrectifiedtoskewgrid xyplanerotation'],
  ['x_0', 'falseeasting eastingatfalseorigin eastingatprojectioncentre'],
  ['y_0', 'falsenorthing northingatfalseorigin northingatprojectioncentre'],
]);

/**
 * Parameters that add no information: the ellipsoid, and those that are equal in every Krovak projection or that the axes
 * express.
 */
const IGNORED_PARAMETERS = new Set([
  'semimajor',
  'semiminor',
  'pseudostandardparallel1',
  'latitudeofpseudostandardparallel',
  'xscale',
  'yscale',
]);

/** Values by the names above, in degrees, metres, or without unit. */
type Parameters = Map<string, number>;

/** Undefined if PROJ has no such projection with these values. */
type Method = (parameters: Parameters) => string | undefined;

/** A projection with these parameters; missing ones are left out. */
const plain =
  (proj: string, ...names: string[]): Method =>
  (values) =>
    projString(proj, values, names);

function projString(proj: string, values: Parameters, names: string[]): string {
  const given = names.filter((name) => values.has(name)).map((name) => ` +${name}=${values.get(name)}`);
  return `+proj=${proj}${given.join('')}`;
}

const conic: Method = (values) => {
  if (!values.has('lat_1')) values.set('lat_1', values.get('lat_0') ?? 0);
  return projString('lcc', values, ['lat_0', 'lon_0', 'lat_1', 'lat_2', 'k']);
};

const equirectangular: Method = (values) => {
  values.set('lat_ts', values.get('lat_1') ?? 0);
  return projString('eqc', values, ['lat_ts', 'lat_0', 'lon_0']);
};

const cylindricalEqualArea: Method = (values) => {
  if (values.get('lat_0')) return undefined;
  values.set('lat_ts', values.get('lat_1') ?? 0);
  return projString('cea', values, ['lat_ts', 'lon_0']);
};

/** ESRI's Mercator projection has a standard parallel; the Mercator projection of others has a scale factor. */
const mercator: Method = (values) => {
  if (values.get('lat_0')) return undefined;
  const parallel = values.get('lat_1');
  if (parallel === undefined) return projString('merc', values, ['lon_0', 'k']);
  values.set('lat_ts', parallel);
  return projString('merc', values, ['lon_0', 'lat_ts']);
};

/** A stereographic projection at a pole. The latitude of true scale has three names; 90 degrees stands for a scale factor. */
const polar =
  (pole?: 1 | -1): Method =>
  (values) => {
    const parallel = values.get('lat_ts') ?? values.get('lat_1') ?? values.get('lat_0') ?? 90;
    const side = pole ?? (parallel < 0 ? -1 : 1);
    const isPole = Math.abs(parallel) === 90;
    values.set('lat_ts', parallel);
    return `${projString('stere', values, ['lon_0', isPole ? 'k' : 'lat_ts'])} +lat_0=${90 * side}`;
  };

/** `from` is the point of x_0 and y_0: the centre, or the point where the initial line crosses the equator. */
const oblique =
  (from: 'centre' | 'equator'): Method =>
  (values) => {
    values.set('lonc', values.get('lon_0') ?? 0);
    const angle = values.get('alpha') ?? 0;
    if (!values.has('gamma')) values.set('gamma', angle);
    // PROJ and proj4js have a separate projection for the special case of Switzerland and Hungary.
    if (from === 'centre' && angle === 90 && values.get('gamma') === 90)
      return projString('somerc', values, ['lat_0', 'lon_0', 'k']);
    const given = projString('omerc', values, ['lat_0', 'lonc', 'alpha', 'gamma', 'k']);
    return from === 'equator' ? `${given} +no_uoff` : given;
  };

const krovak: Method = (values) => projString('krovak', values, ['lat_0', 'lon_0', 'alpha', 'k']);

/** Map projections as PROJ strings, by their names in WKT 1 (GDAL, ESRI) and WKT 2, see `normaliseWktName`. */
const METHODS = aliasTable<Method>([
  [plain('tmerc', 'lat_0', 'lon_0', 'k'), 'transversemercator gausskruger transversemercatorsouthorientated'],
  [mercator, 'mercator mercator1sp mercator2sp mercatorvarianta mercatorvariantb'],
  [
    conic,
    'lambertconformalconic lambertconformalconic1sp lambertconformalconic2sp lambertconicconformal1sp lambertconicconformal2sp',
  ],
  [plain('aea', 'lat_0', 'lon_0', 'lat_1', 'lat_2'), 'albers albersequalarea albersconicequalarea'],
  [plain('eqdc', 'lat_0', 'lon_0', 'lat_1', 'lat_2'), 'equidistantconic'],
  [plain('laea', 'lat_0', 'lon_0'), 'lambertazimuthalequalarea lambertazimuthalequalareaspherical'],
  [plain('aeqd', 'lat_0', 'lon_0'), 'azimuthalequidistant'],
  [polar(), 'polarstereographic polarstereographicvarianta polarstereographicvariantb'],
  [polar(1), 'stereographicnorthpole'],
  [polar(-1), 'stereographicsouthpole'],
  [plain('stere', 'lat_0', 'lon_0', 'k'), 'stereographic'],
  [plain('sterea', 'lat_0', 'lon_0', 'k'), 'obliquestereographic doublestereographic'],
  [equirectangular, 'platecarree equirectangular equidistantcylindrical equidistantcylindricalspherical'],
  [
    cylindricalEqualArea,
    'cylindricalequalarea lambertcylindricalequalarea lambertcylindricalequalareaspherical',
  ],
  [plain('poly', 'lat_0', 'lon_0'), 'polyconic americanpolyconic'],
  [plain('cass', 'lat_0', 'lon_0'), 'cassini cassinisoldner'],
  [plain('nzmg', 'lat_0', 'lon_0'), 'newzealandmapgrid'],
  [plain('sinu', 'lon_0'), 'sinusoidal'],
  [plain('moll', 'lon_0'), 'mollweide'],
  [plain('robin', 'lon_0'), 'robinson'],
  [plain('eqearth', 'lon_0'), 'equalearth'],
  [plain('mill', 'lon_0'), 'millercylindrical'],
  [krovak, 'krovak krovaknorthorientated'],
  [
    oblique('equator'),
    'hotineobliquemercator hotineobliquemercatorvarianta hotineobliquemercatorazimuthnaturalorigin rectifiedskeworthomorphicnaturalorigin',
  ],
  [
    oblique('centre'),
    'hotineobliquemercatorvariantb hotineobliquemercatorazimuthcenter rectifiedskeworthomorphiccenter',
  ],
  [plain('somerc', 'lat_0', 'lon_0', 'k'), 'swissobliquecylindrical swissobliquemercator'],
]);

/** Methods that use the sphere of web maps. */
const WEB_MERCATOR = new Set(['mercatorauxiliarysphere', 'popularvisualisationpseudomercator']);

/** Projections whose first axis points to the south or west, unless the axes say otherwise. */
const AXIS_ORDERS: Record<string, string> = { transversemercatorsouthorientated: 'wsu' };

/** The name of the method of a projected system, for messages. */
function projectionMethod(system: WktNode): string {
  const conversion = child(system, 'CONVERSION') ?? system;
  return child(conversion, 'METHOD', 'PROJECTION')?.texts[0] ?? 'no method';
}

/**
 * The projection of a PROJCS or PROJCRS, without its datum. Undefined for unknown methods, parameters and units. `degrees` is
 * the size of the angular unit of its geographic system, which WKT 1 uses for angles.
 */
function projectionFromWkt(system: WktNode, degrees: number): string | undefined {
  const conversion = child(system, 'CONVERSION') ?? system;
  const name = normaliseWktName(projectionMethod(system));
  const unit = linearUnit(system);
  const method: Method | undefined = METHODS[name];
  if (!method || !(unit > 0)) return undefined;
  const values: Parameters = new Map();
  for (const node of conversion.children) {
    const [value] = node.numbers;
    const plain = normaliseWktName(node.texts[0]);
    if (node.keyword !== 'PARAMETER' || IGNORED_PARAMETERS.has(plain)) continue;
    const parameter: string | undefined = PARAMETER_NAMES[plain];
    if (parameter === undefined || value === undefined) return undefined;
    values.set(parameter, value * factorOf(node, parameter, unit, degrees));
  }
  const projection = method(values);
  if (projection === undefined) return undefined;
  const axes = axesOf(system) ?? AXIS_ORDERS[name] ?? axesOfKrovak(name, conversion);
  const shift = projString('', values, ['x_0', 'y_0']).replace('+proj=', '').trim();
  const units = unit === 1 ? '+units=m' : `+to_meter=${unit}`;
  return [projection, shift, units, axes && `+axis=${axes}`].filter((word) => word).join(' ');
}

/** The factor of a parameter to degrees or metres. */
function factorOf(node: WktNode, parameter: string, unit: number, degrees: number): number {
  const own = child(node, 'LENGTHUNIT', 'ANGLEUNIT', 'SCALEUNIT', 'UNIT')?.numbers[0];
  if (parameter === 'k') return own ?? 1;
  if (parameter === 'x_0' || parameter === 'y_0') return own ?? unit;
  return own === undefined ? degrees : toDegrees(own);
}

/** Degrees of an angular unit that is given in radians, which writers round. */
function toDegrees(radians: number): number {
  const degrees = radians / DEGREE;
  return Math.abs(degrees - 1) < 1e-9 ? 1 : degrees;
}

/** The Krovak of WKT 1 points to the south and west, unless axes say otherwise or ESRI's text reverses X. */
function axesOfKrovak(name: string, { children }: WktNode): string | undefined {
  const scale = children.find(({ texts }) => normaliseWktName(texts[0]) === 'xscale')?.numbers[0];
  const isTurned = scale === -1 || children.some(({ keyword }) => keyword === 'AXIS');
  return name === 'krovak' && !isTurned ? 'swu' : undefined;
}

/** Metres of one unit of the coordinates. */
function linearUnit(system: WktNode): number {
  const axis = child(system, 'AXIS');
  const unit = child(system, 'UNIT', 'LENGTHUNIT') ?? (axis && child(axis, 'LENGTHUNIT', 'UNIT'));
  return unit?.numbers[0] ?? 1;
}

/** Directions of the axes as PROJ's letters, if one is south or west and they are not along meridians from a pole. */
function axesOf(system: WktNode): string | undefined {
  const axes = system.children.filter(({ keyword }) => keyword === 'AXIS').slice(0, 2);
  const letters = axes.map(({ texts }) => texts[1]?.[0]?.toLowerCase() ?? '').join('');
  return /^(ws|sw|wn|es|nw|se)$/.test(letters) ? `${letters}u` : undefined;
}

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
