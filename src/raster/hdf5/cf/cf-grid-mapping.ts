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

/** PROJ's name for each mapping, and its parameters by the attributes of CF. */
const GRID_MAPPINGS: Record<string, { proj: string; parameters: Record<string, string> }> = {
  sinusoidal: { proj: 'sinu', parameters: { longitude_of_projection_origin: 'lon_0' } },
  albers_conical_equal_area: {
    proj: 'aea',
    parameters: { longitude_of_central_meridian: 'lon_0', latitude_of_projection_origin: 'lat_0' },
  },
  lambert_conformal_conic: {
    proj: 'lcc',
    parameters: { longitude_of_central_meridian: 'lon_0', latitude_of_projection_origin: 'lat_0' },
  },
  lambert_azimuthal_equal_area: {
    proj: 'laea',
    parameters: { longitude_of_projection_origin: 'lon_0', latitude_of_projection_origin: 'lat_0' },
  },
  transverse_mercator: {
    proj: 'tmerc',
    parameters: {
      longitude_of_central_meridian: 'lon_0',
      latitude_of_projection_origin: 'lat_0',
      scale_factor_at_central_meridian: 'k',
    },
  },
  azimuthal_equidistant: {
    proj: 'aeqd',
    parameters: { longitude_of_projection_origin: 'lon_0', latitude_of_projection_origin: 'lat_0' },
  },
  stereographic: {
    proj: 'stere',
    parameters: {
      longitude_of_projection_origin: 'lon_0',
      latitude_of_projection_origin: 'lat_0',
      scale_factor_at_projection_origin: 'k',
    },
  },
  mercator: {
    proj: 'merc',
    parameters: {
      longitude_of_projection_origin: 'lon_0',
      standard_parallel: 'lat_ts',
      scale_factor_at_projection_origin: 'k',
    },
  },
  lambert_cylindrical_equal_area: {
    proj: 'cea',
    parameters: {
      longitude_of_central_meridian: 'lon_0',
      standard_parallel: 'lat_ts',
      scale_factor_at_projection_origin: 'k',
    },
  },
  polar_stereographic: {
    proj: 'stere',
    parameters: {
      straight_vertical_longitude_from_pole: 'lon_0',
      longitude_of_projection_origin: 'lon_0',
      latitude_of_projection_origin: 'lat_0',
      standard_parallel: 'lat_ts',
      scale_factor_at_projection_origin: 'k',
    },
  },
};

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
  const words = Object.entries(parameters).flatMap(([attribute, word]) => wordsOf(mapping, attribute, word));
  if (proj === 'aea' || proj === 'lcc') words.push(...parallels(mapping));
  for (const [attribute, word] of [
    ['false_easting', 'x_0'],
    ['false_northing', 'y_0'],
  ] as const) {
    const value = numberOf(mapping, attribute);
    if (value !== undefined) words.push(`+${word}=${value * metres}`);
  }
  return `+proj=${proj} ${words.join(' ')} +units=m`;
}

function wordsOf(mapping: Attributes, attribute: string, word: string): string[] {
  const value = numberOf(mapping, attribute);
  return value === undefined ? [] : [`+${word}=${value}`];
}

/** One standard parallel stands for two equal ones. */
function parallels({ standard_parallel: given }: Attributes): string[] {
  const [first, second = first] = Array.isArray(given) ? given : [];
  return first === undefined ? [] : [`+lat_1=${first}`, `+lat_2=${second}`];
}

function numberOf(mapping: Attributes, attribute: string): number | undefined {
  const value = mapping[attribute];
  const number = Array.isArray(value) ? value[0] : NaN;
  return Number.isFinite(number) ? number : undefined;
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
