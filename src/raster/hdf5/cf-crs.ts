/** Coordinate systems by the grid mappings of CF (CF-1.11, appendix F). */
import { crsFromEpsg } from '../crs.js';
import { unknownCrs } from '../errors.js';
import type { Crs } from '../types.js';
import { epsgOfWkt } from '../wkt.js';
import type { Attributes } from './file.js';

/** Each mapping's name in PROJ, and what its attributes are called there. */
const MAPPINGS: Record<string, { proj: string; parameters: Record<string, string> }> = {
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
 * The system of a grid mapping, or WGS 84 where latitudes and longitudes come without one, as is the custom.
 * Throws TW_RASTER_UNKNOWN_CRS.
 */
export function cfCrs(path: string, mapping: Attributes | undefined, geographic: boolean): Crs {
  if (!mapping) return crsFromEpsg(4326);
  const wkt = String(mapping.crs_wkt ?? mapping.spatial_ref ?? '');
  const epsg = epsgOfWkt(wkt);
  if (epsg !== undefined) return crsFromEpsg(epsg);
  const name = String(mapping.grid_mapping_name ?? '');
  if (name === 'latitude_longitude' || (name === '' && geographic && wkt === '')) {
    const figure = figureOf(mapping);
    return figure
      ? { epsg: undefined, proj4: `+proj=longlat ${figure} +no_defs`, geographic: true }
      : crsFromEpsg(4326);
  }
  const known = MAPPINGS[name];
  if (!known) throw unknownCrs(`${name || wkt.slice(0, 60)} of ${path}`);
  const words = Object.entries(known.parameters).flatMap(([attribute, word]) =>
    wordsOf(mapping, attribute, word),
  );
  if (known.proj === 'aea' || known.proj === 'lcc') words.push(...parallels(mapping));
  for (const [attribute, word] of [
    ['false_easting', 'x_0'],
    ['false_northing', 'y_0'],
  ] as const) {
    words.push(...wordsOf(mapping, attribute, word));
  }
  const figure = figureOf(mapping) ?? '+datum=WGS84';
  return {
    epsg: undefined,
    proj4: `+proj=${known.proj} ${words.join(' ')} ${figure} +units=m +no_defs`,
    geographic: false,
  };
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

/** The figure of the earth in PROJ's words; undefined where it is that of WGS 84 or is not said. */
function figureOf(mapping: Attributes): string | undefined {
  const radius = numberOf(mapping, 'earth_radius');
  if (radius !== undefined && radius > 0) return `+a=${radius} +b=${radius}`;
  const a = numberOf(mapping, 'semi_major_axis');
  if (a === undefined || !(a > 0)) return undefined;
  const flattening = numberOf(mapping, 'inverse_flattening');
  const b = numberOf(mapping, 'semi_minor_axis') ?? (flattening ? a - a / flattening : a);
  const isWgs84 = Math.abs(a - 6378137) < 0.5 && Math.abs(b - 6356752.3) < 0.5;
  return isWgs84 ? undefined : `+a=${a} +b=${b}`;
}
