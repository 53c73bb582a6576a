export type { BandPixels } from './area-mean.js';
export { type LightgbmModel, parseLightgbm } from './lightgbm-model.js';
export { predictLightgbm } from './lightgbm-predict.js';
export { readCloudModelFile } from './model-file.js';
export { type CloudBands, detectCloudByReflectance } from './reflectance-detector.js';
export { detectCloudByModel, MODEL_BANDS } from './s2cloudless.js';
