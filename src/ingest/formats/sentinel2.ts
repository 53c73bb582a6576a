/**
 * Sentinel-2 SAFE products of level 1C and 2A, in the compact naming convention and in the long one used before December 2016,
 * whose products have several granules. The product's metadata defines the meaning of the numbers. Only band files in the
 * folder are used: paths in the metadata are never opened.
 */

import { readdir } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, normalize } from 'node:path';
import { elementsOf, textOf, type XmlElement } from '../../raster/index.js';
import { badMetadata, missingBand, missingMetadata, notRecognised } from '../errors.js';
import type { DescribeOptions, InputProbe, ProductFormat, Scene } from '../scene.js';
import { datetimeOption, parseTime } from './acquisition-time.js';
import { readXml, rootName } from './metadata.js';
import {
  dataFiles,
  describeSentinel2,
  parseBandFileName,
  type Radiometry,
  requireSingleScene,
  SENTINEL2_BANDS,
  type Sentinel2BandFile,
  type Sentinel2Level,
  sentinel2Id,
} from './sentinel2-bands.js';

interface SafeProduct {
  level: Sentinel2Level;
  /** sentinel-2a ... */
  platform: string;
  /** Start of the sensing of the datatake, as in the names of products; the same for all deliveries. */
  datatake: number;
  /** Relative orbit, 1-143. */
  orbit: number;
  baseline: string | undefined;
  radiometry: Radiometry;
  /** Image files that the product lists: paths or names, without extension. */
  listed: string[];
  warnings: string[];
}

interface SafeTile {
  sensed: number | undefined;
  /** MGRS tile such as 32TLS. */
  mgrs: string | undefined;
  /** NaN if it is unknown. */
  sunAzimuth: number;
}

const LEVEL_BY_ROOT: Record<string, Sentinel2Level> = {
  'Level-1C_User_Product': 'L1C',
  'Level-2A_User_Product': 'L2A',
};

/** The level of the product whose metadata has this root; undefined for other roots. */
const levelOfRoot = (root: string): Sentinel2Level | undefined =>
  Object.hasOwn(LEVEL_BY_ROOT, root) ? LEVEL_BY_ROOT[root] : undefined;

/**
 * Reads `MTD_MSIL1C.xml`, `MTD_MSIL2A.xml` or their predecessors: Sentinel-2 Products Specification Document (S2-PDGS-TAS-DI-PSD), issues
 * 12 to 15. Elements are searched by name, because their parents changed between issues. Throws TW_INGEST_BAD_METADATA.
 */
async function readSafeProduct(path: string): Promise<SafeProduct> {
  const root = await readXml(path);
  const level = levelOfRoot(root.name);
  if (!level) throw badMetadata(path, `its root is ${root.name}, not a product of level 1C or 2A`);
  const need = (name: string) => {
    const text = textOf(root, name);
    if (text === undefined) throw badMetadata(path, `it has no ${name}`);
    return text;
  };
  const spacecraft = /^Sentinel-2([A-Z])$/i.exec(need('SPACECRAFT_NAME'));
  if (!spacecraft) throw badMetadata(path, `SPACECRAFT_NAME is ${need('SPACECRAFT_NAME')}`);
  const orbit = Number(need('SENSING_ORBIT_NUMBER'));
  if (!(Number.isInteger(orbit) && orbit >= 1 && orbit <= 143)) {
    throw badMetadata(path, `SENSING_ORBIT_NUMBER is ${orbit}`);
  }
  const warnings: string[] = [];
  const baseline = textOf(root, 'PROCESSING_BASELINE');
  return {
    level,
    platform: `sentinel-2${spacecraft[1].toLowerCase()}`,
    datatake: timeOf(path, 'DATATAKE_SENSING_START', need('DATATAKE_SENSING_START')),
    orbit,
    baseline,
    radiometry: radiometryOf(root, path, level, baseline, warnings),
    listed: ['IMAGE_FILE', 'IMAGE_ID', 'IMAGE_FILE_2A', 'IMAGE_ID_2A'].flatMap((name) =>
      elementsOf(root, name).map((element) => element.text),
    ),
    warnings,
  };
}

/** Reads `MTD_TL.xml`. Throws TW_INGEST_BAD_METADATA. */
async function readSafeTile(path: string): Promise<SafeTile> {
  const root = await readXml(path);
  const sensed = textOf(root, 'SENSING_TIME');
  const id = textOf(root, 'TILE_ID') ?? textOf(root, 'TILE_ID_2A');
  const [sun] = elementsOf(root, 'Mean_Sun_Angle');
  return {
    sensed: sensed === undefined ? undefined : timeOf(path, 'SENSING_TIME', sensed),
    mgrs: id && /_T(\d\d[A-Z]{3})(?:_|$)/.exec(id)?.[1],
    sunAzimuth: Number(sun && textOf(sun, 'AZIMUTH_ANGLE')),
  };
}

function timeOf(path: string, name: string, text: string): number {
  const time = parseTime(text);
  if (Number.isNaN(time)) throw badMetadata(path, `${name} is ${text}, which is not a time`);
  return time;
}

/** reflectance = (number + RADIO_ADD_OFFSET or BOA_ADD_OFFSET) / quantification value; the offset is 0 before baseline 04.00. */
function radiometryOf(
  root: XmlElement,
  path: string,
  level: Sentinel2Level,
  baseline: string | undefined,
  warnings: string[],
): Radiometry {
  const names =
    level === 'L1C' ? ['QUANTIFICATION_VALUE'] : ['BOA_QUANTIFICATION_VALUE', 'L2A_BOA_QUANTIFICATION_VALUE'];
  const quantification = Number(names.map((name) => textOf(root, name)).find((text) => text !== undefined));
  if (!(quantification > 0)) throw badMetadata(path, `it has no ${names[0]} above 0`);

  const offsetName = level === 'L1C' ? 'RADIO_ADD_OFFSET' : 'BOA_ADD_OFFSET';
  const offsets = new Map<string, number>();
  for (const { attributes, text } of elementsOf(root, offsetName)) {
    const band = SENTINEL2_BANDS[Number(attributes.band_id)];
    const offset = text === '' ? NaN : Number(text);
    if (!band || !Number.isFinite(offset)) {
      throw badMetadata(path, `${offsetName} of band_id ${attributes.band_id} is "${text}"`);
    }
    offsets.set(band.name, offset);
  }
  if (offsets.size === 0 && Number(baseline) >= 4) {
    warnings.push(`the metadata of baseline ${baseline} has no ${offsetName}; offset 0 is assumed`);
  }

  const special = elementsOf(root, 'Special_Values').find(
    (e) => textOf(e, 'SPECIAL_VALUE_TEXT') === 'NODATA',
  );
  const nodata = Number((special && textOf(special, 'SPECIAL_VALUE_INDEX')) ?? 0);
  if (!Number.isFinite(nodata)) throw badMetadata(path, 'the special value NODATA is not a number');
  return {
    scale: 1 / quantification,
    offset: (band) => {
      const offset = offsets.size === 0 ? 0 : offsets.get(band);
      if (offset === undefined)
        throw badMetadata(path, `it has a ${offsetName} for other bands, and none for ${band}`);
      return offset / quantification;
    },
    nodata: (declared) => declared ?? nodata,
  };
}

export const sentinel2: ProductFormat = {
  name: 'Sentinel-2 SAFE',

  async identify(candidate) {
    return isSafeFolder(candidate) || (await findMetadata(candidate)) !== null;
  },

  async describe(candidate, options) {
    const metadata = await findMetadata(candidate);
    if (metadata === null)
      throw missingMetadata(candidate.path, 'MTD_MSIL1C.xml or MTD_MSIL2A.xml', 'the scale and the offset');
    const product = await readSafeProduct(metadata);
    const granules = await findGranules(dirname(metadata));
    const scenes: Scene[] = [];
    const empty: string[] = [];
    for (const granule of granules) {
      const path = granules.length > 1 ? granule : candidate.path;
      const scene = await describeGranule(path, granule, product, options);
      if (scene) scenes.push(scene);
      else empty.push(basename(granule));
    }
    if (scenes.length === 0) {
      throw missingBand(candidate.path, 'B01 to B12', 'The product has no band file; download it again.');
    }
    requireSingleScene(candidate.path, scenes.length, options);
    if (empty.length > 0) scenes[0].warnings.push(`granules without bands are left out: ${empty.join(', ')}`);
    return scenes;
  },
};

/**
 * The product's metadata: the given file, or the one in the folder. Identified by its root element, or by its name if it is
 * damaged.
 */
async function findMetadata({ path, entries }: InputProbe): Promise<string | null> {
  const files = entries === null ? [path] : entries.map((entry) => join(path, entry));
  const documents = files.filter((file) => /\.xml$/i.test(file));
  const named = documents.find((file) => /^MTD_MSIL(1C|2A)\.xml$/i.test(basename(file)));
  if (named) return named;
  for (const file of documents.slice(0, 20)) {
    if (levelOfRoot((await rootName(file)) ?? '')) return file;
  }
  return null;
}

/** True for the folder of a product, with or without its metadata. */
function isSafeFolder({ path, entries }: InputProbe): boolean {
  const names = (entries ?? []).map((entry) => entry.toLowerCase());
  const isNamed = /^S2[A-Z]_.*\.SAFE$/i.test(basename(path));
  return (
    names.includes('granule/') && (isNamed || names.includes('manifest.safe') || names.includes('datastrip/'))
  );
}

/** Folders of granules; the product's own folder if it has no such structure. */
async function findGranules(folder: string): Promise<string[]> {
  const parent = (await readdir(folder)).find((name) => name.toUpperCase() === 'GRANULE');
  if (!parent) return [folder];
  const entries = await readdir(join(folder, parent), { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return names.sort().map((name) => join(folder, parent, name));
}

/** Null if the granule has no band. */
async function describeGranule(
  path: string,
  granule: string,
  product: SafeProduct,
  options: DescribeOptions,
): Promise<Scene | null> {
  const files = await filesBelow(granule);
  const bands = files.map(parseBandFileName).filter((file) => file !== null);
  if (dataFiles(bands).length === 0) return null;

  const metadata = files.find((file) => /^(MTD_TL|S2.*_MTD_L(1C|2A)_TL_.*)\.xml$/i.test(basename(file)));
  const tile = metadata
    ? await readSafeTile(metadata)
    : { sensed: undefined, mgrs: undefined, sunAzimuth: NaN };
  const mgrs = tile.mgrs ?? mgrsOf([basename(granule), ...bands.map(({ stem }) => stem)]);
  if (!mgrs) throw notRecognised(granule, 'neither its metadata nor its names say which MGRS tile it is');

  const warnings = [...product.warnings, ...unmatchedNames(product.listed, mgrs, bands)];
  const flagged = datetimeOption(options);
  if (!metadata && !flagged) warnings.push('no MTD_TL.xml: the time is that of the start of the datatake');
  const { level, datatake, radiometry } = product;
  const time = tile.sensed ?? datatake;
  const span = flagged ?? { start: time, end: time };
  const id = options.id ?? sentinel2Id({ ...product, mgrs });
  const platform = options.platform ?? product.platform;
  const scene = await describeSentinel2({ path, id, level, platform, span, radiometry, warnings }, bands);
  const vector = files.find((file) => /MSK_CLOUDS.*\.gml$/i.test(basename(file)));
  if (scene.quality.length === 0 && vector) {
    warnings.push(`the vector mask ${basename(vector)} is not read; cloud is tested on reflectance`);
  }
  return { ...scene, sunAzimuth: tile.sunAzimuth };
}

/** Files of a granule, at most IMG_DATA/R10m deep. Links to folders are not followed. */
async function filesBelow(folder: string, depth = 3): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries.map((entry) => {
      const path = join(folder, entry.name);
      if (!entry.isDirectory()) return [path];
      return depth > 1 ? filesBelow(path, depth - 1) : [];
    }),
  );
  return found.flat().sort();
}

const mgrsOf = (names: string[]) =>
  names.map((name) => /(?:^|_)T(\d\d[A-Z]{3})(?:_|$)/.exec(name)?.[1]).find((mgrs) => mgrs !== undefined);

/** Warnings about names in the metadata without a file, and about those that lead out of the product. */
function unmatchedNames(listed: string[], mgrs: string, found: Sentinel2BandFile[]): string[] {
  const warnings: string[] = [];
  const there = new Set(found.map(({ band }) => band));
  const outside = listed.filter((name) => isAbsolute(name) || normalize(name).startsWith('..'));
  if (outside.length > 0) {
    warnings.push(
      `the metadata names files outside of the product, which are not read: ${outside[0].slice(0, 80)}`,
    );
  }
  const own = listed.filter((name) => basename(name).includes(`T${mgrs}`));
  const missing = new Set(
    own.map((name) => parseBandFileName(`${name}.jp2`)?.band).filter((band) => band && !there.has(band)),
  );
  if (missing.size > 0) {
    warnings.push(`the metadata names files which are not there: ${[...missing].sort().join(', ')}`);
  }
  return warnings;
}
