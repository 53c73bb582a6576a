/** One copy of the kernels for each data type: a module imported under different names is compiled once for each of them. */
import type { DataType } from '../raster-types.js';
import { DATA_TYPES } from './data-types.js';

/** Calls `load` for each data type. `load` imports a module with the data type as the query of its URL. */
export async function loadPerDataType<Kernels>(
  load: (dataType: DataType) => Promise<Kernels>,
): Promise<Record<DataType, Kernels>> {
  const loaded = DATA_TYPES.map(async (dataType) => [dataType, await load(dataType)]);
  return Object.fromEntries(await Promise.all(loaded));
}

export const typedKernels = await loadPerDataType<typeof import('./pixel-kernels.js')>(
  (dataType) => import(new URL(`./pixel-kernels.js?${dataType}`, import.meta.url).href),
);
