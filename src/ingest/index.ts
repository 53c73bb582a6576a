/**
 * Scenes to tiles: detects products, plans cells, cuts tiles in worker threads, detects clouds, and runs all of it as a job. Invariant: a
 * scene becomes visible completely or not at all. May import every part up to `jobs`.
 */

export { commonBandNames } from './bands.js';
export { cubeImage, encodeGroup, encodeMask, imageRecord, joinTile, placedFile } from './cut/encode.js';
export { IngestPool } from './cut/pool.js';
export type { CellFile, CellGroup, CellImage } from './cut/tasks.js';
export { pixelValidity, tileValidity } from './cut/validity.js';
export { notRecognised, pathNotAllowed } from './errors.js';
export { checkNamePattern, parseNamePattern } from './formats/name-pattern.js';
export { checkOptions } from './formats/raster-bands.js';
export { findInputs, inputFinder, type SkippedFile, sceneOfFile, sideFilesOf } from './inputs.js';
export { selectItems } from './items.js';
export { PLAN_PREFIX } from './job.js';
export type { IngestInputs, IngestResults } from './job-inputs.js';
export { PathGuard } from './path-guard.js';
export { ingestProcess } from './process.js';
export { checkStacSource, type StacSource } from './remote-scenes.js';
export type { IngestOptions } from './scene.js';
export type { ScenePartService } from './scene-part-service.js';
export {
  SCENE_PART_PATH,
  SCENE_PART_SCHEMA,
  type ScenePartEvent,
  type ScenePartRequest,
} from './scene-parts.js';
