/** Coordinate systems by EPSG code, as proj4 strings, and conversion of points between them. */
import { createRequire } from 'node:module';
import { unknownCrs } from './errors.js';
import type { Crs } from './types.js';

/** Every thread needs it; an `import` of so large a CommonJS file first looks for its exports, for longer than it takes to run. */
const proj4: typeof import('proj4') = createRequire(import.meta.url)('proj4');

const NAD83 = '+datum=NAD83';
/** Systems that agree with WGS 84 within a few metres (most within one) and are used as if equal. */
const GRS80 = '+ellps=GRS80 +towgs84=0,0,0,0,0,0,0';
const WGS84 = '+datum=WGS84';
const WGS72 = '+ellps=WGS72 +towgs84=0,0,4.5,0,0,0.554,0.2263';

/** Geographic systems: longitude and latitude in degrees. */
const GEOGRAPHIC = new Map<number, string>([
  [4326, WGS84], // WGS 84
  [4269, NAD83],
  [4258, GRS80], // ETRS89
  [4674, GRS80], // SIRGAS 2000
  [4617, GRS80], // NAD83(CSRS)
  [6318, GRS80], // NAD83(2011)
  [4283, GRS80], // GDA94
  [7844, GRS80], // GDA2020
  [4167, GRS80], // NZGD2000
  [4490, GRS80], // CGCS2000
  [4612, GRS80], // JGD2000
  [6668, GRS80], // JGD2011
  [4019, GRS80], // unknown datum on GRS 1980
  [4322, WGS72],
]);

/** Runs of UTM zones: codes `first` to `first + zones - 1` are zone `zone` and up. */
const UTM: { first: number; zones: number; zone: number; south?: boolean; datum: string }[] = [
  { first: 32601, zones: 60, zone: 1, datum: WGS84 },
  { first: 32701, zones: 60, zone: 1, south: true, datum: WGS84 },
  { first: 26901, zones: 23, zone: 1, datum: NAD83 },
  { first: 6330, zones: 19, zone: 1, datum: GRS80 }, // NAD83(2011)
  { first: 25828, zones: 11, zone: 28, datum: GRS80 }, // ETRS89
  { first: 31965, zones: 12, zone: 11, datum: GRS80 }, // SIRGAS 2000
  { first: 31977, zones: 9, zone: 17, south: true, datum: GRS80 },
  { first: 28348, zones: 11, zone: 48, south: true, datum: GRS80 }, // GDA94
  { first: 7846, zones: 14, zone: 46, south: true, datum: GRS80 }, // GDA2020
  { first: 32201, zones: 60, zone: 1, datum: WGS72 },
  { first: 32301, zones: 60, zone: 1, south: true, datum: WGS72 },
];

const WEB_MERCATOR =
  '+proj=merc +a=6378137 +b=6378137 +lat_ts=0 +lon_0=0 +x_0=0 +y_0=0 +k=1 +units=m +nadgrids=@null';
const BESSEL_AUSTRIA = '+ellps=bessel +towgs84=577.326,90.129,463.919,5.137,1.474,5.297,2.4232';
const SWISS =
  '+proj=somerc +lat_0=46.9524055555556 +lon_0=7.43958333333333 +k_0=1 +ellps=bessel +towgs84=674.374,15.056,405.346';

/** Parameters as in the EPSG registry, in the words of PROJ; datum shifts are those of EPSG for the whole country. */
const PROJECTED = new Map<number, string>([
  [3857, WEB_MERCATOR],
  [3395, `+proj=merc +lon_0=0 +k=1 +x_0=0 +y_0=0 ${WGS84}`],
  [4087, `+proj=eqc +lat_ts=0 +lat_0=0 +lon_0=0 +x_0=0 +y_0=0 ${WGS84}`],
  [6933, `+proj=cea +lat_ts=30 +lon_0=0 +x_0=0 +y_0=0 ${WGS84}`],
  // Polar
  [3031, `+proj=stere +lat_0=-90 +lat_ts=-71 +lon_0=0 +x_0=0 +y_0=0 ${WGS84}`],
  [3976, `+proj=stere +lat_0=-90 +lat_ts=-70 +lon_0=0 +x_0=0 +y_0=0 ${WGS84}`],
  [3413, `+proj=stere +lat_0=90 +lat_ts=70 +lon_0=-45 +x_0=0 +y_0=0 ${WGS84}`],
  [3995, `+proj=stere +lat_0=90 +lat_ts=71 +lon_0=0 +x_0=0 +y_0=0 ${WGS84}`],
  [32661, `+proj=stere +lat_0=90 +lon_0=0 +k=0.994 +x_0=2000000 +y_0=2000000 ${WGS84}`],
  [32761, `+proj=stere +lat_0=-90 +lon_0=0 +k=0.994 +x_0=2000000 +y_0=2000000 ${WGS84}`],
  [6931, `+proj=laea +lat_0=90 +lon_0=0 +x_0=0 +y_0=0 ${WGS84}`],
  [6932, `+proj=laea +lat_0=-90 +lon_0=0 +x_0=0 +y_0=0 ${WGS84}`],
  // North America
  [5070, `+proj=aea +lat_0=23 +lon_0=-96 +lat_1=29.5 +lat_2=45.5 +x_0=0 +y_0=0 ${NAD83}`],
  [6350, `+proj=aea +lat_0=23 +lon_0=-96 +lat_1=29.5 +lat_2=45.5 +x_0=0 +y_0=0 ${GRS80}`],
  [3338, `+proj=aea +lat_0=50 +lon_0=-154 +lat_1=55 +lat_2=65 +x_0=0 +y_0=0 ${NAD83}`],
  [3005, `+proj=aea +lat_0=45 +lon_0=-126 +lat_1=50 +lat_2=58.5 +x_0=1000000 +y_0=0 ${NAD83}`],
  [
    3347,
    `+proj=lcc +lat_0=63.390675 +lon_0=-91.8666666666667 +lat_1=49 +lat_2=77 +x_0=6200000 +y_0=3000000 ${NAD83}`,
  ],
  [3978, `+proj=lcc +lat_0=49 +lon_0=-95 +lat_1=49 +lat_2=77 +x_0=0 +y_0=0 ${NAD83}`],
  [3979, `+proj=lcc +lat_0=49 +lon_0=-95 +lat_1=49 +lat_2=77 +x_0=0 +y_0=0 ${GRS80}`],
  [6372, `+proj=lcc +lat_0=12 +lon_0=-102 +lat_1=17.5 +lat_2=29.5 +x_0=2500000 +y_0=0 ${GRS80}`],
  // Europe
  [3034, `+proj=lcc +lat_0=52 +lon_0=10 +lat_1=35 +lat_2=65 +x_0=4000000 +y_0=2800000 ${GRS80}`],
  [3035, `+proj=laea +lat_0=52 +lon_0=10 +x_0=4321000 +y_0=3210000 ${GRS80}`],
  [2154, `+proj=lcc +lat_0=46.5 +lon_0=3 +lat_1=49 +lat_2=44 +x_0=700000 +y_0=6600000 ${GRS80}`],
  [
    27700,
    '+proj=tmerc +lat_0=49 +lon_0=-2 +k=0.9996012717 +x_0=400000 +y_0=-100000 +ellps=airy +towgs84=446.448,-125.157,542.06,0.15,0.247,0.842,-20.489',
  ],
  [
    31370,
    '+proj=lcc +lat_0=90 +lon_0=4.36748666666667 +lat_1=51.1666672333333 +lat_2=49.8333339 +x_0=150000.013 +y_0=5400088.438 +ellps=intl +towgs84=-106.8686,52.2978,-103.7239,0.3366,-0.457,1.8422,-1.2747',
  ],
  [
    3812,
    `+proj=lcc +lat_0=50.797815 +lon_0=4.35921583333333 +lat_1=49.8333333333333 +lat_2=51.1666666666667 +x_0=649328 +y_0=665262 ${GRS80}`,
  ],
  [
    28992,
    '+proj=sterea +lat_0=52.1561605555556 +lon_0=5.38763888888889 +k=0.9999079 +x_0=155000 +y_0=463000 +ellps=bessel +towgs84=565.4171,50.3319,465.5524,-0.398957,0.343988,-1.8774,4.0725',
  ],
  [2056, `${SWISS} +x_0=2600000 +y_0=1200000`],
  [21781, `${SWISS} +x_0=600000 +y_0=200000`],
  [
    31287,
    `+proj=lcc +lat_0=47.5 +lon_0=13.3333333333333 +lat_1=49 +lat_2=46 +x_0=400000 +y_0=400000 ${BESSEL_AUSTRIA}`,
  ],
  [3006, `+proj=utm +zone=33 ${GRS80}`],
  [3067, `+proj=utm +zone=35 ${GRS80}`],
  [2180, `+proj=tmerc +lat_0=0 +lon_0=19 +k=0.9993 +x_0=500000 +y_0=-5300000 ${GRS80}`],
  [3763, `+proj=tmerc +lat_0=39.6682583333333 +lon_0=-8.13310833333333 +k=1 +x_0=0 +y_0=0 ${GRS80}`],
  [3346, `+proj=tmerc +lat_0=0 +lon_0=24 +k=0.9998 +x_0=500000 +y_0=0 ${GRS80}`],
  [3059, `+proj=tmerc +lat_0=0 +lon_0=24 +k=0.9996 +x_0=500000 +y_0=-6000000 ${GRS80}`],
  [
    3301,
    `+proj=lcc +lat_0=57.5175539305556 +lon_0=24 +lat_1=59.3333333333333 +lat_2=58 +x_0=500000 +y_0=6375000 ${GRS80}`,
  ],
  [3765, `+proj=tmerc +lat_0=0 +lon_0=16.5 +k=0.9999 +x_0=500000 +y_0=0 ${GRS80}`],
  [3794, `+proj=tmerc +lat_0=0 +lon_0=15 +k=0.9999 +x_0=500000 +y_0=-5000000 ${GRS80}`],
  // Elsewhere
  [2193, `+proj=tmerc +lat_0=0 +lon_0=173 +k=0.9996 +x_0=1600000 +y_0=10000000 ${GRS80}`],
  [3577, `+proj=aea +lat_0=0 +lon_0=132 +lat_1=-18 +lat_2=-36 +x_0=0 +y_0=0 ${GRS80}`],
  [3112, `+proj=lcc +lat_0=0 +lon_0=134 +lat_1=-18 +lat_2=-36 +x_0=0 +y_0=0 ${GRS80}`],
  [5880, `+proj=poly +lat_0=0 +lon_0=-54 +x_0=5000000 +y_0=10000000 ${GRS80}`],
]);

/** Codes that stand for the same system as another. */
const SAME_AS = new Map([
  [3785, 3857],
  [900913, 3857],
  [102100, 3857],
  [5041, 32661],
  [5042, 32761],
  [32662, 4087],
]);

export function isGeographicEpsg(code: number): boolean {
  return GEOGRAPHIC.has(code);
}

/** The system of an EPSG code. Throws TW_RASTER_UNKNOWN_CRS. */
export function crsFromEpsg(code: number): Crs {
  const epsg = SAME_AS.get(code) ?? code;
  const datum = GEOGRAPHIC.get(epsg);
  if (datum !== undefined) return { epsg, proj4: `+proj=longlat ${datum} +no_defs`, geographic: true };
  const projected = PROJECTED.get(epsg) ?? utm(epsg);
  if (projected === undefined) throw unknownCrs(`EPSG:${code}`);
  return { epsg, proj4: `${projected} +no_defs`, geographic: false };
}

function utm(code: number): string | undefined {
  const run = UTM.find(({ first, zones }) => code >= first && code < first + zones);
  if (!run) return undefined;
  return `+proj=utm +zone=${run.zone + code - run.first}${run.south ? ' +south' : ''} ${run.datum}`;
}

/** Datum of a geographic system, in PROJ's words; undefined where the code is not known. */
export function datumOfEpsg(code: number): string | undefined {
  return GEOGRAPHIC.get(code);
}

/** One of the systems in which cells lie. */
export type GridCrs = 'EPSG:4326' | 'EPSG:3857';

/** Converts a point. Coordinates that have no counterpart become NaN. */
export type Projection = (x: number, y: number) => [x: number, y: number];

/** Projections are costly to make and few; only hostile files bring ever new systems. */
const made = new Map<string, Projection>();
const MOST_KEPT = 200;

/** Converts points from one system to another; x is easting or longitude (degrees), y northing or latitude. */
export function projector(from: Crs | GridCrs, to: Crs | GridCrs): Projection {
  const source = definition(from);
  const target = definition(to);
  const key = `${source} > ${target}`;
  const known = made.get(key);
  if (known) return known;
  const projection = makeProjection(source, target);
  if (made.size >= MOST_KEPT) made.clear();
  made.set(key, projection);
  return projection;
}

function makeProjection(source: string, target: string): Projection {
  if (source === target) return (x, y) => [x, y];
  const converter = proj4(source, target);
  return (x, y) => {
    if (!(Number.isFinite(x) && Number.isFinite(y))) return [NaN, NaN];
    const [u, v] = converter.forward([x, y]);
    return Number.isFinite(u) && Number.isFinite(v) ? [u, v] : [NaN, NaN];
  };
}

function definition(crs: Crs | GridCrs): string {
  if (typeof crs !== 'string') return crs.proj4;
  return crsFromEpsg(Number(crs.slice('EPSG:'.length))).proj4;
}
