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
  print,
  printJson,
  printTable,
  reportJobError,
  table,
  warningLines,
  warnPartial,
  withProgressLine,
} from './print.js';
export { listNearest } from './print-nearest-names.js';
