/** The resampling kernels, one copy for each data type. */
import { loadPerDataType } from '../pixels/index.js';

type WarpKernels = typeof import('./warp-nearest.js') & typeof import('./warp-bilinear.js');

export const warpKernels = await loadPerDataType<WarpKernels>(async (dataType) => ({
  ...(await import(`./warp-nearest.js?${dataType}`)),
  ...(await import(`./warp-bilinear.js?${dataType}`)),
}));
