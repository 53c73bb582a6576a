/**
 * Renders stored tiles: map tiles, previews, time series and spectra of a zone. `ImageService` is the entry; worker threads decode blocks
 * and run programs. Invariant: everything cached was read from file versions, which never change. Imports the parts `async`, `dht` (types),
 * `expressions`, `grid`, `query`, `raster` and `storage`.
 */
export { ALGORITHMS } from './algorithms/index.js';
export { COLORMAPS, codeColours, colourOfCode, encodeImage, type ImageFormat } from './colours/index.js';
export { noMapTile } from './errors.js';
export { type EncodedImage, ImageService } from './image-service.js';
export {
  type BandFile,
  bandFile,
  buildSingleBandCog,
  isClear,
  maskFile,
  readBlockOfAllBands,
  type TileGeoTiff,
  withOpenTile,
} from './reading/index.js';
export {
  type ColourScale,
  PIXEL_SELECTIONS,
  type PixelSelection,
  type RenderParams,
} from './rendering/index.js';
export { type CellPart, RESAMPLING_METHODS } from './resampling/index.js';
export {
  forEachPixelRun,
  parseZone,
  readCellValues,
  type SeriesDate,
  type SpectrumDate,
  type Zone,
} from './timeseries/index.js';
