/**
 * Typed arrays of pixels and the loops over them that readers, resampling and writers share; the quality mask and its statistics.
 * Invariant: each data type has its own compiled copy of a loop. Imports files of a folder above.
 */

export { loadWasmKernel } from '../../utils/wasm-loader.js';
export {
  allocatePixels,
  bytesPerSample,
  bytesPerStored,
  DATA_TYPES,
  dataTypeOf,
  dataTypeOfStored,
  declaredNodata,
  fillValueFor,
  isFloat,
  minValue,
  nodataAsType,
  nodataReplacementFor,
  parseNodata,
  readStoredNumbers,
  swapBytes,
  UNSIGNED_BY_SIZE,
  viewPixels,
} from './data-types.js';
export {
  applyQualityLookup,
  cloudCoverPercent,
  coveragePercent,
  initialMask,
  maskHistogram,
} from './pixel-quality-mask.js';
export {
  effectiveNodata,
  findValidityBand,
  treatAlphaAsData,
  type ValidityBand,
} from './pixel-validity-band.js';
export { loadPerDataType, typedKernels } from './typed-pixel-kernels.js';
export { convexHull, type PixelCorner } from './valid-pixel-hull.js';
