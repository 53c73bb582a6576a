export type { BandPixels } from './area-mean.js';
export { type LightgbmModel, parseLightgbm } from './lightgbm-model.js';
export { predict } from './lightgbm-predict.js';
export { readModelFile } from './model-file.js';
export { type CloudBands, reflectanceCloud } from './reflectance-detector.js';
export { MODEL_BANDS, modelCloud } from './s2cloudless.js';
