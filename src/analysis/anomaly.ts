/** Pixels whose spectra differ from those of the collection. */
import { COUNT, NUMBER, objectOf } from '../json-schema.js';
import { collectionStatistics } from './collection-statistics.js';
import type { AnalysisInputs } from './inputs.js';
import type { MapAnalysis, MapResults } from './map-process.js';

interface AnomalyFit {
  pixels: number;
  loading: number;
}

export interface AnomalyResults extends MapResults, AnomalyFit {}

/** RX of Reed and Yu (1990), over the whole collection. */
export const anomaly: MapAnalysis<AnalysisInputs, AnomalyFit> = {
  name: 'anomaly',
  title: 'Anomalies',
  description:
    'Maps of how far the spectrum of each pixel is from the mean of the collection: the squared Mahalanobis distance (RX), with the mean and covariance over all its clear pixels.',
  properties: {},
  fit: objectOf({ pixels: COUNT, loading: NUMBER }),
  run: async (context, analysed, _, job) => {
    const [statistics] = await collectionStatistics(context, analysed, job, ['pixels']);
    const { mean, covariance, pixels } = statistics!;
    const { whitening, loading } = await context.workers.whitening(
      { kind: 'whitening', covariance, pixels },
      job.signal,
    );
    return {
      map: { method: { kind: 'distance', whitening, centre: mean }, bands: ['rx'] },
      fit: { pixels, loading },
    };
  },
  conclude: (fit) => ({ summary: fit, files: {} }),
};
