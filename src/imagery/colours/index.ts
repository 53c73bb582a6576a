/** From values to encoded pictures. A folder of its own: these files read no tiles, and are tested against other programs alone. */

export { codeColours, colourOfCode, legendOf } from './class-colormaps.js';
export type { Colouring } from './colormap-lookup.js';
export { type ColourOperation, parseColourFormula } from './colour-formula.js';
export { parseColormap } from './custom-colormap.js';
export {
  BYTES,
  encodePicture,
  isTransparent,
  type PictureFormat,
  paint,
  type Range,
  type Style,
} from './encode-image.js';
export { COLORMAPS, colormap } from './named-colormaps.js';
