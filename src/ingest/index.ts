/**
 * Scenes to tiles: detects products, plans cells, cuts tiles in worker threads, detects clouds, and runs all of it as a job. Invariant: a
 * scene becomes visible completely or not at all. May import every part up to `jobs`.
 */
export {
  type CellFile,
  type CellGroup,
  cubeImage,
  encodeMaskFile,
  encodeTile,
  groupRecord,
  IngestPool,
  type MaskResult,
  type WarpedGroup,
} from './cut/index.js';
export { notRecognised, pathNotAllowed } from './errors.js';
export { checkOptions } from './formats/generic/index.js';
export { checkNamePattern, parseNamePattern } from './formats/name-pattern/index.js';
export { commonBandNames } from './formats/shared/index.js';
export type { IngestOptions } from './ingest-options.js';
export {
  findInputs,
  inputFinder,
  PathGuard,
  type SkippedFile,
  sceneOfFile,
  sideFilesOf,
} from './inputs/index.js';
export {
  checkStacSource,
  type IngestInputs,
  type IngestResults,
  ingestProcess,
  PLAN_PREFIX,
  type ScenePartService,
  type StacSource,
} from './job/index.js';
export { selectItems } from './remote/index.js';
export {
  SCENE_PART_PATH,
  SCENE_PART_SCHEMA,
  type ScenePartEvent,
  type ScenePartRequest,
} from './scene-parts/index.js';
