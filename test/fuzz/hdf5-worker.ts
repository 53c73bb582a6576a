/** A thread that reads HDF5 inputs: the library in WebAssembly loops on some, and only the end of its thread ends that. */

import { serveTasks } from '../../src/async/index.js';
import { openContainer, openRaster } from '../../src/raster/index.js';
import { readPixels } from './read-pixels.js';

serveTasks<string, null>(async (path) => {
  const { layers } = await openContainer(path);
  if (layers[0]) await readPixels(await openRaster(path, layers[0].name));
  return null;
});
