/**
 * Colormaps, colour formulas and image encoders, tested against rio-tiler and color-operations. Invariant: these files read no tiles; they
 * convert values to pixels. Imports files of a folder above and the parts `expressions`, `raster` (types) and `storage` (types).
 */
export { classColormap, codeColours, colourOfCode } from './class-colours.js';
export type { Colormap } from './colormap-lookup.js';
export { parseColourFormula } from './colour-formula.js';
export { parseColormap } from './custom-colormap.js';
export {
  BYTE_RANGE,
  encodeImage,
  type ImageFormat,
  isTransparent,
  renderRgba,
  type Style,
  type ValueRange,
} from './encode-colours.js';
export { COLORMAPS, namedColormap } from './named-colormaps.js';
