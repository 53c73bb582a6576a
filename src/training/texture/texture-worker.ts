/** Worker thread that computes textures of tiles and clusters of textures. */
import { handleTasks } from '../../async/index.js';
import { clusterTextures } from './cluster-textures.js';
import type { TextureResult, TextureTask } from './texture-pool.js';
import { textureOfTile } from './tile-texture.js';

handleTasks<TextureTask, TextureResult>((task) =>
  'date' in task ? textureOfTile(task.date) : clusterTextures(task.textures, task),
);
