/** Compares the training modes: runs, figures, tables and the report. Exported is what the benchmark of training uses too. */
export { type ComparedRun, type Comparison, type FailedRun, turns } from './comparison.js';
export { csvOf } from './csv.js';
export { MEASURES, MEASURES_OF, type Measure, scoresOf } from './measures.js';
export { differencesOf, hasFailedPlaces } from './places.js';
export { renderComparison } from './report.js';
export { compareModes } from './run.js';
export { bytesText, digits, type Spread, spreadOf, spreadText, verdict } from './spread.js';
export { baselinesText, netBytes, placesOf, runsOf, summaryOf, winsOf } from './summary.js';
export { accuracyTable, betterText, costTable, placeTable, type Table } from './tables.js';
export { type Usage, withUsage } from './usage.js';
