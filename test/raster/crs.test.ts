/** Coordinate systems by code, by text and by keys, against PROJ and GDAL. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gdalCrs } from '../../src/raster/formats/gdal.js';
import type { GdalInfo } from '../../src/raster/formats/gdal-process.js';
import { crsFromGeoKeys, parseGeoKeys } from '../../src/raster/formats/tiff-geo-keys.js';
import {
  type Crs,
  createTransform,
  crsFromEpsg,
  crsFromWkt,
  encodeCog,
  openRaster,
} from '../../src/raster/index.js';
import { gdal, needsGdal, temporaryFolder } from './gdal.js';
import { image } from './images.js';

type Point = [x: number, y: number, lon: number, lat: number];
interface System {
  epsg: number;
  points: Point[];
  wkt?: string[];
}

const systems: System[] = JSON.parse(
  readFileSync(new URL('../../../test/fixtures/raster/crs-points.json', import.meta.url), 'utf8'),
);

/** Upper limit of the distance between two points in metres; NaN if a coordinate is NaN. */
function distance(lon: number, lat: number, [, , wantedLon, wantedLat]: Point): number {
  const east = ((((lon - wantedLon + 180) % 360) + 360) % 360) - 180;
  return Math.hypot(east * Math.cos((lat * Math.PI) / 180), lat - wantedLat) * 111_320;
}

/** Two metres for the way PROJ chooses among operations, plus the stated error or, for unknown shifts, their possible size. */
const allowed = ({ datumErrorMetres = 0 }: Crs) => 2 + Math.min(datumErrorMetres, 500);

test('systems of the EPSG registry agree with PROJ', () => {
  assert.ok(systems.length > 180);
  const exact: number[] = [];
  for (const { epsg, points } of systems) {
    const crs = crsFromEpsg(epsg);
    const toGlobe = createTransform(crs, 'EPSG:4326');
    const back = createTransform('EPSG:4326', crs);
    for (const point of points) {
      const [lon, lat] = toGlobe(point[0], point[1]);
      const off = distance(lon, lat, point);
      assert.ok(off < allowed(crs), `EPSG:${epsg}: ${off} m at ${point}`);
      if (crs.datumErrorMetres === undefined) exact.push(off);
      const [again, latAgain] = toGlobe(...back(lon, lat));
      assert.ok(distance(again, latAgain, [0, 0, lon, lat]) < 0.5, `EPSG:${epsg} and back at ${point}`);
    }
  }
  exact.sort((a, b) => a - b);
  assert.ok(exact.length > 400);
  assert.ok(exact[Math.floor(exact.length * 0.8)]! < 1e-3);
});

test('Krovak has the error of one country, Minna the spread of its shifts', () => {
  for (const epsg of [2065, 5513, 5514, 5221]) {
    assert.ok(systems.some((system) => system.epsg === epsg));
    assert.equal(crsFromEpsg(epsg).datumErrorMetres, 3);
  }
  assert.ok(systems.some(({ epsg }) => epsg === 26332));
  assert.ok(crsFromEpsg(26332).datumErrorMetres! > 12.4);
});

test('common national systems are known', () => {
  const codes = [
    ...[2263, 2276, 2230, 32140, 26717, 4267, 23030, 5514, 29902, 3003, 2100, 3879, 2039, 3414, 2326, 5186],
    ...[6677, 25832, 31983, 27700, 2193, 3067],
  ];
  for (const code of codes) assert.equal(crsFromEpsg(code).epsg, code);
});

test('well-known text without codes is equivalent to the code', () => {
  let read = 0;
  for (const { epsg, points, wkt = [] } of systems) {
    for (const text of wkt) {
      const crs = crsFromWkt(text, 'a.nc');
      assert.match(crs.proj4, /^\+proj=/);
      const toGlobe = createTransform(crs, 'EPSG:4326');
      for (const point of points) {
        const off = distance(...toGlobe(point[0], point[1]), point);
        assert.ok(off < allowed(crs), `EPSG:${epsg}: ${off} m at ${point} by ${text}`);
      }
      read++;
    }
  }
  assert.ok(read > 80, String(read));
});

test('a compound system has a horizontal part, a bound one its shift, and invalid text is refused', () => {
  const bessel = 'DATUM["mine",SPHEROID["Bessel 1841",6377397.155,299.1528128]]';
  const degrees = 'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]';
  const geogcs = `GEOGCS["g",${bessel},${degrees}]`;
  const compound = `COMPD_CS["c",${geogcs},VERT_CS["v",VERT_DATUM["d",2005],UNIT["metre",1]]]`;
  const plain = crsFromWkt(compound, 'a.nc');
  assert.equal(plain.datumErrorMetres, Infinity);
  const shifted = crsFromWkt(geogcs.replace(']],PRIMEM', '],TOWGS84[600,70,400]],PRIMEM'), 'a.nc');
  assert.match(shifted.proj4, /\+towgs84=600,70,400/);
  assert.equal(shifted.datumErrorMetres, undefined);
  const bound = crsFromWkt(
    `BOUNDCRS[SOURCECRS[GEOGCRS["g",DATUM["mine",ELLIPSOID["Bessel 1841",6377397.155,299.1528128]],CS[ellipsoidal,2],` +
      `AXIS["lat",north],AXIS["lon",east],ANGLEUNIT["degree",0.0174532925199433]]],TARGETCRS[GEOGCRS["WGS 84"]],` +
      `ABRIDGEDTRANSFORMATION["t",METHOD["Coordinate Frame rotation (geog2D domain)"],PARAMETER["X-axis translation",600],` +
      `PARAMETER["Y-axis translation",70],PARAMETER["Z-axis translation",400],PARAMETER["X-axis rotation",1],` +
      `PARAMETER["Y-axis rotation",2],PARAMETER["Z-axis rotation",-3],PARAMETER["Scale difference",1.0000025]]]`,
    'a.nc',
  );
  assert.match(bound.proj4, /\+towgs84=600,70,400,-1,-2,3,2\.(5|49999)/);
  const refused = (text: string, code: string) => assert.throws(() => crsFromWkt(text, 'a.nc'), { code });
  refused(geogcs.replace('0.0174532925199433', '0.015707963267949'), 'TW_RASTER_UNKNOWN_CRS');
  refused(`PROJCS["p",${geogcs},PROJECTION["Bonne"],UNIT["metre",1]]`, 'TW_RASTER_UNKNOWN_CRS');
  refused('PROJCS["cut off', 'TW_RASTER_UNKNOWN_CRS');
  refused(`${'GEOGCS["x",'.repeat(40)}1${']'.repeat(40)}`, 'TW_RASTER_UNKNOWN_CRS');
  refused(
    'GEOGCS["m",DATUM["D_Mars_2000",SPHEROID["Mars",3396190,169.89]],UNIT["d",0.0174532925199433]]',
    'TW_RASTER_NOT_EARTH',
  );
});

/** GeoKeys of numbers, doubles by their keys, and a text for citations. */
function keysOf(shorts: [key: number, value: number][], doubles: [key: number, values: number[]][]) {
  const values = doubles.flatMap(([, some]) => some);
  let start = 0;
  const entries = doubles.map(([key, some]) => {
    const entry = [key, 34736, some.length, start];
    start += some.length;
    return entry;
  });
  const all = [...shorts.map(([key, value]) => [key, 0, 1, value]), ...entries];
  return parseGeoKeys([1, 1, 0, all.length, ...all.flat()], values, '');
}

const USER = 32767;

test('the shift, the ellipsoid and the planet of a GeoTIFF count', () => {
  const bessel: [number, number[]][] = [
    [2057, [6377397.155]],
    [2059, [299.1528128]],
  ];
  const geographic: [number, number][] = [
    [1024, 2],
    [2048, USER],
    [2050, USER],
  ];
  const unknown = crsFromGeoKeys(keysOf(geographic, bessel), 'a.tif');
  assert.equal(unknown.datumErrorMetres, Infinity);
  const shift = [598.1, 73.7, 418.2, 0.202, 0.045, -2.455, 6.7];
  const shifted = crsFromGeoKeys(keysOf(geographic, [...bessel, [2062, shift]]), 'a.tif');
  const [lon, lat] = createTransform(shifted, 'EPSG:4326')(9, 52);
  // The result of cs2cs for +proj=longlat +ellps=bessel with this shift.
  assert.ok(Math.hypot(lon - SHIFTED[0], lat - SHIFTED[1]) < 1e-8, `${lon} ${lat}`);
  const europa: [number, number[]][] = [
    [2057, [1560800]],
    [2058, [1560800]],
  ];
  assert.throws(() => crsFromGeoKeys(keysOf(geographic, europa), 'a.tif'), {
    code: 'TW_RASTER_NOT_EARTH',
    message: /a\.tif.*1560\.8 km/,
  });
  const nothing: [number, number[]][] = [
    [2057, [0]],
    [2058, [0]],
  ];
  assert.throws(() => crsFromGeoKeys(keysOf(geographic, nothing), 'a.tif'), {
    code: 'TW_RASTER_UNKNOWN_CRS',
  });
});

const SHIFTED = [8.9989427974, 51.9986241515] as const;

test('systems that GDAL writes as keys agree with GDAL', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const plain = join(folder, 'plain.tif');
  writeFileSync(plain, encodeCog(image('uint8', 40, 30)));
  const definitions = [
    '+proj=longlat +ellps=bessel +towgs84=598.1,73.7,418.2,0.202,0.045,-2.455,6.7',
    '+proj=tmerc +lat_0=0 +lon_0=9 +k=1 +x_0=3500000 +y_0=0 +ellps=bessel +towgs84=598.1,73.7,418.2,0.202,0.045,-2.455,6.7',
    '+proj=lcc +lat_1=44 +lat_2=49 +lat_0=46 +lon_0=1 +x_0=100000 +y_0=0 +ellps=clrk80ign +pm=paris +towgs84=-168,-60,320',
    '+proj=cass +lat_0=50 +lon_0=8 +x_0=0 +y_0=0 +datum=WGS84 +units=us-ft',
    '+proj=omerc +lat_0=45 +lonc=8 +alpha=40 +gamma=35 +k=0.9999 +x_0=10000 +y_0=20000 +datum=WGS84',
    '+proj=eqdc +lat_0=40 +lon_0=5 +lat_1=35 +lat_2=55 +x_0=0 +y_0=0 +datum=WGS84',
    '+proj=mill +lon_0=5 +datum=WGS84',
    '+proj=utm +zone=33 +datum=WGS84 +units=us-ft',
  ];
  for (const [i, definition] of definitions.entries()) {
    const path = join(folder, `${i}.tif`);
    const corners = definition.includes('longlat')
      ? ['8', '51', '9', '50']
      : ['50000', '60000', '60000', '50000'];
    gdal('gdal_translate', '-q', '-a_srs', `${definition} +no_defs`, '-a_ullr', ...corners, plain, path);
    const { crs, transform } = await openRaster(path);
    const [lon, lat] = createTransform(crs, 'EPSG:4326')(transform.originX, transform.originY);
    const [[wantedLon, wantedLat]] = JSON.parse(gdal('gdalinfo', '-json', path)).wgs84Extent.coordinates[0];
    assert.ok(Math.hypot(lon - wantedLon, lat - wantedLat) < 2e-7, `${definition}: ${lon} ${lat}`);
  }
});

const degree = 'UNIT["degree",0.0174532925199433]';
const wgs84 = `GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],${degree}]`;

/** A projected system on WGS 84 in WKT 1. */
function projcs(method: string, parameters: Record<string, number>, geogcs = wgs84): string {
  const given = Object.entries(parameters).map(([name, value]) => `PARAMETER["${name}",${value}],`);
  return `PROJCS["p",${geogcs},PROJECTION["${method}"],${given.join('')}UNIT["metre",1]]`;
}

test('parameters of well-known text have the meaning that GDAL gives them', needsGdal, () => {
  const texts = [
    projcs('Equirectangular', { latitude_of_origin: 40, central_meridian: 5 }),
    projcs('Equirectangular', { latitude_of_origin: 40, standard_parallel_1: 30, central_meridian: 5 }),
    projcs('Cylindrical_Equal_Area', { standard_parallel_1: 30, central_meridian: 5 }),
    projcs('Cylindrical_Equal_Area', { central_meridian: 5 }),
    projcs('Miller_Cylindrical', { latitude_of_center: 0, longitude_of_center: 5 }),
    gdal('gdalsrsinfo', '-o', 'wkt2_2018', '--single-line', 'EPSG:3079').replace(/,ID\["EPSG",\d+\]/g, ''),
  ];
  for (const text of texts) {
    const point = text.includes('Michigan') ? [500_000, 500_000] : [200_000, 300_000];
    const to = ['-t_srs', 'EPSG:4326', '-output_xy', '-coord', ...point.map(String)];
    const [wantedLon, wantedLat] = gdal('gdaltransform', '-s_srs', text, ...to)
      .trim()
      .split(' ')
      .map(Number);
    const off = distance(...createTransform(crsFromWkt(text, 'a.nc'), 'EPSG:4326')(point[0]!, point[1]!), [
      ...[0, 0, wantedLon!, wantedLat!],
    ] as Point);
    // PROJ shifts NAD83 (HARN) by a metre.
    assert.ok(off < (text.includes('Michigan') ? 1.5 : 0.01), `${off} m: ${text}`);
  }
});

test('well-known text with unknown parameters, or values that its projection lacks, is refused', () => {
  const bessel = wgs84.replace('6378137,298.257223563', '6377397.155,299.1528128');
  const krovak = {
    latitude_of_center: 49.5,
    longitude_of_center: 24.8333,
    azimuth: 30.288,
    scale_factor: 0.9999,
  };
  assert.match(
    crsFromWkt(projcs('Krovak', krovak, bessel.replace('WGS_1984', 'mine')), 'a.nc').proj4,
    /=krovak/,
  );
  const known = { central_meridian: 5, semi_major: 6378137 };
  assert.match(crsFromWkt(projcs('Transverse_Mercator', known), 'a.nc').proj4, /=tmerc/);
  const shifted = wgs84.replace('563]]', '563],TOWGS84[100,0,0]]');
  for (const text of [
    projcs('Transverse_Mercator', { central_meridian: 5, height: 700 }),
    projcs('Cylindrical_Equal_Area', { latitude_of_origin: 40, central_meridian: 5 }),
    projcs('Mercator_1SP', { latitude_of_origin: 10, central_meridian: 5 }),
    projcs('Krovak', krovak),
    projcs('Miller_Cylindrical', { longitude_of_center: 5 }, shifted),
  ])
    assert.throws(() => crsFromWkt(text, 'a.nc'), { code: 'TW_RASTER_UNKNOWN_CRS' }, text);
});

test('a shift in the text takes precedence over the code of its geographic system', () => {
  const text = (shift: string) =>
    projcs(
      'Oblique_Stereographic',
      { latitude_of_origin: 52, central_meridian: 5 },
      `GEOGCS["Amersfoort",DATUM["Amersfoort",SPHEROID["Bessel 1841",6377397.155,299.1528128]${shift}],${degree},AUTHORITY["EPSG","4289"]]`,
    );
  const of = (shift: string) => crsFromWkt(text(shift), 'a.nc').proj4;
  assert.match(of(',TOWGS84[560,50,460,0,0,0,0]'), /\+towgs84=560,50,460,0,0,0,0 /);
  const byCode = /\+towgs84=\S+/.exec(crsFromEpsg(4289).proj4)![0];
  assert.ok(of('').includes(byCode));
  assert.ok(of(',TOWGS84[]').includes(byCode));
});

test('a UTM zone of a GeoTIFF has the unit of its keys', () => {
  const feet = keysOf(
    [
      [1024, 1],
      [2048, 4326],
      [3072, USER],
      [3074, 16033],
      [3076, 9003],
    ],
    [],
  );
  const [lon, lat] = createTransform(crsFromGeoKeys(feet, 'a.tif'), 'EPSG:4326')(500_000 / (1200 / 3937), 0);
  assert.ok(Math.hypot(lon - 15, lat) < 1e-9, `${lon} ${lat}`);
});

test('a unit that contradicts the EPSG code of a GeoTIFF is refused', () => {
  const keys = (epsg: number, unit: number) =>
    keysOf(
      [
        [1024, 1],
        [3072, epsg],
        [3076, unit],
      ],
      [],
    );
  for (const [epsg, unit, isRead] of [
    [32633, 9001, true],
    [32633, 9002, false],
    [32633, 9003, false],
    [32633, 9036, false],
    [2229, 9003, true],
    [2229, 9002, true],
    [2229, 9001, false],
  ] as const)
    if (isRead) assert.equal(crsFromGeoKeys(keys(epsg, unit), 'a.tif').epsg, epsg);
    else
      assert.throws(() => crsFromGeoKeys(keys(epsg, unit), 'a.tif'), {
        code: 'TW_RASTER_UNKNOWN_CRS',
        message: /with a unit of .* m in a\.tif/,
      });
});

test('the prime meridian of a GeoTIFF may be a code', () => {
  const lambert = (meridian: number) =>
    keysOf(
      [
        ...[
          [1024, 1],
          [2048, USER],
          [2056, 7011],
          [2051, meridian],
          [3072, USER],
          [3074, USER],
          [3075, 9],
        ],
      ] as [number, number][],
      [
        [3081, [46.8]],
        [3080, [0]],
        [3092, [0.99987742]],
        [3082, [600_000]],
        [3083, [2_200_000]],
      ],
    );
  const paris = crsFromGeoKeys(lambert(8903), 'a.tif');
  const [lon, lat] = createTransform(paris, 'EPSG:4326')(600_000, 2_200_000);
  assert.ok(distance(lon, lat, [0, 0, 2.33722917, 46.8]) < 0.1, `${lon} ${lat}`);
  assert.throws(() => crsFromGeoKeys(lambert(8999), 'a.tif'), { code: 'TW_RASTER_UNKNOWN_CRS' });
});

test("ESRI's text counts wherever it stands in the citations, whatever the model type", () => {
  const wkt = projcs('Mollweide', { Central_Meridian: 20 });
  const citation = `World_Mollweide|WGS 84|ESRI PE String = ${wkt}|more`;
  for (const model of [1, USER]) {
    for (const key of [1026, 3073]) {
      const entries = [1024, 0, 1, model, 2048, 0, 1, 4326, key, 34737, citation.length, 0, 3072, 0, 1, USER];
      const crs = crsFromGeoKeys(parseGeoKeys([1, 1, 0, 4, ...entries], [], citation), 'a.tif');
      assert.match(crs.proj4, /\+proj=moll \+lon_0=20 /);
    }
  }
});

test("GDAL's words for NAD27 mean the shift of the table", () => {
  // A text that the WKT parser refuses, so that the PROJ string is used.
  const info = {
    wkt: 'PROJCRS["x",METHOD["unknown"]]',
    proj4: '+proj=utm +zone=15 +datum=NAD27 +units=m +no_defs',
  };
  const crs = gdalCrs(info as GdalInfo, 'a.img');
  const table = crsFromEpsg(4267);
  assert.ok(crs.proj4.includes(/\+towgs84=\S+/.exec(table.proj4)![0]), crs.proj4);
  assert.equal(crs.datumErrorMetres, table.datumErrorMetres);
});
