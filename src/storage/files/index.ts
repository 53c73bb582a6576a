/**
 * Names, paths, durable writes and checksums of files in the data folder. Invariant: a name is checked before it becomes part of a path.
 * Imports the folder `records` (types) and the parts `async` and `grid`.
 */

export * from './durable-files.js';
export {
  type Checksum,
  type Chunks,
  checksumFile,
  checksumOf,
  fileChunks,
  isIntact,
} from './file-checksum.js';
export { asStorageError, isMissingFile, onDisk, writesStopped } from './file-disk-errors.js';
export { DiskReserve } from './file-disk-reserve.js';
export * from './file-names.js';
export { redactDataFolder } from './file-path-redaction.js';
export * from './file-paths.js';
export * from './file-version-folder.js';
export { type ModelFileLocation, readModelFile } from './read-model-files.js';
