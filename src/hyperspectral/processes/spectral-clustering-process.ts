/** Maps of clusters of the spectra of a collection. */
import { html, significant } from '../../html/index.js';
import { COUNT, listOf, NUMBER, objectOf } from '../../utils/json-schema.js';
import {
  collectionStatistics,
  distributedKMeans,
  type KMeans,
  type SpectralCluster,
} from '../collection-passes/index.js';
import { type AnalysisInputs, DEFAULT_SEED, integer, SEED } from '../jobs/index.js';
import { trace } from '../numeric/index.js';
import {
  colourKey,
  columns,
  covarianceFacts,
  htmlTable,
  percentText,
  spectrumChart,
} from '../report/index.js';
import { libraryCsv } from '../spectral-library/index.js';
import type { MapAnalysis, MapResults } from '../spectral-maps/index.js';

export interface ClusterInputs extends AnalysisInputs {
  /** Number of clusters. */
  clusters: number;
  seed?: number;
  /** Limit of iterations. */
  iterations?: number;
}

interface ClusterFit extends KMeans {
  pixels: number;
  /** Share of the variance of the spectra that lies between the clusters, 0 to 1. */
  explained: number;
}

export interface ClusterResults extends MapResults, Omit<ClusterFit, 'clusters'> {
  /** The largest first. `code`: code in the group `class`, and number of the band. */
  clusters: (Omit<SpectralCluster, 'centre'> & { code: number })[];
}

const DEFAULT_ITERATIONS = 100;
/** Centres that a report draws. */
const MAX_SHOWN_CENTRES = 8;

export const spectralClusteringProcess: MapAnalysis<ClusterInputs, ClusterFit> = {
  name: 'cluster',
  title: 'Clusters',
  description:
    'Maps of the clusters of spectra that k-means finds in the entire collection, so that a code means the same in every tile, and of the distance from each centre.',
  properties: {
    clusters: integer(2, 50, { description: 'Clusters to find' }),
    seed: SEED,
    iterations: integer(1, 1000, {
      default: DEFAULT_ITERATIONS,
      description: 'Limit of iterations; they end earlier if the centres no longer move',
    }),
  },
  required: ['clusters'],
  fit: objectOf({
    pixels: COUNT,
    inertia: NUMBER,
    explained: NUMBER,
    iterations: COUNT,
    converged: { type: 'boolean' },
    clusters: listOf(objectOf({ pixels: COUNT, spread: NUMBER, centre: listOf(NUMBER) })),
  }),
  run: async (analysed, { clusters, seed = DEFAULT_SEED, iterations = DEFAULT_ITERATIONS }) => {
    const [statistics] = await collectionStatistics(analysed, ['pixels']);
    const { mean, covariance, pixels } = statistics;
    const options = { clusters, seed, iterations };
    const found = await distributedKMeans(analysed, statistics, options);
    if (found.clusters.length < clusters)
      analysed.job.log(
        'warning',
        `${clusters - found.clusters.length} clusters without a pixel were left out`,
      );
    const numbers = found.clusters.map((_, i) => i + 1);
    return {
      map: {
        method: {
          kind: 'euclidean',
          centres: Float64Array.from(found.clusters.flatMap(({ centre }) => centre)),
          centre: mean,
        },
        bands: numbers.map((number) => `cluster${number}`),
        classes: { best: 'least', codes: numbers, names: numbers.map((number) => `cluster ${number}`) },
      },
      fit: {
        pixels,
        ...found,
        explained: 1 - found.inertia / (trace(covariance, mean.length) * (pixels - 1)),
      },
    };
  },
  conclude: ({ clusters, ...fit }, _, bands) => {
    const { pixels, inertia, explained, iterations, converged } = fit;
    const named = clusters.map(({ centre }, i) => ({ name: `cluster ${i + 1}`, spectrum: centre }));
    const curves = named
      .slice(0, MAX_SHOWN_CENTRES)
      .map(({ name, spectrum }) => ({ name, values: spectrum }));
    return {
      summary: { ...fit, clusters: clusters.map(({ centre: _, ...one }, i) => ({ code: i + 1, ...one })) },
      files: { 'centres.csv': libraryCsv(named, bands) },
      facts: [
        ...covarianceFacts({ pixels }),
        `${clusters.length} clusters hold ${percentText(explained)} of the variance`,
        `${iterations} iterations${converged ? '' : ', after which the centres still moved'}`,
      ],
      sections: [
        { title: 'Centres', content: spectrumChart(bands, curves) },
        {
          title: 'Sizes',
          content: html`<p>Sum of the squared distances from the centres: ${significant(inertia)}.</p>${htmlTable(
            columns([''], ['code', 'pixels', 'share', 'root mean square distance']),
            clusters.map((one, i) => [
              colourKey(i + 1),
              `${i + 1}`,
              `${one.pixels}`,
              percentText(one.pixels / pixels),
              significant(one.spread),
            ]),
          )}`,
        },
      ],
      looks: [{ title: 'Clusters', look: { assets: ['class'] } }],
    };
  },
};
