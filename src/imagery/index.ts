export { ALGORITHMS } from './algorithms/index.js';
export { bandFileOf } from './band-file.js';
export {
  type BandFile,
  type BandPlace,
  bandFile,
  bandOrExpression,
  findBands,
  maskFile,
  plainName,
  resolveBands,
  wavelengthNamed,
} from './bands.js';
export type { CellPart } from './cell-view.js';
export { isClear } from './clear.js';
export { type Cog, readPlace } from './cog.js';
export { COLORMAPS, codeColours, colourOfCode, encodePicture, type PictureFormat } from './colours/index.js';
export { badExpression, badLook, noMapTile, unknownBand } from './errors.js';
export { parseExpression } from './expression/parse.js';
export { compile, evaluate, type Program } from './expression/program.js';
export {
  Imagery,
  type ImageryOptions,
  type MapExtent,
  type MapRequest,
  type PictureEncoding,
} from './imagery.js';
export type { ColourScale, LookParams } from './look.js';
export { eachRun, parseRegion, type Region } from './region.js';
export { valuesOfCell } from './region-values.js';
export { RESAMPLINGS } from './resampling/index.js';
export type { Series, SeriesDate } from './series.js';
export type { Spectra, SpectrumDate } from './spectra.js';
export { withTileFile } from './tile-file.js';
