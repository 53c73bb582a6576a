import { Mask } from '../../raster/index.js';

/** True if the mask lets a pixel through: clear, filled, or not assessed. Cloud, shadow and snow are not. */
export const isClear = (code: number) =>
  code === Mask.clear || code === Mask.filled || code === Mask.notAssessed;
