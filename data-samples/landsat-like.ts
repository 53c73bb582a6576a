import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeCog } from '../src/raster/index.js';
import { CLOUD_OPACITY, makeSky, type Sky } from './clouds.js';
import { averageSeason, dayOfYear, type Season } from './dates.js';
import { Kinds } from './kinds.js';
import { landsatMetadata, type MtlForm } from './landsat-metadata.js';
import {
  LANDSAT_DATETIME,
  LANDSAT_EPSG,
  LANDSAT_ORIGIN,
  LANDSAT_PRODUCT_ID,
  REFLECTANCE_BIAS,
  REFLECTANCE_MULTIPLIER,
  SUN_ELEVATION,
} from './landsat-product.js';
import { type Landscape, makeLandscape } from './landscape.js';
import { fractalNoise, smoothstep, type View } from './noise.js';
import { groundReflectance, observe } from './observe.js';
import { qaPixel } from './qa-pixel.js';

export interface LandsatOptions {
  /** Pixels of 30 m; the panchromatic band has twice as many each way. */
  size?: { width: number; height: number };
  /** Share of the view under clouds, 0-1. */
  cloudShare?: number;
  seed?: number;
  /** The form of the MTL. */
  mtl?: MtlForm;
}

/** The files of `writeLandsatLikeScene`. */
export interface LandsatScene {
  productId: string;
  mtlPath: string;
  /** One file a band: B1-B7 and B9 at 30 m, B8 at 15 m, QA_PIXEL. */
  bandPaths: Record<string, string>;
}

const DEFAULT_SIZE = { width: 500, height: 450 };
const DEFAULT_SEED = 20_230_707;
const FINE_PIXEL = 15;

/**
 * Writes a scene as the USGS delivers Landsat 8 Collection 2 Level 1: one uint16 GeoTIFF a band, an MTL file, fill 0
 * outside a tilted footprint, and QA_PIXEL. The thermal bands are omitted. Creates the folder if it does not exist.
 */
export async function writeLandsatLikeScene(
  folder: string,
  { size = DEFAULT_SIZE, cloudShare = 0.18, seed = DEFAULT_SEED, mtl = 'txt' }: LandsatOptions = {},
): Promise<LandsatScene> {
  await mkdir(folder, { recursive: true });
  const fine: View = { x: 0, y: 0, width: size.width * 2, height: size.height * 2, pixelSize: FINE_PIXEL };
  const coarse: View = { x: 0, y: 0, ...size, pixelSize: 2 * FINE_PIXEL };
  const landscape = makeLandscape(fine, seed);
  const season = averageSeason(landscape, dayOfYear(LANDSAT_DATETIME));
  const sky = makeSky(coarse, cloudShare, seed + 5);
  const cirrus = fractalNoise(coarse, 4000, 4, seed + 6).map((value) => smoothstep(0.66, 0.8, value));
  const inside = footprint(coarse);

  const bandPaths: Record<string, string> = {};
  const write = async (band: string, view: View, numbers: Uint16Array, fill: number) => {
    const path = join(folder, `${LANDSAT_PRODUCT_ID}_${band}.TIF`);
    await writeFile(path, encodeBand(view, numbers, fill));
    bandPaths[band] = path;
  };
  for (let band = 0; band < 7; band++) {
    const ground = averagePairs(groundReflectance(landscape, season, band), fine);
    const seen = observe(withCirrus(ground, cirrus), sky, coarse.width, seed + 70 + band);
    await write(`B${band + 1}`, coarse, digitalNumbers(seen, inside), 0);
  }
  await write('B8', fine, panchromatic(landscape, season, doubleSky(sky, coarse), inside, seed), 0);
  const high = cirrus.map((value, i) => 0.0012 + 0.045 * value + 0.004 * sky.cloud[i]);
  await write('B9', coarse, digitalNumbers(high, inside), 0);
  await write('QA_PIXEL', coarse, quality(landscape, sky, cirrus, inside), 1);

  const mtlPath = join(folder, `${LANDSAT_PRODUCT_ID}_MTL.${mtl}`);
  await writeFile(mtlPath, landsatMetadata(coarse, cloudPercent(sky, inside), mtl));
  return { productId: LANDSAT_PRODUCT_ID, mtlPath, bandPaths };
}

function encodeBand(view: View, numbers: Uint16Array, fill: number): Buffer {
  return encodeCog({
    width: view.width,
    height: view.height,
    dataType: 'uint16',
    bands: [numbers],
    transform: {
      originX: LANDSAT_ORIGIN.x,
      originY: LANDSAT_ORIGIN.y,
      pixelWidth: view.pixelSize,
      pixelHeight: view.pixelSize,
    },
    epsg: LANDSAT_EPSG,
    nodata: fill,
    overviews: 'nearest',
  });
}

/** 1 inside the rectangle tilted by about 12 degrees that the orbit leaves of the view. */
function footprint({ width, height }: View): Uint8Array {
  const inside = new Uint8Array(width * height);
  const slope = 0.21;
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const left = column + slope * row - 0.14 * width;
      const top = row - slope * column + 0.07 * height;
      const right = 1.02 * width - column - slope * row + 0.04 * width;
      const bottom = height - row + slope * column - 0.1 * height;
      if (left >= 0 && top >= 0 && right >= 0 && bottom >= 0) inside[row * width + column] = 1;
    }
  }
  return inside;
}

/** Mean of each two by two pixels. */
function averagePairs(field: Float32Array, { width, height }: View): Float32Array {
  const out = new Float32Array((width * height) / 4);
  for (let row = 0, i = 0; row < height; row += 2) {
    for (let column = 0; column < width; column += 2, i++) {
      const at = row * width + column;
      out[i] = (field[at] + field[at + 1] + field[at + width] + field[at + width + 1]) / 4;
    }
  }
  return out;
}

/** Each pixel of a sky four times, so that the panchromatic band has the same clouds. */
function doubleSky(sky: Sky, { width, height }: View): Sky {
  const double = (field: Float32Array) => {
    const out = new Float32Array(width * height * 4);
    for (let i = 0; i < out.length; i++) {
      const column = i % (width * 2);
      out[i] = field[(((i - column) / (width * 2)) >> 1) * width + (column >> 1)];
    }
    return out;
  };
  return { cloud: double(sky.cloud), shadow: double(sky.shadow) };
}

/** Mean of green and red. */
function panchromatic(landscape: Landscape, season: Season, sky: Sky, inside: Uint8Array, seed: number) {
  const { width } = landscape.view;
  const green = groundReflectance(landscape, season, 2);
  const red = groundReflectance(landscape, season, 3);
  const seen = observe(
    green.map((value, i) => (value + red[i]) / 2),
    sky,
    width,
    seed + 80,
  );
  const numbers = digitalNumbers(seen);
  for (let i = 0; i < numbers.length; i++) {
    const column = i % width;
    if (!inside[(((i - column) / width) >> 1) * (width >> 1) + (column >> 1)]) numbers[i] = 0;
  }
  return numbers;
}

/** Cirrus brightens every band a little. */
function withCirrus(reflectance: Float32Array, cirrus: Float32Array): Float32Array {
  return reflectance.map((value, i) => value + 0.05 * cirrus[i]);
}

function digitalNumbers(reflectance: Float32Array, inside?: Uint8Array): Uint16Array {
  const sunSine = Math.sin((SUN_ELEVATION * Math.PI) / 180);
  const numbers = new Uint16Array(reflectance.length);
  for (let i = 0; i < numbers.length; i++) {
    if (inside && !inside[i]) continue;
    const number = Math.round((reflectance[i] * sunSine - REFLECTANCE_BIAS) / REFLECTANCE_MULTIPLIER);
    numbers[i] = Math.min(65_535, Math.max(1, number));
  }
  return numbers;
}

function quality(landscape: Landscape, sky: Sky, cirrus: Float32Array, inside: Uint8Array): Uint16Array {
  const width = landscape.view.width / 2;
  const near = dilate(sky.cloud, width, 3);
  return Uint16Array.from(inside, (isInside, i) => {
    const column = i % width;
    const fineIndex = ((i - column) / width) * 2 * landscape.view.width + column * 2;
    const cloud = sky.cloud[i] >= CLOUD_OPACITY;
    return qaPixel({
      fill: !isInside,
      cloud,
      dilatedCloud: !cloud && near[i] >= CLOUD_OPACITY,
      cirrus: cirrus[i] > 0.3,
      shadow: !cloud && sky.shadow[i] > 0.12,
      snow: false,
      water: landscape.kind[fineIndex] === Kinds.water,
    });
  });
}

/** Largest value within `reach` pixels along rows and columns (a square window, one axis after the other). */
function dilate(field: Float32Array, width: number, reach: number): Float32Array {
  const height = field.length / width;
  const pass = (from: Float32Array, step: number, position: (i: number) => number, length: number) =>
    from.map((_, i) => {
      let largest = 0;
      for (let k = -reach; k <= reach; k++) {
        const at = position(i) + k;
        if (at >= 0 && at < length) largest = Math.max(largest, from[i + k * step]);
      }
      return largest;
    });
  const wide = pass(field, 1, (i) => i % width, width);
  return pass(wide, width, (i) => Math.floor(i / width), height);
}

function cloudPercent(sky: Sky, inside: Uint8Array): number {
  let cloud = 0;
  let all = 0;
  for (let i = 0; i < inside.length; i++) {
    if (!inside[i]) continue;
    all++;
    if (sky.cloud[i] >= CLOUD_OPACITY) cloud++;
  }
  return (100 * cloud) / all;
}
