/** Pictures as PNG and WebP. */
import type { Look } from './look.js';
import type { Picture } from './mosaic.js';

export type PictureFormat = 'png' | 'webp';

/** Red, green, blue and opacity of each pixel; what holds no value is transparent. */
export function paint({ width, height, planes }: Picture, { ranges, ramp, legend }: Look): Uint8Array {
  const pixels = new Uint8Array(4 * width * height);
  const counts = planes.map((plane, p) => (legend ? plane : stretched(plane, ranges[p])));
  for (let i = 0, to = 0; i < width * height; i++, to += 4) {
    if (Number.isNaN(planes[0][i])) continue;
    if (legend) {
      const colour = legend.get(counts[0][i]);
      if (colour === undefined) continue;
      pixels[to] = colour >> 16;
      pixels[to + 1] = (colour >> 8) & 255;
      pixels[to + 2] = colour & 255;
    } else if (planes.length === 1) {
      const count = counts[0][i];
      pixels[to] = ramp ? ramp[3 * count] : count;
      pixels[to + 1] = ramp ? ramp[3 * count + 1] : count;
      pixels[to + 2] = ramp ? ramp[3 * count + 2] : count;
    } else {
      pixels[to] = counts[0][i];
      pixels[to + 1] = counts[1][i];
      pixels[to + 2] = counts[2][i];
    }
    pixels[to + 3] = 255;
  }
  return pixels;
}

function stretched(plane: Float64Array, [low, high]: readonly [number, number]): Uint8ClampedArray {
  const counts = new Uint8ClampedArray(plane.length);
  const factor = 255 / (high - low);
  for (let i = 0; i < plane.length; i++) counts[i] = (plane[i] - low) * factor;
  return counts;
}

/** Little effort: a map tile is made while somebody waits for it. */
const PNG = { compressionLevel: 3, adaptiveFiltering: false };
const WEBP = { quality: 80, effort: 2 };

export async function encodePicture(
  pixels: Uint8Array,
  width: number,
  height: number,
  format: PictureFormat,
): Promise<Buffer> {
  // Loaded at the first picture: a fifth of a second that most commands do not need.
  const { default: sharp } = await import('sharp');
  const image = sharp(pixels, { raw: { width, height, channels: 4 } });
  return (format === 'png' ? image.png(PNG) : image.webp(WEBP)).toBuffer();
}
