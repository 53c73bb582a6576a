/** Output: results go to stdout, messages and progress to stderr. Imports types of `client`, and `html` for formats of numbers. */
export { asciiMap, clusterLetter } from './ascii-map.js';
export { listNearest } from './nearest-names.js';
export {
  formatBytes,
  formatMse,
  formatPercent,
  imageMeasures,
  logToStderr,
  mergePartial,
  noMatchHint,
  type ProgressLine,
  print,
  printJson,
  progressLine,
  reportJobError,
  table,
  warningLines,
  warnPartial,
} from './print.js';
