/** A thread that reads HDF5 inputs: the library in WebAssembly loops on some, and only the end of its thread ends that. */

import { handleTasks } from '../../src/async/index.js';
import { listSubdatasets, openRaster } from '../../src/raster/index.js';
import { readPixels } from './read-pixels.js';

handleTasks<string, null>(async (path) => {
  const { subdatasets } = await listSubdatasets(path);
  if (subdatasets[0]) await readPixels(await openRaster(path, subdatasets[0].name));
  return null;
});
