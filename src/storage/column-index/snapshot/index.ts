/**
 * The index on disk: a snapshot as of one commit, and a log of the tiles that later commits changed. Invariant: a snapshot is used only if
 * the catalogue still has its commit with the same tag; otherwise the entire catalogue is read. Imports files of a folder above and the
 * folders `catalogue` (types), `files` and `records` (types).
 */
export { type IndexLoad, PersistentIndex } from './persistent-index.js';
