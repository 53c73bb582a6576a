/**
 * Rasters: opens files of any supported format by their content, reads pixels, warps them, and writes Cloud Optimized GeoTIFFs. Invariant:
 * a damaged or hostile file is refused within bounded memory. May import `async` and types of `grid`.
 */

export { inflatePrefix } from './codecs/inflate.js';
export { decodeFloatPredictor, decodeHorizontalPredictor } from './codecs/libraries.js';
export {
  affineOfGdal,
  createTransform,
  crsFromEpsg,
  isInvertible,
  mapToPixel,
  type PointTransform,
  pixelToMap,
} from './crs/crs.js';
export { crsFromWkt } from './crs/wkt.js';
export { unknownCrs } from './errors.js';
export { openTimeAxis, type TimeAxis } from './formats/cf.js';
export { readEnviLibrary } from './formats/envi.js';
export { otherEnviFile } from './formats/envi-header.js';
export { withGdalSignal } from './formats/gdal-process.js';
export { readHdf5Lists, readHdf5Points } from './formats/hdf5.js';
export { openHdf5Cube } from './formats/hdf5-cube.js';
export { blocksOfWindow, isTiff, withOnlyBlocks } from './formats/tiff.js';
export { alignToBlocks } from './formats/tiff-blocks.js';
export { maskPath } from './formats/tiff-header.js';
export type { GeoreferencingOverride } from './metadata.js';
export {
  elementsOf,
  localName,
  odlNodes,
  pamPath,
  parseOdl,
  parseXmlTree,
  textOf,
  type XmlElement,
} from './metadata.js';
export {
  gdalName,
  type ImageFile,
  imageKey,
  listSubdatasets,
  openImage,
  openRaster,
  readTiffFrom,
} from './open.js';
export { type Areas, areaMean, pixelAreas } from './pixels/area-mean.js';
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
export {
  applyQualityLookup,
  type BandValidity,
  bandValidity,
  cloudCoverPercent,
  convexHull,
  coveragePercent,
  effectiveNodata,
  findValidityBand,
  includesNumber,
  initialMask,
  maskHistogram,
  type PixelCorner,
  treatAlphaAsData,
  type ValidityBand,
  widenClouds,
} from './pixels/masks.js';
export {
  type Affine,
  type BandTags,
  type BlockLayout,
  type ColourTable,
  type Crs,
  type DataType,
  type EnviBlocks,
  type GdalBlocks,
  type Hdf5Blocks,
  type Hdf5CubeBlocks,
  Mask,
  type MatBlocks,
  type MultiDatasetFile,
  type PixelArray,
  type RasterHeader,
  type RasterShape,
  type ReadRequest,
  type ReadTarget,
  type Resampling,
  type SpectralLibrary,
  type SpectralTags,
  type Subdataset,
  type TiffBlocks,
  type Window,
} from './raster.js';
export {
  type RowsRequest,
  readImage,
  readRaster,
  readRowsOfRasters,
  readValidity,
  readWindow,
  readWindowInto,
} from './read.js';
export {
  type ByteReader,
  detectFileType,
  type FileType,
  openFile,
  readSmallFile,
  readStart,
  SIGNATURE_BYTES,
  type SourceFile,
} from './source.js';
export { buildControlGrid, type ControlGrid, sliceRows, type WarpTarget } from './warp/control-grid.js';
export { sourceExtent, type WarpSource, warp, warpMasked } from './warp/warp.js';
export {
  isHyperspectral,
  isWavelength,
  MAX_WAVELENGTH_NM,
  MIN_WAVELENGTH_NM,
  nearestBand,
  spectralTags,
  toNanometres,
} from './wavelengths.js';
export {
  type AssembledFile,
  type CogImage,
  encodeCog,
  extractBand,
  type ImageDescription,
} from './write/cog.js';
export {
  CUBE_BLOCK_SIDE,
  CubeFile,
  type CubeImage,
  encodeCube,
  type PlacedImage,
} from './write/cube.js';
export { combineCrc32 } from './write/tiff.js';
