/** A thread that computes the textures of tiles, and finds clusters of them. */
import { serveTasks } from '../../async/index.js';
import { clusterTextures } from './cluster-textures.js';
import type { TextureAnswer, TextureTask } from './texture-pool.js';
import { textureOfTile } from './tile-texture.js';

serveTasks<TextureTask, TextureAnswer>((task) =>
  'date' in task ? textureOfTile(task.date) : clusterTextures(task.textures, task),
);
