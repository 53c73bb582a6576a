/**
 * Decodes source rows into shared memory, warps them to cells and encodes tile files, in worker threads. Invariant: all rows in memory fit
 * into the budget. Imports files of a folder above, the folders `cloud`, `formats`, `georeferencing` and `plan` and the parts `async`,
 * `grid`, `raster` and `storage`.
 */

export type { WarpedGroup } from './cut-band-group.js';
export { IngestPool } from './cut-pool.js';
export { type CutResources, type CutSettings, type CutTiles, cutScene } from './cut-scene.js';
export { SharedMemory } from './cut-shared-memory.js';
export type { CellFile, CellGroup, MaskResult } from './cut-tasks.js';
export { cubeImage, encodeMaskFile, encodeTile, groupRecord } from './encode-cut-tile.js';
export { type NegativeCount, offsetWarning } from './negative-reflectances.js';
