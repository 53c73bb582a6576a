/** Maps of clusters of the spectra of a collection, by k-means. */

import { html, significant } from '../../html/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf } from '../../utils/json-schema.js';
import {
  type AnalysedCollection,
  type AnalysisInputs,
  allGatherChecked,
  DEFAULT_SEED,
  forEachTile,
  integer,
  SEED,
} from '../analysis.js';
import { spectrumChart } from '../charts.js';
import { collectionStatistics, extremePixels } from '../collection-passes.js';
import { fewClusters } from '../errors.js';
import { libraryCsv } from '../library.js';
import { trace } from '../linear-algebra.js';
import type { MapAnalysis, MapResults } from '../map-analysis.js';
import { colourKey, columns, covarianceFacts, htmlTable, percentText } from '../report.js';
import { type BandStatistics, CLASS_SUMS, ClassSums } from '../sums.js';

/** One cluster. Plain JSON. */
interface SpectralCluster {
  pixels: number;
  /** Root mean square distance of its pixels from the centre. */
  spread: number;
  /** Physical values of the bands. */
  centre: number[];
}

export interface KMeans {
  /** The largest first. */
  clusters: SpectralCluster[];
  /** Sum of the squared distances of all pixels from their centres. */
  inertia: number;
  iterations: number;
  /** True if the centres stopped moving before the limit of iterations was reached. */
  converged: boolean;
}

/**
 * K-means has converged if the sum of the squared movements of the centres is at most this share of the mean variance of the bands, as in
 * scikit-learn.
 */
const CONVERGENCE_TOLERANCE = 1e-4;

const checkSums = messageCheck(CLASS_SUMS);

/** Pixels nearest to a centre, and their mean, which is the next centre. */
type Members = Omit<SpectralCluster, 'centre'> & { mean: number[] };

/**
 * K-means over all tiles of a job (Lloyd 1982), initialised by k-means++ (Arthur and Vassilvitskii 2007). Each pass computes an exact sum
 * or the largest value over all pixels, so centres have the same bits on any distribution of the tiles. `iterations`: their limit. Throws
 * TW_ANALYSIS_FEW_CLUSTERS if the pixels have fewer different spectra.
 */
async function distributedKMeans(
  analysed: AnalysedCollection,
  { mean, covariance, pixels }: BandStatistics,
  { clusters, seed, iterations }: { clusters: number; seed: number; iterations: number },
): Promise<KMeans> {
  const { job } = analysed;
  const passes = tilePasses(analysed, mean, seed);
  const start: number[][] = [];
  while (start.length < clusters) {
    job.message(`drawing centre ${start.length + 1} of ${clusters}`);
    start.push(await passes.draw(start, clusters));
  }
  const bands = mean.length;
  const tolerance = (CONVERGENCE_TOLERANCE * trace(covariance, bands) * (pixels - 1)) / pixels / bands;
  return lloyd(passes, start, { tolerance, iterations, onMessage: (text) => job.message(text) });
}

/** Passes over all pixels. */
export interface Passes {
  /** Draws another centre, a pixel that is probably far from the others. */
  draw(centres: readonly number[][], wanted: number): Promise<number[]>;
  /** The pixels that are nearest to each centre; undefined for a centre without any. */
  members(centres: readonly number[][]): Promise<(Members | undefined)[]>;
}

/** `tolerance`: the sum of the squared movements of the centres at which the algorithm has converged. */
export async function lloyd(
  passes: Passes,
  start: number[][],
  options: { tolerance: number; iterations: number; onMessage?: (message: string) => void },
): Promise<KMeans> {
  const { tolerance, iterations, onMessage } = options;
  let centres = start;
  let moved = Number.POSITIVE_INFINITY;
  let iteration = 0;
  while (moved > tolerance && iteration < iterations) {
    iteration++;
    onMessage?.(`iteration ${iteration} of at most ${iterations}`);
    const members = await passes.members(centres);
    const next = members.flatMap((one) => (one ? [one.mean] : []));
    // A cluster that has lost all pixels is replaced by a pixel drawn as for the initial centres.
    while (next.length < start.length) next.push(await passes.draw(next, start.length));
    moved = centres.reduce((sum, centre, k) => sum + squaredDistance(centre, next[k]), 0);
    centres = next;
  }
  // The centres may have moved since their pixels were counted.
  const members = await passes.members(centres);
  const clusters = centres.flatMap((centre, k): SpectralCluster[] => {
    const own = members[k];
    return own ? [{ pixels: own.pixels, spread: own.spread, centre }] : [];
  });
  return {
    // The sort is stable, so ties keep their order.
    clusters: clusters.toSorted((a, b) => b.pixels - a.pixels),
    inertia: clusters.reduce((sum, one) => sum + one.pixels * one.spread ** 2, 0),
    iterations: iteration,
    converged: moved <= tolerance,
  };
}

const squaredDistance = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, value, i) => sum + (value - b[i]) ** 2, 0);

/** Passes over the tiles of all runs of a job. Each run makes the same passes in the same order. `draw` throws TW_ANALYSIS_FEW_CLUSTERS. */
function tilePasses(analysed: AnalysedCollection, mean: Float64Array, seed: number): Passes {
  const taskOf = (centres: readonly number[][]) => ({
    centres: Float64Array.from(centres.flat()),
    centre: mean,
  });
  let drawn = 0;
  return {
    draw: async (centres, wanted) => {
      const number = drawn++;
      const task = { kind: 'draw' as const, ...taskOf(centres) };
      const [found] = await extremePixels(analysed, 1, async ({ id }, file) => [
        await analysed.compute({ ...task, file, key: `${seed} ${number} ${id}` }),
      ]);
      if (!found) throw fewClusters(wanted, centres.length);
      return found.spectrum;
    },
    members: async (centres) => {
      const [own, total] = [new ClassSums(), new ClassSums()];
      const task = { kind: 'nearest' as const, ...taskOf(centres) };
      await forEachTile(analysed, async (_, file) => {
        own.add(await analysed.compute({ ...task, file }));
      });
      for (const sums of await allGatherChecked(analysed.job, own.sent(), checkSums)) total.addSent(sums);
      const members: (Members | undefined)[] = centres.map(() => undefined);
      for (const { code, pixels, mean: means } of total.means()) {
        const own = Array.from(means.subarray(0, mean.length));
        members[code] = { pixels, spread: Math.sqrt(means[mean.length]), mean: own };
      }
      return members;
    },
  };
}

interface ClusterInputs extends AnalysisInputs {
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
