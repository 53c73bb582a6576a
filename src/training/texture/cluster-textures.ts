/** Clusters of similar textures. */
import { randomStream, shuffledOrder } from '../../utils/random.js';
import {
  DISTANCE_NAMES,
  type DistanceName,
  type FeatureScaling,
  fitScaling,
  standardise,
  type Vector,
} from './texture-feature-vectors.js';
import { type Clustering, kMeansClusters, membersOf, nearestIndex } from './texture-k-means.js';
import { pairwise, silhouette } from './texture-silhouette.js';

/** Range of the numbers of clusters that are tried, and maximum number of vectors in that search. */
const MIN_CLUSTERS = 2;
const MAX_CLUSTERS = 20;
const MAX_SAMPLED = 2000;

/** Mean silhouettes of a number of clusters, -1 to 1. */
type SilhouettePoint = { clusters: number } & Record<DistanceName, number>;

export interface FoundClusters {
  scaling: FeatureScaling;
  /** In standardised values, the largest cluster first. */
  centres: number[][];
  /** Silhouettes of the numbers that were tried. Empty if the number was given. */
  curve: SilhouettePoint[];
  seed: number;
  /** Cluster number of each texture. */
  labels: Uint32Array;
  /** For each cluster, the index of the texture nearest to its centre. */
  medoids: number[];
}

/**
 * Clusters textures. Without `clusters`, uses the number with the best mean silhouette over three distances. The result is the same for
 * the same textures in the same order. The number must be between 1 and the number of textures; there are fewer clusters if fewer
 * textures are distinct.
 */
export function clusterTextures(
  textures: Vector[],
  { clusters, seed }: { clusters?: number; seed: number },
): FoundClusters {
  const scaling = fitScaling(textures);
  const vectors = textures.map((texture) => standardise(texture, scaling));
  const curve = clusters === undefined ? silhouetteCurve(sampled(vectors, seed), seed) : [];
  const { centres, labels } = kMeansClusters(vectors, clusters ?? best(curve), seed);
  const medoids = membersOf(labels, centres.length).map((own, c) => {
    const members = own.map((i) => vectors[i]);
    return own[nearestIndex(centres[c], members)];
  });
  return { scaling, centres: centres.map((centre) => [...centre]), curve, seed, labels, medoids };
}

function silhouetteCurve(vectors: Vector[], seed: number): SilhouettePoint[] {
  const distances = DISTANCE_NAMES.map((name) => [name, pairwise(vectors, name)] as const);
  const curve: SilhouettePoint[] = [];
  for (let k = MIN_CLUSTERS; k <= Math.min(MAX_CLUSTERS, vectors.length - 1); k++) {
    const { labels, centres }: Clustering = kMeansClusters(vectors, k, seed);
    // Fewer vectors are distinct, or a cluster has lost all of its vectors.
    if (centres.length < k) continue;
    const values = distances.map(([name, pairs]) => [name, silhouette(pairs, labels, k)]);
    curve.push({ clusters: k, ...(Object.fromEntries(values) as Record<DistanceName, number>) });
  }
  return curve;
}

/** Returns the smallest of the best numbers; 1 if none was tried. */
function best(curve: SilhouettePoint[]): number {
  const meanOf = (point: SilhouettePoint) =>
    DISTANCE_NAMES.reduce((sum, name) => sum + point[name], 0) / DISTANCE_NAMES.length;
  const found = curve.reduce<SilhouettePoint | undefined>(
    (a, b) => (a && meanOf(a) >= meanOf(b) ? a : b),
    undefined,
  );
  return found?.clusters ?? 1;
}

function sampled(vectors: Vector[], seed: number): Vector[] {
  if (vectors.length <= MAX_SAMPLED) return vectors;
  const order = shuffledOrder(vectors.length, randomStream(seed).next).slice(0, MAX_SAMPLED).sort();
  return [...order].map((i) => vectors[i]);
}
