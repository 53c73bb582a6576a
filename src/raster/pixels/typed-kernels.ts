/** One copy of the kernels for each data type: a module imported under different names is compiled once for each. */

import type { DataType } from '../types.js';
import { DATA_TYPES } from './data-types.js';

type Kernels = typeof import('./kernels.js') & typeof import('../warp/bilinear.js');

export const typedKernels = Object.fromEntries(
  await Promise.all(
    DATA_TYPES.map(async (dataType) => [
      dataType,
      { ...(await import(`./kernels.js?${dataType}`)), ...(await import(`../warp/bilinear.js?${dataType}`)) },
    ]),
  ),
) as Record<DataType, Kernels>;
