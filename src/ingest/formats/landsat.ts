/**
 * Landsat 4-9, one GeoTIFF a band with an MTL text beside them: pre-collection, Collection 1 and 2, level 1 and 2.
 * Bands are matched by the suffix of their file names; position comes from the rasters, never from the MTL.
 */
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Mask, openRaster, type RasterHeader } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../band-groups.js';
import { missingBand, notRecognised } from '../errors.js';
import { gridResolution } from '../resolution.js';
import type { Candidate, QualityBand, Scene, SceneFormat } from '../scene.js';
import { type MtlGroup, parseMtl } from './mtl.js';

type Level = 'c2-l2' | 'c2-l1' | 'c1-l1' | 'pre-l1';

const TITLES: Record<Level, string> = {
  'c2-l2': 'Landsat Collection 2 Level 2',
  'c2-l1': 'Landsat Collection 2 Level 1',
  'c1-l1': 'Landsat Collection 1 Level 1',
  'pre-l1': 'Landsat Level 1 before collections',
};

const OLI = [
  'coastal',
  'blue',
  'green',
  'red',
  'nir08',
  'swir16',
  'swir22',
  'pan',
  'cirrus',
  'lwir11',
  'lwir12',
];
const TM = ['blue', 'green', 'red', 'nir08', 'swir16', 'lwir', 'swir22', 'pan'];

/** What a Landsat product says of itself, from its MTL or, where there is none, from its name. */
interface Product {
  sensor: string;
  level: string;
  pathRow: string;
  date: string;
  start: number;
  platform: string;
  collection: Level;
  mtl: Map<string, MtlGroup> | null;
}

export const landsat: SceneFormat = {
  name: 'Landsat',

  // A product with an MTL that cannot be read is a broken one.
  async detect(candidate) {
    return (await findProduct(candidate).catch(() => true)) !== null;
  },

  async describe(candidate) {
    const found = await findProduct(candidate);
    if (!found) throw notRecognised(candidate.path, 'it is no Landsat product');
    return [await describeProduct(candidate.path, found.folder, found.files, found.product)];
  },
};

async function findProduct({ path, entries }: Candidate) {
  const asked = entries ? null : basename(path);
  if (asked && !/_MTL\.txt$/i.test(asked)) return null;
  const folder = entries ? path : dirname(path);
  const files = entries ?? (await readdir(folder));
  const mtlName = asked ?? files.find((f) => /_MTL\.txt$/i.test(f));
  const product = mtlName ? await productOfMtl(join(folder, mtlName)) : productOfNames(folder, files);
  return product && { folder, files, product };
}

async function describeProduct(
  path: string,
  folder: string,
  files: string[],
  product: Product,
): Promise<Scene> {
  const warnings: string[] = [];
  const byBand = new Map<string, string>();
  for (const file of files.sort()) {
    const band = bandOfFile(file);
    if (band) byBand.set(band, file);
  }
  requireListedBands(path, product, byBand, warnings);
  if (byBand.size === 0) throw notRecognised(path, 'the folder has a Landsat MTL but no band files');
  if (!product.mtl && product.collection === 'c2-l2')
    warnings.push('no MTL file: the time of day is not known');
  else if (!product.mtl) {
    warnings.push(
      'no MTL file: the time of day and the height of the sun are not known, so reflectance is too low',
    );
  }

  const headers = await Promise.all([...byBand.values()].map((file) => openRaster(join(folder, file))));
  const bands = [...byBand.keys()].map((name, i) => describeBand(name, headers[i], product, warnings));
  const groups = groupBands(bands);
  return {
    path,
    id: `${product.sensor}_${product.level}_${product.pathRow}_${product.date}`,
    collection: {
      id: `landsat-${product.collection}`,
      title: TITLES[product.collection],
      license: 'PDDL-1.0',
      attribution: 'Landsat data courtesy of the U.S. Geological Survey',
    },
    platform: product.platform,
    start: product.start,
    end: product.start,
    groups,
    quality: qualityOf(groups, product.collection, warnings),
    reflectanceTest: false,
    warnings,
  };
}

// --- metadata ---------------------------------------------------------------------------------------------------

async function productOfMtl(path: string): Promise<Product | null> {
  const mtl = parseMtl(await readFile(path, 'latin1'));
  if (!mtl.has('L1_METADATA_FILE') && !mtl.has('LANDSAT_METADATA_FILE')) return null;
  const get = (key: string) => [...mtl.values()].find((group) => key in group)?.[key];
  const need = (key: string) => {
    const value = get(key);
    if (value === undefined) throw notRecognised(path, `the MTL has no ${key}`);
    return value;
  };
  const spacecraft = Number(/(\d)$/.exec(need('SPACECRAFT_ID'))?.[1]);
  const sensorLetter = { OLI_TIRS: 'C', OLI: 'O', TIRS: 'T', ETM: 'E', TM: 'T' }[need('SENSOR_ID')] ?? 'C';
  const level = get('PROCESSING_LEVEL') ?? need('DATA_TYPE');
  const date = need('DATE_ACQUIRED');
  const start = Date.parse(
    `${date}T${need('SCENE_CENTER_TIME')
      .replace(/(\.\d{3})\d*Z?$/, '$1')
      .replace(/Z?$/, 'Z')}`,
  );
  if (Number.isNaN(start)) throw notRecognised(path, `the MTL's date ${date} and time cannot be read`);
  return {
    sensor: `L${sensorLetter}0${spacecraft}`,
    level,
    pathRow: need('WRS_PATH').padStart(3, '0') + need('WRS_ROW').padStart(3, '0'),
    date: date.replaceAll('-', ''),
    start,
    platform: `landsat-${spacecraft}`,
    collection: levelOf(get('COLLECTION_NUMBER'), level),
    mtl,
  };
}

function levelOf(collectionNumber: string | undefined, level: string): Level {
  if (Number(collectionNumber) === 2) return level.startsWith('L2') ? 'c2-l2' : 'c2-l1';
  return Number(collectionNumber) === 1 ? 'c1-l1' : 'pre-l1';
}

const PRODUCT_NAME = /^(L[COTEM]0(\d))_(L\d[A-Z]{2})_(\d{6})_(\d{4})(\d\d)(\d\d)(?:_\d{8}_(\d\d)_[A-Z0-9]+)?/;

/** Some archives pass Landsat bands on without their MTL; product names are fixed by the USGS, so they say the rest. */
function productOfNames(folder: string, files: string[]): Product | null {
  const bands = files.filter(bandOfFile);
  const names = [basename(folder), ...bands].map((name) => PRODUCT_NAME.exec(name)).filter((m) => m !== null);
  if (bands.length === 0 || names.length === 0) return null;
  const [, sensor, spacecraft, level, pathRow, year, month, day] = names[0];
  const number = names.find((m) => m[8])?.[8];
  const start = Date.parse(`${year}-${month}-${day}T00:00:00Z`);
  return {
    sensor,
    level,
    pathRow,
    date: year + month + day,
    start,
    platform: `landsat-${spacecraft}`,
    collection: levelOf(number ?? '02', level),
    mtl: null,
  };
}

// --- bands ------------------------------------------------------------------------------------------------------

/** `B4`, `SR_B4`, `BQA`, `QA_PIXEL` ... of a file name, or null where the file is no band that is kept. */
function bandOfFile(file: string): string | null {
  const match =
    /_((?:SR_|ST_)?B\d{1,2}(?:_VCID_[12])?|BQA|QA_PIXEL|QA_RADSAT|SR_QA_AEROSOL|ST_QA)\.tiff?$/i.exec(file);
  return match ? match[1].toUpperCase() : null;
}

/** Every band that the MTL lists must be there; names may differ (archives rename files), suffixes may not. */
function requireListedBands(
  path: string,
  product: Product,
  found: Map<string, string>,
  warnings: string[],
): void {
  let renamed = 0;
  for (const group of product.mtl?.values() ?? []) {
    for (const [key, listed] of Object.entries(group)) {
      const band = /^FILE_NAME_(?!ANGLE|METADATA)/.test(key) ? bandOfFile(listed) : null;
      if (!band) continue;
      const file = found.get(band);
      if (!file) throw missingBand(path, band, `The MTL lists it as ${listed}; download it again.`);
      if (file !== listed) renamed++;
    }
  }
  if (renamed > 0)
    warnings.push(`${renamed} file names differ from the MTL; files were matched by their band suffix`);
}

function describeBand(
  name: string,
  header: RasterHeader,
  product: Product,
  warnings: string[],
): UngroupedBand {
  const resolution = gridResolution(header);
  const base = { name, header, index: 0, resolution };
  // Landsat's fill in every quality band is bit 0 alone.
  if (/QA/.test(name)) return { ...base, role: 'qa', nodata: 1, scale: 1, offset: 0 };
  const number = Number(/B(\d+)/.exec(name)?.[1]);
  const commonNames = /^L[CO]0[89]/.test(product.sensor) ? OLI : TM;
  return {
    ...base,
    name: name.replace(/^SR_/, ''),
    commonName: commonNames[number - 1],
    role: 'data',
    nodata: header.nodata ?? 0,
    ...calibration(name, number, product, warnings),
  };
}

/** Scale and offset to reflectance, radiance (thermal, level 1) or kelvin (thermal, level 2). */
function calibration(name: string, number: number, { mtl, collection, sensor }: Product, warnings: string[]) {
  if (collection === 'c2-l2') {
    return name.startsWith('ST_') ? { scale: 0.00341802, offset: 149 } : { scale: 0.0000275, offset: -0.2 };
  }
  // Without an MTL: the gain and bias of all OLI level 1 products (USGS Landsat 8 Data Users Handbook), sun overhead.
  if (!mtl)
    return /^L[CO]0[89]/.test(sensor) && number <= 9
      ? { scale: 2e-5, offset: -0.1 }
      : { scale: 1, offset: 0 };
  const suffix = name.replace(/^B/, '');
  const get = (key: string) => {
    for (const group of mtl.values()) if (key in group) return Number(group[key]);
    return NaN;
  };
  const gain = get(`REFLECTANCE_MULT_BAND_${suffix}`);
  const bias = get(`REFLECTANCE_ADD_BAND_${suffix}`);
  const sun = Math.sin((get('SUN_ELEVATION') * Math.PI) / 180);
  if (Number.isFinite(gain + bias + sun) && sun > 0) return { scale: gain / sun, offset: bias / sun };
  const radiance = { scale: get(`RADIANCE_MULT_BAND_${suffix}`), offset: get(`RADIANCE_ADD_BAND_${suffix}`) };
  if (Number.isFinite(radiance.scale + radiance.offset)) return radiance;
  warnings.push(`the MTL has no calibration for band ${number}; its stored numbers are kept as they are`);
  return { scale: 1, offset: 0 };
}

// --- quality ----------------------------------------------------------------------------------------------------

const bit = (value: number, n: number) => (value >> n) & 1;
const two = (value: number, n: number) => (value >> n) & 3;

/** Mask code of a quality value, by generation: USGS Landsat Collection 2 QA_PIXEL, Collection 1 BQA, earlier BQA. */
const QUALITY_BITS: Record<Level, { band: string; code: (value: number) => number }> = {
  'c2-l2': { band: 'QA_PIXEL', code: collection2 },
  'c2-l1': { band: 'QA_PIXEL', code: collection2 },
  'c1-l1': {
    band: 'BQA',
    code: (v) => {
      if (bit(v, 0)) return Mask.notAssessed;
      if (bit(v, 4) || two(v, 11) === 3) return Mask.cloud;
      return two(v, 7) === 3 ? Mask.shadow : two(v, 9) === 3 ? Mask.snow : Mask.clear;
    },
  },
  'pre-l1': {
    band: 'BQA',
    code: (v) => {
      if (bit(v, 0)) return Mask.notAssessed;
      if (two(v, 14) === 3 || two(v, 12) === 3) return Mask.cloud;
      return two(v, 10) === 3 ? Mask.snow : Mask.clear;
    },
  },
};

function collection2(v: number): number {
  if (bit(v, 0)) return Mask.notAssessed;
  if (bit(v, 1) || bit(v, 2) || bit(v, 3)) return Mask.cloud;
  return bit(v, 4) ? Mask.shadow : bit(v, 5) ? Mask.snow : Mask.clear;
}

function qualityOf(groups: Scene['groups'], collection: Level, warnings: string[]): QualityBand[] {
  const { band: name, code } = QUALITY_BITS[collection];
  for (const group of groups) {
    const band = group.bands.findIndex((b) => b.name === name);
    if (band >= 0 && group.role === 'qa') {
      const size = group.bands[band].header.dataType === 'uint8' ? 256 : 65536;
      return [
        { group: group.name, band, codes: Uint8Array.from({ length: size }, (_, value) => code(value)) },
      ];
    }
  }
  warnings.push(`no quality band ${name}: cloud is not assessed`);
  return [];
}
