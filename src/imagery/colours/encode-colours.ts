/** Converts values to pixels, and encodes them as PNG, WebP and JPEG. */

import { type Colormap, colormapLookup } from './colormap-lookup.js';
import { applyColourFormula, type ColourOperation } from './colour-formula.js';

export type ImageFormat = 'png' | 'webp' | 'jpeg';

export type ValueRange = readonly [low: number, high: number];

export const BYTE_RANGE: ValueRange = [0, 255];

/** Conversion of values to colours. Plain data, for worker threads. */
export interface Style {
  /** The values of each plane from low to high are scaled to 0 to 255. Undefined: `colouring` applies to unscaled values. */
  ranges?: ValueRange[] | undefined;
  /** Colours of a single plane. */
  colouring?: Colormap | undefined;
  /** Applied to planes that `ranges` have scaled. */
  formula?: ColourOperation[] | undefined;
}

/** Red, green, blue and opacity of each pixel of one or three planes; a pixel without a value is transparent black. */
export function renderRgba(planes: Float64Array[], style: Style): Uint8Array {
  const [first] = planes;
  const pixels = new Uint8Array(4 * first.length);
  const counts = countsOf(planes, style);
  const colourOf = style.colouring && colormapLookup(style.colouring);
  for (let i = 0, to = 0; i < first.length; i++, to += 4) {
    if (Number.isNaN(first[i])) continue;
    if (colourOf) {
      const colour = colourOf(counts[0][i]);
      pixels[to] = colour >>> 24;
      pixels[to + 1] = (colour >> 16) & 255;
      pixels[to + 2] = (colour >> 8) & 255;
      pixels[to + 3] = colour & 255;
      continue;
    }
    for (let channel = 0; channel < 3; channel++)
      pixels[to + channel] = counts[planes.length === 1 ? 0 : channel][i];
    pixels[to + 3] = 255;
  }
  return pixels;
}

function countsOf(planes: Float64Array[], { ranges, formula }: Style): (Float64Array | Uint8ClampedArray)[] {
  if (!ranges) return planes;
  if (!formula) return planes.map((plane, p) => stretched(plane, ranges[p]));
  const shares = planes.map((plane, p) => normalised(plane, ranges[p]));
  applyColourFormula(shares, formula);
  return shares.map((plane) => stretched(plane, [0, 1]));
}

function stretched(plane: Float64Array, [low, high]: ValueRange): Uint8ClampedArray {
  const counts = new Uint8ClampedArray(plane.length);
  const factor = 255 / (high - low);
  for (let i = 0; i < plane.length; i++) counts[i] = (plane[i] - low) * factor;
  return counts;
}

/** Scales values to 0 at the low end of a range and 1 at the high end. NaN becomes 0. */
function normalised(plane: Float64Array, [low, high]: ValueRange): Float64Array {
  return plane.map((value) => {
    const share = (value - low) / (high - low);
    return share > 0 ? Math.min(1, share) : 0;
  });
}

/** Low compression effort, because clients wait for map tiles. */
const PNG = { compressionLevel: 3, adaptiveFiltering: false };
const WEBP = { quality: 80, effort: 2 };
/** The quality of titiler. */
const JPEG = { quality: 85 };

/**
 * Encodes pixels of red, green, blue and opacity. JPEG has no opacity, and `opacity: false` leaves it out of the others: transparent pixels
 * then show their colour, which is black if they have no value.
 */
export async function encodeImage(
  pixels: Uint8Array,
  width: number,
  height: number,
  format: ImageFormat,
  opacity = true,
): Promise<Buffer> {
  // Loaded with the first image: it takes a fifth of a second, and most commands do not need it.
  const { default: sharp } = await import('sharp');
  const raw = sharp(pixels, { raw: { width, height, channels: 4 } });
  const image = opacity && format !== 'jpeg' ? raw : raw.removeAlpha();
  switch (format) {
    case 'png':
      return image.png(PNG).toBuffer();
    case 'webp':
      return image.webp(WEBP).toBuffer();
    case 'jpeg':
      return image.jpeg(JPEG).toBuffer();
  }
}

/** True if a pixel is not opaque. */
export function isTransparent(pixels: Uint8Array): boolean {
  for (let i = 3; i < pixels.length; i += 4) if (pixels[i] < 255) return true;
  return false;
}
