/**
 * The in-memory columnar index of tiles: sorted runs with columns, dictionaries and an undo log of recent commits. Invariant: each present
 * tile has one present row; a row never changes and keeps its number until its run is compacted. `ColumnIndex` combines `query` (selects,
 * sorts and pages rows; synchronous, so it sees one state), `compaction` (merges runs in steps of a few milliseconds) and `persist`
 * (snapshot and log on disk). The other files import none of them. Imports the folders `catalogue` (types), `files` and `records` and the
 * part `grid`.
 */
export { ColumnIndex } from './column-index.js';
export { type CellKeyRange, isWithin, mergeRanges } from './index-key-range.js';
export type { IndexRun } from './index-run.js';
export * from './query/index.js';
export { type IndexLoad, PersistentIndex } from './snapshot/index.js';
