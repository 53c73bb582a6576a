/**
 * Commits and the locks under which they are made. Invariant: records and index change only through `CommitApplier`, the index after the
 * batch is on disk; every new version folder is named by a `pending` record until its commit, so an interrupted write leaves nothing
 * behind. May import `async`, `catalogue`, `column-index`, `files` and `records`.
 */

export * from './commit.js';
export { CommitApplier } from './commit-applier.js';
export { StagedVersions } from './commit-staged-versions.js';
export * from './storage-write-lock.js';
