/** Compares the training modes. The benchmark of training uses the exports too. */

export { differencesOf } from './cells.js';
export { jobsBeside } from './compare-modes.js';
export { type ComparedRun, type Comparison, turns } from './comparison-data.js';
export { csvOf } from './csv.js';
export { MEASURES_OF, scoresOf } from './measures.js';
export { renderComparison } from './report.js';
export { bytesText, digits, type Spread, spreadOf, spreadText, verdict } from './spread.js';
export { netBytes, placesOf, runsOf, summaryOf, winsOf } from './summary.js';
export { betterText } from './tables.js';
export { type Usage, withUsage } from './usage.js';
