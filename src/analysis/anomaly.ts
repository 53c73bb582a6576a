/** Pixels whose spectra differ from those of the collection. */
import { COUNT, listOf, NUMBER, objectOf } from '../json-schema.js';
import { collectionStatistics } from './collection-statistics.js';
import type { AnalysisInputs } from './inputs.js';
import type { MapAnalysis, MapResults } from './map-process.js';
import { spectrumChart } from './report/charts.js';
import { factsOf } from './report/report.js';

interface AnomalyFit {
  pixels: number;
  /** Share of the mean variance that was added to the diagonal of the covariance. */
  loading: number;
  mean: number[];
}

export interface AnomalyResults extends MapResults, Omit<AnomalyFit, 'mean'> {}

/** RX of Reed and Yu (1990), over the whole collection. */
export const anomaly: MapAnalysis<AnalysisInputs, AnomalyFit> = {
  name: 'anomaly',
  title: 'Anomalies',
  description:
    'Maps of how far the spectrum of each pixel is from the mean of the collection: the squared Mahalanobis distance (RX), with the mean and covariance over all its clear pixels.',
  properties: {},
  fit: objectOf({ pixels: COUNT, loading: NUMBER, mean: listOf(NUMBER) }),
  run: async (context, analysed, _, job) => {
    const [statistics] = await collectionStatistics(context, analysed, job, ['pixels']);
    const { mean, covariance, pixels } = statistics!;
    const { whitening, loading } = await context.workers.whitening(
      { kind: 'whitening', covariance, pixels },
      job.signal,
    );
    return {
      map: { method: { kind: 'distance', whitening, centre: mean }, bands: ['rx'] },
      fit: { pixels, loading, mean: Array.from(mean) },
    };
  },
  conclude: (fit, _, bands) => {
    const wavelengths = bands.map(({ wavelength }) => wavelength);
    const { mean, ...summary } = fit;
    return {
      ...{ summary, files: {}, facts: factsOf(fit) },
      sections: [
        { title: 'Mean spectrum', content: spectrumChart(wavelengths, [{ name: 'mean', values: mean }], '') },
      ],
      looks: [{ title: 'Squared distance from the mean', look: { bidx: [1], colormap_name: 'viridis' } }],
    };
  },
};
