/**
 * Commits and the locks under which they are made. Invariant: records and index change only through `CommitApplier`, the index after the
 * batch is on disk; every new version folder is named by a `pending` record until its commit, so an interrupted write leaves nothing
 * behind. Imports the folders `catalogue` (types), `column-index` (types), `files` and `records` (types) and the part `async`.
 */

export * from './commit.js';
export { CommitApplier } from './commit-applier.js';
export { StagedVersions } from './staged-versions.js';
export * from './write-lock.js';
