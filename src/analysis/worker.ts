/** An analysis thread: sums up the pixels of tiles, and makes tiles of them. */
import { serveTasks } from '../raster/index.js';
import { components } from './components.js';
import type { AnalysisResult, AnalysisTask } from './tasks.js';
import { tileSums } from './tile-sums.js';
import { transformTile } from './transform-tile.js';

serveTasks<AnalysisTask, AnalysisResult>(
  (task) => {
    switch (task.kind) {
      case 'sums':
        return tileSums(task);
      case 'components':
        return components(task);
      case 'transform':
        return transformTile(task);
    }
  },
  (result) => {
    if (result === null || !('files' in result)) return [];
    return result.files.map(({ bytes }) => bytes.buffer as ArrayBuffer);
  },
);
