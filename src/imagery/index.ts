export { ALGORITHMS } from './algorithms/index.js';
export { COLORMAPS, codeColours, colourOfCode, encodePicture, type PictureFormat } from './colours/index.js';
export { badLook, noMapTile } from './errors.js';
export {
  Imagery,
  type ImageryOptions,
  type MapExtent,
  type MapRequest,
  type PictureEncoding,
} from './image-service.js';
export { type BandFile, bandFile, maskFile } from './reading/band-files.js';
export { isClear } from './reading/clear-pixels.js';
export { withTileFile } from './reading/open-tile.js';
export { bandFileOf } from './reading/single-band-cog.js';
export { type Cog, readPlace } from './reading/tile-geotiff.js';
export type { ColourScale, LookParams } from './rendering/render-params.js';
export type { CellPart } from './rendering/viewport.js';
export { RESAMPLINGS } from './resampling/index.js';
export type { Spectra, SpectrumDate } from './timeseries/spectra-series.js';
export type { Series, SeriesDate } from './timeseries/time-series.js';
export { valuesOfCell } from './timeseries/zonal-statistics.js';
export { eachRun, parseRegion, type Region } from './timeseries/zone.js';
