/**
 * Merges runs into longer ones, in steps of a few milliseconds. Invariant: marks that are set during a compaction are copied in its last
 * step, so the result is valid in the turn that returns it. Imports files of a folder above.
 */

export { type CompactionResult, compactRuns } from './compaction.js';
export * from './compaction-policy.js';
