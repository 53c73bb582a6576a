/**
 * Renders stored tiles: map tiles, previews, time series and spectra of a zone. `ImageService` is the entry; worker threads decode blocks
 * and run programs. Invariant: everything cached was read from file versions, which never change. Imports the parts `async`, `dht` (types),
 * `expressions`, `grid`, `query`, `raster` and `storage`.
 */
export { ALGORITHMS } from './algorithms.js';
export {
  type BandFile,
  bandFile,
  buildSingleBandCog,
  isClear,
  isCodeGroup,
  maskFile,
  SINGLE_BAND_FORMAT,
} from './band-files.js';
export { COLORMAPS, codeColours, colourOfCode } from './colormaps.js';
export { encodeImage, type ImageFormat } from './colours.js';
export { noMapTile } from './errors.js';
export { type EncodedImage, ImageService } from './image-service.js';
export { PIXEL_SELECTIONS, type PixelSelection } from './mosaic.js';
export { RESAMPLING_METHODS } from './resample.js';
export type { SpectrumDate } from './spectra.js';
export type { ColourScale, RenderParams } from './style.js';
export {
  readBlockOfAllBands,
  readMaskBlock,
  type TileGeoTiff,
  withOpenTile,
} from './tile-geotiff.js';
export type { SeriesDate } from './time-series.js';
export type { CellPart } from './viewport.js';
export { forEachPixelRun, parseZone, type Zone } from './zone.js';
export { readCellValues } from './zone-statistics.js';
