/**
 * The CF conventions: grid mappings, coordinate variables, time axes and missing data. Imports files of a folder above and the folders
 * `crs` and `pixels`.
 */
export { cfGeoreferencing } from './cf-georeferencing.js';
export {
  decodedType,
  isMissing,
  missingData,
  type NumberTypes,
  replaceMissing,
  viewAsDecoded,
} from './cf-missing-data.js';
export { openTimeAxis, type TimeAxis } from './cf-time-axis.js';
