export { ALGORITHMS } from './algorithms/index.js';
export { bandFileOf } from './reading/single-band-cog.js';
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
} from '../expressions/resolve-bands.js';
export type { CellPart } from './rendering/viewport.js';
export { isClear } from './reading/clear-pixels.js';
export { type Cog, readPlace } from './reading/tile-geotiff.js';
export { COLORMAPS, codeColours, colourOfCode, encodePicture, type PictureFormat } from './colours/index.js';
export { badExpression, badLook, noMapTile, unknownBand } from './errors.js';
export { parseExpression } from '../expressions/parser.js';
export { compile, evaluate, type Program } from '../expressions/program.js';
export {
  Imagery,
  type ImageryOptions,
  type MapExtent,
  type MapRequest,
  type PictureEncoding,
} from './image-service.js';
export type { ColourScale, LookParams } from './rendering/render-params.js';
export { eachRun, parseRegion, type Region } from './timeseries/zone.js';
export { valuesOfCell } from './timeseries/zonal-statistics.js';
export { RESAMPLINGS } from './resampling/index.js';
export type { Series, SeriesDate } from './timeseries/time-series.js';
export type { Spectra, SpectrumDate } from './timeseries/spectra-series.js';
export { withTileFile } from './reading/open-tile.js';
