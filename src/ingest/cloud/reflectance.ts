/**
 * Detects cloud by reflectance alone, for products without a mask.
 *
 * Fmask's first pass finds potential cloud pixels: Zhu & Woodcock 2012, "Object-based cloud and cloud shadow detection in
 * Landsat imagery", Remote Sensing of Environment 118, equations 1-4 and 6. Left out are its parts that need a thermal band,
 * and the second pass over the entire scene. Alone it classifies much bright ground as cloud, so a pixel must also pass the
 * cloud step of Luo, Trishchenko & Khlopenkov 2008, "Developing clear-sky, cloud and cloud shadow mask for producing clear-sky
 * composites at 250-meter spatial resolution", Remote Sensing of Environment 112, which needs no thermal band.
 *
 * Both tests classify pixels: those that pass both are cloud, and bright ones are cloud beside cloud, because sensors whose blue
 * band saturates fail Fmask's tests in the middle of clouds. `shadow.ts` then uses the neighbours of the pixels.
 *
 * Snow is not detected: without temperature, Fmask's snow test (equation 20) classifies cloud shadow as snow.
 * docs/reference/benchmarks.md has the scores.
 */
import { Mask } from '../../raster/index.js';
import { badCloudBands } from '../errors.js';
import { type CloudSettings, findCloudAndShadow, LIGHT_SCALE, Light, type LightRaster } from './shadow.js';

/**
 * Reflectance at the top of the atmosphere, 0-1, all of one size. Centres: 0.48, 0.56, 0.66, 0.86, 1.6 and 2.2 micrometres; 1.37
 * for cirrus.
 */
export type CloudBands = Record<'blue' | 'green' | 'red' | 'nir' | 'swir16' | 'swir22', Float32Array> & {
  cirrus?: Float32Array;
};

/**
 * Fmask's potential cloud pixels. Ratios are multiplied out to avoid division by zero. The test fails if a sum is negative
 * (noise over dark ground).
 */
export function isPotentialCloud(
  blue: number,
  green: number,
  red: number,
  nir: number,
  swir16: number,
  swir22: number,
): boolean {
  // Equation 1, the basic test: band 7 > 0.03, NDSI < 0.8, NDVI < 0.8.
  if (!(swir22 > 0.03 && green - swir16 < 0.8 * (green + swir16) && nir - red < 0.8 * (nir + red))) {
    return false;
  }
  // Equation 2, whiteness: the sum of |(band - mean) / mean| over the visible bands < 0.7.
  const mean = (blue + green + red) / 3;
  if (!(Math.abs(blue - mean) + Math.abs(green - mean) + Math.abs(red - mean) < 0.7 * mean)) return false;
  // Equation 3, the haze optimised transformation (HOT): blue - 0.5 red - 0.08 > 0.
  if (!(blue - 0.5 * red - 0.08 > 0)) return false;
  // Equation 4: NIR / SWIR1 > 0.75, against bright rock.
  return nir > 0.75 * swir16;
}

/** The cloud step of Luo et al.: bright in blue or red and in SWIR1, and about as bright in the visible as in SWIR1. */
export function passesBrightnessTest(blue: number, red: number, swir16: number): boolean {
  return (blue > 0.15 || red > 0.18) && swir16 > 0.12 && Math.max(blue, red) > 0.67 * swir16;
}

/**
 * Finds cloud and shadow in one image: mask codes, nodata if `valid` is 0, not assessed if a band is not finite or it is unclear
 * whether a pixel is cloud or in shadow. All arrays have one entry per pixel. `sunAzimuth`: see `findCloudAndShadow`.
 */
export function detectCloudByReflectance(
  bands: CloudBands,
  valid: Uint8Array,
  width: number,
  sunAzimuth?: number,
  settings?: CloudSettings,
): Uint8Array {
  const height = valid.length / width;
  const [codes, nir, swir16] = [0, 1, 2].map(() => new Uint8Array(valid.length));
  const raster = { width, height, codes, nir, swir16 };
  classifyLight(bands, valid, width, raster);
  findCloudAndShadow(raster, sunAzimuth, settings);
  return codes;
}

/** Writes classes and light of an image of `columns` columns into the raster, at a position. */
export function classifyLight(
  bands: CloudBands,
  valid: Uint8Array,
  columns: number,
  raster: LightRaster,
  { left, top } = { left: 0, top: 0 },
): void {
  for (const [name, band] of Object.entries(bands))
    if (band.length !== valid.length) throw badCloudBands(name, band.length, valid.length);
  const { blue, green, red, nir, swir16, swir22, cirrus } = bands;
  for (let i = 0; i < valid.length; i++) {
    const at = (top + Math.floor(i / columns)) * raster.width + left + (i % columns);
    raster.codes[at] =
      valid[i] === 0
        ? Mask.nodata
        : classOf(blue[i], green[i], red[i], nir[i], swir16[i], swir22[i], cirrus?.[i] ?? 0);
    raster.nir[at] = Math.min(255, Math.max(0, Math.round(nir[i] * LIGHT_SCALE)));
    raster.swir16[at] = Math.min(255, Math.max(0, Math.round(swir16[i] * LIGHT_SCALE)));
  }
}

/** Thin cirrus at 1.37 micrometres, where water vapour hides the ground (unless it is high and dry). */
const CIRRUS_REFLECTANCE = 0.02;

function classOf(
  blue: number,
  green: number,
  red: number,
  nir: number,
  swir16: number,
  swir22: number,
  cirrus: number,
): number {
  if (!Number.isFinite(blue + green + red + nir + swir16 + swir22)) return Mask.notAssessed;
  const isBright = passesBrightnessTest(blue, red, swir16);
  if (isBright && isPotentialCloud(blue, green, red, nir, swir16, swir22)) return Mask.cloud;
  if (cirrus > CIRRUS_REFLECTANCE) return Light.cirrus;
  return isBright ? Light.bright : Mask.clear;
}
