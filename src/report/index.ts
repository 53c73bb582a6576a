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
