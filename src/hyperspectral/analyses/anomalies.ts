/** Maps of pixels whose spectra differ from the collection, or from the pixels around them. */
import { COUNT, listOf, NUMBER, objectOf } from '../../utils/json-schema.js';
import { type AnalysisInputs, integer } from '../analysis.js';
import { spectrumChart } from '../charts.js';
import { collectionStatistics } from '../collection-passes.js';
import { badWindow } from '../errors.js';
import type { MapAnalysis, MapResults } from '../map-analysis.js';
import { MIN_PIXELS_PER_COMPONENT } from '../methods/local-rx.js';
import { bandMap, covarianceFacts, percentText } from '../report.js';

interface AnomalyInputs extends AnalysisInputs {
  /** Sides of the outer and the inner window; the inner one is 1 by default. Without a window, the background is the entire collection. */
  window?: number[];
  /** Number of principal components in which pixels are compared with those around them. */
  components?: number;
}

interface AnomalyFit {
  /** Absent without a comparison with surrounding pixels, like the following members. */
  window?: number[];
  components?: number;
  /** Share of the variance of the collection that these components explain, 0 to 1. */
  held?: number;
  pixels: number;
  /** Share of the mean variance that was added to the diagonal of the covariance of the collection. */
  loading: number;
  mean: number[];
}

export interface AnomalyResults extends MapResults, Omit<AnomalyFit, 'mean'> {}

const DEFAULT_COMPONENTS = 10;
const MAX_COMPONENTS = 50;
const MAX_WINDOW = 301;

/** RX of Reed and Yu (1990), with the entire collection or the surrounding pixels as background. */
export const spectralAnomalyProcess: MapAnalysis<AnomalyInputs, AnomalyFit> = {
  name: 'anomaly',
  title: 'Anomalies',
  description:
    'Maps of the squared Mahalanobis distance (RX) of the spectrum of each pixel from the mean, with the mean and covariance over all clear pixels of the collection, or over the pixels in a window around the pixel.',
  properties: {
    window: {
      type: 'array',
      minItems: 1,
      maxItems: 2,
      items: integer(1, MAX_WINDOW),
      description:
        'Sides of the windows around each pixel, odd numbers of pixels: the background is the outer window (first) without the inner window (second, default 1). Default background: the entire collection',
    },
    components: integer(1, MAX_COMPONENTS, {
      description: `With a window: principal components of the collection in which pixels are compared, default ${DEFAULT_COMPONENTS}`,
    }),
  },
  fit: objectOf(
    { pixels: COUNT, loading: NUMBER, mean: listOf(NUMBER) },
    { window: listOf(COUNT), components: COUNT, held: NUMBER },
  ),
  check: checkWindow,
  run: async (analysed, { window, components = DEFAULT_COMPONENTS }) => {
    const [statistics] = await collectionStatistics(analysed, ['pixels']);
    const { mean, covariance, pixels } = statistics;
    const fit = { pixels, loading: 0, mean: Array.from(mean) };
    if (!window) {
      const { whitening, loading } = await analysed.compute({ kind: 'whitening', covariance, pixels });
      return {
        map: { method: { kind: 'distance', whitening, centre: mean }, bands: ['rx'] },
        fit: { ...fit, loading },
      };
    }
    const [outer, inner] = sidesOf(window);
    const count = Math.min(components, mean.length);
    const { weights, eigenvalues } = await analysed.compute({ kind: 'components', covariance, count });
    const sum = (values: Float64Array) => values.reduce((total, value) => total + value, 0);
    const held = sum(eigenvalues.subarray(0, count)) / sum(eigenvalues);
    return {
      map: { method: { kind: 'local-distance', weights, centre: mean, outer, inner }, bands: ['rx'] },
      fit: { ...fit, window: [outer, inner], components: count, held },
    };
  },
  conclude: (fit, _, bands) => {
    const { mean, ...summary } = fit;
    const { window, components, held = 1 } = fit;
    const local = window && [
      `background between windows of ${window[1]} and ${window[0]} pixels`,
      `${components} principal components, which explain ${percentText(held)} of the variance`,
    ];
    return {
      summary,
      facts: [...covarianceFacts(fit), ...(local ?? [])],
      sections: [{ title: 'Mean spectrum', content: spectrumChart(bands, [{ name: 'mean', values: mean }]) }],
      looks: [bandMap(`Squared distance from the ${window ? 'local ' : ''}mean`, 1)],
    };
  },
};

const sidesOf = ([outer, inner = 1]: readonly number[]): [outer: number, inner: number] => [outer!, inner];

/** Throws TW_ANALYSIS_WINDOW. */
function checkWindow({ window, components }: AnomalyInputs): void {
  if (!window) {
    if (components !== undefined) throw badWindow('components need a window, and none is given');
    return;
  }
  const [outer, inner] = sidesOf(window);
  const even = [outer, inner].find((side) => side % 2 === 0);
  if (even !== undefined) throw badWindow(`a side of ${even} pixels is not odd`);
  if (inner >= outer) throw badWindow(`the inner side of ${inner} pixels is not smaller than ${outer}`);
  const background = outer ** 2 - inner ** 2;
  const needed = MIN_PIXELS_PER_COMPONENT * (components ?? DEFAULT_COMPONENTS);
  if (background < needed)
    throw badWindow(
      `${background} pixels lie between sides of ${inner} and ${outer}, and ${components ?? DEFAULT_COMPONENTS} components need ${needed}; choose a larger window, or fewer components`,
    );
}
