/** k-means clustering (Lloyd, 1982) with k-means++ initialisation (Arthur and Vassilvitskii, 2007). */
import { randomStream } from '../../utils/random.js';
import { squaredDistance, type Vector } from './texture-feature-vectors.js';

export interface Clustering {
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
 * Returns the best of several starts. The result is the same for the same vectors in the same order and the same seed. There are fewer
 * clusters than `k` if fewer vectors are distinct, and none without vectors.
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
