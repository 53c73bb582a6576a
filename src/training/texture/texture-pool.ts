import { TaskPool } from '../../async/index.js';
import type { TextureHandlers } from './texture-worker.js';

/** Worker threads that compute textures. They are started once and kept. */
export class TexturePool extends TaskPool<TextureHandlers> {
  constructor(threads: number) {
    super(new URL('./texture-worker.js', import.meta.url), threads);
  }
}
