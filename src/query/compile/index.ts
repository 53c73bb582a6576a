/**
 * Compiles a filter tree to a query plan for the column index: bounds that restrict the visited rows, and a test that decides. Invariant:
 * bounds never exclude a row that passes the test. Imports the folders `filter` and `geometry` and the parts `grid` and `storage`.
 */
export { compileFilter } from './compile-filter.js';
export { andTests } from './compiled-query-plan.js';
export { withTimeout } from './compiled-query-timeout.js';
