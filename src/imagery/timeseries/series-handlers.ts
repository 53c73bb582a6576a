/** Tasks of worker threads that compute zonal statistics. */
import { type SpectrumPart, spectrumSums } from './zonal-series-spectra.js';
import { type Acquisition, acquisitionStatistics } from './zonal-series-statistics.js';

export const SERIES_HANDLERS = {
  series: ({ acquisitions }: { acquisitions: Acquisition[] }) => acquisitions.map(acquisitionStatistics),
  spectra: ({ parts }: { parts: SpectrumPart[] }) => spectrumSums(parts),
};

export type SeriesHandlers = typeof SERIES_HANDLERS;
