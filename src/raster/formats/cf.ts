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
import { coordinateReader, numbersIn } from './hdf5-dataset.js';
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
  stated: Attributes | undefined,
  geographic: boolean,
  metres: number,
): Crs {
  if (!stated) return crsFromEpsg(4326);
  const wkt = String(stated.crs_wkt ?? stated.spatial_ref ?? '');
  const name = String(stated.grid_mapping_name ?? '');
  const known = name === 'latitude_longitude' || Object.hasOwn(GRID_MAPPINGS, name);
  try {
    if (wkt !== '') return crsFromWkt(wkt, path);
  } catch (error) {
    if (!(known && unknownCrs.is(error))) throw error;
  }
  const mapping = withNumbers(stated, path);
  const datum = datumFromMapping(mapping, path);
  if (name === 'latitude_longitude' || (name === '' && geographic)) {
    return datum.proj4 === WGS84.proj4 ? crsFromEpsg(4326) : customCrs('+proj=longlat', datum, `of ${path}`);
  }
  if (!known) throw unknownCrs(`${name || 'without a name'} of ${path}`);
  return customCrs(projectionOf(name, mapping, metres, path), datum, `${name} of ${path}`);
}

/** Attributes of a mapping that are numbers, besides those of its parameters. */
const NUMBERS = [
  ...['false_easting', 'false_northing', 'longitude_of_prime_meridian', 'towgs84'],
  ...['earth_radius', 'semi_major_axis', 'semi_minor_axis', 'inverse_flattening'],
];

/** The mapping with numbers in place of text. Throws TW_RASTER_UNKNOWN_CRS for text that is not numbers. */
function withNumbers(mapping: Attributes, path: string): Attributes {
  const names = [...NUMBERS, ...Object.values(PARAMETER_ATTRIBUTES).flat()];
  const texts = names.filter((name) => typeof mapping[name] === 'string');
  const numbers = texts.map((name): [string, number[]] => {
    const read = numbersIn(mapping[name]);
    if (read.length === 0)
      throw unknownCrs(`with ${name} "${String(mapping[name]).slice(0, 40)}" of ${path}`);
    return [name, read];
  });
  return { ...mapping, ...Object.fromEntries(numbers) };
}

function projectionOf(name: string, mapping: Attributes, metres: number, path: string): string {
  const { proj, parameters } = GRID_MAPPINGS[name]!;
  const words = parameters.flatMap((word) => wordOf(word, numberOf(mapping, ...PARAMETER_ATTRIBUTES[word])));
  const [parallel] = parallels(mapping);
  if ((proj === 'aea' || proj === 'lcc') && parallel === undefined)
    throw unknownCrs(`${name} without standard_parallel of ${path}`);
  if (proj === 'aea' || proj === 'lcc') words.push(...parallels(mapping));
  if (name === 'polar_stereographic' && numberOf(mapping, ...PARAMETER_ATTRIBUTES.lat_0) === undefined)
    words.push(`+lat_0=${poleOf(mapping, path)}`);
  words.push(
    ...wordOf('x_0', numberOf(mapping, 'false_easting'), metres),
    ...wordOf('y_0', numberOf(mapping, 'false_northing'), metres),
  );
  return `+proj=${proj} ${words.join(' ')} +units=m`;
}

/** As in GDAL, the pole on the side of the standard parallel. */
function poleOf(mapping: Attributes, path: string): number {
  const latitude = numberOf(mapping, ...PARAMETER_ATTRIBUTES.lat_ts);
  if (!latitude) throw unknownCrs(`polar_stereographic without latitude_of_projection_origin of ${path}`);
  return latitude < 0 ? -90 : 90;
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
  const meridian = numberOf(mapping, 'longitude_of_prime_meridian') ?? meridianByName(mapping, path);
  const plain = proj4.replace(/ ?\+pm=\S+/, '');
  return { proj4: meridian === 0 ? plain : `${plain} +pm=${meridian}`, errorMetres };
}

function meridianByName({ prime_meridian_name: name = '' }: Attributes, path: string): number {
  if (/^(greenwich|unknown)?$/i.test(String(name).trim())) return 0;
  throw unknownCrs(`with prime meridian ${name} of ${path}`);
}

/** Names of datums and ellipsoids that are WGS 84 within a few metres, or that name none. */
const LIKE_WGS84 = /wgs|world.?geodetic|grs|etrs|itr[fs]|unknown|^\s*$/i;

function datumFromEllipsoidAttributes(mapping: Attributes, path: string): Datum {
  const radius = numberOf(mapping, 'earth_radius');
  const major = radius ?? numberOf(mapping, 'semi_major_axis');
  if (major === undefined) {
    const names = [mapping.horizontal_datum_name ?? '', mapping.reference_ellipsoid_name ?? ''].map(String);
    const other = names.find((name) => !LIKE_WGS84.test(name));
    if (other !== undefined) throw unknownCrs(`on ${other} of ${path}`);
    return WGS84;
  }
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
  const axes = file.dimensionScales(variable).map(([scale]) => axisOf(file, scale));
  const [y, x] = axes.slice(-2);
  const row = axes.findIndex((axis) => axis?.kind === 'latitude' || axis?.kind === 'y');
  const column = axes.findIndex((axis) => axis?.kind === 'longitude' || axis?.kind === 'x');
  const leading = axes.flatMap((_, i) => (i === row || i === column ? [] : i));
  if (row >= 0 && column >= 0 && !(row === axes.length - 2 && column === axes.length - 1))
    throw wrongOrder(file, dataset, [...leading, row, column]);
  const geographic = y?.kind === 'latitude' && x?.kind === 'longitude';
  if (!y || !x || (!geographic && (y.kind !== 'y' || x.kind !== 'x'))) {
    throw noCrs(
      file.path,
      `${dataset} has no coordinate variables of latitude and longitude, or y and x`,
      isCurvilinear(file, dataset) ? REMAP : WRITE_CORNERS,
    );
  }
  const mapping = gridMapping(
    file,
    dataset,
    [x.path, y.path].map((path) => posix.basename(path)),
  );
  if (!mapping && !geographic)
    throw noCrs(file.path, `${dataset} has coordinates but no grid mapping`, WRITE_CORNERS);
  const crs = crsFromGridMapping(
    file.path,
    mapping,
    geographic,
    (!geographic && metresOf(file, x.attributes)) || 1,
  );
  const [height, width] = file.metadata(variable).shape!.slice(-2);
  const ownUnit = crs.geographic ? 1 : metresPerUnit(crs);
  // Coordinates without a unit have the unit of the coordinate system.
  const unit = ({ attributes }: Axis) =>
    crs.geographic ? degreesOf(file, attributes) : (metresOf(file, attributes) ?? ownUnit) / ownUnit;
  const across = readAxisOrigin(file, x.path, width, unit(x));
  return gridGeoreferencing(crs, across, readAxisOrigin(file, y.path, height, unit(y)), height);
}

/** True if each cell has a latitude and longitude of its own (CF-1.11, section 5.2). */
function isCurvilinear(file: Hdf5File, layer: string): boolean {
  const names = String(file.attributes(layer).coordinates ?? '').split(/\s+/);
  const found = names.map((name) => file.dataset(posix.join(posix.dirname(layer), name)));
  return found.some((coordinate) => coordinate && file.metadata(coordinate).shape?.length === 2);
}

/** The error of a variable whose dimensions must be exchanged. `order` lists their indexes as they should be. */
function wrongOrder(file: Hdf5File, layer: string, order: number[]): Error {
  const names = file.dimensionScales(file.dataset(layer)!).map(([scale = '?']) => posix.basename(scale));
  const target = order.map((i) => names[i]).join(',');
  return unsupported(
    file.path,
    `the dimensions of ${layer} are in the order ${names.join(',')}`,
    `Exchange them with ncpdq -a ${target} IN.nc OUT.nc (Debian package nco).`,
  );
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

/**
 * The name in the short form "crs", or in the long form "crs: x y other: lat lon" the one for these coordinates, else the first
 * (CF-1.11, section 5.6).
 */
function mappingName(text: string, axes: readonly string[]): string {
  const parts = text.split(/\s+(?=[^\s:]+\s*:)/).map((part) => part.trim().split(/[\s:]+/));
  const [name = ''] = parts.find(([, ...names]) => names.some((axis) => axes.includes(axis))) ?? parts[0]!;
  return name;
}

/** Attributes of the variable that `grid_mapping` names, searched in the dataset's group and the groups around it. */
function gridMapping(file: Hdf5File, dataset: string, axes: readonly string[]): Attributes | undefined {
  const text = file.attributes(dataset).grid_mapping;
  if (typeof text !== 'string') return undefined;
  const name = mappingName(text, axes);
  for (let group = posix.dirname(dataset); ; group = posix.dirname(group)) {
    const path = posix.join(group, name);
    if (file.dataset(path)) return file.attributes(path);
    if (group === '/') throw noCrs(file.path, `its grid mapping ${name} is missing`, WRITE_CORNERS);
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
  if (!Object.hasOwn(METRES_PER_UNIT, unit))
    throw unsupported(file.path, `its coordinates are in ${units}`, WRITE_CORNERS);
  return METRES_PER_UNIT[unit];
}

const REMAP =
  'Resample it to even steps, for example of half a degree with cdo remapbil,r720x360 IN.nc OUT.nc (Debian package cdo).';
/** For coordinates that only the user can correct. */
const WRITE_CORNERS =
  'Write it with its true corners: gdal_translate -a_srs EPSG:CODE -a_ullr WEST NORTH EAST SOUTH NETCDF:"FILE.nc":VARIABLE OUT.tif.';

/** Degrees of the unit of a latitude or longitude. */
function degreesOf(file: Hdf5File, { units = '' }: Attributes): number {
  const unit = String(units).trim();
  if (unit === '' || /^deg(ree)?s?($|[_ ]|[NESW](_true)?$)/i.test(unit)) return 1;
  if (/^rad(ian)?s?$/i.test(unit)) return 180 / Math.PI;
  throw unsupported(file.path, `its coordinates are in ${units}`, WRITE_CORNERS);
}

/** Tolerance of the position of a cell for even spacing, in cells: far above the rounding of float32 coordinates. */
const MAX_SPACING_ERROR_CELLS = 0.1;
const VALUES_PER_READ = 65_536;

/** Checks that cell centres are evenly spaced; reads them in pieces. */
function readAxisOrigin(file: Hdf5File, path: string, length: number, unit: number): AxisOrigin {
  const dataset = file.dataset(path)!;
  const shape = file.metadata(dataset).shape ?? [];
  if (shape.length !== 1)
    throw unsupported(file.path, `its coordinates ${path} have ${shape.length} dimensions`, WRITE_CORNERS);
  if (shape[0] !== length)
    throw corrupt(file.path, `it has ${shape[0]} coordinates ${path} for ${length} pixels`);
  const cells = cellReader(file, path, length);
  if (length < 2) {
    if (!cells)
      throw noCrs(
        file.path,
        `a single coordinate in ${path} does not say the size of a pixel`,
        WRITE_CORNERS,
      );
    const [low, high] = cells(0);
    return { start: low * unit, step: (high - low) * unit };
  }
  const read = coordinateReader(file, path);
  const at = (i: number) => read([[i, i + 1]])[0];
  const first = at(0);
  const step = (at(length - 1) - first) / (length - 1);
  if (step === 0) throw noCrs(file.path, `the coordinates ${path} are all the same`, WRITE_CORNERS);
  for (let from = 0; from < length; from += VALUES_PER_READ) {
    const values = read([[from, Math.min(length, from + VALUES_PER_READ)]]);
    for (let i = 0; i < values.length; i++) {
      const error = Math.abs(values[i] - (first + (from + i) * step)) / Math.abs(step);
      if (!Number.isFinite(error))
        throw corrupt(file.path, `the coordinates ${path} are not all numbers`, WRITE_CORNERS);
      if (error > MAX_SPACING_ERROR_CELLS)
        throw unsupported(file.path, `its coordinates ${path} are not evenly spaced`, REMAP);
    }
  }
  const shift = cells ? shiftInCells(file.path, path, { length, step, at, cells }) : 0;
  return { start: (first - step / 2 + shift) * unit, step: step * unit };
}

/** Reads the lower and upper bound of a cell (CF-1.11, section 7.1); undefined if the coordinates have no bounds. */
function cellReader(file: Hdf5File, path: string, length: number) {
  const { bounds } = file.attributes(path);
  const limits = typeof bounds === 'string' ? posix.join(posix.dirname(path), bounds) : '';
  const dataset = file.dataset(limits);
  if (!dataset || file.metadata(dataset).shape?.join() !== `${length},2`) return undefined;
  const read = coordinateReader(file, limits);
  return (i: number) =>
    [
      ...read([
        [i, i + 1],
        [0, 2],
      ]),
    ].sort((a, b) => a - b) as [number, number];
}

/** Smaller distances are rounding errors, in cells. */
const MIN_SHIFT_CELLS = 0.01;

/**
 * The distance from coordinates to the centres of their cells. Throws TW_RASTER_CORRUPT if it is not the same for all, or if coordinates
 * lie outside of their cells. Cells at the ends do not count, because those at poles are cut.
 */
function shiftInCells(
  file: string,
  path: string,
  axis: { length: number; step: number; at(i: number): number; cells(i: number): [number, number] },
): number {
  const { length, step, at, cells } = axis;
  const places = length < 3 ? [0, 1] : [1, length >> 1, length - 2];
  const shifts = places.map((i) => {
    const [low, high] = cells(i);
    return (low + high) / 2 - at(i);
  });
  const [shift = 0] = shifts;
  const isEven = shifts.every((other) => Math.abs(other - shift) <= MAX_SPACING_ERROR_CELLS * Math.abs(step));
  if (!isEven || Math.abs(shift) > (0.5 + MAX_SPACING_ERROR_CELLS) * Math.abs(step))
    throw corrupt(file, `the coordinates ${path} and their bounds contradict each other`, WRITE_CORNERS);
  return Math.abs(shift) < MIN_SHIFT_CELLS * Math.abs(step) ? 0 : shift;
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

/** Milliseconds of each unit, by its names in the singular. */
const TIME_UNITS = aliasTable([
  [1e-6, 'nanosecond nanosec ns'],
  [1e-3, 'microsecond microsec us µs μs'],
  [1, 'millisecond millisec msec ms'],
  [1e3, 'second sec s'],
  [6e4, 'minute min'],
  [3.6e6, 'hour hr h'],
  [8.64e7, 'day d'],
]);
/** Julian dates up to 1582-10-04, Gregorian ones from 1582-10-15 on (CF-1.11, section 4.4.1). */
const MIXED_CALENDARS = new Set(['', 'standard', 'gregorian']);
/** Packed times are rounded. */
const BOUNDS_TOLERANCE_MS = 1000;
/** A GeoTIFF has no time, so that its time can be given. GDAL finds no system for latitudes and longitudes without a grid mapping. */
const ingestStepsAlone = (file: Hdf5File, layer: string) =>
  `Write each time step to a file with gdal_translate -b N${file.attributes(layer).grid_mapping === undefined ? ' -a_srs EPSG:4326' : ''} NETCDF:"FILE.nc":VARIABLE STEP_N.tif, and ingest it with --datetime.`;
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
  const times = leading.map(([scale]) => (scale === undefined ? undefined : timeKind(file, scale)));
  // A forecast also has the time at which it began.
  const place = times.includes('time') ? times.indexOf('time') : times.indexOf('other');
  if (place < 0) return undefined;
  if (place > 0)
    throw wrongOrder(
      file,
      layer,
      [place, ...shape.keys()].filter((i, at) => at === 0 || i !== place),
    );
  const [axis] = leading[0];
  const { units = '', calendar = '', bounds, climatology } = file.attributes(axis);
  const advice = ingestStepsAlone(file, layer);
  if (climatology !== undefined)
    throw unsupported(file.path, `its times ${axis} are those of a climatology, not of one year`, advice);
  const toTime = createTimeDecoder(file.path, String(units), String(calendar).trim().toLowerCase(), advice);
  const starts = numbersOf(file, axis, [shape[0]]);
  const limits = typeof bounds === 'string' ? `${axis.replace(/[^/]*$/, '')}${bounds}` : undefined;
  const spans = limits && file.dataset(limits) ? numbersOf(file, limits, [shape[0], 2]) : undefined;
  const steps = Array.from({ length: shape[0] }, (_, i) => {
    const time = toTime(starts[i]);
    const [start, end] = spans
      ? [toTime(spans[2 * i]), toTime(spans[2 * i + 1])].sort((a, b) => a - b)
      : [time, time];
    // For example if only one of the two variables is packed.
    if (time < start - BOUNDS_TOLERANCE_MS || time > end + BOUNDS_TOLERANCE_MS)
      throw corrupt(file.path, `a time of ${axis} lies outside of its bounds in ${limits}`, advice);
    return { start, end };
  });
  if (new Set(steps.map(({ start }) => Math.floor(start / 1000))).size < steps.length)
    throw corrupt(file.path, `two times of ${axis} are in the same second`, advice);
  return { steps, bandsPerStep: shape.slice(1, -2).reduce((product, size) => product * size, 1) };
}

function timeKind(file: Hdf5File, scale: string): 'time' | 'other' | undefined {
  const { standard_name: name, units } = file.attributes(scale);
  if (name === 'time') return 'time';
  return typeof units === 'string' && /^\s*\w+\s+since\s/i.test(units) ? 'other' : undefined;
}

function numbersOf(file: Hdf5File, path: string, expected: number[]): Float64Array {
  const dataset = file.dataset(path)!;
  const shape = file.metadata(dataset).shape ?? [];
  if (shape.join() !== expected.join()) {
    throw corrupt(file.path, `${path} is ${shape.join(' x ')}, not ${expected.join(' x ')}`);
  }
  if (expected[0] > MAX_TIME_STEPS) throw unsupported(file.path, `it has ${expected[0]} times`);
  const ranges = shape.map((size): [number, number] => [0, size]);
  return coordinateReader(file, path)(ranges);
}

/** Parses units such as "days since 1900-01-01 00:00:00"; times without a zone are UTC. */
function createTimeDecoder(
  path: string,
  units: string,
  calendar: string,
  advice: string,
): (value: number) => number {
  const isMixed = MIXED_CALENDARS.has(calendar);
  if (!isMixed && calendar !== 'proleptic_gregorian')
    throw unsupported(path, `its times are of the calendar ${calendar}`, advice);
  const match =
    /^\s*([a-zµμ]+)\s+since\s+(\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T ]+(\d{1,2})(?::(\d{1,2}))?(?::(\d{1,2}(?:\.\d*)?))?)?\s*(Z|UTC|GMT|[-+]\d{1,2}(?::?\d{2})?)?\s*$/i.exec(
      units,
    );
  const name = match?.[1].toLowerCase() ?? '';
  const unit = [name, name.replace(/s$/, '')].find((text) => Object.hasOwn(TIME_UNITS, text));
  const [, , year, month, day, hour = '0', minute = '0', second = '0', zone = 'Z'] = match ?? [];
  const [, sign, hours = '0', minutes = '0'] = /^([-+])(\d{1,2}?):?(\d{2})?$/.exec(zone) ?? [];
  const shift = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 6e4;
  const date = dateInCalendar(Number(year), Number(month), Number(day), isMixed);
  const time = Number(hour) * 3.6e6 + Number(minute) * 6e4 + Math.floor(Number(second) * 1e3);
  const isClock = Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60;
  if (unit === undefined || date === undefined || !isClock)
    throw unsupported(path, units === '' ? 'its times have no units' : `its times are in "${units}"`, advice);
  const epoch = date + time - shift;
  return (value) => {
    if (Number.isNaN(value)) throw corrupt(path, 'one of its times is missing', advice);
    const time = Math.round(epoch + value * TIME_UNITS[unit]);
    if (Number.isNaN(new Date(time).getTime()))
      throw corrupt(path, `its time ${value} ${units} is none`, advice);
    return time;
  };
}

/** The first day of the Gregorian calendar, in milliseconds since 1970. */
const GREGORIAN_START = Date.UTC(1582, 9, 15);
const DAY_MS = 8.64e7;

/**
 * Milliseconds from 1970 to a date in the Gregorian calendar, or in the mixed one with its Julian dates. Undefined if the calendar does not
 * have the date.
 */
function dateInCalendar(year: number, month: number, day: number, isMixed: boolean): number | undefined {
  const gregorian = new Date(0);
  // Not by Date.UTC, which treats the year 1 as 1901.
  gregorian.setUTCFullYear(year, month - 1, day);
  const isDay = (leap: boolean) =>
    day >= 1 && day <= [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]!;
  if (!isMixed || gregorian.getTime() >= GREGORIAN_START)
    return isDay(year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)) ? gregorian.getTime() : undefined;
  // The calendars agree in March of the year 200, and differ by one more day after each February 29 that only the Julian one has.
  const centuries = Math.floor((month < 3 ? year - 1 : year) / 100);
  const julian = gregorian.getTime() + (centuries - Math.floor(centuries / 4) - 2) * DAY_MS;
  return year > 0 && isDay(year % 4 === 0) && julian < GREGORIAN_START ? julian : undefined;
}
