/** Grey levels of a tile, by one scale for all tiles, so that their textures compare. */

/** Luma of ITU-R BT.601, as most software turns colour into grey. */
const LUMA = { red: 0.299, green: 0.587, blue: 0.114 };
/** The reflectance that is shown as white: what few pixels without cloud pass. */
const WHITE_REFLECTANCE = 0.35;
/** Level 0 stands for what is not to be looked at. */
export const MASKED = 0;
const DARKEST = 1;
const BRIGHTEST = 255;

export interface ColourPlanes {
  /** Reflectance, 0 to 1. */
  red: Float32Array;
  green: Float32Array;
  blue: Float32Array;
}

/** Levels 1 to 255 of reflectance 0 to 0.35, those beyond cut off; 0 where `usable` is 0 or a value is not finite. */
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
