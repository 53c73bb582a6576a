/**
 * From a path given by a user to files that may be opened: finds inputs, unpacks archives, guards allowed folders. Invariant: nothing
 * outside the allowed folders is read; an archive is refused as a whole or unpacked within limits. Imports the folders `formats`,
 * `formats/generic` and `formats/shared` and the parts `raster` and `storage`.
 */
export { findInputs, isArchive } from './find-inputs.js';
export { PathGuard } from './input-path-guard.js';
export { sideFilesOf } from './input-side-files.js';
export { unpackArchive } from './unpack-input-archive.js';
