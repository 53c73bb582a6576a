/**
 * Helpers that several formats use: probing of inputs, acquisition times, metadata files, XML, quality lookup tables, providers, scene ids.
 * Invariant: metadata is read within limits of size and depth. Imports files of a folder above (types) and the parts `query` and `raster`.
 */

export { checkCalibration } from './check-product-calibration.js';
export {
  type AcquisitionTime,
  compactTimestamp,
  DAY_MS,
  datetimeOption,
  parseEosdisTimeRange,
  parseTime,
  parseTimeRange,
  timeRange,
  timesInName,
} from './product-acquisition-time.js';
export { commonBandNames, spectralCubeBands, withCommonNames } from './product-band-names.js';
export { readMetadataFile } from './product-metadata-file.js';
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
} from './product-providers.js';
export { hlsFmask, landsatPixelQuality, sentinel2SceneClass } from './product-quality-codes.js';
export {
  bitAt,
  buildQualityLookup,
  buildQualityLookups,
  flagCode,
  qualityBand,
} from './product-quality-lookup.js';
export { slugify, stemOf } from './product-scene-id.js';
export { elementsOf, readXml, rootName, textOf, type XmlElement } from './product-xml.js';
export { hdf5Subdatasets, matchesRaster, probeInput } from './shared-format-probe.js';
