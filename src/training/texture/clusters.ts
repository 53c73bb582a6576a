/** Clusters of similar textures: distances, k-means, and the number of clusters with the best silhouette. */
import { runAtOnce } from '../../async/index.js';
import { randomStream, shuffledOrder } from '../../utils/random.js';

/** A feature vector. Those of one set have the same length. */
type Vector = ArrayLike<number>;

export const DISTANCE_NAMES = ['euclidean', 'manhattan', 'cosine'] as const;
export type DistanceName = (typeof DISTANCE_NAMES)[number];

/** 0 for equal vectors (cosine: for the same direction; 1 if only one vector has length 0), otherwise positive. */
export const distanceBetween: Record<DistanceName, (a: Vector, b: Vector) => number> = {
  euclidean: (a, b) => Math.sqrt(squaredDistance(a, b)),
  manhattan: (a, b) => {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += Math.abs(a[i] - b[i]);
    return sum;
  },
  cosine: (a, b) => {
    const [product, ofA, ofB] = [dot(a, b), dot(a, a), dot(b, b)];
    return ofA === 0 || ofB === 0 ? Number(ofA !== ofB) : Math.max(0, 1 - product / Math.sqrt(ofA * ofB));
  },
};

export function squaredDistance(a: Vector, b: Vector): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] - b[i]) ** 2;
  return sum;
}

function dot(a: Vector, b: Vector): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** Standardisation: value minus mean, divided by the standard deviation. */
interface FeatureScaling {
  means: number[];
  /** 1 for constant features. */
  deviations: number[];
}

/** Vectors in another order give the same result except for rounding. Without vectors the result is empty. */
export const fitScaling = (vectors: readonly Vector[]): FeatureScaling => runAtOnce(scalingSteps(vectors));

/** `fitScaling` in steps. */
export function* scalingSteps(vectors: readonly Vector[]): Generator<void, FeatureScaling> {
  const size = vectors[0]?.length ?? 0;
  function* meansOf(of: (vector: Vector, i: number) => number): Generator<void, number[]> {
    const sums = new Array<number>(size).fill(0);
    for (const vector of vectors) {
      for (let i = 0; i < size; i++) sums[i] += of(vector, i);
      yield;
    }
    return sums.map((sum) => sum / vectors.length);
  }
  const means = yield* meansOf((vector, i) => vector[i]);
  const squares = yield* meansOf((vector, i) => (vector[i] - means[i]) ** 2);
  const deviations = squares.map(Math.sqrt);
  // A deviation this small is rounding error of a constant.
  return { means, deviations: deviations.map((one, i) => (one > 1e-9 * Math.abs(means[i]) ? one : 1)) };
}

export function standardise(vector: Vector, { means, deviations }: FeatureScaling): Float64Array {
  return Float64Array.from(means, (mean, i) => (vector[i] - mean) / deviations[i]);
}

interface Clustering {
  centres: Float64Array[];
  /** Cluster number of each vector. Clusters are numbered from the largest to the smallest. */
  labels: Uint32Array;
  /** Sum of the squared distances from the centres. */
  inertia: number;
}

const MAX_STARTS = 8;
const MAX_ITERATIONS = 100;
/**
 * Maximum number of distances in one round of all starts. More vectors or clusters reduce the number of starts, so that the largest
 * inputs take minutes.
 */
const MAX_DISTANCES = 4e7;

/**
 * k-means (Lloyd, 1982) with k-means++ initialisation (Arthur and Vassilvitskii, 2007): returns the best of several starts. The result is
 * the same for the same vectors in the same order and the same seed. There are fewer clusters than `k` if fewer vectors are distinct, and
 * none without vectors.
 */
export function kMeansClusters(vectors: Vector[], k: number, seed: number): Clustering {
  const { next } = randomStream(seed);
  const starts = Math.floor(MAX_DISTANCES / (k * vectors.length));
  let best: Clustering | undefined;
  for (let start = 0; start < Math.max(1, Math.min(MAX_STARTS, starts)); start++) {
    const found = refined(vectors, firstCentres(vectors, k, next));
    if (!best || found.inertia < best.inertia) best = found;
  }
  return bySize(best!);
}

/** Returns the indices of the members of each cluster. */
export function membersOf(labels: Uint32Array, clusters: number): number[][] {
  const members: number[][] = Array.from({ length: clusters }, () => []);
  for (const [i, label] of labels.entries()) members[label].push(i);
  return members;
}

/** Returns the index of the nearest vector, the first of equals. */
export function nearestIndex(vector: Vector, others: Vector[]): number {
  let nearest = 0;
  let least = Infinity;
  for (let i = 0; i < others.length; i++) {
    const distance = squaredDistance(vector, others[i]);
    if (distance < least) [nearest, least] = [i, distance];
  }
  return nearest;
}

/** k-means++: each centre is drawn with a probability proportional to the squared distance from the centres before it. */
function firstCentres(vectors: Vector[], k: number, random: () => number): Float64Array[] {
  const centres: Float64Array[] = [];
  const distances = new Float64Array(vectors.length).fill(Infinity);
  let weights = vectors.map(() => 1);
  while (centres.length < k) {
    const sum = weights.reduce((total, weight) => total + weight, 0);
    if (sum === 0) break;
    const centre = Float64Array.from(vectors[drawn(weights, random() * sum)]);
    centres.push(centre);
    weights = vectors.map((vector, i) => {
      distances[i] = Math.min(distances[i], squaredDistance(vector, centre));
      return distances[i];
    });
  }
  return centres;
}

function drawn(weights: number[], at: number): number {
  let rest = at;
  let last = 0;
  for (const [i, weight] of weights.entries()) {
    if (weight === 0) continue;
    last = i;
    rest -= weight;
    if (rest < 0) break;
  }
  return last;
}

function refined(vectors: Vector[], centres: Float64Array[]): Clustering {
  const labels = new Uint32Array(vectors.length);
  for (let round = 0; round < MAX_ITERATIONS; round++) {
    let moved = round === 0;
    for (const [i, vector] of vectors.entries()) {
      const label = nearestIndex(vector, centres);
      if (label === labels[i]) continue;
      labels[i] = label;
      moved = true;
    }
    // In the last round the centres are not moved, so that each vector belongs to its nearest centre.
    if (!moved || round === MAX_ITERATIONS - 1) break;
    moveToMeans(vectors, labels, centres);
  }
  let inertia = 0;
  for (const [i, vector] of vectors.entries()) inertia += squaredDistance(vector, centres[labels[i]]);
  return { centres, labels, inertia };
}

/** A centre without vectors is not moved. */
function moveToMeans(vectors: Vector[], labels: Uint32Array, centres: Float64Array[]): void {
  const sums = centres.map(({ length }) => new Float64Array(length));
  const counts = new Float64Array(centres.length);
  for (const [i, vector] of vectors.entries()) {
    const sum = sums[labels[i]];
    counts[labels[i]]++;
    for (let d = 0; d < sum.length; d++) sum[d] += vector[d];
  }
  for (const [c, centre] of centres.entries())
    if (counts[c] > 0) for (let d = 0; d < centre.length; d++) centre[d] = sums[c][d] / counts[c];
}

/** Sorts the clusters by size and removes empty ones. */
function bySize({ centres, labels, inertia }: Clustering): Clustering {
  const sizes = centres.map(() => 0);
  for (const label of labels) sizes[label]++;
  const order = [...centres.keys()].filter((c) => sizes[c] > 0).sort((a, b) => sizes[b] - sizes[a] || a - b);
  const numberOf = new Map(order.map((c, number) => [c, number]));
  return {
    centres: order.map((c) => centres[c]),
    labels: labels.map((label) => numberOf.get(label)!),
    inertia,
  };
}

/** Returns the distances of all pairs, row by row: n x n values. */
export function pairwise(vectors: Vector[], distance: DistanceName): Float32Array {
  const between = distanceBetween[distance];
  const size = vectors.length;
  const distances = new Float32Array(size * size);
  for (let i = 0; i < size; i++)
    for (let j = i + 1; j < size; j++)
      distances[i * size + j] = distances[j * size + i] = between(vectors[i], vectors[j]);
  return distances;
}

/**
 * Returns the silhouette (Rousseeuw, 1987), the mean of (b - a) / max(a, b) over the vectors, -1 to 1: a is the mean distance to the other
 * vectors of the cluster, b to those of the nearest other cluster. A vector alone in its cluster counts as 0. There must be at least two
 * clusters, each with a vector.
 */
export function silhouette(distances: Float32Array, labels: Uint32Array, clusters: number): number {
  const size = labels.length;
  const counts = new Float64Array(clusters);
  for (const label of labels) counts[label]++;
  let total = 0;
  for (let i = 0; i < size; i++) {
    const own = labels[i];
    if (counts[own] === 1) continue;
    const sums = new Float64Array(clusters);
    for (let j = 0; j < size; j++) sums[labels[j]] += distances[i * size + j];
    const inside = sums[own] / (counts[own] - 1);
    let nearest = Infinity;
    for (let c = 0; c < clusters; c++) if (c !== own) nearest = Math.min(nearest, sums[c] / counts[c]);
    const larger = Math.max(inside, nearest);
    if (larger > 0) total += (nearest - inside) / larger;
  }
  return total / size;
}

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
