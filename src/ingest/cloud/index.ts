export type { BandPixels } from './area-mean.js';
export { type LightgbmModel, parseLightgbm } from './lightgbm.js';
export { readModelFile } from './model-file.js';
export { predict } from './predict.js';
export { type CloudBands, reflectanceCloud } from './reflectance-test.js';
export { MODEL_BANDS, modelCloud } from './s2cloudless.js';
