/**
 * Landsat 4-9 (TM, ETM+, OLI, TIRS), one GeoTIFF for each band with an MTL beside them: pre-collection, Collection 1 and 2,
 * level 1 and 2, and tiles of Analysis Ready Data. Gaps of the broken scan line corrector are nodata like other fill. Bands
 * are identified by the suffix of their file names. Georeferencing is that of the rasters, not that of the MTL.
 */

import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Mask, openRaster, type RasterHeader } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { badMetadata, missingBand, notRecognised } from '../errors.js';
import { nominalPixelSize } from '../georeferencing.js';
import type { DescribeOptions, InputProbe, ProductFormat, QualityBand, Scene } from '../scene.js';
import { DAY_MS, datetimeOption, parseTime } from './acquisition-time.js';
import { findMtl, type Mtl, mtlValue, readMtl } from './landsat-mtl.js';
import { NASA, USGS } from './providers.js';
import { bitAt, buildQualityLookup, landsatPixelQuality, qualityBand } from './quality.js';

type LandsatLevel = 'c2-l2' | 'c2-l1' | 'c1-l1' | 'pre-l1';

interface LandsatProduct {
  /** LC08, LE07, LT05 ... */
  sensor: string;
  /** 4 to 9. */
  spacecraft: number;
  /** Processing level such as L1TP; for Analysis Ready Data its region such as CU. */
  level: string;
  /** Path and row; for Analysis Ready Data horizontal and vertical tile. */
  pathRow: string;
  date: string;
  start: number;
  collection: LandsatLevel;
  mtl: Mtl | null;
  mtlPath?: string;
}

const TITLES: Record<LandsatLevel, string> = {
  'c2-l2': 'Landsat Collection 2 Level 2',
  'c2-l1': 'Landsat Collection 2 Level 1',
  'c1-l1': 'Landsat Collection 1 Level 1',
  'pre-l1': 'Landsat Level 1 before collections',
};

/** Common names by the number of the band, from 1. */
const OLI_BAND_NAMES = 'coastal blue green red nir08 swir16 swir22 pan cirrus lwir11 lwir12'.split(' ');
const TM_BAND_NAMES = 'blue green red nir08 swir16 lwir swir22 pan'.split(' ');

export const landsat: ProductFormat = {
  name: 'Landsat',

  // A product with an unreadable MTL is reported as damaged.
  async identify(candidate) {
    return (await findProduct(candidate).catch(() => true)) !== null;
  },

  async describe(candidate, options) {
    const found = await findProduct(candidate);
    if (!found) throw notRecognised(candidate.path, 'it is not a Landsat product');
    return [await describeProduct(candidate.path, found, options)];
  },
};

interface FoundProduct {
  folder: string;
  files: string[];
  product: LandsatProduct;
}

async function findProduct({ path, entries }: InputProbe): Promise<FoundProduct | null> {
  const asked = entries ? undefined : basename(path);
  if (asked && !findMtl([asked])) return null;
  const folder = entries ? path : dirname(path);
  const files = entries ?? (await readdir(folder));
  const mtl = asked ?? findMtl(files);
  if (mtl) {
    const product = await readProductFromMtl(join(folder, mtl));
    if (product) return { folder, files, product };
  }
  const bands = files.filter(bandOfFile);
  const product = bands.length > 0 ? parseProductName([folder, ...bands]) : null;
  return product && { folder, files, product };
}

async function describeProduct(
  path: string,
  { folder, files, product }: FoundProduct,
  options: DescribeOptions,
): Promise<Scene> {
  const warnings: string[] = [];
  const byBand = new Map<string, string>();
  for (const file of files.sort()) {
    const band = bandOfFile(file);
    if (band) byBand.set(band, file);
  }
  compareWithMtl(path, product, byBand, warnings);
  const flagged = datetimeOption(options);
  if (!product.mtl && !flagged) warnings.push('no MTL file: the time of day is not known');
  if (!product.mtl && product.collection !== 'c2-l2') {
    warnings.push('no MTL file: the height of the sun is not known, so reflectance is too low');
  }

  const headers = await Promise.all([...byBand.values()].map((file) => openRaster(join(folder, file))));
  const bands = [...byBand.keys()].map((name, i) => describeBand(name, headers[i], product, warnings));
  const groups = groupBands(bands);
  return {
    path,
    id: options.id ?? `${product.sensor}_${product.level}_${product.pathRow}_${product.date}`,
    collection: {
      id: `landsat-${product.collection}`,
      title: TITLES[product.collection],
      license: 'PDDL-1.0',
      attribution: 'Landsat data courtesy of the U.S. Geological Survey',
      providers: [NASA, USGS],
    },
    platform: options.platform ?? `landsat-${product.spacecraft}`,
    ...(flagged ?? { start: product.start, end: product.start }),
    groups,
    quality: qualityOf(groups, product.collection, warnings),
    sunAzimuth: mtlNumber(product, 'SUN_AZIMUTH'),
    warnings,
  };
}

// --- product and calibration ------------------------------------------------------------------------------------

/** Null if the MTL is not that of a scene. Throws TW_INGEST_NOT_RECOGNISED and TW_INGEST_BAD_METADATA. */
async function readProductFromMtl(path: string): Promise<LandsatProduct | null> {
  const mtl = await readMtl(path);
  if (!mtl.has('L1_METADATA_FILE') && !mtl.has('LANDSAT_METADATA_FILE')) return null;
  // The second name was used before 2012.
  const need = (key: string, ...old: string[]) => {
    const value = mtlValue(mtl, key, ...old);
    if (value === undefined) throw notRecognised(path, `the MTL has no ${key}`);
    return value;
  };
  const spacecraft = Number(/([4-9])$/.exec(need('SPACECRAFT_ID'))?.[1]);
  const letter = SENSORS.get(need('SENSOR_ID'));
  if (!spacecraft || !letter) {
    throw notRecognised(
      path,
      `${need('SPACECRAFT_ID')} with ${need('SENSOR_ID')} is not read, only TM, ETM+, OLI and TIRS`,
    );
  }
  const level = mtlValue(mtl, 'PROCESSING_LEVEL') ?? need('DATA_TYPE', 'PRODUCT_TYPE');
  const date = need('DATE_ACQUIRED', 'ACQUISITION_DATE');
  const time = need('SCENE_CENTER_TIME', 'SCENE_CENTER_SCAN_TIME');
  const start = parseTime(`${date}T${time}`);
  if (Number.isNaN(start)) throw notRecognised(path, `the MTL's date ${date} and time cannot be read`);
  return {
    sensor: `L${letter}0${spacecraft}`,
    spacecraft,
    level,
    pathRow: need('WRS_PATH').padStart(3, '0') + need('WRS_ROW', 'STARTING_ROW').padStart(3, '0'),
    date: date.replaceAll('-', ''),
    start,
    collection: collectionOf(mtlValue(mtl, 'COLLECTION_NUMBER'), level),
    mtl,
    mtlPath: path,
  };
}

const SENSORS = new Map([
  ['OLI_TIRS', 'C'],
  ['OLI', 'O'],
  ['TIRS', 'T'],
  ['ETM', 'E'],
  ['ETM+', 'E'],
  ['TM', 'T'],
]);

function collectionOf(number: string | undefined, level: string): LandsatLevel {
  if (Number(number) === 2) return level.startsWith('L1') ? 'c2-l1' : 'c2-l2';
  return Number(number) === 1 ? 'c1-l1' : 'pre-l1';
}

/** Scenes (LC08_L2SP_017036_20130419_20200913_02_T2), and tiles of Analysis Ready Data (LC08_CU_003009_20200101_20210501_02). */
const PRODUCT_NAME =
  /^(L[COTE]0([4-9]))_(L\d[A-Z]{2}|CU|AK|HI)_(\d{6})_(\d{4})(\d\d)(\d\d)(?:_\d{8}_(\d\d)(?:_|$))?/;

/** Some archives deliver Landsat bands without their MTL. The USGS defines product names, which hold the other properties. */
function parseProductName(names: string[]): LandsatProduct | null {
  const found = names.map((name) => PRODUCT_NAME.exec(basename(name))).filter((match) => match !== null);
  if (found.length === 0) return null;
  const [, sensor, spacecraft, level, pathRow, year, month, day] = found[0];
  // Shortened names do not contain the collection, but the name of the quality band implies it.
  const byQuality = names.some((name) => /_BQA\.tiff?$/i.test(name)) ? '01' : '02';
  const number = found.find((match) => match[8])?.[8] ?? byQuality;
  return {
    sensor,
    spacecraft: Number(spacecraft),
    level,
    pathRow,
    date: year + month + day,
    start: parseTime(`${year}-${month}-${day}`),
    collection: collectionOf(number, level),
    mtl: null,
  };
}

/**
 * A linear function of the stored number: spectral radiance in W/(m2 sr um), or reflectance. Landsat 4 to 7 were delivered with radiance
 * coefficients only before the collections. Their reflectance at the top of the atmosphere and their brightness temperature follow Chander,
 * Markham and Helder (2009), "Summary of current radiometric calibration coefficients for Landsat MSS, TM, ETM+, and EO-1 ALI sensors",
 * Remote Sensing of Environment 113, which the tables and equations below refer to.
 */
interface LinearScale {
  scale: number;
  offset: number;
}

/** Mean solar irradiance outside the atmosphere, W/(m2 um), of bands 1 to 8 by spacecraft; tables 2, 3 and 4. */
const SOLAR_IRRADIANCE: Record<number, (number | undefined)[]> = {
  4: [1983, 1795, 1539, 1028, 219.8, undefined, 83.49],
  5: [1983, 1796, 1536, 1031, 220.0, undefined, 83.44],
  7: [1997, 1812, 1533, 1039, 230.8, undefined, 84.9, 1362],
};

/** Constants of the thermal band by spacecraft, table 5: k1 in W/(m2 sr um), k2 in kelvin. */
const THERMAL_CONSTANTS: Record<number, { k1: number; k2: number }> = {
  4: { k1: 671.62, k2: 1284.3 },
  5: { k1: 607.76, k2: 1260.56 },
  7: { k1: 666.09, k2: 1282.71 },
};

/** Distance in astronomical units at a time in ms since 1970: the low-precision formula of the Astronomical Almanac, within 1e-4. */
export function earthSunDistance(time: number): number {
  const days = (time - Date.UTC(2000, 0, 1, 12)) / DAY_MS;
  const anomaly = ((357.528 + 0.9856003 * days) * Math.PI) / 180;
  return 1.00014 - 0.01671 * Math.cos(anomaly) - 0.00014 * Math.cos(2 * anomaly);
}

/**
 * A number of the MTL, under the first of these keys that it has; NaN if it has none. Throws TW_INGEST_BAD_METADATA for text that is not a
 * number.
 */
function mtlNumber({ mtl, mtlPath = '' }: LandsatProduct, ...keys: string[]): number {
  const text = mtl ? mtlValue(mtl, ...keys) : undefined;
  const value = Number(text ?? NaN);
  if (text !== undefined && (Number.isNaN(value) || text.trim() === ''))
    throw badMetadata(mtlPath, `${keys.join(' or ')} is "${text}", which is not a number`);
  return value;
}

/**
 * Radiance of a band; undefined if the MTL has no coefficients. `suffix` is the band in keys of today, such as `6_VCID_1`. Older MTLs
 * have the radiances of the lowest and the highest stored number instead, and before 2012 they are called LMIN and LMAX.
 */
function radianceScale(product: LandsatProduct, suffix: string): LinearScale | undefined {
  const scale = mtlNumber(product, `RADIANCE_MULT_BAND_${suffix}`);
  const offset = mtlNumber(product, `RADIANCE_ADD_BAND_${suffix}`);
  if (Number.isFinite(scale + offset)) return { scale, offset };
  const old = suffix.replace('_VCID_', '');
  const lowest = mtlNumber(product, `RADIANCE_MINIMUM_BAND_${suffix}`, `LMIN_BAND${old}`);
  const highest = mtlNumber(product, `RADIANCE_MAXIMUM_BAND_${suffix}`, `LMAX_BAND${old}`);
  const first = mtlNumber(product, `QUANTIZE_CAL_MIN_BAND_${suffix}`, `QCALMIN_BAND${old}`);
  const last = mtlNumber(product, `QUANTIZE_CAL_MAX_BAND_${suffix}`, `QCALMAX_BAND${old}`);
  const slope = (highest - lowest) / (last - first);
  return Number.isFinite(slope) ? { scale: slope, offset: lowest - slope * first } : undefined;
}

/** Reflectance at the top of the atmosphere, equation 2; undefined if the height of the sun or the irradiance is unknown. */
function reflectanceScale(
  product: LandsatProduct,
  band: number,
  { scale, offset }: LinearScale,
): LinearScale | undefined {
  const irradiance = SOLAR_IRRADIANCE[product.spacecraft]?.[band - 1];
  const sun = Math.sin((mtlNumber(product, 'SUN_ELEVATION') * Math.PI) / 180);
  if (irradiance === undefined || !(sun > 0)) return undefined;
  const stated = mtlNumber(product, 'EARTH_SUN_DISTANCE');
  const distance = Number.isFinite(stated) ? stated : earthSunDistance(product.start);
  const factor = (Math.PI * distance ** 2) / (irradiance * sun);
  return { scale: factor * scale, offset: factor * offset };
}

/** Stored numbers of brightness temperature are hundredths of a kelvin. */
const KELVIN_SCALE = 0.01;

/**
 * The raster of a thermal band, read as brightness temperature in units of `KELVIN_SCALE`, equation 3. 0, and a radiance of 0 or less, are
 * read as 0: no data. Undefined if the spacecraft has no constants, or the stored numbers have neither 8 nor 16 bits.
 */
function brightnessTemperature(
  product: LandsatProduct,
  suffix: string,
  header: RasterHeader,
  { scale, offset }: LinearScale,
): RasterHeader | undefined {
  const published = THERMAL_CONSTANTS[product.spacecraft];
  const { dataType } = header;
  if (!published || (dataType !== 'uint8' && dataType !== 'uint16')) return undefined;
  const stated = [
    mtlNumber(product, `K1_CONSTANT_BAND_${suffix}`),
    mtlNumber(product, `K2_CONSTANT_BAND_${suffix}`),
  ];
  const [k1, k2] = stated.every(Number.isFinite)
    ? (stated as [number, number])
    : [published.k1, published.k2];
  const table = Uint16Array.from({ length: dataType === 'uint8' ? 256 : 65_536 }, (_, stored) => {
    const radiance = scale * stored + offset;
    const kelvin = stored > 0 && radiance > 0 ? k2 / Math.log(k1 / radiance + 1) : 0;
    return Math.min(65_535, Math.round(kelvin / KELVIN_SCALE));
  });
  return { ...header, dataType: 'uint16', nodata: 0, recoding: { dataType, table } };
}

// --- bands ------------------------------------------------------------------------------------------------------

/**
 * Scale factors of the intermediate bands of the surface temperature of Collection 2, from the USGS data format control books
 * LSDS-1328 and LSDS-1618: transmittance, distance to cloud (km), downwelled radiance, emissivity and its standard deviation,
 * thermal and upwelled radiance (W/(m2 sr um)). They are int16 with the fill value -9999.
 */
const INTERMEDIATE_SCALES: Record<string, number> = {
  ST_ATRAN: 1e-4,
  ST_CDIST: 0.01,
  ST_DRAD: 1e-3,
  ST_EMIS: 1e-4,
  ST_EMSD: 1e-4,
  ST_TRAD: 1e-3,
  ST_URAD: 1e-3,
};

const isIntermediate = (band: string) => Object.hasOwn(INTERMEDIATE_SCALES, band);

/** `B4`, `SR_B4`, `BQA`, `QA_PIXEL` ... of a file name; null for other files. */
function bandOfFile(file: string): string | null {
  const match =
    /_((?:SR_|ST_)?B\d{1,2}(?:_VCID_[12])?|BQA|QA_PIXEL|QA_RADSAT|SR_QA_AEROSOL|ST_(?:QA|ATRAN|CDIST|DRAD|EMIS|EMSD|TRAD|URAD))\.tiff?$/i.exec(
      file,
    );
  return match ? match[1].toUpperCase() : null;
}

/**
 * Bands that the MTL lists but that have no file result in a warning, as long as one data band is left. File names may differ
 * from the MTL (archives rename files), but suffixes may not. Only the product's own contents count: level 2 also names the
 * files of its level 1 source.
 */
function compareWithMtl(
  path: string,
  { mtl }: LandsatProduct,
  found: Map<string, string>,
  warnings: string[],
): void {
  const missing: string[] = [];
  let renamed = 0;
  for (const [key, listed] of Object.entries(
    mtl?.get('PRODUCT_CONTENTS') ?? mtl?.get('PRODUCT_METADATA') ?? {},
  )) {
    const band = /FILE_NAME/.test(key) ? bandOfFile(listed) : null;
    const file = band && found.get(band);
    // Many archives deliver scenes without the intermediate bands.
    if (band && !file && !isIntermediate(band)) missing.push(band);
    else if (file && file !== listed) renamed++;
  }
  if (![...found.keys()].some((band) => !isQuality(band) && !isIntermediate(band))) {
    throw missingBand(path, missing.join(', ') || 'B1', 'No band file is there; download the product again.');
  }
  if (missing.length > 0) warnings.push(`the MTL names files which are not there: ${missing.join(', ')}`);
  if (renamed > 0)
    warnings.push(`${renamed} file names differ from the MTL; files were matched by their band suffix`);
}

const isQuality = (band: string) => /QA/.test(band);

/** Names of TM and ETM+ before 2012 as they are today: B30 is B3, B61 and B62 are the two gains of band 6. */
function currentName(name: string, { spacecraft }: LandsatProduct): string {
  if (spacecraft >= 8) return name;
  return name.replace(/^B([1-8])0$/, 'B$1').replace(/^B6([12])$/, 'B6_VCID_$1');
}

function describeBand(
  fileBand: string,
  header: RasterHeader,
  product: LandsatProduct,
  warnings: string[],
): UngroupedBand {
  const name = currentName(fileBand, product);
  const resolution = nominalPixelSize(header);
  const base = { name, header, index: 0, resolution };
  // The uncertainty of the surface temperature, in kelvin.
  if (name === 'ST_QA') return { ...base, role: 'qa', nodata: -9999, scale: 0.01, offset: 0 };
  if (isIntermediate(name)) {
    const scale = INTERMEDIATE_SCALES[name]!;
    return { ...base, role: 'qa', resampling: 'bilinear', part: 'st', nodata: -9999, scale, offset: 0 };
  }
  // Fill is bit 0 alone, except in the band whose bit 0 marks saturation of band 1.
  if (isQuality(name)) return qualityBand(name, header, 0, resolution, name === 'QA_RADSAT' ? null : 1);
  const number = Number(/B(\d+)/.exec(name)?.[1]);
  const commonNames = product.spacecraft >= 8 ? OLI_BAND_NAMES : TM_BAND_NAMES;
  return {
    ...base,
    name: name.replace(/^SR_/, ''),
    commonName: commonNames[number - 1],
    role: 'data',
    nodata: header.nodata ?? 0,
    ...calibration(name, number, header, product, warnings),
  };
}

/**
 * Scale and offset to reflectance, radiance (thermal, level 1) or kelvin (thermal, level 2). Thermal bands of Landsat 4 to 7 without
 * coefficients of reflectance are read as kelvin, in a group of their own, since their numbers are others than the stored ones.
 */
function calibration(
  name: string,
  number: number,
  header: RasterHeader,
  product: LandsatProduct,
  warnings: string[],
): Pick<UngroupedBand, 'scale' | 'offset'> & Partial<UngroupedBand> {
  const { mtl, collection, spacecraft } = product;
  if (collection === 'c2-l2') {
    return name.startsWith('ST_') ? { scale: 0.00341802, offset: 149 } : { scale: 0.0000275, offset: -0.2 };
  }
  // Without an MTL: the gain and bias of all OLI level 1 products (USGS Landsat 8 Data Users Handbook), with the sun at the
  // zenith.
  if (!mtl) return spacecraft >= 8 && number <= 9 ? { scale: 2e-5, offset: -0.1 } : { scale: 1, offset: 0 };
  const suffix = name.replace(/^B/, '');
  const gain = mtlNumber(product, `REFLECTANCE_MULT_BAND_${suffix}`);
  const bias = mtlNumber(product, `REFLECTANCE_ADD_BAND_${suffix}`);
  const sun = Math.sin((mtlNumber(product, 'SUN_ELEVATION') * Math.PI) / 180);
  if (Number.isFinite(gain + bias + sun) && sun > 0) return { scale: gain / sun, offset: bias / sun };
  const radiance = radianceScale(product, suffix);
  if (radiance) {
    const thermal = spacecraft >= 8 ? number >= 10 : number === 6;
    if (thermal) {
      const kelvin = hasReflectance(product)
        ? undefined
        : brightnessTemperature(product, suffix, header, radiance);
      return kelvin
        ? { header: kelvin, nodata: 0, scale: KELVIN_SCALE, offset: 0, part: 'thermal' }
        : radiance;
    }
    const reflectance = reflectanceScale(product, number, radiance);
    if (!reflectance)
      warnings.push(`the MTL has no reflectance for band ${suffix}; its values are radiances`);
    return reflectance ?? radiance;
  }
  warnings.push(`the MTL has no calibration for band ${number}; its stored numbers are kept as they are`);
  return { scale: 1, offset: 0 };
}

const hasReflectance = ({ mtl }: LandsatProduct) =>
  [...(mtl?.values() ?? [])].flatMap(Object.keys).some((key) => key.startsWith('REFLECTANCE_MULT_BAND_'));

// --- quality ----------------------------------------------------------------------------------------------------

const twoBits = (value: number, n: number) => (value >> n) & 3;

/** Mask code of a quality value, by generation: USGS Landsat Collection 2 QA_PIXEL, Collection 1 BQA, earlier BQA. */
const QUALITY_BITS: Record<LandsatLevel, { band: string; code: (value: number) => number }> = {
  'c2-l2': { band: 'QA_PIXEL', code: landsatPixelQuality },
  'c2-l1': { band: 'QA_PIXEL', code: landsatPixelQuality },
  'c1-l1': {
    band: 'BQA',
    code: (v) => {
      if (bitAt(v, 0)) return Mask.notAssessed;
      if (bitAt(v, 4) || twoBits(v, 11) === 3) return Mask.cloud;
      return twoBits(v, 7) === 3 ? Mask.shadow : twoBits(v, 9) === 3 ? Mask.snow : Mask.clear;
    },
  },
  'pre-l1': {
    band: 'BQA',
    code: (v) => {
      if (bitAt(v, 0)) return Mask.notAssessed;
      if (twoBits(v, 14) === 3 || twoBits(v, 12) === 3) return Mask.cloud;
      return twoBits(v, 10) === 3 ? Mask.snow : Mask.clear;
    },
  },
};

function qualityOf(groups: Scene['groups'], collection: LandsatLevel, warnings: string[]): QualityBand[] {
  const { band: name, code } = QUALITY_BITS[collection];
  const band = buildQualityLookup(groups, name, code);
  if (!band) warnings.push(`no quality band ${name}: cloud is not assessed`);
  return band ? [band] : [];
}
