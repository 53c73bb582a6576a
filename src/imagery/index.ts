/**
 * Renders stored tiles: map tiles, previews, time series and spectra of a zone. `ImageService` is the entry; worker threads decode blocks and
 * run programs. Invariant: everything cached was read from file versions, which never change. Imports the parts async, dht, expressions, grid,
 * query, raster and storage.
 */
export { ALGORITHMS } from './algorithms/index.js';
export { COLORMAPS, codeColours, colourOfCode, encodeImage, type ImageFormat } from './colours/index.js';
export { badRenderParameter, noMapTile } from './errors.js';
export {
  type EncodedImage,
  ImageService,
  type ImageServiceOptions,
  type MapExtent,
  type MapRequest,
} from './image-service.js';
export { type BandFile, bandFile, maskFile } from './reading/band-files.js';
export { isClear } from './reading/clear-pixels.js';
export { withOpenTile } from './reading/open-tile.js';
export { buildSingleBandCog } from './reading/single-band-cog.js';
export { readBlockOfAllBands, type TileGeoTiff } from './reading/tile-geotiff.js';
export type { ColourScale, RenderParams } from './rendering/render-params.js';
export { type CellPart, RESAMPLING_METHODS } from './resampling/index.js';
export type { Spectra, SpectrumDate } from './timeseries/spectra-series.js';
export type { Series, SeriesDate } from './timeseries/time-series.js';
export { readCellValues } from './timeseries/zonal-statistics.js';
export { forEachPixelRun, parseZone, type Zone } from './timeseries/zone.js';
