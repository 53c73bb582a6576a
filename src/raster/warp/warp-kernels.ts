/** The resampling kernels, one copy for each data type. */
import { loadPerDataType } from '../pixels/index.js';

type WarpKernels = typeof import('./warp-nearest.js') & typeof import('./warp-bilinear.js');

export const warpKernels = await loadPerDataType<WarpKernels>(async (dataType) => ({
  ...(await import(new URL(`./warp-nearest.js?${dataType}`, import.meta.url).href)),
  ...(await import(new URL(`./warp-bilinear.js?${dataType}`, import.meta.url).href)),
}));
