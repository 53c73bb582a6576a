import { Mask } from '../../raster/index.js';

/** True for the mask codes clear, filled and not assessed; false for cloud, shadow, snow and no data. */
export const isClear = (code: number) =>
  code === Mask.clear || code === Mask.filled || code === Mask.notAssessed;
