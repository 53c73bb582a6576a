/**
 * Merges runs into longer ones, in steps of a few milliseconds. Invariant: marks that are set during a compaction are copied in its last
 * step, so the result is valid in the turn that returns it. May import the columns and runs of the parent folder.
 */

export { type CompactionResult, compactRuns } from './compaction.js';
export * from './compaction-policy.js';
