/**
 * Commits and the locks under which they are made. Invariant: records and index change only through `CommitApplier`, the index after the
 * batch is on disk; every new version folder is named by a `pending` record until its commit, so an interrupted write leaves nothing
 * behind. Imports the folders `catalogue` (types), `column-index` (types), `files` and `records` (types) and the part `async`.
 */

export { CommitApplier } from './apply-storage-commit.js';
export * from './storage-commit.js';
export * from './storage-commit-lock.js';
export { StagedVersions } from './storage-commit-staging.js';
