/**
 * The data folder of a node: identity, lock, scratch and result folders, and garbage collection of version folders. Invariant: only one
 * process has the folder open. May import `async`, `catalogue` and `files`.
 */
export { DataFolder, readLock } from './data-folder.js';
export { Results } from './results.js';
export { Scratch, scratchFile } from './scratch.js';
export { VersionGc } from './version-gc.js';
