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
