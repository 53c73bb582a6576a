/**
 * Selects, sorts and pages rows of the runs. Invariant: queries are synchronous and see one state of the index; a page ends with a cursor
 * that remains valid after changes. Imports files of a folder above.
 */

export type { IndexPage, IndexQuery, RowFilter, RunFilter, Selection } from './column-query.js';
export { countInTime, firstNewest } from './index-newest-first.js';
export * from './index-sort-order.js';
export { TopK } from './index-top-k.js';
export { mergePages, type RunMatches } from './merge-index-results.js';
export { type RowVisit, visitSelected } from './select-index-rows.js';
