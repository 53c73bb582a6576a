/**
 * K-means over all tiles of a job (Lloyd 1982), initialised by k-means++ (Arthur and Vassilvitskii 2007). Each pass computes an exact sum
 * or the largest value over all pixels, so centres have the same bits on any distribution of the tiles.
 */
import { messageCheck } from '../../utils/json-schema.js';
import { fewClusters } from '../errors.js';
import { type AnalysedCollection, allGatherChecked, forEachTile } from '../jobs/index.js';
import { trace } from '../numeric/index.js';
import { type BandStatistics, CLASS_SUMS, ClassSums } from '../reproducible-sums/index.js';
import { extremePixels } from './collection-extreme-pixels.js';

/** One cluster. Plain JSON. */
export interface SpectralCluster {
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

/** `iterations`: their limit. Throws TW_ANALYSIS_FEW_CLUSTERS if the pixels have fewer different spectra. */
export async function distributedKMeans(
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
