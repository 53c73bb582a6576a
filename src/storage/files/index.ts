/**
 * Names, paths, durable writes and checksums of files in the data folder. Invariant: a name is checked before it becomes part of a path.
 * May import `async`, `grid` and the types of `records`.
 */
export { type Checksum, type Chunks, checksumFile, checksumOf, fileChunks, isIntact } from './checksum.js';
export { asStorageError, isMissingFile, onDisk, writesStopped } from './disk-errors.js';
export { DiskReserve } from './disk-reserve.js';
export * from './durable-fs.js';
export { type ModelFileLocation, readModelFile } from './model-files.js';
export * from './names.js';
export { redactDataFolder } from './path-redaction.js';
export * from './paths.js';
export * from './version-folder.js';
