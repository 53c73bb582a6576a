/**
 * Decodes source rows into shared memory, warps them to cells and encodes tile files, in worker threads. Invariant: all rows in memory fit
 * into the budget. Imports files of a folder above, the folders `cloud`, `formats`, `georeferencing` and `plan` and the parts `async`,
 * `grid`, `raster` and `storage`.
 */

export type { WarpedGroup } from './cut-band-group.js';
export { type CutResources, cutScene } from './cut-scene.js';
export { cubeImage, encodeMaskFile, encodeTile, groupRecord } from './encode-cut-tile.js';
export { IngestPool } from './ingest-pool.js';
export { SharedMemory } from './ingest-shared-memory.js';
export type { CellFile, CellGroup, MaskResult } from './ingest-tasks.js';
