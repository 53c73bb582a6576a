/**
 * Zonal statistics by date: time series and spectra of a point or polygon. Each owner node computes partial results of its tiles.
 * Invariant: pixels never leave their node, and merged results are exact, including the median. Imports files of a folder above, the folder
 * `reading` and the parts `async`, `dht` (types), `expressions`, `grid`, `query`, `raster` and `storage`.
 */
export { type PartialSeries, readPartialSeries, type SeriesQuery } from './partial-series.js';
export { type PartialSpectra, readPartialSpectra, type SpectraQuery } from './partial-series-of-spectra.js';
export { SERIES_HANDLERS } from './series-handlers.js';
export {
  readSpectra,
  type Spectra,
  type SpectraSeriesRequest,
  type SpectrumDate,
} from './series-of-spectra.js';
export { SPECTRA_QUERY } from './series-of-spectra-query.js';
export { SERIES_QUERY } from './series-query.js';
export { forEachPixelRun, parseZone, type Zone } from './series-zone.js';
export { readSeries, type Series, type SeriesDate, type TimeSeriesRequest } from './time-series.js';
export { readCellValues } from './zonal-series-statistics.js';
