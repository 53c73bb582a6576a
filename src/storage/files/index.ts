/**
 * Names, paths, durable writes and checksums of files in the data folder. Invariant: a name is checked before it becomes part of a path.
 * May import `async`, `grid` and the types of `records`.
 */
export { type Checksum, type Chunks, checksumFile, checksumOf, fileChunks, isIntact } from './checksum.js';
export { asStorageError, isMissingFile, onDisk, writesStopped } from './disk-errors.js';
export { DiskReserve } from './disk-reserve.js';
export {
  fsyncFolders,
  fsyncPath,
  makeFolderDurably,
  writeFileDurably,
  writeFileSynced,
} from './durable-fs.js';
export { type ModelFileLocation, readModelFile } from './model-files.js';
export {
  checkedName,
  commonCell,
  derivedTileId,
  FILE_NAME_SCHEMA,
  firstVersionAt,
  isObjectName,
  isVersion,
  isWord,
  modelId,
  newVersion,
  tileId,
  VERSION_SCHEMA,
  WORLD_CELL,
} from './names.js';
export { redactDataFolder } from './path-redaction.js';
export {
  type ModelVersion,
  modelFile,
  modelFolder,
  type TileVersion,
  tileFile,
  tileFolder,
} from './paths.js';
export {
  publishVersions,
  removeVersions,
  stageVersion,
  stagingPath,
  VERSION_DEPTH,
} from './version-folder.js';
