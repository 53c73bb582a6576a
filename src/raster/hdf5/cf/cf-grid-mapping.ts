/** Coordinate reference systems by the grid mappings of CF (CF-1.11, appendix F). */
import {
  crsFromEpsg,
  crsFromWkt,
  customCrs,
  type Datum,
  datumByName,
  datumFromEllipsoid,
  minorAxis,
} from '../../crs/index.js';
import { unknownCrs } from '../../errors.js';
import type { Crs } from '../../raster-types.js';
import type { Attributes } from '../hdf5-file.js';

/** PROJ's name for each mapping, and its parameters besides the false easting and northing. */
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
const ATTRIBUTES = {
  lon_0: [
    'longitude_of_projection_origin',
    'longitude_of_central_meridian',
    'straight_vertical_longitude_from_pole',
  ],
  lat_0: ['latitude_of_projection_origin'],
  lat_ts: ['standard_parallel'],
  k: ['scale_factor_at_projection_origin', 'scale_factor_at_central_meridian'],
};

type Parameter = keyof typeof ATTRIBUTES;

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
  const words = parameters.flatMap((word) => wordOf(word, numberOf(mapping, ...ATTRIBUTES[word])));
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
