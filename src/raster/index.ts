/**
 * Rasters: opens files of any supported format by their content, reads pixels, warps them, and writes Cloud Optimized GeoTIFFs. Invariant:
 * a damaged or hostile file is refused within bounded memory. May import `async` and types of `grid`.
 */
export { inflatePrefix } from './compression/deflate/index.js';
export { decodeFloatPredictor, decodeHorizontalPredictor } from './compression/index.js';
export {
  affineOfGdal,
  createTransform,
  crsFromEpsg,
  crsFromWkt,
  isInvertible,
  mapToPixel,
  type PointTransform,
  pixelToMap,
} from './crs/index.js';
export { otherEnviFile, readEnviLibrary } from './envi/index.js';
export { unknownCrs } from './errors.js';
export {
  type ByteReader,
  detectFileType,
  type FileType,
  type GeoreferencingOverride,
  openFile,
  readSmallFile,
  readStart,
  SIGNATURE_BYTES,
  type SourceFile,
} from './file-access/index.js';
export { withGdalSignal } from './gdal/index.js';
export { openTimeAxis, type TimeAxis } from './hdf5/cf/index.js';
export { openHdf5Cube, readHdf5Lists, readHdf5Points } from './hdf5/index.js';
export {
  elementsOf,
  isHyperspectral,
  isWavelength,
  localName,
  MAX_WAVELENGTH_NM,
  MIN_WAVELENGTH_NM,
  nearestBand,
  odlList,
  odlNodes,
  pamPath,
  parseOdl,
  parseXmlTree,
  spectralTags,
  textOf,
  toNanometres,
  type XmlElement,
} from './metadata/index.js';
export { openRaster, readTiffFrom } from './open-raster.js';
export {
  allocatePixels,
  applyQualityLookup,
  bytesPerSample,
  cloudCoverPercent,
  convexHull,
  coveragePercent,
  DATA_TYPES,
  declaredNodata,
  effectiveNodata,
  fillValueFor,
  findValidityBand,
  initialMask,
  loadWasmKernel,
  maskHistogram,
  minValue,
  nodataAsType,
  type PixelCorner,
  parseNodata,
  treatAlphaAsData,
  type ValidityBand,
  viewPixels,
} from './pixels/index.js';
export { listSubdatasets } from './raster-subdatasets.js';
export * from './raster-types.js';
export {
  type RowsRequest,
  readRaster,
  readRowsOfRasters,
  readWindow,
  readWindowInto,
} from './read-raster.js';
export { alignToBlocks, blocksOfWindow, isTiff, maskPath, withOnlyBlocks } from './tiff/index.js';
export {
  type AssembledFile,
  type CogImage,
  CUBE_BLOCK_SIDE,
  CubeFile,
  type CubeImage,
  encodeCog,
  encodeCube,
  extractBand,
  type ImageDescription,
} from './tiff/write/index.js';
export {
  buildControlGrid,
  type ControlGrid,
  sliceRows,
  sourceExtent,
  type WarpSource,
  type WarpTarget,
  warp,
  warpMasked,
} from './warp/index.js';
