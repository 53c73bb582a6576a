export { mapToPixel, pixelToMap } from './affine.js';
export { blockRows } from './blocks.js';
export { openContainer } from './container.js';
export { crsFromEpsg, type Projection, projector } from './crs/crs.js';
export { crsFromWkt } from './crs/wkt.js';
export { readEnviLibrary } from './envi/library.js';
export { endingGdalWith } from './gdal/process.js';
export type { GivenPosition } from './given-position.js';
export { openTimeAxis, type TimeAxis } from './hdf5/cf-time.js';
export { type CubeLayout, openHdf5Cube } from './hdf5/cube.js';
export { readHdf5Lists, readHdf5Points } from './hdf5/values.js';
export { openRaster } from './header.js';
export { hullOf, type PixelCorner } from './hull.js';
export { inflateStart } from './inflate/inflate.js';
export { assessFrom, cloudCoverOf, coverageOf, histogramOf, unassessedMask } from './mask.js';
export { type OdlNode, odlList, odlNodes, parseOdl } from './odl.js';
export { openFile, readWhole } from './open-file.js';
export {
  bytesPerSample,
  DATA_TYPES,
  emptyPixel,
  lowestPixel,
  newPixels,
  parseNodata,
  pixelsOf,
  storedNodata,
} from './pixels.js';
export { readAllRows, readRaster, readRows, readWindow, readWindowInto } from './read.js';
export { type FileKind, fileKind, SIGNATURE_BYTES } from './recognise.js';
export { simdKernel } from './simd-kernel.js';
export { SPECTRAL_INDICES, type SpectralIndex } from '../expressions/spectral-indices.js';
export { isSpectrum, nearestBand, spectralTags } from './spectral-tags.js';
export { toNanometres } from './spectral-units.js';
export { undoDifferences, undoFloatPredictor } from './tiff/predictor.js';
export * from './types.js';
export { markingNodata, type ValidityBand, validityBandOf, withoutAlpha } from './validity.js';
export { type ControlGrid, controlGrid, type Destination, rowsOfGrid } from './warp/control-grid.js';
export { sourceExtent, type WarpSource, warp } from './warp/warp.js';
export { warpValid } from './warp/warp-valid.js';
export { serveTasks, WorkerPool } from '../async/worker-pool.js';
export { type AssembledFile, assembleBand } from './write/band-file.js';
export { type CogImage, encodeCog } from './write/cog.js';
export type { ImageFacts } from './write/cog-directory.js';
export { CUBE_BLOCK, CubeFile, type CubeImage, encodeCube } from './write/cube-file.js';
