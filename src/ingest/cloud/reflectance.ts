/**
 * Detects cloud by reflectance alone, for products without a mask.
 *
 * Fmask's first pass finds potential cloud pixels: Zhu & Woodcock 2012, "Object-based cloud and cloud shadow detection in
 * Landsat imagery", Remote Sensing of Environment 118, equations 1-4 and 6. Left out are its parts that need a thermal band,
 * and the second pass over the entire scene. Alone it classifies much bright ground as cloud, so a pixel must also pass the
 * cloud step of Luo, Trishchenko & Khlopenkov 2008, "Developing clear-sky, cloud and cloud shadow mask for producing clear-sky
 * composites at 250-meter spatial resolution", Remote Sensing of Environment 112, which needs no thermal band.
 *
 * Snow is not detected: without temperature, Fmask's snow test (equation 20) classifies cloud shadow as snow. Shadow is not
 * detected either. docs/reference/benchmarks.md has the scores.
 */
import { Mask } from '../../raster/index.js';
import { badCloudBands } from '../errors.js';

/** Reflectance at the top of the atmosphere, 0-1, all of one size. Centres: 0.48, 0.56, 0.66, 0.86, 1.6 and 2.2 micrometres. */
export type CloudBands = Record<'blue' | 'green' | 'red' | 'nir' | 'swir16' | 'swir22', Float32Array>;

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
 * Writes mask codes for one image: nodata if `valid` is 0, not assessed if a band is not finite, else cloud or clear. All
 * arrays have one entry per pixel.
 */
export function detectCloudByReflectance(bands: CloudBands, valid: Uint8Array, out: Uint8Array): void {
  const { blue, green, red, nir, swir16, swir22 } = bands;
  for (const [name, { length }] of Object.entries({ ...bands, out })) {
    if (length !== valid.length) throw badCloudBands(name, length, valid.length);
  }
  for (let i = 0; i < valid.length; i++) {
    const b = blue[i];
    const g = green[i];
    const r = red[i];
    const n = nir[i];
    const s = swir16[i];
    const t = swir22[i];
    if (valid[i] === 0) out[i] = Mask.nodata;
    else if (!Number.isFinite(b + g + r + n + s + t)) out[i] = Mask.notAssessed;
    else
      out[i] = passesBrightnessTest(b, r, s) && isPotentialCloud(b, g, r, n, s, t) ? Mask.cloud : Mask.clear;
  }
}
