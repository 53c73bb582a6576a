/** Converts values to pixels, optionally by a colour formula, and encodes them as PNG, WebP and JPEG. */

import { type Colormap, colormapLookup } from './colormaps.js';
import { badRenderParameter } from './errors.js';

/** Constants of the conversion to CIE Lab. */
const LAB_INTERCEPT = 4 / 29;
const LAB_DELTA = 6 / 29;
const LAB_THRESHOLD = LAB_DELTA ** 3;
const LAB_SLOPE = LAB_DELTA ** -2 / 3;
/** White point, X and Z; Y is 1. */
const WHITE_X = 0.95047;
const WHITE_Z = 1.08883;

const linear = (value: number) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const companded = (value: number) =>
  value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055;
const toLab = (value: number) =>
  value > LAB_THRESHOLD ? Math.cbrt(value) : LAB_SLOPE * value + LAB_INTERCEPT;
const fromLab = (value: number) =>
  value > LAB_DELTA ? value ** 3 : 3 * LAB_DELTA * LAB_DELTA * (value - LAB_INTERCEPT);
const clamped = (value: number) => Math.min(1, Math.max(0, value));

/**
 * Multiplies the chroma of each pixel by `factor`, in place, in the colour space CIE LCh(ab), with sRGB companding and the white point D65.
 * Channels are 0 to 1. The hue is kept by multiplying a* and b* alike. Formulas and constants are those of color-operations (MIT, Copyright
 * 2015 Mapbox).
 */
function saturate([reds, greens, blues]: Float64Array[], factor: number): void {
  for (let i = 0; i < reds.length; i++) {
    const [red, green, blue] = [linear(reds[i]), linear(greens[i]), linear(blues[i])];
    const x = toLab((red * 0.4124564 + green * 0.3575761 + blue * 0.1804375) / WHITE_X);
    const y = toLab(red * 0.2126729 + green * 0.7151522 + blue * 0.072175);
    const z = toLab((red * 0.0193339 + green * 0.119192 + blue * 0.9503041) / WHITE_Z);
    const outX = fromLab(y + (x - y) * factor) * WHITE_X;
    const outY = fromLab(y);
    const outZ = fromLab(y - (y - z) * factor) * WHITE_Z;
    reds[i] = clamped(companded(outX * 3.2404542 + outY * -1.5371385 + outZ * -0.4985314));
    greens[i] = clamped(companded(outX * -0.969266 + outY * 1.8760108 + outZ * 0.041556));
    blues[i] = clamped(companded(outX * 0.0556434 + outY * -0.2040259 + outZ * 1.0572252));
  }
}

/** An operation of a colour formula: plain data, for worker threads. Planes count from 0. */
type ColourOperation =
  | { kind: 'gamma'; planes: number[]; gamma: number }
  | { kind: 'sigmoidal'; planes: number[]; contrast: number; bias: number }
  | { kind: 'saturation'; proportion: number };

const MAX_FORMULA_LENGTH = 500;
/** Each operation is a pass over all pixels. */
const MAX_OPERATIONS = 8;

/** Syntax of an operation: its name, its bands if any, and its numbers. */
const OPERATION_FORMS: Record<ColourOperation['kind'], string> = {
  gamma: 'gamma BANDS NUMBER',
  sigmoidal: 'sigmoidal BANDS CONTRAST BIAS',
  saturation: 'saturation NUMBER',
};
const BAND_LETTERS = 'rgb';

const isOperation = (word: string): word is ColourOperation['kind'] => Object.hasOwn(OPERATION_FORMS, word);
const badFormula = (why: string) => badRenderParameter('color_formula', why);

/**
 * Parses a formula such as `gamma rgb 1.8, sigmoidal rgb 6 0.2, saturation 1.2` for an image of `planes` planes. Operations and their
 * formulas are those of rio-color and color-operations (MIT, Copyright 2015 Mapbox). Commas count as spaces; case does not matter. Throws
 * TW_IMAGERY_LOOK.
 */
export function parseColourFormula(text: string, planes: number): ColourOperation[] {
  if (text.length > MAX_FORMULA_LENGTH) throw badFormula(`is longer than ${MAX_FORMULA_LENGTH} characters`);
  const words = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  if (words.length === 0) throw badFormula('is empty: write operations such as "gamma rgb 1.5"');
  const starts = words.flatMap((word, i) => (isOperation(word) ? [i] : []));
  if (starts[0] !== 0)
    throw badFormula(
      `begins with "${words[0]}": operations are ${Object.values(OPERATION_FORMS).join(', ')}`,
    );
  if (starts.length > MAX_OPERATIONS) throw badFormula(`has more than ${MAX_OPERATIONS} operations`);
  return starts.map((start, i) => operationOf(words.slice(start, starts[i + 1]), planes));
}

function operationOf([name, ...given]: string[], planes: number): ColourOperation {
  const kind = name as ColourOperation['kind'];
  const bands = kind === 'saturation' ? undefined : given.shift();
  const wanted = kind === 'sigmoidal' ? 2 : 1;
  const numbers = given.map(Number);
  if (
    (kind !== 'saturation' && bands === undefined) ||
    numbers.length !== wanted ||
    !numbers.every(Number.isFinite)
  )
    throw badFormula(`has "${[name, bands, ...given].join(' ')}": write ${OPERATION_FORMS[kind]}`);
  const [first, second] = numbers;
  switch (kind) {
    case 'gamma':
      if (first <= 0) throw badFormula(`has a gamma of ${first}: it must be above 0`);
      return { kind, planes: planesOf(bands!, planes), gamma: first };
    case 'sigmoidal':
      if (second < 0 || second > 1) throw badFormula(`has a bias of ${second}: it must be from 0 to 1`);
      return { kind, planes: planesOf(bands!, planes), contrast: first, bias: second };
    case 'saturation':
      if (planes !== 3) throw badFormula(`has saturation, which is for 3 bands, and the map has ${planes}`);
      return { kind, proportion: first };
  }
}

function planesOf(bands: string, planes: number): number[] {
  const found = [...bands].map((band) =>
    /[123]/.test(band) ? Number(band) - 1 : BAND_LETTERS.indexOf(band),
  );
  if (found.includes(-1)) throw badFormula(`has the bands "${bands}": bands are r, g and b, or 1, 2 and 3`);
  const missing = found.findIndex((plane) => plane >= planes);
  if (missing >= 0) throw badFormula(`names band ${bands[missing]}, and the map has ${planes}`);
  return [...new Set(found)];
}

/** Applies operations in order and in place. Planes are 0 to 1. */
export function applyColourFormula(planes: Float64Array[], operations: ColourOperation[]): void {
  for (const operation of operations) {
    if (operation.kind === 'saturation') saturate(planes, operation.proportion);
    else {
      const curve =
        operation.kind === 'gamma'
          ? (value: number) => value ** (1 / operation.gamma)
          : sigmoidal(operation.contrast, operation.bias);
      for (const plane of operation.planes.map((p) => planes[p]))
        for (let i = 0; i < plane.length; i++) plane[i] = inRange(curve(plane[i]));
    }
  }
}

/** Clamps to 0 to 1. NaN, at the ends of extreme curves, becomes 0. */
const inRange = (value: number) => (value > 0 ? Math.min(1, value) : 0);

/** Sigmoidal contrast around `bias`; for a negative contrast, its inverse. */
function sigmoidal(contrast: number, bias: number): (value: number) => number {
  if (contrast === 0) return (value) => value;
  const alpha = bias === 0 ? Number.EPSILON : bias;
  const sigmoid = (exponent: number) => 1 / (1 + Math.exp(exponent));
  const low = sigmoid(contrast * alpha);
  const high = sigmoid(contrast * (alpha - 1));
  if (contrast > 0) return (value) => (sigmoid(contrast * (alpha - value)) - low) / (high - low);
  return (value) => (contrast * alpha - Math.log(1 / (value * high - value * low + low) - 1)) / contrast;
}

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
