/**
 * Cloud detection for products without a mask: reflectance tests, or the operator's s2cloudless model (LightGBM). Invariant: a pixel that
 * cannot be assessed gets the code 255. Imports files of a folder above and the part `raster`.
 */
export { type CloudDetector, chooseDetector } from './choose-cloud-detector.js';
export { type CloudRequest, detectCloud } from './detect-cloud.js';
export { readCloudModelFile } from './lightgbm-model.js';
