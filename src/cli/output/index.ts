/**
 * Output: results go to stdout, messages and progress to stderr. Imports the folder `options` (types) and the parts `client` (types),
 * `dht`, `grid`, `html` and `training` (types).
 */
export { asciiMap, clusterLetter } from './ascii-map.js';
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
  printTable,
  progressLine,
  reportJobError,
  table,
  warningLines,
  warnPartial,
} from './print.js';
export { listNearest } from './print-nearest-names.js';
