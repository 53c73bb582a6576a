/**
 * Helpers that several formats use: probing of inputs, acquisition times, metadata files, XML, quality lookup tables,
 * providers, scene ids. Invariant: metadata is read within limits of size and depth. May import raster and query.
 */
export {
  type AcquisitionTime,
  compactTimestamp,
  DAY_MS,
  datetimeOption,
  parseEosdisTimeRange,
  parseTime,
  parseTimeRange,
  timesInName,
} from './acquisition-time.js';
export { checkCalibration } from './check-calibration.js';
export { commonBandNames } from './common-band-names.js';
export { readMetadataFile } from './metadata-file.js';
export { hdf5Subdatasets, matchesRaster, probeInput } from './probe-input.js';
export {
  ASI,
  CLIMATOLOGY_LAB,
  COPERNICUS,
  DLR,
  ESA,
  LP_DAAC,
  MRLC,
  NASA,
  NSIDC,
  USDA,
  USGS,
} from './providers.js';
export { bitAt, buildQualityLookup } from './quality-lookup.js';
export { slugify, stemOf } from './scene-id.js';
export { elementsOf, readXml, rootName, textOf, type XmlElement } from './xml.js';
