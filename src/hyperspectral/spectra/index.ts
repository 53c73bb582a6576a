/**
 * Wavelengths: spectral response of sensors, gaps, smoothing, narrow-band indices, tags of bands. Pure functions and tables, and a reader
 * of sensor files. Invariant: all wavelengths are in nm. Imports the folders `numeric` and `spectrum-reading` (types) and the parts
 * `ingest` and `raster`.
 */

export { readSensor } from './read-spectral-sensor.js';
export { readSmallText, unitInHeading } from './read-wavelength-table.js';
export { INDEX_NAMES, type IndexName, NARROW_BAND_INDICES } from './spectra-narrow-band-indices.js';
export { type SmoothingWindow, savitzkyGolay } from './spectra-smoothing.js';
export { type MapBandTags, mapReflectanceTags, mapSpectralTags } from './spectra-wavelength-tags.js';
export { responseWeights, type SensorBand } from './spectral-response.js';
export { SENSOR_NAMES, SENSORS, type SensorName } from './spectral-sensors.js';
export { gaplessRuns, wavelengthSteps, widestStep } from './wavelength-gaps.js';
