/**
 * `tilewright compare`: trains one model in several modes and reports accuracy and cost, as text, HTML and CSV. The benchmark of training
 * uses the exports. Invariant: no model is stored. Imports files of a folder above, the folders `options` and `output` and the parts
 * `client`, `html`, `query` (types), `storage` and `training`.
 */

export { describeDifferences } from './compare-cells.js';
export { toCsv } from './compare-csv.js';
export { type ComparedRun, type Comparison, runOrder } from './compare-data.js';
export { cellScores, MEASURES_OF } from './compare-measures.js';
export { concurrentJobs } from './compare-modes.js';
export { renderComparison } from './compare-report.js';
export {
  bytesText,
  compareSpreads,
  computeSpread,
  digits,
  type Spread,
  spreadText,
} from './compare-spread.js';
export { cellSummaries, countWins, modeSummary, netBytes, runsOfMode } from './compare-summary.js';
export { betterText } from './compare-tables.js';
export { measureUsage, type Usage } from './compare-usage.js';
export { type CompareFlags, runCompare } from './run-compare.js';
