/**
 * The HTML report of an analysis, and its result files. Invariant: the page loads nothing from elsewhere, and every text is escaped.
 * Imports the folder `spectrum-reading` (types) and the parts `derive`, `grid`, `html`, `imagery`, `jobs` (types), `query` and `storage`.
 */

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
} from './render-spectral-report.js';
export { type Curve, eigenvalueChart, spectrumChart } from './spectral-report-charts.js';
export { writeFiles } from './spectral-report-files.js';
export { bandMap, mapSections, type ReportMapStyle } from './spectral-report-maps.js';
export { matrixFile, matrixImage } from './spectral-report-matrix.js';
export { exampleSpectra } from './spectral-report-spectra.js';
