/** The resampling kernels, one copy for each data type. */
import { loadPerDataType } from '../pixels/index.js';

type WarpKernels = typeof import('./nearest.js') & typeof import('./bilinear.js');

export const warpKernels = await loadPerDataType<WarpKernels>(async (dataType) => ({
  ...(await import(new URL(`./nearest.js?${dataType}`, import.meta.url).href)),
  ...(await import(new URL(`./bilinear.js?${dataType}`, import.meta.url).href)),
}));
