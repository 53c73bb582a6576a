/**
 * Converts map projections of well-known text to PROJ strings. Names are those of WKT 1 (GDAL, ESRI) and WKT 2, see
 * `normaliseWktName`.
 */
import { aliasTable } from '../raster-alias-table.js';
import { child, normaliseWktName, type WktNode } from './wkt-tree.js';

const DEGREE = Math.PI / 180;

/** Names of parameters in WKT and in PROJ. */
const PARAMETERS = aliasTable([
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
const IGNORED = new Set([
  'semimajor',
  'semiminor',
  'pseudostandardparallel1',
  'latitudeofpseudostandardparallel',
  'xscale',
  'yscale',
]);

/** Values by the names above, in degrees, metres, or without unit. */
export type Parameters = Map<string, number>;

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
export const WEB_MERCATOR = new Set(['mercatorauxiliarysphere', 'popularvisualisationpseudomercator']);

/** Projections whose first axis points to the south or west, unless the axes say otherwise. */
const AXIS_ORDERS: Record<string, string> = { transversemercatorsouthorientated: 'wsu' };

/** The name of the method of a projected system, for messages. */
export function projectionMethod(system: WktNode): string {
  const conversion = child(system, 'CONVERSION') ?? system;
  return child(conversion, 'METHOD', 'PROJECTION')?.texts[0] ?? 'no method';
}

/**
 * The projection of a PROJCS or PROJCRS, without its datum. Undefined for unknown methods, parameters and units. `degrees` is
 * the size of the angular unit of its geographic system, which WKT 1 uses for angles.
 */
export function projectionFromWkt(system: WktNode, degrees: number): string | undefined {
  const conversion = child(system, 'CONVERSION') ?? system;
  const name = normaliseWktName(projectionMethod(system));
  const unit = linearUnit(system);
  const method: Method | undefined = METHODS[name];
  if (!method || !(unit > 0)) return undefined;
  const values: Parameters = new Map();
  for (const node of conversion.children) {
    const [value] = node.numbers;
    const plain = normaliseWktName(node.texts[0]);
    if (node.keyword !== 'PARAMETER' || IGNORED.has(plain)) continue;
    const parameter: string | undefined = PARAMETERS[plain];
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
export function toDegrees(radians: number): number {
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
