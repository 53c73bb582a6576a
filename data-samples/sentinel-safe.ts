import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { encodeCog } from '../src/raster/index.js';
import { CLOUD_OPACITY, makeSky } from './clouds.js';
import { averageSeason, dayOfYear } from './dates.js';
import { Kinds } from './kinds.js';
import { type Landscape, makeLandscape } from './landscape.js';
import { fractalNoise, smoothstep, type View } from './noise.js';
import { groundReflectance, observe } from './observe.js';
import {
  granuleId,
  productId,
  productMetadata,
  type SafeFacts,
  tileMetadata,
} from './sentinel-safe-metadata.js';

export interface SafeOptions {
  level?: 'L1C' | 'L2A';
  /** Processing baseline; from 04.00 on numbers are shifted by 1000, and level 1C has a raster mask. */
  baseline?: string;
  /** Start of the datatake, RFC 3339, UTC, whole seconds. */
  datatake?: string;
  /** Pixels of 10 m; multiples of 6. A full tile is 10980 x 10980. */
  size?: { width: number; height: number };
  /** Share of the view under clouds, 0-1. */
  cloudShare?: number;
  /** Cuts off the north-eastern corner, as the edge of the orbit does. */
  orbitEdge?: boolean;
  /** Writes lossless JPEG 2000 with GDAL's gdal_translate; else the files are GeoTIFFs under .jp2 names. */
  jpeg2000?: boolean;
  seed?: number;
}

/** The files of `writeSafe`. */
export interface SafeProductFiles {
  /** The folder that ends in .SAFE. */
  path: string;
  /** The scene id that an ingest assigns. */
  sceneId: string;
  metadataPath: string;
  tileMetadataPath: string;
  /** Files at the native pixel size by band, and SCL or CLASSI. */
  bandPaths: Record<string, string>;
  /** Reflectance = (number + addOffset) / 10000. */
  addOffset: number;
}

export const SAFE_ORIGIN = { x: 493_560, y: 5_301_420 };
export const SAFE_EPSG = 32_633;
const SENSING_DELAY = 257_000;
const DEFAULT_SEED = 20_230_707;

/** Native pixel size, and reflectance as a mixture of coastal, blue, green, red, NIR, SWIR1 and SWIR2. */
const BANDS: { name: string; pixel: 10 | 20 | 60; mix: [spectrum: number, share: number][] }[] = [
  { name: 'B01', pixel: 60, mix: [[0, 1]] },
  { name: 'B02', pixel: 10, mix: [[1, 1]] },
  { name: 'B03', pixel: 10, mix: [[2, 1]] },
  { name: 'B04', pixel: 10, mix: [[3, 1]] },
  {
    name: 'B05',
    pixel: 20,
    mix: [
      [3, 0.7],
      [4, 0.3],
    ],
  },
  {
    name: 'B06',
    pixel: 20,
    mix: [
      [3, 0.25],
      [4, 0.75],
    ],
  },
  {
    name: 'B07',
    pixel: 20,
    mix: [
      [3, 0.1],
      [4, 0.9],
    ],
  },
  { name: 'B08', pixel: 10, mix: [[4, 1]] },
  { name: 'B8A', pixel: 20, mix: [[4, 1.02]] },
  { name: 'B09', pixel: 60, mix: [[4, 0.4]] },
  { name: 'B10', pixel: 60, mix: [] },
  { name: 'B11', pixel: 20, mix: [[5, 1]] },
  { name: 'B12', pixel: 20, mix: [[6, 1]] },
];

/**
 * Writes a Sentinel-2 product as ESA delivers it: `<product>.SAFE` with product and tile metadata, one file a band, nodata 0.
 * Level 2A has a scene classification (SCL) and copies of its 10 m bands at 20 m; level 1C from baseline 04.00 on has
 * MSK_CLASSI_B00. True colour, angles and the other masks are omitted. Needs gdal_translate on PATH for `jpeg2000`.
 */
export async function writeSafe(folder: string, options: SafeOptions = {}): Promise<SafeProductFiles> {
  const { level = 'L2A', baseline = '05.09', datatake = '2023-07-07T10:06:21Z' } = options;
  const { size = { width: 1098, height: 1098 }, cloudShare = 0.15, orbitEdge = true } = options;
  const { seed = DEFAULT_SEED, jpeg2000 = false } = options;
  if (size.width % 6 !== 0 || size.height % 6 !== 0)
    throw new Error('the size must be a multiple of 6 pixels');
  const scene = observeScene({ x: 0, y: 0, ...size, pixelSize: 10 }, datatake, cloudShare, seed);
  const inside = insideOrbit(size, orbitEdge);
  const shifted = Number(baseline) >= 4;
  const facts: SafeFacts = {
    level,
    baseline,
    datatake,
    sensed: new Date(Date.parse(datatake) + SENSING_DELAY).toISOString().replace('.000Z', 'Z'),
    orbit: 22,
    absoluteOrbit: 41_987,
    mgrs: '33UVP',
    epsg: SAFE_EPSG,
    origin: SAFE_ORIGIN,
    size,
    addOffset: shifted ? -1000 : null,
    cloudPercent: percentOf(scene.cloud, inside),
  };

  const path = join(folder, `${productId(facts)}.SAFE`);
  const granule = join('GRANULE', granuleId(facts));
  const stem = `T${facts.mgrs}_${facts.datatake.replace(/[-:]|Z$/g, '')}`;
  const listed: string[] = [];
  const bandPaths: Record<string, string> = {};
  const write = async (name: string, pixel: number, bands: (Uint16Array | Uint8Array)[]) => {
    const file = join(path, `${name}.jp2`);
    await mkdir(dirname(file), { recursive: true });
    await writeImage(file, bands, size, pixel, jpeg2000);
    return file;
  };
  const writeBand = async (band: string, pixel: number, numbers: Uint16Array | Uint8Array) => {
    const name =
      level === 'L1C'
        ? join(granule, 'IMG_DATA', `${stem}_${band}`)
        : join(granule, 'IMG_DATA', `R${pixel}m`, `${stem}_${band}_${pixel}m`);
    listed.push(name);
    return write(name, pixel, [numbers]);
  };

  for (const { name, pixel, mix } of BANDS) {
    if (name === 'B10' && level === 'L2A') continue;
    const fine = name === 'B10' ? scene.cirrusBand : mixed(scene.spectrum, mix);
    const numbersAt = (metres: number) =>
      digitalNumbers(fine, inside, size, metres / 10, facts.addOffset ?? 0);
    bandPaths[name] = await writeBand(name, pixel, numbersAt(pixel));
    if (level === 'L2A' && pixel === 10 && name !== 'B08') await writeBand(name, 20, numbersAt(20));
  }
  if (level === 'L2A') {
    bandPaths.SCL = await writeBand('SCL', 20, sceneClasses(scene, inside, size));
  } else if (shifted) {
    const name = join(granule, 'QI_DATA', 'MSK_CLASSI_B00');
    bandPaths.CLASSI = await write(name, 60, classification(scene, inside, size));
  }

  const metadataPath = join(path, `MTD_MSI${level}.xml`);
  const tileMetadataPath = join(path, granule, 'MTD_TL.xml');
  await writeFile(metadataPath, productMetadata(facts, listed));
  await writeFile(tileMetadataPath, tileMetadata(facts));
  const sceneId = `S2A_MSI${level}_${stem.slice(7)}_R022_T${facts.mgrs}`;
  return { path, sceneId, metadataPath, tileMetadataPath, bandPaths, addOffset: facts.addOffset ?? 0 };
}

interface ObservedScene {
  landscape: Landscape;
  /** Reflectance at 10 m of the seven bands of a `Spectrum`. */
  spectrum: Float32Array[];
  cirrusBand: Float32Array;
  cloud: Float32Array;
  shadow: Float32Array;
  cirrus: Float32Array;
}

function observeScene(view: View, datatake: string, cloudShare: number, seed: number): ObservedScene {
  const landscape = makeLandscape(view, seed);
  const day = dayOfYear(datatake);
  const season = averageSeason(landscape, day);
  const sky = makeSky(view, cloudShare, seed + 1000 * day + 7);
  const cirrus = fractalNoise(view, 4000, 4, seed + 1000 * day + 6).map((value) =>
    smoothstep(0.7, 0.85, value),
  );
  const spectrum = [0, 1, 2, 3, 4, 5, 6].map((band) => {
    const ground = groundReflectance(landscape, season, band).map((value, i) => value + 0.05 * cirrus[i]);
    return observe(ground, sky, view.width, seed + 11 * band);
  });
  const cirrusBand = cirrus.map((value, i) => 0.0012 + 0.045 * value + 0.004 * sky.cloud[i]);
  return { landscape, spectrum, cirrusBand, ...sky, cirrus };
}

/** 1 where the orbit has seen the ground, at 10 m; its edge follows whole pixels of 60 m, so that all bands end together. */
function insideOrbit({ width, height }: { width: number; height: number }, edge: boolean): Uint8Array {
  const inside = new Uint8Array(width * height).fill(1);
  if (!edge) return inside;
  for (let row = 0; row < height; row++) {
    const coarseRow = Math.floor(row / 6);
    const end = 6 * Math.round((width / 6) * (0.78 + (0.2 * 6 * coarseRow) / height));
    inside.fill(0, row * width + Math.min(end, width), (row + 1) * width);
  }
  return inside;
}

function mixed(spectrum: Float32Array[], mix: [number, number][]): Float32Array {
  const out = new Float32Array(spectrum[0].length);
  for (const [band, share] of mix) for (let i = 0; i < out.length; i++) out[i] += share * spectrum[band][i];
  return out;
}

/** Mean over squares of `factor` pixels. */
function averaged(field: Float32Array, width: number, factor: number): Float32Array {
  if (factor === 1) return field;
  const across = width / factor;
  const out = new Float32Array(field.length / (factor * factor));
  for (let row = 0, i = 0; row < field.length / width; row++) {
    const start = Math.floor(row / factor) * across;
    for (let column = 0; column < width; column++, i++) out[start + Math.floor(column / factor)] += field[i];
  }
  return out.map((sum) => sum / (factor * factor));
}

/** The upper left pixel of each square of `factor` pixels. */
function sampled(field: Uint8Array, width: number, factor: number): Uint8Array {
  const across = width / factor;
  return Uint8Array.from({ length: field.length / (factor * factor) }, (_, i) => {
    const column = i % across;
    return field[((i - column) / across) * factor * width + column * factor];
  });
}

function digitalNumbers(
  reflectance: Float32Array,
  inside: Uint8Array,
  { width }: { width: number },
  factor: number,
  addOffset: number,
): Uint16Array {
  const seen = sampled(inside, width, factor);
  return Uint16Array.from(averaged(reflectance, width, factor), (value, i) =>
    seen[i] ? Math.min(65_534, Math.max(1, Math.round(value * 10_000) - addOffset)) : 0,
  );
}

/** Scene classification at 20 m: 0 nodata, 3 shadow, 4 vegetation, 5 bare, 6 water, 8 and 9 cloud, 10 cirrus. */
function sceneClasses(scene: ObservedScene, inside: Uint8Array, { width }: { width: number }): Uint8Array {
  const seen = sampled(inside, width, 2);
  const kinds = sampled(scene.landscape.kind, width, 2);
  const [cloud, shadow, cirrus] = [scene.cloud, scene.shadow, scene.cirrus].map((f) => averaged(f, width, 2));
  const bare: number[] = [Kinds.rock, Kinds.soil, Kinds.town];
  return seen.map((flag, i) => {
    if (!flag) return 0;
    if (cloud[i] >= CLOUD_OPACITY) return cloud[i] > 0.6 ? 9 : 8;
    if (cirrus[i] > 0.3) return 10;
    if (shadow[i] > 0.12) return 3;
    if (kinds[i] === Kinds.water) return 6;
    return bare.includes(kinds[i]) ? 5 : 4;
  });
}

/** MSK_CLASSI at 60 m: opaque cloud, cirrus, snow; 1 means true. The snow band is 0 everywhere. */
function classification(
  scene: ObservedScene,
  inside: Uint8Array,
  { width }: { width: number },
): Uint8Array[] {
  const seen = sampled(inside, width, 6);
  const [cloud, cirrus] = [scene.cloud, scene.cirrus].map((field) => averaged(field, width, 6));
  return [
    seen.map((flag, i) => (flag && cloud[i] >= CLOUD_OPACITY ? 1 : 0)),
    seen.map((flag, i) => (flag && cloud[i] < CLOUD_OPACITY && cirrus[i] > 0.3 ? 1 : 0)),
    new Uint8Array(seen.length),
  ];
}

function percentOf(cloud: Float32Array, inside: Uint8Array): number {
  let all = 0;
  let cloudy = 0;
  for (let i = 0; i < inside.length; i++) {
    if (!inside[i]) continue;
    all++;
    if (cloud[i] >= CLOUD_OPACITY) cloudy++;
  }
  return (100 * cloudy) / all;
}

async function writeImage(
  path: string,
  bands: (Uint16Array | Uint8Array)[],
  { width, height }: { width: number; height: number },
  pixel: number,
  jpeg2000: boolean,
): Promise<void> {
  const bytes = encodeCog({
    width: (width * 10) / pixel,
    height: (height * 10) / pixel,
    dataType: bands[0] instanceof Uint8Array ? 'uint8' : 'uint16',
    bands,
    transform: { originX: SAFE_ORIGIN.x, originY: SAFE_ORIGIN.y, pixelWidth: pixel, pixelHeight: pixel },
    epsg: SAFE_EPSG,
    overviews: 'nearest',
  });
  if (!jpeg2000) return writeFile(path, bytes);
  const tiff = `${path}.tif`;
  await writeFile(tiff, bytes);
  const lossless = ['-co', 'QUALITY=100', '-co', 'REVERSIBLE=YES', '-co', 'YCBCR420=NO'];
  const quiet = { env: { ...process.env, GDAL_PAM_ENABLED: 'NO' } };
  await promisify(execFile)('gdal_translate', ['-q', '-of', 'JP2OpenJPEG', ...lossless, tiff, path], quiet);
  await rm(tiff);
}
