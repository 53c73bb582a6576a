/** Texture of a stored tile. */
import { type AcquisitionFiles, clearMask, readAcquisitions } from '../data/index.js';
import { RGB_BANDS } from '../models/index.js';
import { textureOf } from './glcm.js';
import { greyLevels } from './texture-grey-levels.js';

/** Minimum number of clear pixels. */
const MIN_PIXELS = 500;

export type TileTexture = { values: number[] } | { skipped: string };

/** The date must have red, green and blue. */
export async function textureOfTile(files: AcquisitionFiles): Promise<TileTexture> {
  const read = await readAcquisitions([files]);
  if ('skipped' in read) return read;
  const [date] = read.dates;
  const { width, height, bands } = date;
  const { red, green, blue } = bands;
  const levels = greyLevels({ red: red!, green: green!, blue: blue! }, clearMask(date, RGB_BANDS));
  const seen = levels.reduce((count, level) => count + Math.min(1, level), 0);
  if (seen < MIN_PIXELS) return { skipped: `fewer than ${MIN_PIXELS} clear pixels in the clearest image` };
  const texture = textureOf({ width, height, levels });
  return texture ? { values: [...texture] } : { skipped: 'no two clear pixels near each other' };
}
