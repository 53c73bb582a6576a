/**
 * The HTML report of `tilewright demo`. Invariant: plain data in, one self-contained page out, with every text escaped; does no I/O.
 * Imports the parts `grid` (types) and `html`.
 */

export { type DemoReport, type ReportModel, type ReportTile, shownTiles } from './data.js';
export { renderReport } from './report.js';
