/** Grey levels of a tile on the same scale for all tiles, so that textures are comparable. */

/** Luma of ITU-R BT.601, the usual conversion of colour to grey. */
const LUMA = { red: 0.299, green: 0.587, blue: 0.114 };
/** Reflectance of the level 255, which few cloud-free pixels exceed. */
const WHITE_REFLECTANCE = 0.35;
/** Level of masked pixels. */
export const MASKED = 0;
const DARKEST = 1;
const BRIGHTEST = 255;

interface ColourPlanes {
  /** Reflectance, 0 to 1. */
  red: Float32Array;
  green: Float32Array;
  blue: Float32Array;
}

/** Maps reflectance 0 to 0.35 to levels 1 to 255, clipped. Level 0 where `usable` is 0 or a value is not finite. */
export function greyLevels({ red, green, blue }: ColourPlanes, usable: Uint8Array): Uint8Array {
  const levels = new Uint8Array(red.length);
  const scale = (BRIGHTEST - DARKEST) / WHITE_REFLECTANCE;
  for (let i = 0; i < levels.length; i++) {
    if (usable[i] === 0) continue;
    const luma = LUMA.red * red[i] + LUMA.green * green[i] + LUMA.blue * blue[i];
    // NaN fails every comparison and stays masked.
    if (luma >= WHITE_REFLECTANCE) levels[i] = luma === Infinity ? MASKED : BRIGHTEST;
    else if (luma > -Infinity) levels[i] = DARKEST + Math.round(scale * Math.max(0, luma));
  }
  return levels;
}
