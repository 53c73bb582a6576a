/**
 * The data folder of a node: identity, lock, scratch and result folders, and garbage collection of version folders. Invariant: only one
 * process has the folder open. Imports the folders `catalogue` and `files` and the part `async`.
 */
export { DataFolder, readLock } from './data-folder.js';
export { VersionGc } from './data-folder-gc.js';
export { Results } from './data-folder-results.js';
export { Scratch, scratchFile } from './data-folder-scratch.js';
