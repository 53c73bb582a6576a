/** A wrangling thread: reads tiles, makes new ones of them, and encodes their files. */
import { serveTasks } from '../raster/index.js';
import { cutTile } from './cut-tile.js';
import { fillTile } from './fill-tile.js';
import type { WrangleResult, WrangleTask } from './tasks.js';

serveTasks<WrangleTask, WrangleResult>(
  (task) => (task.kind === 'fill' ? fillTile(task) : cutTile(task)),
  (result) => (result ? result.files.map(({ bytes }) => bytes.buffer) : []),
);
