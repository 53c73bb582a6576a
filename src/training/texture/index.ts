/**
 * GLCM texture of cells, clusters of similar cells, and nearest neighbours. Knows nothing about training. Invariant: the same textures and
 * seed give the same clusters. Imports the folders `data` and `models` and the parts `async`, `derive`, `grid` (types), `jobs` (types),
 * `query` and `storage`.
 */
export { textureOf } from './glcm.js';
export { greyLevels } from './texture-grey-levels.js';
export { TextureIndex, type TextureNeighbour } from './texture-index.js';
export { TexturePool } from './texture-pool.js';
export { textureProcess } from './texture-process.js';
export type { ClusteredCollection, TextureResults } from './texture-results.js';
