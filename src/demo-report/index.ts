/**
 * The HTML report of `tilewright demo`. Invariant: plain data in, one self-contained page out, with every text escaped; does no I/O.
 * Imports the parts `grid` (types) and `html`.
 */
export { shownTiles } from './demo-report-cells.js';
export type { DemoReport, ReportModel, ReportTile } from './demo-report-data.js';
export { renderReport } from './render-demo-report.js';
