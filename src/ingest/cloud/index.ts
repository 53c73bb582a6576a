/**
 * Cloud detection for products without a mask: reflectance tests, or the operator's s2cloudless model (LightGBM). Invariant: a
 * pixel that cannot be assessed gets the code 255. May import raster, and the scene and the errors of ingest.
 */
export {
  type CloudDetection,
  type CloudDetector,
  chooseDetector,
  type DetectorBand,
} from './choose-cloud-detector.js';
export { readCloudModelFile } from './cloud-lightgbm-model.js';
export { type CloudRequest, detectCloud } from './detect-cloud.js';
