/**
 * The HTML report of an analysis, and its result files. Invariant: the page loads nothing from elsewhere, and every text is escaped.
 * Imports the folder `spectrum-reading` (types) and the parts `derive`, `grid`, `html`, `imagery`, `jobs` (types), `query` and `storage`.
 */
export { type Curve, eigenvalueChart, spectrumChart } from './analysis-report-charts.js';
export { writeFiles } from './analysis-report-files.js';
export { bandMap, mapSections, type ReportMapStyle } from './analysis-report-maps.js';
export { matrixFile } from './analysis-report-matrix.js';
export { matrixImage } from './analysis-report-matrix-image.js';
export { exampleSpectra } from './analysis-report-spectra.js';
export {
  bandsText,
  colourKey,
  columns,
  covarianceFacts,
  htmlTable,
  percentText,
  renderAnalysisReport,
  type Section,
  tilesText,
} from './render-analysis-report.js';
