export { inflateStart } from './compression/deflate/inflate.js';
export { undoDifferences, undoFloatPredictor } from './compression/predictor.js';
export { mapToPixel, pixelToMap } from './crs/affine.js';
export { crsFromEpsg, type Projection, projector } from './crs/crs.js';
export { crsFromWkt } from './crs/wkt.js';
export { otherEnviFile } from './envi/header.js';
export { readEnviLibrary } from './envi/spectral-library.js';
export { type FileKind, fileKind, SIGNATURE_BYTES } from './file/file-signature.js';
export type { GivenPosition } from './file/georeferencing-override.js';
export { openFile, readWhole } from './file/open-file.js';
export { endingGdalWith } from './gdal/run-gdal.js';
export { openTimeAxis, type TimeAxis } from './hdf5/cf/time-axis.js';
export { type CubeLayout, openHdf5Cube } from './hdf5/cube-header.js';
export { readHdf5Lists, readHdf5Points } from './hdf5/read-values.js';
export { type OdlNode, odlList, odlNodes, parseOdl } from './metadata/odl.js';
export { pamPath } from './metadata/pam.js';
export { isSpectrum, nearestBand, spectralTags } from './metadata/spectral-tags.js';
export { toNanometres } from './metadata/wavelength-units.js';
export { elementsOf, localName, parseXmlTree, textOf, type XmlElement } from './metadata/xml-tree.js';
export { openRaster } from './open-raster.js';
export { hullOf, type PixelCorner } from './pixels/convex-hull.js';
export {
  bytesPerSample,
  DATA_TYPES,
  declaredNodata,
  emptyPixel,
  lowestPixel,
  newPixels,
  parseNodata,
  pixelsOf,
  storedNodata,
} from './pixels/data-types.js';
export { simdKernel } from './pixels/load-wasm.js';
export { assessFrom, cloudCoverOf, coverageOf, histogramOf, unassessedMask } from './pixels/quality-mask.js';
export { markingNodata, type ValidityBand, validityBandOf, withoutAlpha } from './pixels/validity-band.js';
export { readAllRows, readRaster, readRows, readWindow, readWindowInto } from './read.js';
export { openContainer } from './subdatasets.js';
export { maskPath } from './tiff/mask-image.js';
export { blockRows } from './tiff/read-block.js';
export { type AssembledFile, assembleBand } from './tiff/write/band-file.js';
export type { ImageFacts } from './tiff/write/cog-ifds.js';
export { CUBE_BLOCK, CubeFile, type CubeImage, encodeCube } from './tiff/write/cube-file.js';
export { type CogImage, encodeCog } from './tiff/write/write-cog.js';
export * from './types.js';
export { type ControlGrid, controlGrid, type Destination, rowsOfGrid } from './warp/control-grid.js';
export { sourceExtent, type WarpSource, warp } from './warp/warp.js';
export { warpValid } from './warp/warp-masked.js';
