/**
 * Sentinel-2 SAFE products of level 1C and 2A, in the compact naming convention and in the long one used before December 2016,
 * whose products have several granules. The product's metadata defines the meaning of the numbers. Only band files in the
 * folder are used: paths in the metadata are never opened.
 */
import { readdir } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, normalize } from 'node:path';
import { missingBand, notRecognised } from '../../errors.js';
import type { DescribeOptions, InputProbe, ProductFormat, Scene } from '../../ingest-scene-description.js';
import { datetimeOption, rootName } from '../shared/index.js';
import {
  dataFiles,
  describeSentinel2,
  parseBandFileName,
  requireSingleScene,
  type Sentinel2BandFile,
  sentinel2Id,
} from './sentinel2-bands.js';
import { levelOfRoot, readSafeProduct, readSafeTile, type SafeProduct } from './sentinel2-safe-metadata.js';

export const sentinel2: ProductFormat = {
  name: 'Sentinel-2 SAFE',

  async identify(candidate) {
    return (await findMetadata(candidate)) !== null;
  },

  async describe(candidate, options) {
    const metadata = await findMetadata(candidate);
    if (metadata === null) throw notRecognised(candidate.path, 'it is not a Sentinel-2 product');
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
  const tile = metadata ? await readSafeTile(metadata) : { sensed: undefined, mgrs: undefined };
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
  return scene;
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
