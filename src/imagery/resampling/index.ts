/**
 * Resampling of stored bands to the pixels of an image, with GDAL's kernels. Invariant: pixels without data get no weight. Imports files of
 * a folder above, the folder `reading` and the parts `async` (types), `grid` and `raster` (types).
 */
export {
  MAX_MAIN_THREAD_STEPS,
  RESAMPLE_HANDLERS,
  RESAMPLING_METHODS,
  type ResampleContext,
  type ResampleHandlers,
  type ResamplingMethod,
  resampleBand,
} from './resample-band.js';
export {
  type CellPart,
  cellPartViewport,
  FULL_CELL,
  fullCellViewport,
  MAX_ZOOM,
  type MapPixelCentres,
  type MapTile,
  mapPixelCentres,
  mapPixelSize,
  type Viewport,
  viewportOfCell,
} from './resampling-viewport.js';
