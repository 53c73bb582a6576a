/**
 * `tilewright compare`: trains one model in several modes and reports accuracy and cost, as text, HTML and CSV. The benchmark of training
 * uses the exports. Invariant: no model is stored. Imports `html`, `client` and `training`.
 */
export { describeDifferences } from './cells.js';
export { type CompareFlags, runCompare } from './command.js';
export { concurrentJobs } from './compare-modes.js';
export { type ComparedRun, type Comparison, runOrder } from './comparison-data.js';
export { toCsv } from './csv.js';
export { cellScores, MEASURES_OF } from './measures.js';
export { renderComparison } from './report.js';
export { bytesText, compareSpreads, computeSpread, digits, type Spread, spreadText } from './spread.js';
export { cellSummaries, countWins, modeSummary, netBytes, runsOfMode } from './summary.js';
export { betterText } from './tables.js';
export { measureUsage, type Usage } from './usage.js';
