/** Grid mappings of CF against the positions that GDAL 3.6 gives the same files. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crsFromGridMapping } from '../../src/raster/formats/cf.js';
import { createTransform } from '../../src/raster/index.js';

const number = (value: number) => [value];

function placeOf(mapping: Record<string, unknown>, metres: number, x: number, y: number): [number, number] {
  const crs = crsFromGridMapping('a.nc', mapping as Parameters<typeof crsFromGridMapping>[1], false, metres);
  return createTransform(crs, 'EPSG:4326')(x, y);
}

function assertNear([lon, lat]: [number, number], wanted: [number, number]): void {
  assert.ok(Math.hypot(lon - wanted[0], lat - wanted[1]) < 1e-6, `${lon} ${lat}`);
}

const TRANSVERSE = {
  grid_mapping_name: 'transverse_mercator',
  longitude_of_central_meridian: number(15),
  latitude_of_projection_origin: number(0),
  scale_factor_at_central_meridian: number(0.9996),
  false_easting: number(500_000),
  false_northing: number(0),
  semi_major_axis: number(6378137),
  inverse_flattening: number(298.257223563),
};

test('the prime meridian of a grid mapping counts', () => {
  const paris = { ...TRANSVERSE, longitude_of_prime_meridian: number(2.33722917) };
  assertNear(placeOf(paris, 1, 387_500, 5_312_500), [15.8303608, 47.9559229]);
  assertNear(placeOf(TRANSVERSE, 1, 387_500, 5_312_500), [15.8303608 - 2.33722917, 47.9559229]);
});

test('false easting and northing have the unit of the coordinates', () => {
  const mapping = {
    grid_mapping_name: 'lambert_azimuthal_equal_area',
    latitude_of_projection_origin: number(52),
    longitude_of_projection_origin: number(10),
    false_easting: number(4321),
    false_northing: number(3210),
    semi_major_axis: number(6378137),
    inverse_flattening: number(298.257222101),
  };
  assertNear(placeOf(mapping, 1000, 3_999_500, 3_039_500), [5.477224, 50.3782147]);
  const metres = { ...mapping, false_easting: number(4_321_000), false_northing: number(3_210_000) };
  assertNear(placeOf(metres, 1, 3_999_500, 3_039_500), [5.477224, 50.3782147]);
});

test('parameters that are left out are 0', () => {
  const { false_easting, false_northing, latitude_of_projection_origin, ...rest } = TRANSVERSE;
  assertNear(placeOf(rest, 1, -112_500, 5_312_500), [15.8303608 - 2.33722917, 47.9559229]);
});

test('numbers may be text', () => {
  const text = Object.fromEntries(
    Object.entries(TRANSVERSE).map(([name, value]) => [name, Array.isArray(value) ? ` ${value[0]}` : value]),
  );
  assertNear(placeOf(text, 1, 387_500, 5_312_500), [15.8303608 - 2.33722917, 47.9559229]);
  const conic = {
    grid_mapping_name: 'lambert_conformal_conic',
    longitude_of_central_meridian: '-96',
    latitude_of_projection_origin: number(39),
  };
  // gdaltransform of PROJ strings with +lat_1=33 +lat_2=45 and +lat_1=33 +lat_2=33.
  for (const [parallels, wanted] of [
    ['33, 45', [-83.9175625, 48.3702939]],
    ['33 45', [-83.9175625, 48.3702939]],
    [
      [33, 45],
      [-83.9175625, 48.3702939],
    ],
    ['33', [-84.307717, 48.268549]],
  ] as const)
    assertNear(placeOf({ ...conic, standard_parallel: parallels }, 1, 900_000, 1_100_000), [...wanted]);
});

test('parameters that cannot be read, and systems that they leave open, are refused', () => {
  const conic = { grid_mapping_name: 'lambert_conformal_conic', latitude_of_projection_origin: number(39) };
  for (const [mapping, message] of [
    [{ ...TRANSVERSE, longitude_of_central_meridian: '15 E' }, /longitude_of_central_meridian "15 E"/],
    [{ ...TRANSVERSE, false_easting: '' }, /false_easting ""/],
    [{ ...TRANSVERSE, semi_major_axis: 'WGS84' }, /semi_major_axis "WGS84"/],
    [conic, /without standard_parallel/],
    [{ ...conic, standard_parallel_1: number(33) }, /without standard_parallel/],
    [{ ...conic, grid_mapping_name: 'albers_conical_equal_area' }, /without standard_parallel/],
    [{ grid_mapping_name: 'polar_stereographic' }, /without latitude_of_projection_origin/],
    [{ grid_mapping_name: 'sinusoidal', reference_ellipsoid_name: 'Bessel 1841' }, /on Bessel 1841/],
    [{ grid_mapping_name: 'sinusoidal', horizontal_datum_name: 'Moon_2000' }, /on Moon_2000/],
    [{ grid_mapping_name: 'sinusoidal', prime_meridian_name: 'Paris' }, /prime meridian Paris/],
  ] as const)
    assert.throws(() => crsFromGridMapping('a.nc', mapping as never, false, 1), {
      code: 'TW_RASTER_UNKNOWN_CRS',
      message,
    });
  for (const name of ['WGS 84', 'GRS 1980', 'World Geodetic System 1984', 'unknown'])
    assert.match(
      crsFromGridMapping(
        'a.nc',
        { grid_mapping_name: 'sinusoidal', reference_ellipsoid_name: name },
        false,
        1,
      ).proj4,
      /WGS84/,
    );
});

test('the standard parallel says the pole of a polar stereographic grid', () => {
  const polar = (parallel: number) => ({
    grid_mapping_name: 'polar_stereographic',
    straight_vertical_longitude_from_pole: number(-45),
    standard_parallel: number(parallel),
  });
  assertNear(placeOf(polar(70), 1, 500_000, 5_300_000), [129.6106882, 43.4883597]);
  assertNear(placeOf(polar(-71), 1, 500_000, 5_300_000), [-39.6106882, -43.6132446]);
});

test('the datum is given by its name or by a shift, or is unknown; other planets are refused', () => {
  const axes = { semi_major_axis: number(6378388), inverse_flattening: number(297) };
  const crs = (more: object) => crsFromGridMapping('a.nc', { ...TRANSVERSE, ...axes, ...more }, false, 1);
  assert.equal(crs({}).datumErrorMetres, Infinity);
  assert.match(crs({ towgs84: [-87, -98, -121] }).proj4, /\+towgs84=-87,-98,-121/);
  assert.match(crs({ horizontal_datum_name: 'European_Datum_1950' }).proj4, /\+ellps=intl \+towgs84=/);
  const mars = { ...TRANSVERSE, semi_major_axis: number(3396190) };
  assert.throws(() => crsFromGridMapping('a.nc', mars, false, 1), { code: 'TW_RASTER_NOT_EARTH' });
});

test('well-known text without codes is parsed; if that fails, attributes are used', () => {
  const wkt =
    'PROJCS["UTM Zone 15, Northern Hemisphere",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],' +
    'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],PARAMETER["latitude_of_origin",0],' +
    'PARAMETER["central_meridian",-93],PARAMETER["scale_factor",0.9996],PARAMETER["false_easting",500000],' +
    'PARAMETER["false_northing",0],UNIT["Meter",1]]';
  const [lon, lat] = placeOf({ spatial_ref: wkt }, 1, 500_000, 4_649_776.22);
  assert.ok(Math.abs(lon + 93) < 1e-9 && Math.abs(lat - 42) < 1e-6, `${lon} ${lat}`);
  assertNear(placeOf({ ...TRANSVERSE, crs_wkt: 'PROJCS["odd"]' }, 1, 387_500, 5_312_500), [
    15.8303608 - 2.33722917,
    47.9559229,
  ]);
  assert.throws(() => crsFromGridMapping('a.nc', { crs_wkt: 'PROJCS["odd"]' }, false, 1), {
    code: 'TW_RASTER_UNKNOWN_CRS',
    message: /odd.*a\.nc/,
  });
});
