/** The texture of a stored tile. */
import { clearPixels } from '../data/acquisition-pixels.js';
import type { PlaceDate } from '../data/acquisitions.js';
import { readPlace } from '../data/read-acquisitions.js';
import { VISIBLE } from '../models/rgb-inputs.js';
import { textureOf } from './glcm.js';
import { greyLevels } from './grey-levels.js';

/** Fewer clear pixels than this say little of a place. */
const LEAST_PIXELS = 500;

export type TileTexture = { values: number[] } | { skipped: string };

/** Of a date with red, green and blue. */
export async function textureOfTile(date: PlaceDate): Promise<TileTexture> {
  const read = await readPlace([date]);
  if ('skipped' in read) return read;
  const [{ width, height, bands, ...pixels }] = read.dates;
  const clear = clearPixels({ width, height, bands, ...pixels }, VISIBLE);
  const { red, green, blue } = bands;
  const levels = greyLevels({ red: red!, green: green!, blue: blue! }, clear);
  const seen = levels.reduce((count, level) => count + Math.min(1, level), 0);
  if (seen < LEAST_PIXELS)
    return { skipped: `fewer than ${LEAST_PIXELS} clear pixels in the clearest image` };
  const texture = textureOf({ width, height, levels });
  return texture ? { values: [...texture] } : { skipped: 'no two clear pixels near each other' };
}
