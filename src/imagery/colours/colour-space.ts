/**
 * Saturation in the colour space CIE LCh(ab), with sRGB companding and the white point D65. Formulas and constants are those of
 * color-operations (MIT, Copyright 2015 Mapbox).
 */

const INTERCEPT = 4 / 29;
const DELTA = 6 / 29;
const THRESHOLD = DELTA ** 3;
const SLOPE = DELTA ** -2 / 3;
/** White point, X and Z; Y is 1. */
const WHITE_X = 0.95047;
const WHITE_Z = 1.08883;

const linear = (value: number) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const companded = (value: number) =>
  value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055;
const toLab = (value: number) => (value > THRESHOLD ? Math.cbrt(value) : SLOPE * value + INTERCEPT);
const fromLab = (value: number) => (value > DELTA ? value ** 3 : 3 * DELTA * DELTA * (value - INTERCEPT));
const clamped = (value: number) => Math.min(1, Math.max(0, value));

/** Multiplies the chroma of each pixel by `factor`, in place. Channels are 0 to 1. The hue is kept by multiplying a* and b* alike. */
export function saturate([reds, greens, blues]: Float64Array[], factor: number): void {
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
