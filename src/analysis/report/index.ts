/**
 * The HTML report of an analysis, and its result files. Invariant: the page loads nothing from elsewhere, and every text is escaped.
 * Imports the folder tile-reading and the parts derive, grid, html, imagery, jobs, query and storage.
 */
export { type Curve, eigenvalueChart, spectrumChart } from './charts.js';
export { exampleSpectra } from './example-spectra.js';
export { bandMap, mapSections, type ReportMapStyle } from './map-sections.js';
export { matrixFile } from './matrix-file.js';
export { matrixImage } from './matrix-image.js';
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
} from './render-report.js';
export { writeFiles } from './result-files.js';
