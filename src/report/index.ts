/**
 * The HTML report of `tilewright demo`. Invariant: plain data in, one self-contained page out, with every text escaped; does no I/O.
 * Imports `html` and types of `grid`.
 */
export { shownTiles } from './cells.js';
export { renderReport } from './render-report.js';
export type {
  DemoReport,
  ReportMetrics,
  ReportModel,
  ReportScene,
  ReportTile,
  ReportTraining,
} from './report-data.js';
