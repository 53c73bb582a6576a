/**
 * The registry of product formats. The first format that identifies an input describes its scenes. To add a product, add a file in a
 * subfolder and a line in `FORMATS` (docs/tutorials/add-a-product.md). May import formats/shared, georeferencing, band-groups and raster.
 */
import { dirname, resolve } from 'node:path';
import { collectionNotNamed, notRecognised, partOfProduct } from '../errors.js';
import { nameGroups, replaceGroups } from '../ingest-band-groups.js';
import type { DescribeOptions, InputProbe, ProductFormat, Scene } from '../ingest-scene-description.js';
import { cfGrid, rasterFile, stacItem } from './generic/index.js';
import { landsat } from './landsat/index.js';
import { modis, viirs } from './modis-viirs/index.js';
import { namedRasters } from './name-pattern/index.js';
import { sentinel2, sentinel2Loose } from './sentinel2/index.js';
import { checkCalibration, probeInput } from './shared/index.js';
import { desis, emit, enmap, hyperion, prisma } from './spectrometers/index.js';
import { naip, nlcd } from './us/index.js';

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
  for (const scene of scenes) checkCalibration(scene, options);
  const flags = unread();
  if (flags.length > 0)
    scenes[0].warnings.push(`${flags.join(', ')} had no effect: ${format.name} defines these values itself`);
  return scenes;
}

/** If a scene has only quality layers, they become its data, stored as codes. */
function promoteQualityToData(scene: Scene): Scene {
  if (scene.groups.some(({ role }) => role === 'data')) return scene;
  return replaceGroups(scene, nameGroups(scene.groups.map((group) => ({ ...group, role: 'data' }))));
}

const FLAGS = {
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
  const given = (Object.keys(FLAGS) as (keyof typeof FLAGS)[]).filter((name) => options[name] !== undefined);
  return { watched, unread: () => given.filter((name) => !read.has(name)).map((name) => FLAGS[name]) };
}

/** The product to which a single file belongs as one band: its folder, or a SAFE folder above. */
async function findEnclosingProduct({ path, entries }: InputProbe) {
  if (entries) return null;
  const own = dirname(resolve(path));
  const safe = /^.*\.SAFE(?=\/|$)/i.exec(own)?.[0];
  for (const folder of safe ? [safe, own] : [own]) {
    const format = await identifyFormat(await probeInput(folder));
    if (format) return { format, path: folder };
  }
  return null;
}

/** The first format that identifies an input; null if none does. */
export async function identifyFormat(candidate: InputProbe): Promise<ProductFormat | null> {
  for (const format of FORMATS) if (await format.identify(candidate)) return format;
  return null;
}
