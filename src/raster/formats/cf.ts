/**
 * Georeferencing and times of grids by the CF conventions (CF-1.11, sections 4, 5.6 and appendix F): coordinate variables and a grid
 * mapping.
 */

import { posix } from 'node:path';
import { crsFromEpsg, customCrs, metresPerUnit } from '../crs/crs.js';
import { type Datum, datumByName, datumFromEllipsoid, minorAxis } from '../crs/epsg.js';
import { crsFromWkt } from '../crs/wkt.js';
import { corrupt, noCrs, unknownCrs, unsupported } from '../errors.js';
import { type Affine, aliasTable, type Crs } from '../raster.js';
import { type Attributes, type Hdf5File, withHdf5 } from './hdf5-file.js';

/** Georeferencing of the grid of a dataset. */
export interface Georeferencing {
  crs: Crs;
  /** Transform of the rows from north to south, even if the file stores them from south to north. */
  transform: Affine;
  /** True if the first stored row is the southernmost. */
  bottomUp: boolean;
}

/** The georeferencing of a grid: the outer edges of the first column and row, and the steps between columns and rows. */
export function gridGeoreferencing(crs: Crs, x: AxisOrigin, y: AxisOrigin, rows: number): Georeferencing {
  const bottomUp = y.step > 0;
  const north = bottomUp ? y.start + y.step * rows : y.start;
  const transform = { originX: x.start, originY: north, xx: x.step, xy: 0, yx: 0, yy: -Math.abs(y.step) };
  return { crs, transform, bottomUp };
}

/** Outer edge of the first column or row as stored, and the signed size of one. */
interface AxisOrigin {
  start: number;
  step: number;
}

/** Grid mappings (CF-1.11, appendix F): PROJ's name for each, and its parameters besides the false easting and northing. */
const GRID_MAPPINGS: Record<string, { proj: string; parameters: Parameter[] }> = {
  sinusoidal: { proj: 'sinu', parameters: ['lon_0'] },
  albers_conical_equal_area: { proj: 'aea', parameters: ['lon_0', 'lat_0'] },
  lambert_conformal_conic: { proj: 'lcc', parameters: ['lon_0', 'lat_0'] },
  lambert_azimuthal_equal_area: { proj: 'laea', parameters: ['lon_0', 'lat_0'] },
  transverse_mercator: { proj: 'tmerc', parameters: ['lon_0', 'lat_0', 'k'] },
  azimuthal_equidistant: { proj: 'aeqd', parameters: ['lon_0', 'lat_0'] },
  stereographic: { proj: 'stere', parameters: ['lon_0', 'lat_0', 'k'] },
  mercator: { proj: 'merc', parameters: ['lon_0', 'lat_ts', 'k'] },
  lambert_cylindrical_equal_area: { proj: 'cea', parameters: ['lon_0', 'lat_ts', 'k'] },
  polar_stereographic: { proj: 'stere', parameters: ['lon_0', 'lat_0', 'lat_ts', 'k'] },
};

/** Attributes of each PROJ parameter: a mapping has one of them. */
const PARAMETER_ATTRIBUTES = {
  lon_0: [
    'longitude_of_projection_origin',
    'longitude_of_central_meridian',
    'straight_vertical_longitude_from_pole',
  ],
  lat_0: ['latitude_of_projection_origin'],
  lat_ts: ['standard_parallel'],
  k: ['scale_factor_at_projection_origin', 'scale_factor_at_central_meridian'],
};

type Parameter = keyof typeof PARAMETER_ATTRIBUTES;

/**
 * The system of a grid mapping: by its well-known text if that is supported, else by its attributes. By convention it is WGS
 * 84 if latitudes and longitudes have no grid mapping. `metres` is the unit of the coordinate variables, in which false
 * easting and northing are given (table F.1). Throws TW_RASTER_UNKNOWN_CRS and TW_RASTER_NOT_EARTH.
 */
export function crsFromGridMapping(
  path: string,
  mapping: Attributes | undefined,
  geographic: boolean,
  metres: number,
): Crs {
  if (!mapping) return crsFromEpsg(4326);
  const wkt = String(mapping.crs_wkt ?? mapping.spatial_ref ?? '');
  const name = String(mapping.grid_mapping_name ?? '');
  const known = name === 'latitude_longitude' || Object.hasOwn(GRID_MAPPINGS, name);
  try {
    if (wkt !== '') return crsFromWkt(wkt, path);
  } catch (error) {
    if (!(known && unknownCrs.is(error))) throw error;
  }
  const datum = datumFromMapping(mapping, path);
  if (name === 'latitude_longitude' || (name === '' && geographic)) {
    return datum.proj4 === WGS84.proj4 ? crsFromEpsg(4326) : customCrs('+proj=longlat', datum, `of ${path}`);
  }
  if (!known) throw unknownCrs(`${name || 'without a name'} of ${path}`);
  return customCrs(projectionOf(GRID_MAPPINGS[name]!, mapping, metres), datum, `${name} of ${path}`);
}

function projectionOf(
  { proj, parameters }: (typeof GRID_MAPPINGS)[string],
  mapping: Attributes,
  metres: number,
): string {
  const words = parameters.flatMap((word) => wordOf(word, numberOf(mapping, ...PARAMETER_ATTRIBUTES[word])));
  if (proj === 'aea' || proj === 'lcc') words.push(...parallels(mapping));
  words.push(
    ...wordOf('x_0', numberOf(mapping, 'false_easting'), metres),
    ...wordOf('y_0', numberOf(mapping, 'false_northing'), metres),
  );
  return `+proj=${proj} ${words.join(' ')} +units=m`;
}

function wordOf(word: string, value: number | undefined, factor = 1): string[] {
  return value === undefined ? [] : [`+${word}=${value * factor}`];
}

/** One standard parallel stands for two equal ones. */
function parallels({ standard_parallel: given }: Attributes): string[] {
  const [first, second = first] = Array.isArray(given) ? given : [];
  return first === undefined ? [] : [`+lat_1=${first}`, `+lat_2=${second}`];
}

/** The number of the first of these attributes that has one. */
function numberOf(mapping: Attributes, ...attributes: string[]): number | undefined {
  return attributes
    .map((attribute) => mapping[attribute])
    .map((value) => (Array.isArray(value) ? value[0] : NaN))
    .find(Number.isFinite);
}

const WGS84: Datum = { proj4: '+datum=WGS84', errorMetres: 0 };

/** By its name, a shift to WGS 84, or the ellipsoid alone; WGS 84 if the mapping defines none of them. */
function datumFromMapping(mapping: Attributes, path: string): Datum {
  const named = datumByName(String(mapping.horizontal_datum_name ?? ''));
  const { proj4, errorMetres } = named ?? datumFromEllipsoidAttributes(mapping, path);
  const meridian = numberOf(mapping, 'longitude_of_prime_meridian') ?? 0;
  const plain = proj4.replace(/ ?\+pm=\S+/, '');
  return { proj4: meridian === 0 ? plain : `${plain} +pm=${meridian}`, errorMetres };
}

function datumFromEllipsoidAttributes(mapping: Attributes, path: string): Datum {
  const radius = numberOf(mapping, 'earth_radius');
  const major = radius ?? numberOf(mapping, 'semi_major_axis');
  if (major === undefined) return WGS84;
  const flattening = numberOf(mapping, 'inverse_flattening') ?? 0;
  const minor = radius ?? numberOf(mapping, 'semi_minor_axis') ?? minorAxis(major, flattening);
  const isWgs84 = Math.abs(major - 6378137) < 0.5 && Math.abs(minor - 6356752.3) < 0.5;
  if (isWgs84) return WGS84;
  const given = mapping.towgs84;
  const shift = Array.isArray(given) ? given.map(Number) : undefined;
  return datumFromEllipsoid({ major, minor }, path, shift?.length === 6 ? [...shift, 0] : shift);
}

export function cfGeoreferencing(file: Hdf5File, dataset: string): Georeferencing {
  const variable = file.dataset(dataset)!;
  const [rows, columns] = file
    .dimensionScales(variable)
    .slice(-2)
    .map((scales) => scales.at(0));
  const y = axisOf(file, rows);
  const x = axisOf(file, columns);
  if (x?.kind === 'latitude' || x?.kind === 'y' || y?.kind === 'longitude' || y?.kind === 'x') {
    throw unsupported(file.path, `${dataset} is stored with its columns before its rows`);
  }
  const geographic = y?.kind === 'latitude' && x?.kind === 'longitude';
  if (!y || !x || (!geographic && (y.kind !== 'y' || x.kind !== 'x'))) {
    throw noCrs(file.path, `${dataset} has no coordinate variables of latitude and longitude, or y and x`);
  }
  const mapping = gridMapping(file, dataset);
  if (!mapping && !geographic) throw noCrs(file.path, `${dataset} has coordinates but no grid mapping`);
  const crs = crsFromGridMapping(
    file.path,
    mapping,
    geographic,
    (!geographic && metresOf(file, x.attributes)) || 1,
  );
  const [height, width] = file.metadata(variable).shape!.slice(-2);
  const ownUnit = crs.geographic ? 1 : metresPerUnit(crs);
  // Coordinates without a unit have the unit of the coordinate system.
  const unit = (axis: Axis) => (crs.geographic ? 1 : (metresOf(file, axis.attributes) ?? ownUnit) / ownUnit);
  const across = readAxisOrigin(file, x.path, width, unit(x));
  return gridGeoreferencing(crs, across, readAxisOrigin(file, y.path, height, unit(y)), height);
}

type AxisKind = 'latitude' | 'longitude' | 'y' | 'x';

interface Axis {
  path: string;
  attributes: Attributes;
  kind: AxisKind;
}

function axisOf(file: Hdf5File, path: string | undefined): Axis | undefined {
  if (path === undefined) return undefined;
  const attributes = file.attributes(path);
  const kind = kindOf(attributes);
  return kind && { path, attributes, kind };
}

/** The axis of a coordinate variable; undefined if it is neither x nor y (such as latitudes of a rotated pole). */
function kindOf({ standard_name: name, units }: Attributes): AxisKind | undefined {
  if (name === 'latitude' || name === 'longitude') return name;
  if (name === 'projection_y_coordinate') return 'y';
  if (name === 'projection_x_coordinate') return 'x';
  if (name !== undefined && name !== '') return undefined;
  if (/^degrees?_?(north|N)$/i.test(String(units))) return 'latitude';
  if (/^degrees?_?(east|E)$/i.test(String(units))) return 'longitude';
  return undefined;
}

/** Attributes of the variable that `grid_mapping` names, searched in the dataset's group and the groups around it. */
function gridMapping(file: Hdf5File, dataset: string): Attributes | undefined {
  const text = file.attributes(dataset).grid_mapping;
  if (typeof text !== 'string') return undefined;
  // The long form also names the coordinates: "crs: x y".
  const name = text.trim().split(/[\s:]/, 1)[0];
  for (let group = posix.dirname(dataset); ; group = posix.dirname(group)) {
    const path = posix.join(group, name);
    if (file.dataset(path)) return file.attributes(path);
    if (group === '/') throw noCrs(file.path, `its grid mapping ${name} is missing`);
  }
}

const METRES_PER_UNIT: Record<string, number> = {
  ...aliasTable([
    [1, 'm meter meters metre metres'],
    [1000, 'km kilometer kilometers kilometre kilometres'],
    [0.3048, 'ft foot feet'],
    [1200 / 3937, 'us-ft us_survey_foot'],
  ]),
  'us survey foot': 1200 / 3937,
};

/** Metres of the unit of a projected coordinate; undefined if it has none. */
function metresOf(file: Hdf5File, { units = '' }: Attributes): number | undefined {
  const unit = String(units).toLowerCase();
  if (unit === '') return undefined;
  if (!Object.hasOwn(METRES_PER_UNIT, unit)) throw unsupported(file.path, `its coordinates are in ${units}`);
  return METRES_PER_UNIT[unit];
}

/** Tolerance of the position of a cell for even spacing, in cells: far above the rounding of float32 coordinates. */
const MAX_SPACING_ERROR_CELLS = 0.1;
const VALUES_PER_READ = 65_536;

/** Checks that cell centres are evenly spaced; reads them in pieces. */
function readAxisOrigin(file: Hdf5File, path: string, length: number, unit: number): AxisOrigin {
  const dataset = file.dataset(path)!;
  const shape = file.metadata(dataset).shape ?? [];
  if (shape.length !== 1)
    throw unsupported(file.path, `its coordinates ${path} have ${shape.length} dimensions`);
  if (shape[0] !== length)
    throw corrupt(file.path, `it has ${shape[0]} coordinates ${path} for ${length} pixels`);
  if (length < 2) throw noCrs(file.path, `a single coordinate in ${path} does not say the size of a pixel`);
  const at = (i: number) => Number(file.slice(dataset, [[i, i + 1]])[0]);
  const first = at(0);
  const step = (at(length - 1) - first) / (length - 1);
  if (!Number.isFinite(first) || !Number.isFinite(step)) {
    throw corrupt(file.path, `the coordinates ${path} are not all numbers`);
  }
  if (step === 0) throw noCrs(file.path, `the coordinates ${path} are all the same`);
  for (let from = 0; from < length; from += VALUES_PER_READ) {
    const values = file.slice(dataset, [[from, Math.min(length, from + VALUES_PER_READ)]]);
    for (let i = 0; i < values.length; i++) {
      const error = Math.abs(Number(values[i]) - (first + (from + i) * step)) / Math.abs(step);
      if (Number.isNaN(error)) throw corrupt(file.path, `the coordinates ${path} are not all numbers`);
      if (error > MAX_SPACING_ERROR_CELLS)
        throw unsupported(file.path, `its coordinates ${path} are not evenly spaced`);
    }
  }
  return { start: (first - step / 2) * unit, step: step * unit };
}

/** The time axis of a variable (CF-1.11, section 4.4). */
export interface TimeAxis {
  /**
   * Start and end of each step, milliseconds since 1970; the end is the start of the next step. Both are equal if there are no
   * bounds.
   */
  steps: { start: number; end: number }[];
  /** Bands of one step: 1, or the product of the dimensions between time and rows. */
  bandsPerStep: number;
}

/** Milliseconds of each unit. */
const TIME_UNITS = aliasTable([
  [1e3, 'second sec s'],
  [6e4, 'minute min'],
  [3.6e6, 'hour hr h'],
  [8.64e7, 'day d'],
]);
const SUPPORTED_CALENDARS = new Set(['', 'standard', 'gregorian', 'proleptic_gregorian']);
/** Limit of the steps, as many as a header may have bands. */
const MAX_TIME_STEPS = 1_000_000;

/**
 * The steps of a dataset's first dimension if that is time; undefined if no dimension is. Throws TW_RASTER_UNREADABLE,
 * _CORRUPT, and _UNSUPPORTED for calendars other than the standard one.
 */
export function openTimeAxis(path: string, layer: string): Promise<TimeAxis | undefined> {
  return withHdf5(path, (file) => timeAxisOf(file, layer));
}

function timeAxisOf(file: Hdf5File, layer: string): TimeAxis | undefined {
  const dataset = file.dataset(layer);
  const shape = (dataset && file.metadata(dataset).shape) ?? [];
  if (!dataset || shape.length < 3) return undefined;
  const leading = file.dimensionScales(dataset).slice(0, -2);
  const place = leading.findIndex(([scale]) => scale !== undefined && isTime(file, scale));
  if (place < 0) return undefined;
  if (place > 0) throw unsupported(file.path, `time is not the first dimension of ${layer}`);
  const [axis] = leading[0];
  const { units, calendar = '', bounds } = file.attributes(axis);
  if (!SUPPORTED_CALENDARS.has(String(calendar).toLowerCase())) {
    throw unsupported(
      file.path,
      `its times are of the calendar ${calendar}, and a conversion loses them: write each time step to a file (gdal_translate -b N) and ingest it with --datetime`,
    );
  }
  const toTime = createTimeDecoder(file.path, String(units));
  const starts = numbersOf(file, axis, [shape[0]]);
  const limits = typeof bounds === 'string' ? `${axis.replace(/[^/]*$/, '')}${bounds}` : undefined;
  const spans = limits && file.dataset(limits) ? numbersOf(file, limits, [shape[0], 2]) : undefined;
  const steps = Array.from({ length: shape[0] }, (_, i) => ({
    start: toTime(spans ? spans[2 * i] : starts[i]),
    end: toTime(spans ? spans[2 * i + 1] : starts[i]),
  }));
  return { steps, bandsPerStep: shape.slice(1, -2).reduce((product, size) => product * size, 1) };
}

function isTime(file: Hdf5File, scale: string): boolean {
  const { standard_name: name, units } = file.attributes(scale);
  return name === 'time' || (typeof units === 'string' && /^\s*\w+\s+since\s/i.test(units));
}

function numbersOf(file: Hdf5File, path: string, expected: number[]): number[] {
  const dataset = file.dataset(path)!;
  const shape = file.metadata(dataset).shape ?? [];
  if (shape.join() !== expected.join()) {
    throw corrupt(file.path, `${path} is ${shape.join(' x ')}, not ${expected.join(' x ')}`);
  }
  if (expected[0] > MAX_TIME_STEPS) throw unsupported(file.path, `it has ${expected[0]} times`);
  const ranges = shape.map((size): [number, number] => [0, size]);
  return Array.from(file.slice(dataset, ranges), Number);
}

/** Parses units such as "days since 1900-01-01 00:00:00"; times without a zone are UTC. */
function createTimeDecoder(path: string, units: string): (value: number) => number {
  const match =
    /^\s*(\w+?)s?\s+since\s+(\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T ]+(\d{1,2})(?::(\d{1,2}))?(?::(\d{1,2}(?:\.\d*)?))?)?\s*(Z|UTC|[-+]\d{1,2}:?\d{2})?\s*$/i.exec(
      units,
    );
  const name = match?.[1].toLowerCase() ?? '';
  const unit = Object.hasOwn(TIME_UNITS, name) ? TIME_UNITS[name] : undefined;
  if (!match || unit === undefined) throw unsupported(path, `its times are in "${units}"`);
  const [, , year, month, day, hour = '0', minute = '0', second = '0', zone = 'Z'] = match;
  const [, sign, hours = '0', minutes = '0'] = /^([-+])(\d{1,2}):?(\d{2})$/.exec(zone) ?? [];
  const shift = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 6e4;
  const date = new Date(0);
  // Not by Date.UTC, which treats the year 1 as 1901.
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  date.setUTCHours(Number(hour), Number(minute), 0, Number(second) * 1e3);
  const epoch = date.getTime() - shift;
  return (value) => {
    const time = Math.round(epoch + value * unit);
    if (Number.isNaN(new Date(time).getTime())) throw corrupt(path, `its time ${value} ${units} is none`);
    return time;
  };
}
