/** A wrangling thread: reads tiles, makes new ones of them, and encodes their files. */
import { serveTasks } from '../raster/index.js';
import { fillTile } from './fill-tile.js';
import type { WrangleResult, WrangleTask } from './tasks.js';

serveTasks<WrangleTask, WrangleResult>(
  (task) => fillTile(task),
  (result) => (result ? result.files.map(({ bytes }) => bytes.buffer) : []),
);
