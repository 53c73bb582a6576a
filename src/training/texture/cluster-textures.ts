/** Clusters of tiles that look alike. */
import { randomStream, shuffledOrder } from '../../random.js';
import {
  DISTANCE_NAMES,
  type DistanceName,
  type FeatureScaling,
  fitScaling,
  standardise,
  type Vector,
} from './feature-vectors.js';
import { type Clustering, kMeansClusters, membersOf, nearestIndex } from './k-means.js';
import { pairwise, silhouette } from './silhouette.js';

/** Numbers of clusters that are tried, and vectors that are looked at for that. */
const MIN_CLUSTERS = 2;
const MAX_CLUSTERS = 20;
const MAX_SAMPLED = 2000;

/** How well so many clusters fit: mean silhouettes, -1 to 1. */
export type SilhouettePoint = { clusters: number } & Record<DistanceName, number>;

export interface FoundClusters {
  scaling: FeatureScaling;
  /** In standardised values, of the largest cluster first. */
  centres: number[][];
  /** How well other numbers of clusters fit. Empty where the number was given. */
  curve: SilhouettePoint[];
  seed: number;
  /** The number of the cluster of each texture. */
  labels: Uint32Array;
  /** For each cluster the index of the texture that is nearest to its centre. */
  medoids: number[];
}

/**
 * Clusters of textures, so many as are given, or else as many as fit best by the mean of the silhouettes over three distances. The same
 * for the same textures in the same order. The number is at least 1 and at most that of the textures; there are fewer where
 * fewer textures differ.
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
    // Fewer vectors differ, or a cluster has lost all of its own.
    if (centres.length < k) continue;
    const values = distances.map(([name, pairs]) => [name, silhouette(pairs, labels, k)]);
    curve.push({ clusters: k, ...(Object.fromEntries(values) as Record<DistanceName, number>) });
  }
  return curve;
}

/** The fewest of those that fit best; 1 where nothing was tried. */
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
