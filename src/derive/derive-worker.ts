/** A wrangling thread: reads tiles, makes new ones or arrays of them, and encodes their files. */

import { handleTasks } from '../async/index.js';
import { encodeCog } from '../raster/index.js';
import type { DeriveTask, DeriveTaskResult } from './derive-tasks.js';
import { readBandsAtSize } from './tensors/resize-bands.js';
import { cutTile } from './tiles/cut-tile.js';
import { fillTile } from './tiles/fill-tile.js';

handleTasks<DeriveTask, DeriveTaskResult>(
  (task) => {
    switch (task.kind) {
      case 'fill':
        return fillTile(task);
      case 'cut':
        return cutTile(task);
      case 'planes':
        return readBandsAtSize(task);
      case 'stack':
        return Uint8Array.from(encodeCog(task.image));
    }
  },
  (result) => {
    if (result === null) return [];
    if (result instanceof Uint8Array) return [result.buffer as ArrayBuffer];
    const arrays = 'files' in result ? result.files.flatMap(({ bytes }) => bytes ?? []) : result;
    return arrays.map(({ buffer }) => buffer as ArrayBuffer);
  },
);
