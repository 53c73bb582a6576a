/**
 * Landsat 4-9 (TM, ETM+, OLI, TIRS), one GeoTIFF for each band with an MTL beside them: pre-collection, Collection 1 and 2,
 * level 1 and 2, and tiles of Analysis Ready Data. Gaps of the broken scan line corrector are nodata like other fill. Bands
 * are identified by the suffix of their file names. Georeferencing is that of the rasters, not that of the MTL.
 */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Mask, openRaster, type RasterHeader } from '../../../raster/index.js';
import { missingBand, notRecognised } from '../../errors.js';
import { nominalPixelSize } from '../../georeferencing/index.js';
import { groupBands, type UngroupedBand } from '../../ingest-band-groups.js';
import type {
  DescribeOptions,
  InputProbe,
  ProductFormat,
  QualityBand,
  Scene,
} from '../../ingest-scene-description.js';
import {
  bitAt,
  buildQualityLookup,
  datetimeOption,
  landsatPixelQuality,
  NASA,
  qualityBand,
  USGS,
} from '../shared/index.js';
import { findMtl } from './landsat-mtl.js';
import {
  type LandsatLevel,
  type LandsatProduct,
  parseProductName,
  readProductFromMtl,
} from './landsat-product.js';
import {
  brightnessTemperature,
  KELVIN_SCALE,
  mtlNumber,
  radianceScale,
  reflectanceScale,
} from './landsat-radiance.js';

const TITLES: Record<LandsatLevel, string> = {
  'c2-l2': 'Landsat Collection 2 Level 2',
  'c2-l1': 'Landsat Collection 2 Level 1',
  'c1-l1': 'Landsat Collection 1 Level 1',
  'pre-l1': 'Landsat Level 1 before collections',
};

/** Common names by the number of the band, from 1. */
const OLI = 'coastal blue green red nir08 swir16 swir22 pan cirrus lwir11 lwir12'.split(' ');
const TM = 'blue green red nir08 swir16 lwir swir22 pan'.split(' ');

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
    warnings,
  };
}

// --- bands ------------------------------------------------------------------------------------------------------

/**
 * Scale factors of the intermediate bands of the surface temperature of Collection 2, from the USGS data format control books
 * LSDS-1328 and LSDS-1618: transmittance, distance to cloud (km), downwelled radiance, emissivity and its standard deviation,
 * thermal and upwelled radiance (W/(m2 sr um)). They are int16 with the fill value -9999.
 */
const INTERMEDIATE: Record<string, number> = {
  ST_ATRAN: 1e-4,
  ST_CDIST: 0.01,
  ST_DRAD: 1e-3,
  ST_EMIS: 1e-4,
  ST_EMSD: 1e-4,
  ST_TRAD: 1e-3,
  ST_URAD: 1e-3,
};

const isIntermediate = (band: string) => Object.hasOwn(INTERMEDIATE, band);

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
    const scale = INTERMEDIATE[name]!;
    return { ...base, role: 'qa', resampling: 'bilinear', part: 'st', nodata: -9999, scale, offset: 0 };
  }
  // Fill is bit 0 alone, except in the band whose bit 0 marks saturation of band 1.
  if (isQuality(name)) return qualityBand(name, header, 0, resolution, name === 'QA_RADSAT' ? null : 1);
  const number = Number(/B(\d+)/.exec(name)?.[1]);
  const commonNames = product.spacecraft >= 8 ? OLI : TM;
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

const two = (value: number, n: number) => (value >> n) & 3;

/** Mask code of a quality value, by generation: USGS Landsat Collection 2 QA_PIXEL, Collection 1 BQA, earlier BQA. */
const QUALITY_BITS: Record<LandsatLevel, { band: string; code: (value: number) => number }> = {
  'c2-l2': { band: 'QA_PIXEL', code: landsatPixelQuality },
  'c2-l1': { band: 'QA_PIXEL', code: landsatPixelQuality },
  'c1-l1': {
    band: 'BQA',
    code: (v) => {
      if (bitAt(v, 0)) return Mask.notAssessed;
      if (bitAt(v, 4) || two(v, 11) === 3) return Mask.cloud;
      return two(v, 7) === 3 ? Mask.shadow : two(v, 9) === 3 ? Mask.snow : Mask.clear;
    },
  },
  'pre-l1': {
    band: 'BQA',
    code: (v) => {
      if (bitAt(v, 0)) return Mask.notAssessed;
      if (two(v, 14) === 3 || two(v, 12) === 3) return Mask.cloud;
      return two(v, 10) === 3 ? Mask.snow : Mask.clear;
    },
  },
};

function qualityOf(groups: Scene['groups'], collection: LandsatLevel, warnings: string[]): QualityBand[] {
  const { band: name, code } = QUALITY_BITS[collection];
  const band = buildQualityLookup(groups, name, code);
  if (!band) warnings.push(`no quality band ${name}: cloud is not assessed`);
  return band ? [band] : [];
}
