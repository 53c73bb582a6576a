/**
 * `tilewright compare`: trains one model in several modes and reports accuracy and cost, as text, HTML and CSV. The benchmark of training
 * uses the exports. Invariant: no model is stored. Imports files of a folder above, the folders `options` and `output` and the parts
 * `client`, `html`, `query` (types), `storage` and `training`.
 */

export { concurrentJobs } from './compare-modes.js';
export { describeDifferences } from './comparison-cells.js';
export { toCsv } from './comparison-csv.js';
export { type ComparedRun, type Comparison, runOrder } from './comparison-data.js';
export { cellScores, MEASURES_OF } from './comparison-measures.js';
export { renderComparison } from './comparison-report.js';
export {
  bytesText,
  compareSpreads,
  computeSpread,
  digits,
  type Spread,
  spreadText,
} from './comparison-spread.js';
export { cellSummaries, countWins, modeSummary, netBytes, runsOfMode } from './comparison-summary.js';
export { betterText } from './comparison-tables.js';
export { measureUsage, type Usage } from './comparison-usage.js';
export { type CompareFlags, runCompare } from './run-compare.js';
