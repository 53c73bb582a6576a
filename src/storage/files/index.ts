/**
 * Names, paths, durable writes and checksums of files in the data folder. Invariant: a name is checked before it becomes part of a path.
 * Imports the folder `records` (types) and the parts `async` and `grid`.
 */

export {
  type Checksum,
  type Chunks,
  checksumFile,
  checksumOf,
  fileChunks,
  isIntact,
} from './checksum.js';
export { asStorageError, isMissingFile, onDisk, orIfMissing, writesStopped } from './disk-errors.js';
export { DiskReserve } from './disk-reserve.js';
export * from './durable-files.js';
export * from './file-names.js';
export * from './file-paths.js';
export { type ModelFileLocation, readModelFile } from './storage-model-files.js';
export { redactDataFolder } from './storage-path-redaction.js';
export * from './storage-version-folder.js';
