/**
 * From a path given by a user to files that may be opened: finds inputs, unpacks archives, guards allowed folders. Invariant:
 * nothing outside the allowed folders is read; an archive is refused as a whole or unpacked within limits. May import formats,
 * raster and storage.
 */
export { fileOfArchive } from './file-of-archive.js';
export { findInputs, type InputFinder, isArchive, type SkippedFile } from './find-inputs.js';
export { PathGuard } from './input-path-guard.js';
export { sideFilesOf } from './input-side-files.js';
export { inputFinder, sceneOfFile } from './named-inputs.js';
export { unpackArchive } from './unpack-input-archive.js';
