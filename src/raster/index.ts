export { inflatePrefix } from './compression/deflate/inflate.js';
export { decodeFloatPredictor, decodeHorizontalPredictor } from './compression/predictor.js';
export { mapToPixel, pixelToMap } from './crs/affine.js';
export { createTransform, crsFromEpsg, type PointTransform } from './crs/crs.js';
export { crsFromWkt } from './crs/wkt.js';
export { otherEnviFile } from './envi/header.js';
export { readEnviLibrary } from './envi/spectral-library.js';
export { detectFileType, type FileType, SIGNATURE_BYTES } from './file/file-signature.js';
export type { GeoreferencingOverride } from './file/georeferencing-override.js';
export { openFile, readSmallFile } from './file/open-file.js';
export { withGdalSignal } from './gdal/run-gdal.js';
export { openTimeAxis, type TimeAxis } from './hdf5/cf/time-axis.js';
export { type CubeLayout, openHdf5Cube } from './hdf5/cube-header.js';
export { readHdf5Lists, readHdf5Points } from './hdf5/read-values.js';
export { type OdlNode, odlList, odlNodes, parseOdl } from './metadata/odl.js';
export { pamPath } from './metadata/pam.js';
export { isHyperspectral, nearestBand, spectralTags } from './metadata/spectral-tags.js';
export {
  isWavelength,
  MAX_WAVELENGTH_NM,
  MIN_WAVELENGTH_NM,
  toNanometres,
} from './metadata/wavelength-units.js';
export { elementsOf, localName, parseXmlTree, textOf, type XmlElement } from './metadata/xml-tree.js';
export { openRaster } from './open-raster.js';
export { convexHull, type PixelCorner } from './pixels/convex-hull.js';
export {
  allocatePixels,
  bytesPerSample,
  DATA_TYPES,
  declaredNodata,
  fillValueFor,
  minValue,
  nodataAsType,
  parseNodata,
  viewPixels,
} from './pixels/data-types.js';
export { loadWasmKernel } from './pixels/load-wasm.js';
export {
  applyQualityLookup,
  cloudCoverPercent,
  coveragePercent,
  initialMask,
  maskHistogram,
} from './pixels/quality-mask.js';
export {
  effectiveNodata,
  findValidityBand,
  treatAlphaAsData,
  type ValidityBand,
} from './pixels/validity-band.js';
export { readRaster, readRows, readRowsOfRasters, readWindow, readWindowInto } from './read.js';
export { listSubdatasets } from './subdatasets.js';
export { maskPath } from './tiff/mask-image.js';
export { alignToBlocks } from './tiff/read-block.js';
export { type AssembledFile, extractBand } from './tiff/write/band-file.js';
export type { ImageDescription } from './tiff/write/cog-ifds.js';
export { CUBE_BLOCK_SIDE, CubeFile, type CubeImage, encodeCube } from './tiff/write/cube-file.js';
export { type CogImage, encodeCog } from './tiff/write/write-cog.js';
export * from './types.js';
export { buildControlGrid, type ControlGrid, sliceRows, type WarpTarget } from './warp/control-grid.js';
export { sourceExtent, type WarpSource, warp } from './warp/warp.js';
export { warpMasked } from './warp/warp-masked.js';
