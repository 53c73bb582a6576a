/**
 * The registry of product formats. The first format that identifies an input describes its scenes. To add a product, add a file beside this
 * one and a line in `FORMATS` (docs/tutorials/add-a-product.md).
 */

import { basename, dirname, resolve } from 'node:path';
import { bytesPerSample, type DataType, minValue, nodataAsType } from '../../raster/index.js';
import { nameGroups, replaceGroups } from '../bands.js';
import { badOption, badScale, collectionNotNamed, notRecognised, partOfProduct } from '../errors.js';
import type { DescribeOptions, InputProbe, ProductFormat, Scene, SourceBand, SourceGroup } from '../scene.js';
import { cfGrid } from './cf-grid.js';
import { desis } from './desis.js';
import { emit } from './emit.js';
import { enmap } from './enmap.js';
import { hyperion } from './hyperion.js';
import { landsat } from './landsat.js';
import { modis } from './modis.js';
import { naip } from './naip.js';
import { namedRasters } from './named-rasters.js';
import { nlcd } from './nlcd.js';
import { prisma } from './prisma.js';
import { probeInput } from './probe.js';
import { rasterFile } from './raster-file.js';
import { sentinel2 } from './sentinel2.js';
import { sentinel2Loose } from './sentinel2-loose.js';
import { stacItem } from './stac-item.js';
import { readItemBesideFile } from './stac-sidecar.js';
import { viirs } from './viirs.js';

/**
 * Checks that nodata, scale and offset keep different values different. Throws TW_INGEST_BAD_OPTION for a `--nodata` that no band can hold,
 * and TW_INGEST_BAD_SCALE.
 */
function checkCalibration({ path, groups }: Scene, { nodata }: DescribeOptions): void {
  const data = groups.filter(({ role }) => role === 'data');
  const flagged = data.filter((group) => nodata !== undefined && sameNumber(group.nodata, nodata));
  if (flagged.length > 0 && !flagged.some(canStoreNodata)) {
    const types = [...new Set(flagged.map(typeOf))];
    throw badOption(
      '--nodata',
      String(nodata),
      `a value that pixels of ${types.join(' or ')} of ${path} can hold`,
    );
  }
  for (const band of data.flatMap(({ bands }) => bands))
    if (!isInvertible(band)) throw badScale(path, band.name, band.scale, band.offset);
}

const sameNumber = (a: number | null, b: number) => a === b || (Number.isNaN(a) && Number.isNaN(b));

const typeOf = ({ bands }: SourceGroup): DataType => bands[0]!.header.dataType;

function canStoreNodata(group: SourceGroup): boolean {
  return nodataAsType(typeOf(group), group.nodata ?? undefined) !== undefined;
}

/** True if two stored values can result in two physical values. Physical values are single precision in all computations. */
function isInvertible({ header: { dataType }, scale, offset }: SourceBand): boolean {
  const physical = (stored: number) => Math.fround(stored * scale + offset);
  if (dataType.startsWith('float'))
    return Math.fround(scale) !== 0 && Number.isFinite(Math.fround(scale)) && Number.isFinite(physical(0));
  const lowest = minValue(dataType);
  const first = physical(lowest);
  const last = physical(lowest + 2 ** (8 * bytesPerSample(dataType)) - 1);
  return Number.isFinite(first) && Number.isFinite(last) && first !== last;
}

/** In order of precedence: the first format that identifies the input describes it. */
const FORMATS: ProductFormat[] = [
  sentinel2,
  enmap,
  desis,
  hyperion,
  landsat,
  prisma,
  emit,
  viirs,
  modis,
  naip,
  nlcd,
  sentinel2Loose,
  stacItem,
  cfGrid,
  rasterFile,
];

/**
 * Describes the scenes in a file or product folder. With a name pattern, `files` are the files of one scene. The first scene
 * gets a warning about options that the product does not use.
 */
export async function describeScenes(
  path: string,
  options: DescribeOptions,
  files: string[] = [path],
): Promise<Scene[]> {
  const candidate = await probeInput(path);
  const format = options.namePattern === undefined ? await identifyFormat(candidate) : namedRasters(files);
  if (!format) {
    throw notRecognised(
      path,
      candidate.entries ? 'the folder contains no known product' : 'its format is not known',
    );
  }
  const { watched, unread } = trackUsedOptions(options);
  const described = await format.describe(candidate, watched).catch(async (error) => {
    const whole = collectionNotNamed.is(error) ? await findEnclosingProduct(candidate) : null;
    throw whole ? partOfProduct.because(error, path, whole.format.name, whole.path) : error;
  });
  const scenes = described.map(promoteQualityToData);
  addWarningsOfFiles(scenes);
  for (const scene of scenes) checkCalibration(scene, options);
  const flags = unread();
  if (flags.length > 0)
    scenes[0].warnings.push(`${flags.join(', ')} had no effect: ${format.name} defines these values itself`);
  return scenes;
}

/** Adds the warnings of files that a format has left out, each once, to the first scene that reads the file. */
function addWarningsOfFiles(scenes: readonly Scene[]): void {
  const stated = new Set(scenes.flatMap(({ warnings }) => warnings));
  for (const { groups, warnings } of scenes)
    for (const { path, warnings: own = [] } of groups.flatMap(({ bands }) =>
      bands.map(({ header }) => header),
    ))
      for (const warning of own) {
        if (stated.has(warning)) continue;
        stated.add(warning);
        warnings.push(`${basename(path)}: ${warning}`);
      }
}

/** If a scene has only quality layers, they become its data, stored as codes. */
function promoteQualityToData(scene: Scene): Scene {
  if (scene.groups.some(({ role }) => role === 'data')) return scene;
  return replaceGroups(scene, nameGroups(scene.groups.map((group) => ({ ...group, role: 'data' }))));
}

const OPTION_FLAGS = {
  id: '--id',
  datetime: '--datetime',
  bands: '--bands',
  nodata: '--nodata',
  scale: '--scale',
  offset: '--offset',
  platform: '--platform',
  maskBand: '--mask-band',
  layer: '--layer',
  position: '--position',
  wavelengths: '--wavelengths',
} as const;

/** Records which options a format reads, so that formats need not list them. */
function trackUsedOptions(options: DescribeOptions) {
  const read = new Set<PropertyKey>();
  const watched = new Proxy(options, {
    get(target, name, receiver) {
      read.add(name);
      return Reflect.get(target, name, receiver);
    },
  });
  const given = (Object.keys(OPTION_FLAGS) as (keyof typeof OPTION_FLAGS)[]).filter(
    (name) => options[name] !== undefined,
  );
  return { watched, unread: () => given.filter((name) => !read.has(name)).map((name) => OPTION_FLAGS[name]) };
}

/** The product to which a single file belongs as one band: its folder, or a SAFE folder above. */
async function findEnclosingProduct({ path, entries }: InputProbe) {
  if (entries) return null;
  const own = dirname(resolve(path));
  const safe = /^.*\.SAFE(?=\/|$)/i.exec(own)?.[0];
  for (const folder of safe ? [safe, own] : [own]) {
    const format = await identifyFormat(await probeInput(folder));
    // An Item that does not name the file describes others.
    const isOther = format === stacItem && !(await readItemBesideFile(path));
    if (format && !isOther) return { format, path: folder };
  }
  return null;
}

/** The first format that identifies an input; null if none does. */
export async function identifyFormat(candidate: InputProbe): Promise<ProductFormat | null> {
  for (const format of FORMATS) if (await format.identify(candidate)) return format;
  return null;
}
