/** From values to encoded pictures. A folder of its own: these files read no tiles, and are tested against other programs alone. */

export { classColormap, codeColours, colourOfCode } from './class-colormaps.js';
export type { Colormap } from './colormap-lookup.js';
export { type ColourOperation, parseColourFormula } from './colour-formula.js';
export { parseColormap } from './custom-colormap.js';
export {
  BYTE_RANGE,
  encodeImage,
  type ImageFormat,
  isTransparent,
  renderRgba,
  type Style,
  type ValueRange,
} from './encode-image.js';
export { COLORMAPS, namedColormap } from './named-colormaps.js';
