import { Mask } from '../raster/index.js';

/** Whether the mask lets a pixel through: clear, or not assessed. Cloud, shadow and snow are not. */
export const isClear = (code: number) => code === Mask.clear || code === Mask.notAssessed;
