/** The texture of a stored tile. */
import { type AcquisitionFiles, clearMask, readAcquisitions } from '../data/index.js';
import { RGB_BANDS } from '../models/index.js';
import { textureOf } from './glcm.js';
import { greyLevels } from './grey-levels.js';

/** Fewer clear pixels than this say little of a place. */
const MIN_PIXELS = 500;

export type TileTexture = { values: number[] } | { skipped: string };

/** Of a date with red, green and blue. */
export async function textureOfTile(date: AcquisitionFiles): Promise<TileTexture> {
  const read = await readAcquisitions([date]);
  if ('skipped' in read) return read;
  const [{ width, height, bands, ...pixels }] = read.dates;
  const clear = clearMask({ width, height, bands, ...pixels }, RGB_BANDS);
  const { red, green, blue } = bands;
  const levels = greyLevels({ red: red!, green: green!, blue: blue! }, clear);
  const seen = levels.reduce((count, level) => count + Math.min(1, level), 0);
  if (seen < MIN_PIXELS) return { skipped: `fewer than ${MIN_PIXELS} clear pixels in the clearest image` };
  const texture = textureOf({ width, height, levels });
  return texture ? { values: [...texture] } : { skipped: 'no two clear pixels near each other' };
}
